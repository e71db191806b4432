#include "fs/command/commands.h"

#include "fs/command/copy_file.h"
#include "fs/command/model_input.h"
#include "fs/command/terminal.h"
#include "fs/command/tree_selection.h"
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
#include <unistr.h>

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
    ucs4_t character;

    for (size_t n = 1; n <= 3 && n <= n_bytes; n++) {
        if (u8_mbtoucr(&character, (const uint8_t *)bytes + n_bytes - n, n) == -2)
            return n;
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

static int cat_node(struct fs_tree *tree, const char *model, fs_node_index node)
{
    char path[FS_PATH_BYTES];

    if (fs_tree_node(tree, node)->kind == FS_LINK)
        fs_tree_follow(tree, node, &node);
    if (fs_tree_node(tree, node)->kind == FS_FILE)
        return cat_file(tree, model, node);
    fs_node_path(tree, node, path);
    fs_print_error("%s: %s is a directory; to list it: ggufs --list MODEL PATH", model,
                   *path != '\0' ? path : "/");
    return EX_NOINPUT;
}

/* Write the files that match a pattern, in the order of the tree. */
static int cat_chosen(const struct fs_selection *selection, struct fs_tree *tree, const char *model,
                      fs_node_index directory)
{
    int status = EX_OK;

    for (uint32_t i = 0; status == EX_OK && i < fs_tree_node(tree, directory)->n_children; i++) {
        const fs_node_index child = fs_tree_child(tree, directory, i);
        const enum fs_choice choice = fs_choice_of(selection, child);

        if (choice == FS_HOLDS_CHOSEN)
            status = cat_chosen(selection, tree, model, child);
        else if (choice == FS_CHOSEN)
            status = cat_node(tree, model, child);
    }
    return status;
}

static int cat_path(struct fs_tree *tree, const char *model, const char *path)
{
    struct fs_selection selection;
    fs_node_index node;
    int status;

    if (fs_tree_find(tree, path, &node) == 0)
        return cat_node(tree, model, node);
    if (fs_selection_begin(&selection, tree) < 0)
        return fs_refuse_memory();
    if (fs_selection_add(&selection, path) > 0)
        status = cat_chosen(&selection, tree, model, FS_ROOT);
    else
        status = fs_refuse_path(tree, model, path);
    fs_selection_end(&selection);
    return status;
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
