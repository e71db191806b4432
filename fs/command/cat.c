#include "fs/command/commands.h"

#include "fs/command/copy_file.h"
#include "fs/command/model_input.h"
#include "fs/command/terminal.h"
#include "fs/command/tree_selection.h"
#include "gguf/models/tensor_names.h"
#include "gguf/support/arrays.h"
#include "gguf/support/exit_status.h"
#include "gguf/support/progress.h"
#include "gguf/support/safe_print.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

struct output {
    int error; /* of stdout, as opposed to one of the source */
    bool is_terminal;
    bool is_file; /* then the progress is shown on stderr */
    bool is_slow; /* computed from all data of the model, as SHA256SUMS; shown as well */
    uint64_t done_bytes, total_bytes;
    struct gguf_progress progress;
    struct gguf_buffer text; /* for a terminal: begins with a character that was cut */
};

/* How many bytes at the end are the start of an UTF-8 character that is not complete. */
static size_t cut_bytes(const char *bytes, size_t n_bytes)
{
    for (size_t n = 1; n <= 3 && n <= n_bytes; n++) {
        const unsigned char byte = (unsigned char)bytes[n_bytes - n];

        if (byte >= 0xc0)
            return n < (byte >= 0xf0 ? 4U : byte >= 0xe0 ? 3U : 2U) ? n : 0;
        if (byte < 0x80)
            break;
    }
    return 0;
}

static int print_to_terminal(struct output *output, const char *bytes, size_t n_bytes)
{
    struct gguf_buffer *text = &output->text;
    size_t n_whole;

    if (gguf_buffer_add(text, bytes, n_bytes) < 0)
        return -ENOMEM;
    n_whole = text->length - cut_bytes(text->bytes, text->length);
    gguf_print_safe_lines(stdout, text->bytes, n_whole);
    gguf_buffer_drop(text, n_whole);
    errno = EIO; /* clears the error of an earlier write */
    if (fflush(stdout) != 0 || ferror(stdout))
        output->error = -errno;
    return output->error;
}

static int write_to_stdout(void *user, uint64_t offset, const char *bytes, size_t n_bytes)
{
    struct output *output = user;

    if (output->is_slow)
        gguf_progress_erase(&output->progress);
    else if (output->is_file)
        gguf_progress_draw(&output->progress, offset, output->total_bytes);
    if (output->is_terminal)
        return print_to_terminal(output, bytes, n_bytes);
    while (n_bytes > 0) {
        const ssize_t n = write(STDOUT_FILENO, bytes, n_bytes);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0) {
            output->error = -errno;
            return output->error;
        }
        bytes += n;
        n_bytes -= (size_t)n;
    }
    return 0;
}

static bool is_never_interrupted(void *user)
{
    (void)user;
    return false;
}

static void advance(void *user, uint64_t n_bytes)
{
    struct output *output = user;

    output->done_bytes += n_bytes;
    gguf_progress_draw(&output->progress, output->done_bytes, output->total_bytes);
}

/* Write a file to stdout, whose buffer must be empty. */
static int cat_file(struct fs_tree *tree, const char *model, fs_node_index node)
{
    const struct fs_image *image;
    struct output output = {.is_terminal = isatty(STDOUT_FILENO) != 0};
    char path[FS_PATH_BYTES];
    int result = fs_tree_open(tree, node, NULL, &image);

    if (result == 0) {
        /* The sandbox forbids fstat(). A pipe or a terminal has no position. */
        output.is_file = lseek(STDOUT_FILENO, 0, SEEK_CUR) >= 0;
        output.is_slow = fs_image_is_slow(image);
        output.total_bytes = fs_work_bytes(tree, node, image->size_bytes);
        gguf_progress_start(&output.progress, model);
        result = fs_copy_file(image, &(struct fs_interrupt){is_never_interrupted, &output, advance},
                              write_to_stdout, &output);
        if (output.is_file || output.is_slow)
            gguf_progress_erase(&output.progress);
        gguf_print_safe_lines(stdout, output.text.bytes, output.text.length);
        gguf_buffer_free(&output.text);
        fs_tree_close(tree, image);
    }
    if (output.error < 0)
        return gguf_fail_stdout("ggufs", output.error);
    if (result < 0) {
        fs_node_path(tree, node, path);
        fs_print_error("%s: %s: %s", model, path, strerror(-result));
    }
    return gguf_exit_status(result);
}

