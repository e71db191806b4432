#include "fs/mount/read_failures.h"

#include "fs/mount/log.h"
#include "gguf/support/file_status.h"

#include <errno.h>
#include <stdlib.h>
#include <syslog.h>

_Static_assert(FS_MAX_TEXT_BYTES == 256 << 20, "a message says so");

/* Causes that are no file: they follow the files in are_logged. */
enum { OF_MEMORY, OF_LENGTH, N_OTHER_CAUSES };

int fs_read_failures_begin(struct fs_read_failures *failures, const struct fs_tree *tree,
                           _Atomic uint64_t *n)
{
    *failures = (struct fs_read_failures){.tree = tree, .n = n};
    failures->are_logged =
        calloc(tree->model->n_files + N_OTHER_CAUSES, sizeof *failures->are_logged);
    return failures->are_logged ? 0 : -ENOMEM;
}

void fs_read_failures_end(struct fs_read_failures *failures)
{
    free(failures->are_logged);
    failures->are_logged = NULL;
}

static const char disk_fails[] = "its disk or file system reports an error";

/* Return what is wrong with a file, or NULL. */
static const char *find_cause(const struct gguf_file *file)
{
    struct gguf_file_status status;

    if (file->source.kind->get_status(&file->source, &status) < 0)
        return disk_fails;
    if (status.size_bytes < file->source.size_bytes)
        return "it is shorter than when it was mounted; the missing bytes cannot be read";
    if (gguf_file_check(file, file->source.size_bytes) == -ESTALE)
        return "its header or size has changed since it was mounted; mount it again";
    return NULL;
}

/* Log a cause for a file of the model unless are_logged[index] says that it has been. */
static void log_once(struct fs_read_failures *failures, uint32_t index, uint32_t file_index,
                     fs_node_index node, const char *cause)
{
    char path[FS_PATH_BYTES];

    if (atomic_exchange(&failures->are_logged[index], true))
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
            log_once(failures, i, i, node, cause);
    }
    if (!is_found)
        log_once(failures, model->named_file, model->named_file, node, disk_fails);
}

void fs_report_read_failure(struct fs_read_failures *failures, fs_node_index node, int code)
{
    const uint32_t n_files = failures->tree->model->n_files;
    const uint32_t named = failures->tree->model->named_file;

    if (code != -EINTR)
        atomic_fetch_add(failures->n, 1);
    if (n_files == 0) /* a text, which memory is too short for */
        return;
    if (code == -EIO || code == -ESTALE)
        log_files(failures, node);
    else if (code == -ENOMEM)
        log_once(failures, n_files + OF_MEMORY, named, node, "reading fails: memory is too short");
    else if (code == -EFBIG)
        log_once(failures, n_files + OF_LENGTH, named, node,
                 "a file with over 256 MiB of text cannot be opened");
}
