#include "fs/mount/read_failures.h"

#include "fs/mount/log.h"
#include "gguf/support/file_status.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum cause { BECAME_SHORTER, WAS_CHANGED, IS_UNREADABLE, N_CAUSES };

static const struct {
    int error; /* what readers get */
    const char *explanation;
} causes[] = {
    [BECAME_SHORTER] = {EIO, "it is shorter than when it was mounted; the missing bytes cannot be "
                             "read"},
    [WAS_CHANGED] = {ESTALE, "its header or size has changed since it was mounted; mount it again"},
    [IS_UNREADABLE] = {EIO, "its disk or file system reports an error"},
};

int fs_read_failures_begin(struct fs_read_failures *failures, const struct fs_tree *tree)
{
    *failures = (struct fs_read_failures){.tree = tree};
    failures->counts = calloc((size_t)tree->model->n_files * N_CAUSES, sizeof *failures->counts);
    return failures->counts ? 0 : -ENOMEM;
}

/* The path of a model file. */
static const char *path_of(const struct fs_read_failures *failures, uint32_t file_index)
{
    return failures->tree->model->files[file_index].path;
}

static void log_count(const char *path, const char *cause, int error, uint64_t n)
{
    fs_log(&(struct fs_log_about){.event = FS_LOG_READ_FAILURES, .error = error, .count = n},
           "%s: %" PRIu64 " requests have failed: %s", path, n, cause);
}

void fs_read_failures_end(struct fs_read_failures *failures)
{
    const struct gguf_model *model = failures->tree->model;

    for (uint32_t i = 0; i < model->n_files; i++) {
        for (int cause = 0; cause < N_CAUSES; cause++) {
            const uint64_t n = failures->counts[i * N_CAUSES + (unsigned)cause];

            if (n > 1)
                log_count(path_of(failures, i), causes[cause].explanation, causes[cause].error, n);
        }
    }
    if (failures->n_without_memory > 1)
        log_count(path_of(failures, model->named_file), strerror(ENOMEM), ENOMEM,
                  failures->n_without_memory);
    free(failures->counts);
    failures->counts = NULL;
}

/* Return true if n is a power of ten. */
static bool is_milestone(uint64_t n)
{
    while (n >= 10 && n % 10 == 0)
        n /= 10;
    return n == 1;
}

static void report(struct fs_read_failures *failures, uint32_t file_index, enum cause cause,
                   fs_node_index node)
{
    const uint64_t n = 1 + atomic_fetch_add(&failures->counts[file_index * N_CAUSES + cause], 1);
    char *path;

    if (n > 1 && is_milestone(n))
        log_count(path_of(failures, file_index), causes[cause].explanation, causes[cause].error, n);
    if (n > 1)
        return;
    path = fs_nodes_path(&failures->tree->nodes, node);
    fs_log(&(struct fs_log_about){.event = FS_LOG_READ_FAILED,
                                  .error = causes[cause].error,
                                  .file = path},
           "%s: %s (noticed at %s)", path_of(failures, file_index), causes[cause].explanation,
           path ? path : "?");
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

static void report_memory(struct fs_read_failures *failures)
{
    const char *path = path_of(failures, failures->tree->model->named_file);
    const uint64_t n = 1 + atomic_fetch_add(&failures->n_without_memory, 1);

    if (n == 1)
        fs_log(&(struct fs_log_about){.event = FS_LOG_READ_FAILED, .error = ENOMEM},
               "%s: reading fails: %s", path, strerror(ENOMEM));
    else if (is_milestone(n))
        log_count(path, strerror(ENOMEM), ENOMEM, n);
}

void fs_report_read_failure(struct fs_read_failures *failures, fs_node_index node, int code)
{
    if (code != -EINTR)
        atomic_fetch_add(&failures->n, 1);
    if (code == -EIO || code == -ESTALE)
        report_file(failures, node);
    else if (code == -ENOMEM)
        report_memory(failures);
}