static int cat_path(struct fs_tree *tree, const char *model, const char *path);

/* Write the files that match a pattern, in the order of the tree. */
static int cat_chosen(const struct fs_selection *selection, struct fs_tree *tree, const char *model,
                      fs_node_index directory)
{
    int status = EX_OK;

    for (uint32_t i = 0; status == EX_OK && i < fs_tree_node(tree, directory)->n_children; i++) {
        const fs_node_index child = fs_tree_child(tree, directory, i);
        char path[FS_PATH_BYTES];

        switch (fs_choice_of(selection, child)) {
        case FS_NOT_CHOSEN:
            break;
        case FS_HOLDS_CHOSEN:
            status = cat_chosen(selection, tree, model, child);
            break;
        case FS_CHOSEN:
            fs_node_path(tree, child, path);
            status = cat_path(tree, model, path);
            break;
        }
    }
    return status;
}

static int cat_pattern(struct fs_tree *tree, const char *model, const char *pattern)
{
    struct fs_selection selection;
    int status;

    if (fs_selection_begin(&selection, tree) < 0)
        return fs_refuse_memory();
    if (fs_selection_add(&selection, pattern) > 0)
        status = cat_chosen(&selection, tree, model, FS_ROOT);
    else
        status = fs_refuse_path(tree, model, pattern);
    fs_selection_end(&selection);
    return status;
}

static int cat_path(struct fs_tree *tree, const char *model, const char *path)
{
    fs_node_index node;

    if (fs_tree_find(tree, path, &node) < 0)
        return cat_pattern(tree, model, path);
    if (fs_tree_node(tree, node)->kind == FS_FILE)
        return cat_file(tree, model, node);
    fs_print_error("%s: %s is a directory; to list it: ggufs --list MODEL PATH", model,
                   *path != '\0' ? path : "/");
    return EX_NOINPUT;
}

static int cat_model(const struct fs_options *options, struct fs_input *input)
{
    struct fs_tree *tree;
    int status = fs_make_tree(options, input, &tree);

    if (status != EX_OK)
        return status;
    for (int i = 0; status == EX_OK && i < options->n_paths; i++)
        status = cat_path(tree, input->path, options->paths[i]);
    fs_close_tree(tree);
    return status;
}

int fs_cat(const struct fs_options *options)
{
    return fs_run_for_models(options, cat_model);
}

/* ---- --info ---- */

/* Types that a line has room for; the others have fewer bytes. */
enum { TYPES_SHOWN = 6, MAX_TYPES = 16 };

struct layer {
    struct gguf_string number; /* as in the names; empty: tensors of no layer */
    uint64_t n_tensors, n_elements, n_bytes;
    struct type {
        const struct dequant_type *type; /* NULL: unknown */
        uint64_t n_bytes;
    } types[MAX_TYPES];
    size_t n_types;
};

struct member {
    struct gguf_string layer; /* its number; empty: none */
    const struct gguf_tensor *tensor;
};

/* By number; tensors of no layer come last. */
static int compare_members(const void *a, const void *b)
{
    const struct gguf_string first = ((const struct member *)a)->layer;
    const struct gguf_string second = ((const struct member *)b)->layer;

    if (first.length_bytes == 0 || second.length_bytes == 0)
        return (first.length_bytes == 0) - (second.length_bytes == 0);
    if (first.length_bytes != second.length_bytes)
        return first.length_bytes < second.length_bytes ? -1 : 1;
    return gguf_string_compare(first, second);
}

