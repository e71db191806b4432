#include "fs/mount/read_failures.h"

#include "fs/mount/error_log.h"
#include "gguf/support/file_status.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum cause { BECAME_SHORTER, WAS_CHANGED, IS_UNREADABLE };

static const char *const explanations[] = {
    [BECAME_SHORTER] = "it is shorter than when it was mounted; the missing bytes cannot be read",
    [WAS_CHANGED] = "its header or size has changed since it was mounted; mount it again",
    [IS_UNREADABLE] = "its disk or file system reports an error",
};

int fs_read_failures_begin(struct fs_read_failures *failures, const struct fs_tree *tree)
{
    *failures = (struct fs_read_failures){.tree = tree};
    failures->reported = calloc(tree->model->n_files, sizeof *failures->reported);
    return failures->reported ? 0 : -ENOMEM;
}

void fs_read_failures_end(struct fs_read_failures *failures)
{
    free(failures->reported);
    failures->reported = NULL;
}

/* Write the path of a node in the tree to `out`, truncated if it does not fit. */
static void write_path(const struct fs_nodes *nodes, fs_node_index node, FILE *out)
{
    const struct fs_node *it = &nodes->list[node];

    if (node == FS_ROOT)
        return;
    if (it->parent != FS_ROOT) {
        write_path(nodes, it->parent, out);
        fputc('/', out);
    }
    fputs(it->name, out);
}

static void report(struct fs_read_failures *failures, uint32_t file_index, enum cause cause,
                   fs_node_index node)
{
    const unsigned bit = 1u << cause;
    char *path = NULL;
    size_t length;
    FILE *out;

    if (atomic_fetch_or(&failures->reported[file_index], bit) & bit)
        return;
    out = open_memstream(&path, &length);
    if (out) {
        write_path(&failures->tree->nodes, node, out);
        fclose(out);
    }
    fs_log_error("%s: %s (noticed at %s)", failures->tree->model->files[file_index].path,
                 explanations[cause], path ? path : "?");
    free(path);
}

/* Return 1 and store the cause if something is wrong with the file, else return 0. */
static int find_cause(const struct gguf_source *file, enum cause *cause)
{
    struct gguf_file_status status;

    if (file->kind->get_status(file, &status) < 0)
        *cause = IS_UNREADABLE;
    else if (status.size_bytes < file->size_bytes)
        *cause = BECAME_SHORTER;
    else if (gguf_source_check(file, file->size_bytes) == -ESTALE)
        *cause = WAS_CHANGED;
    else
        return 0;
    return 1;
}

/* Any file of the model may be the cause: a request can need several. */
static void report_file(struct fs_read_failures *failures, fs_node_index node)
{
    const struct gguf_model *model = failures->tree->model;
    bool is_found = false;
    enum cause cause;

    for (uint32_t i = 0; i < model->n_files; i++) {
        /* With -o partial, data that has not arrived yet is not a failure. */
        if (model->files[i].is_growing) {
            is_found = true;
        } else if (find_cause(&model->files[i], &cause)) {
            is_found = true;
            report(failures, i, cause, node);
        }
    }
    if (!is_found)
        report(failures, model->named_file, IS_UNREADABLE, node);
}

void fs_report_read_failure(struct fs_read_failures *failures, fs_node_index node, int code)
{
    if (code == -EIO || code == -ESTALE)
        report_file(failures, node);
    else if (code == -ENOMEM && !atomic_exchange(&failures->is_memory_reported, true))
        fs_log_error("%s: reading fails: %s",
                     failures->tree->model->files[failures->tree->model->named_file].path,
                     strerror(ENOMEM));
}
