/* ggufs: mounts a model file as a directory tree, or reads the tree without a mount. */

#define FUSE_USE_VERSION 314
#include "dequant/kernels.h"
#include "fs/command/command_line.h"
#include "fs/command/commands.h"
#include "gguf/faults.h"
#include "gguf/support/exit_status.h"
#include "gguf/support/option_rows.h"
#include "gguf/support/safe_print.h"

#include <fuse_lowlevel.h>

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sysexits.h>

static int print_help(const struct fs_options *options)
{
    gguf_options_print_help(&fs_command_line, stdout);
    return EX_OK;
}

static int print_version(const struct fs_options *options)
{
    printf("ggufs %s\nlibfuse %s\n", GGUFS_VERSION, fuse_pkgversion());
    if (fflush(stdout) != 0)
        return gguf_fail_stdout("ggufs", -errno);
    setvbuf(stdout, NULL, _IOLBF, 0); /* fusermount3 prints to it as well */
    fuse_lowlevel_version();
    printf("kernels %s\n", dequant_chosen_kernels()->name);
    return EX_OK;
}

static fs_run_command *const commands[FS_N_COMMANDS] = {
    [FS_MOUNT] = fs_mount_model, [FS_INFO] = fs_info,          [FS_LIST] = fs_list,
    [FS_CAT] = fs_cat,           [FS_EXTRACT] = fs_extract,    [FS_STATS] = fs_stats,
    [FS_DIFF] = fs_diff,         [FS_CHECK] = fs_check_models, [FS_RENDER] = fs_render,
    [FS_STATUS] = fs_status,     [FS_HELP] = print_help,       [FS_VERSION] = print_version,
};

/* Choose the kernels for this CPU, or those that GGUFS_CPU names. */
static int choose_kernels(void)
{
    const char *name = getenv("GGUFS_CPU");
    const int result = dequant_choose_kernels(name && *name ? name : NULL);
    const struct dequant_kernel_set *set;

    if (result == 0)
        return EX_OK;
    fprintf(stderr, "ggufs: GGUFS_CPU=");
    gguf_print_safe_string(stderr, name);
    fprintf(stderr, ": %s; available:",
            result == -ENOTSUP ? "this CPU cannot run these kernels" : "no such kernels");
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

    if (gguf_fill_standard_files() < 0)
        return EX_OSERR;
    if (choose_kernels() != EX_OK)
        return EX_USAGE;
    gguf_faults_catch();
    signal(SIGXFSZ, SIG_IGN); /* beyond the limit of a file's size, write() fails with EFBIG */
    if (fs_is_completion(argc, argv))
        return fs_complete(argc, argv);
    result = fs_options_parse(argc, argv, &options);
    if (result == 0)
        status = commands[options.command](&options);
    if (result == 0 && status != EX_IOERR) /* EX_IOERR has been reported */
        status = gguf_finish_stdout("ggufs", status);
    else if (result < 0 && result != -EINVAL)
        status = gguf_exit_status(result);
    fs_options_free(&options);
    return status;
}
