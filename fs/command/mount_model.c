#include "fs/command/commands.h"

#include "fs/command/finding_output.h"
#include "fs/command/model_input.h"
#include "fs/mount/events.h"
#include "fs/mount/serve.h"
#include "gguf/support/exit_status.h"

#include <sysexits.h>

/* The server's arguments for making the tree. */
struct load {
    const struct fs_options *options;
    struct fs_input *input;
    struct fs_tree *tree;
};

static int load_tree(void *argument, struct fs_tree **tree)
{
    struct load *load = argument;
    const int status = fs_make_tree(load->options, load->input, &load->tree);

    *tree = load->tree;
    return status;
}

/* Returns an exit status. */
static int mount_input(const struct fs_options *options, struct fs_input *input)
{
    struct load load = {.options = options, .input = input};
    const int status = fs_serve(&(struct fs_mount){.mountpoint = options->directory,
                                                   .files = &input->files,
                                                   .options = &options->mount,
                                                   .load = load_tree,
                                                   .content_options = options->content_options,
                                                   .argument = &load});

    if (load.tree)
        fs_close_tree(load.tree);
    return status;
}

int fs_mount_model(const struct fs_options *options)
{
    struct fs_input *inputs;
    int status = fs_open_inputs(options, &inputs);

    if (status != EX_OK)
        return status;
    if (inputs[0].error < 0) {
        fs_print_finding(stderr, inputs[0].path, &inputs[0].why);
        fs_print_remedy(stderr, inputs[0].path, &inputs[0].why);
        status = gguf_exit_status(inputs[0].error);
    } else {
        status = mount_input(options, &inputs[0]);
    }
    if (status != EX_OK)
        fs_report_event(FS_EVENT_FAILED, "");
    fs_close_inputs(options, inputs);
    return status;
}