static int compare_types(const void *a, const void *b)
{
    const struct type *first = a, *second = b;

    return (first->n_bytes < second->n_bytes) - (first->n_bytes > second->n_bytes);
}

static void add_tensor(struct layer *layer, const struct gguf_tensor *tensor)
{
    const uint64_t n_bytes = tensor->type ? tensor->size_bytes : tensor->extent_bytes;
    size_t i = 0;

    layer->n_tensors++;
    layer->n_elements += tensor->n_elements;
    layer->n_bytes += n_bytes;
    while (i < layer->n_types && layer->types[i].type != tensor->type)
        i++;
    if (i == MAX_TYPES)
        return;
    if (i == layer->n_types)
        layer->types[layer->n_types++].type = tensor->type;
    layer->types[i].n_bytes += n_bytes;
}

static void print_layer(struct layer *layer)
{
    const bool is_layer = layer->number.length_bytes > 0;

    qsort(layer->types, layer->n_types, sizeof *layer->types, compare_types);
    printf("%8.*s %8" PRIu64 " %15" PRIu64 " %15" PRIu64,
           is_layer ? (int)layer->number.length_bytes : 4, is_layer ? layer->number.data : "none",
           layer->n_tensors, layer->n_elements, layer->n_bytes);
    if (layer->n_elements > 0)
        printf("  %15.2f ", 8 * (double)layer->n_bytes / (double)layer->n_elements);
    else
        printf("  %15s ", "-");
    for (size_t i = 0; i < layer->n_types && i < TYPES_SHOWN; i++)
        printf(" %s", layer->types[i].type ? layer->types[i].type->name : "unknown");
    puts(layer->n_types > TYPES_SHOWN ? " ..." : "");
}

/*
 * Print a line per layer of the model to stdout: tensors, elements, bytes, bits per weight, and the
 * types, the one with most bytes first. Tensors outside of layers follow as one line. Returns 0 or
 * -ENOMEM.
 */
static int print_layers(const struct gguf_model *model)
{
    struct member *members = calloc(model->n_tensors + 1, sizeof *members);
    struct layer layer = {0};

    if (!members)
        return -ENOMEM;
    for (uint64_t i = 0; i < model->n_tensors; i++) {
        struct gguf_string rest;

        members[i].tensor = &model->tensors[i];
        if (!gguf_tensor_name_split(gguf_name_of(&model->tensors[i]), &members[i].layer, &rest))
            members[i].layer = (struct gguf_string){0};
    }
    qsort(members, model->n_tensors, sizeof *members, compare_members);
    printf("%8s %8s %15s %15s  %15s  %s\n", "layer", "tensors", "elements", "bytes",
           "bits per weight", "types");
    for (uint64_t i = 0; i < model->n_tensors; i++) {
        if (i > 0 && compare_members(&members[i - 1], &members[i]) != 0) {
            print_layer(&layer);
            layer = (struct layer){0};
        }
        layer.number = members[i].layer;
        add_tensor(&layer, members[i].tensor);
    }
    if (model->n_tensors > 0)
        print_layer(&layer);
    free(members);
    return 0;
}

static int cat_summary(const struct fs_options *options, struct fs_input *input)
{
    static bool is_first = true;
    struct fs_tree *tree;
    int status = fs_make_tree(options, input, &tree);

    if (status != EX_OK)
        return status;
    if (options->n_models > 1) {
        printf("%sfile            ", is_first ? "" : "\n");
        is_first = false;
        gguf_print_safe_string(stdout, input->path);
        putchar('\n');
        fflush(stdout);
    }
    status = cat_path(tree, input->path, "summary.txt");
    if (status == EX_OK && options->layers) {
        putchar('\n');
        if (print_layers(tree->model) < 0)
            status = fs_refuse_memory();
        fflush(stdout); /* cat_path() writes to the descriptor */
    }
    fs_close_tree(tree);
    return status;
}

int fs_info(const struct fs_options *options)
{
    return fs_run_for_models(options, cat_summary);
}
