#include "fs/mount/read_failures.h"

#include "fs/mount/log.h"
#include "gguf/support/file_status.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>

int fs_read_failures_begin(struct fs_read_failures *failures, const struct fs_tree *tree,
                           _Atomic uint64_t *n)
{
    *failures = (struct fs_read_failures){.tree = tree, .n = n};
    failures->are_logged = calloc(tree->model->n_files + 1, sizeof *failures->are_logged);
    return failures->are_logged ? 0 : -ENOMEM;
}

void fs_read_failures_end(struct fs_read_failures *failures)
{
    free(failures->are_logged);
    failures->are_logged = NULL;
}

/* Return what is wrong with a file, or NULL. */
static const char *find_cause(const struct gguf_file *file)
{
    struct gguf_file_status status;

    if (file->source.kind->get_status(&file->source, &status) < 0)
        return "its disk or file system reports an error";
    if (status.size_bytes < file->source.size_bytes)
        return "it is shorter than when it was mounted; the missing bytes cannot be read";
    if (gguf_file_check(file, file->source.size_bytes) == -ESTALE)
        return "its header or size has changed since it was mounted; mount it again";
    return NULL;
}

static void log_file(struct fs_read_failures *failures, uint32_t file_index, const char *cause,
                     fs_node_index node)
{
    char path[FS_PATH_BYTES];

    if (atomic_exchange(&failures->are_logged[file_index], true))
        return;
    fs_node_path(failures->tree, node, path);
    fs_log(LOG_ERR, "%s: %s (noticed at %s)", failures->tree->model->files[file_index].source.path,
           cause, path);
}

/* Any file of the model may be the cause: a request can need several. */
static void log_files(struct fs_read_failures *failures, fs_node_index node)
{
    const struct gguf_model *model = failures->tree->model;
    bool is_found = false;

    for (uint32_t i = 0; i < model->n_files; i++) {
        /* With -o partial, data that has not arrived yet is not a failure. */
        const bool is_growing = model->files[i].source.is_growing;
        const char *cause = is_growing ? NULL : find_cause(&model->files[i]);

        is_found |= is_growing || cause;
        if (cause)
            log_file(failures, i, cause, node);
    }
    if (!is_found)
        log_file(failures, model->named_file, "its disk or file system reports an error", node);
}

static void log_length(struct fs_read_failures *failures, fs_node_index node)
{
    const struct gguf_model *model = failures->tree->model;
    char path[FS_PATH_BYTES];

    fs_node_path(failures->tree, node, path);
    fs_log(LOG_ERR, "%s: %s has over %u MiB of text and cannot be opened",
           model->files[model->named_file].source.path, path, (unsigned)(FS_MAX_TEXT_BYTES >> 20));
}

void fs_report_read_failure(struct fs_read_failures *failures, fs_node_index node, int code)
{
    const struct gguf_model *model = failures->tree->model;

    if (code != -EINTR)
        atomic_fetch_add(failures->n, 1);
    if (model->n_files == 0) /* a text, which memory is too short for */
        return;
    if (code == -EIO || code == -ESTALE)
        log_files(failures, node);
    else if (code == -ENOMEM && !atomic_exchange(&failures->is_memory_logged, true))
        fs_log(LOG_ERR, "%s: reading fails: %s", model->files[model->named_file].source.path,
               strerror(ENOMEM));
    else if (code == -EFBIG && !atomic_exchange(&failures->is_length_logged, true))
        log_length(failures, node);
}
