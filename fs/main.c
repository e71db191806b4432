/* ggufs: mounts a model file as a directory tree, or checks one. */

#include "fs/mountpoint.h"
#include "fs/options.h"
#include "fs/serve.h"
#include "fs/tree.h"
#include "gguf/model.h"

#include <fuse_lowlevel.h>

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sysexits.h>

static int exit_status_of(int code)
{
    switch (-code) {
    case ENOENT:
    case ENOTDIR:
    case EISDIR:
        return EX_NOINPUT;
    case EACCES:
    case EPERM:
        return EX_NOPERM;
    case EIO:
        return EX_IOERR;
    case ENOMEM:
    case EMFILE:
    case ENFILE:
        return EX_OSERR;
    default:
        return EX_DATAERR;
    }
}

static void print_finding(FILE *stream, const char *prefix, const char *path,
                          const struct gguf_finding *finding)
{
    fprintf(stream, "%s%s: %s", prefix, path, finding->severity == GGUF_NOTE ? "note: " : "");
    if (finding->file_offset != GGUF_NO_OFFSET)
        fprintf(stream, "byte %" PRIu64 ": ", finding->file_offset);
    fprintf(stream, "%s\n", finding->message);
}

/* `user` is the address of the model's path. */
static void print_to_stdout(void *user, const struct gguf_finding *finding)
{
    print_finding(stdout, "", *(const char **)user, finding);
}

static int check(const char *path)
{
    struct gguf_report report = {.each = print_to_stdout, .user = &path};
    struct gguf_model *model;
    struct fs_tree *tree;

    if (gguf_open(path, &model, &report) == 0) {
        if (fs_tree_make(model, &tree, &report) == 0) {
            printf("%s: OK: %s, %s, %" PRIu64 " keys, %" PRIu64 " tensors\n", path, model->format,
                   model->big_endian ? "big-endian" : "little-endian", model->n_keys,
                   model->n_tensors);
            fs_tree_free(tree);
        }
        gguf_close(model);
    }
    return report.n_errors > 0 ? exit_status_of(report.first_error.code) : EX_OK;
}

static int check_all(const struct fs_options *options)
{
    int status = EX_OK;

    for (int i = 0; i < options->n_paths; i++) {
        const int one = check(options->paths[i]);

        if (status == EX_OK)
            status = one;
    }
    return status;
}

static int refuse(const char *path, const struct gguf_report *report)
{
    print_finding(stderr, "ggufs: ", path, &report->first_error);
    if (report->n_errors > 1)
        fprintf(stderr, "ggufs: %s: %zu more errors; see them all with: ggufs --check %s\n", path,
                report->n_errors - 1, path);
    return exit_status_of(report->first_error.code);
}

static int mount_model(struct fs_options *options)
{
    const char *path = options->paths[0];
    const char *mountpoint = options->paths[1];
    struct gguf_report report = {0};
    struct gguf_model *model;
    struct fs_tree *tree;
    int status;

    if (gguf_open(path, &model, &report) < 0)
        return refuse(path, &report);
    if (fs_tree_make(model, &tree, &report) == 0) {
        status = fs_mountpoint_check(mountpoint, options);
        if (status == EX_OK)
            status = fs_serve(tree, mountpoint, options);
        fs_tree_free(tree);
    } else {
        status = refuse(path, &report);
    }
    gguf_close(model);
    return status;
}

static int run(struct fs_options *options)
{
    switch (options->command) {
    case FS_HELP:
        fs_options_print_help(stdout);
        return EX_OK;
    case FS_VERSION:
        printf("ggufs %s\nlibfuse %s\n", GGUFS_VERSION, fuse_pkgversion());
        return EX_OK;
    case FS_CHECK:
        return check_all(options);
    case FS_MOUNT:
        return mount_model(options);
    }
    return EX_SOFTWARE;
}

int main(int argc, char **argv)
{
    struct fs_options options;
    int status = EX_USAGE;

    gguf_map_catch_faults();
    if (fs_options_parse(argc, argv, &options) < 0)
        fs_options_print_usage(stderr);
    else
        status = run(&options);
    fs_options_free(&options);
    return status;
}
