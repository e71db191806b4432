#include "fs/command/mount_model.h"

#include "fs/command/model_input.h"
#include "fs/command/terminal.h"
#include "fs/mount/mountpoint.h"
#include "fs/mount/serve.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

/* Set options->mount.fuse to the arguments for libfuse. Returns 0 or -ENOMEM. */
static int make_fuse_args(struct fs_options *options)
{
    struct fuse_args *args = &options->mount.fuse;
    int result = fuse_opt_add_arg(args, "ggufs");

    for (int i = 0; result == 0 && i < options->n_fuse_options; i++) {
        char *escaped = NULL;

        if (options->fuse_options[i][0] == '-') {
            result = fuse_opt_add_arg(args, options->fuse_options[i]);
            continue;
        }
        result = fuse_opt_add_opt_escaped(&escaped, options->fuse_options[i]);
        if (result == 0)
            result = fuse_opt_add_arg(args, "-o");
        if (result == 0)
            result = fuse_opt_add_arg(args, escaped);
        free(escaped);
    }
    return result < 0 ? -ENOMEM : 0;
}

int fs_mount_model(struct fs_options *options)
{
    struct fs_input *inputs;
    struct fs_tree *tree;
    int status;

    if (fs_open_inputs(options, &inputs) < 0) {
        fs_print_error("%s", strerror(ENOMEM));
        return EX_OSERR;
    }
    status = fs_make_tree(options, &inputs[0], &tree);
    fs_close_inputs(options, inputs);
    if (status != EX_OK)
        return status;
    status = fs_mountpoint_check(options->directory, &options->mount);
    if (status == EX_OK && make_fuse_args(options) < 0) {
        fs_print_error("%s", strerror(ENOMEM));
        status = EX_OSERR;
    }
    if (status == EX_OK)
        status = fs_serve(tree, options->directory, &options->mount);
    fuse_opt_free_args(&options->mount.fuse);
    fs_close_tree(tree);
    return status;
}
