#include "fs/mount/server.h"

#include "fs/mount/log.h"
#include "gguf/support/file_status.h"

#include <errno.h>
#include <syslog.h>

_Static_assert(FS_MAX_TEXT_BYTES == 256 << 20, "a message says so");

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

/* Log a cause unless are_logged[index] says that it has been: for file `index`, or the named one.
 */
static void log_once(struct fs_shown *shown, uint32_t index, fs_node_index node, const char *cause)
{
    const struct gguf_model *model = shown->tree->model;
    const uint32_t file = index < model->n_files ? index : model->named_file;
    char path[FS_PATH_BYTES];

    if (atomic_exchange(&shown->are_logged[index], true))
        return;
    fs_node_path(shown->tree, node, path);
    fs_log(LOG_ERR, "%s: %s (noticed at %s)", model->files[file].source.path, cause, path);
}

/* Any file of the model may be the cause: a request can need several. */
static void log_files(struct fs_shown *shown, fs_node_index node)
{
    const struct gguf_model *model = shown->tree->model;
    bool is_found = false;

    for (uint32_t i = 0; i < model->n_files; i++) {
        /* With -o partial, data that has not arrived yet is not a failure. */
        const bool is_growing = model->files[i].source.is_growing;
        const char *cause = is_growing ? NULL : find_cause(&model->files[i]);

        is_found |= is_growing || cause;
        if (cause)
            log_once(shown, i, node, cause);
    }
    if (!is_found)
        log_once(shown, model->named_file, node, disk_fails);
}

void fs_report_read_failure(struct fs_server *server, struct fs_shown *shown, fs_node_index node,
                            int code)
{
    const uint32_t n_files = shown->tree->model->n_files;

    if (code != -EINTR)
        atomic_fetch_add(&server->n_failures, 1);
    if (n_files == 0) /* a text, which memory is too short for */
        return;
    if (code == -EIO || code == -ESTALE)
        log_files(shown, node);
    else if (code == -ENOMEM)
        log_once(shown, n_files + FS_OF_MEMORY, node, "reading fails: memory is too short");
    else if (code == -EFBIG)
        log_once(shown, n_files + FS_OF_LENGTH, node,
                 "a file with over 256 MiB of text cannot be opened");
}
