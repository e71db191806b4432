/* ggufs: mounts a model file as a directory tree, or reads the tree without a mount. */

#include "dequant/kernels.h"
#include "fs/command/cat.h"
#include "fs/command/check.h"
#include "fs/command/command_line.h"
#include "fs/command/completion.h"
#include "fs/command/diff.h"
#include "fs/command/extract.h"
#include "fs/command/list.h"
#include "fs/command/mount_helper.h"
#include "fs/command/mount_model.h"
#include "fs/command/stats.h"
#include "fs/command/status.h"
#include "gguf/faults.h"
#include "gguf/support/exit_status.h"
#include "gguf/support/option_help.h"
#include "gguf/support/safe_print.h"
#include "gguf/support/standard_files.h"

#include <fuse_lowlevel.h>

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sysexits.h>
#include <unistd.h>

static int print_version(void)
{
    printf("ggufs %s\nlibfuse %s\n", GGUFS_VERSION, fuse_pkgversion());
    if (fflush(stdout) != 0)
        return gguf_fail_stdout("ggufs", -errno);
    setvbuf(stdout, NULL, _IOLBF, 0); /* fusermount3 prints to it as well */
    fuse_lowlevel_version();
    printf("kernels %s\n", dequant_chosen_kernels()->name);
    return EX_OK;
}

static int run(struct fs_options *options)
{
    if (options->is_trial)
        return EX_OK;
    switch (options->command) {
    case FS_HELP:
        gguf_options_print_help(&fs_command_line, stdout);
        return EX_OK;
    case FS_VERSION:
        return print_version();
    case FS_INFO:
        return fs_info(options);
    case FS_LIST:
        return fs_list(options);
    case FS_CAT:
        return fs_cat(options);
    case FS_EXTRACT:
        return fs_extract(options);
    case FS_STATS:
        return fs_stats(options);
    case FS_DIFF:
        return fs_diff(options);
    case FS_STATUS:
        return fs_status(options);
    case FS_CHECK:
        return fs_check_models(options);
    default:
        return fs_mount_model(options);
    }
}

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
    const bool is_helper = fs_is_mount_helper(argc > 0 ? argv[0] : NULL);
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
    result = is_helper ? fs_mount_helper_parse(argc, argv, &options)
                       : fs_options_parse(argc, argv, &options);
    if (result == 0)
        status = run(&options);
    if (result == 0 && status != EX_IOERR) /* which may be stdout's, and was reported */
        status = gguf_finish_stdout("ggufs", status);
    else if (result < 0 && result != -EINVAL)
        status = gguf_exit_status(result);
    fs_options_free(&options);
    return is_helper ? fs_mount_helper_status(status) : status;
}
