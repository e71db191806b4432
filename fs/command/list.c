#include "fs/command/commands.h"

#include "fs/command/many_models.h"
#include "fs/command/model_input.h"
#include "fs/command/tree_selection.h"
#include "fs/command/terminal.h"
#include "fs/tree/output/json.h"
#include "gguf/support/exit_status.h"
#include "gguf/support/safe_print.h"

#include <inttypes.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

struct listing {
    struct fs_tree *tree;
    struct fs_selection selection;
    const char *model;
    bool is_terminal, is_json;
};

struct line {
    const struct listing *listing;
    const struct fs_node *node;
    const char *path;
    uint64_t size_bytes;
};

static void write_json(const void *subject, struct fs_sink *sink)
{
    const struct line *line = subject;

    fs_json_begin(sink, "file", line->listing->model);
    fs_json_text_member(sink, "path", line->path);
    fs_json_count(sink, "n_bytes", line->size_bytes);
    fs_json_text_member(sink, "target", line->node->kind == FS_LINK ? line->node->target : NULL);
    fs_sink_literal(sink, "}\n");
}

/* Print names unchanged to a program, escaped to a terminal. They contain no line breaks. */
static void print_name(const struct listing *listing, const char *name)
{
    if (listing->is_terminal)
        gguf_print_safe_string(stdout, name);
    else
        fputs(name, stdout);
}

static int print_node(const struct listing *listing, fs_node_index index)
{
    const struct fs_node *node = fs_tree_node(listing->tree, index);
    char path[FS_PATH_BYTES];
    uint64_t size_bytes;
    int result = fs_tree_size(listing->tree, index, NULL, &size_bytes);

    fs_node_path(listing->tree, index, path);
    if (result == 0 && listing->is_json)
        result = fs_print_written(write_json, &(struct line){listing, node, path, size_bytes});
    if (result < 0) {
        fs_print_error("%s: %s: %s", listing->model, path, strerror(-result));
        return gguf_exit_status(result);
    }
    if (listing->is_json)
        return EX_OK;
    printf("%14" PRIu64 "  ", size_bytes);
    print_name(listing, path);
    if (node->kind == FS_LINK) {
        fputs(" -> ", stdout);
        print_name(listing, node->target);
    }
    putchar('\n');
    return EX_OK;
}

static int print_directory(const struct listing *listing, fs_node_index directory)
{
    const struct fs_tree *tree = listing->tree;
    int status = EX_OK;

    for (uint32_t i = 0; i < fs_tree_node(tree, directory)->n_children; i++) {
        const fs_node_index child = fs_tree_child(tree, directory, i);
        int one = EX_OK;

        if (fs_choice_of(&listing->selection, child) == FS_NOT_CHOSEN)
            continue;
        if (fs_node_is_directory(fs_tree_node(tree, child)))
            one = print_directory(listing, child);
        else
            one = print_node(listing, child);
        status = status == EX_OK ? one : status;
    }
    return status;
}

static int choose(struct listing *listing, const struct fs_options *options)
{
    int status = EX_OK;

    if (options->n_paths == 0)
        fs_selection_add(&listing->selection, "");
    for (int i = 0; i < options->n_paths; i++) {
        if (fs_selection_add(&listing->selection, options->paths[i]) == 0)
            status = fs_refuse_path(listing->tree, listing->model, options->paths[i]);
    }
    return status;
}

static int list_model(const struct fs_options *options, struct fs_input *input)
{
    struct listing listing = {
        .model = input->path, .is_terminal = isatty(STDOUT_FILENO) != 0, .is_json = options->json};
    int status = fs_make_tree(options, input, &listing.tree);
    int listed;

    if (status != EX_OK)
        return status;
    if (fs_selection_begin(&listing.selection, listing.tree) == 0) {
        status = choose(&listing, options);
        listed = print_directory(&listing, FS_ROOT);
        status = status == EX_OK ? listed : status;
    } else {
        status = fs_refuse_memory();
    }
    fs_selection_end(&listing.selection);
    fs_close_tree(listing.tree);
    return status;
}

int fs_list(const struct fs_options *options)
{
    int status;

    if (options->n_paths == 0 && fs_print_many(options, &status))
        return status;
    return fs_run_for_models(options, list_model);
}
