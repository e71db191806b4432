/* ggufs: mounts a model file as a directory tree, or checks one. */

#include "dequant/kernels.h"
#include "fs/command/check.h"
#include "fs/mount/mountpoint.h"
#include "fs/command/options.h"
#include "fs/mount/serve.h"
#include "fs/command/terminal.h"
#include "fs/tree/tree.h"
#include "gguf/faults.h"
#include "gguf/model.h"
#include "gguf/support/exit_status.h"
#include "fs/mount/complain.h"

#include <fuse_lowlevel.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sysexits.h>
#include <unistd.h>

struct refusal {
    const char *path;
    size_t n_errors;
};

/* Prints the first error, and what a note behind it adds, for instance how much is missing. */
static void print_first(void *user, const struct gguf_finding *finding)
{
    struct refusal *refusal = user;

    if (finding->severity == GGUF_ERROR && refusal->n_errors++ > 0)
        return;
    if (refusal->n_errors > 0)
        fs_print_finding(stderr, "ggufs: ", refusal->path, finding);
}

static int refuse(const char *path, const struct gguf_report *report)
{
    if (report->n_errors == 2)
        fs_complain(path, "ggufs --check", "1 more error; see it with");
    if (report->n_errors > 2)
        fs_complain(path, "ggufs --check", "%zu more errors; see them all with",
                    report->n_errors - 1);
    return gguf_exit_status(report->first_error.code);
}

static int mount_model(struct fs_options *options)
{
    const char *path = options->paths[0];
    const char *mountpoint = options->paths[1];
    struct refusal refusal = {.path = path};
    struct gguf_report report = {.each = print_first, .user = &refusal};
    struct gguf_model *model;
    struct fs_tree *tree;
    int status;

    if (gguf_open_with(path, &options->open, &model, &report) < 0)
        return refuse(path, &report);
    if (gguf_edits_apply(&options->edits, model, &report) == 0 &&
        fs_tree_make(model, &(struct fs_tree_options){options->split_bytes}, &tree, &report) == 0) {
        status = fs_mountpoint_check(mountpoint, &options->mount);
        if (status == EX_OK)
            status = fs_serve(tree, mountpoint, &options->mount);
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
        printf("ggufs %s\nlibfuse %s\nkernels %s\n", GGUFS_VERSION, fuse_pkgversion(),
               dequant_chosen_kernels()->name);
        return EX_OK;
    case FS_CHECK:
        return fs_check_models(options);
    case FS_MOUNT:
        return mount_model(options);
    }
    return EX_SOFTWARE;
}

/* Lets no file of ours become descriptor 0, 1 or 2 because the caller closed those. */
static int fill_standard_descriptors(void)
{
    for (int i = STDIN_FILENO; i <= STDERR_FILENO; i++) {
        if (fcntl(i, F_GETFD) < 0 && open("/dev/null", O_RDWR) != i)
            return -1;
    }
    return 0;
}

/* For this CPU, or those that the user wants to see at work. */
static int choose_kernels(void)
{
    const char *name = getenv("GGUFS_CPU");
    const int result = dequant_choose_kernels(name && *name ? name : NULL);
    const struct dequant_kernel_set *set;

    if (result == 0)
        return EX_OK;
    fprintf(stderr, "ggufs: GGUFS_CPU=%s: %s; here can be chosen:", name,
            result == -ENOTSUP ? "this CPU can't run these kernels" : "there are no such kernels");
    for (size_t i = 0; (set = dequant_kernel_set_at(i)) != NULL; i++) {
        if (set->is_supported())
            fprintf(stderr, " %s", set->name);
    }
    fputc('\n', stderr);
    return EX_USAGE;
}

int main(int argc, char **argv)
{
    struct fs_options options;
    int status = EX_USAGE;
    int result;

    if (fill_standard_descriptors() < 0)
        return EX_OSERR;
    if (choose_kernels() != EX_OK)
        return EX_USAGE;
    gguf_faults_catch();
    result = fs_options_parse(argc, argv, &options);
    if (result == 0)
        status = run(&options);
    else if (result == -ENOMEM)
        status = EX_OSERR;
    else
        fs_options_print_usage(stderr);
    fs_options_free(&options);
    return status;
}
