#include "fs/command/commands.h"

#include "fs/command/finding_output.h"
#include "fs/command/many_models.h"
#include "fs/command/model_input.h"
#include "fs/command/terminal.h"
#include "fs/mount/serve.h"
#include "gguf/support/exit_status.h"

#include <stdlib.h>
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

static void add_descriptors(const struct gguf_files *files, int *list, size_t *n)
{
    for (uint32_t i = 0; i < files->count; i++)
        list[(*n)++] = files->list[i].file.source.descriptor;
}

/* Return the descriptors of all files that the mount reads, to be freed; or NULL. */
static int *list_descriptors(const struct gguf_other *others, const struct fs_input *input,
                             size_t *n)
{
    size_t most = input->files.count + input->n_extras + 1;
    int *list;

    for (const struct gguf_other *other = others; other; other = other->next)
        most += other->files.count;
    list = calloc(most, sizeof *list);
    *n = 0;
    for (size_t i = 0; list && i < input->n_extras; i++)
        list[(*n)++] = input->extras[i].file.source.descriptor;
    if (list)
        add_descriptors(&input->files, list, n);
    for (; list && others; others = others->next)
        add_descriptors(&others->files, list, n);
    return list;
}

/* Returns an exit status. */
static int mount_input(const struct fs_options *options, struct fs_input *input)
{
    struct load load = {.options = options, .input = input};
    size_t n;
    int *descriptors = list_descriptors(options->edits.surgery.others, input, &n);
    int status;

    if (!descriptors)
        return fs_refuse_memory();
    status = fs_serve(
        &(struct fs_mount){.source = input->files.list[input->files.named].file.source.path,
                           .mountpoint = options->directory,
                           .descriptors = descriptors,
                           .n_descriptors = n,
                           .options = &options->mount,
                           .load = load_tree,
                           .content_options = options->content_options,
                           .argument = &load});

    free(descriptors);
    if (load.tree)
        fs_close_tree(load.tree);
    return status;
}

/* Mount one model. `listed` is it with its projectors, or NULL. */
static int mount_one(const struct fs_options *options, const struct gguf_listed_model *listed)
{
    struct fs_options one = *options;
    struct fs_input *inputs;
    int status;

    one.n_models = 1;
    status = fs_open_inputs(&one, listed, &inputs);
    if (status != EX_OK)
        return status;
    if (inputs[0].error < 0) {
        fs_print_finding(stderr, inputs[0].path, &inputs[0].why);
        fs_print_remedy(stderr, inputs[0].path, &inputs[0].why);
        status = gguf_exit_status(inputs[0].error);
    } else {
        status = mount_input(&one, &inputs[0]);
    }
    fs_close_inputs(&one, inputs);
    return status;
}

int fs_mount_model(const struct fs_options *options)
{
    struct gguf_model_list list;
    struct fs_many many;
    int status = fs_many_begin(options, &many, &list);
    const bool are_many = status == EX_OK && fs_are_many(&many, &list);

    if (are_many && options->edits.surgery.others) {
        fs_print_error("%s: tensors of other models can be shown in a single MODEL only",
                       options->edits.surgery.others->path);
        status = EX_USAGE;
    } else if (are_many) {
        status = fs_mount_many(&many);
    } else if (status == EX_OK) {
        status = mount_one(options, options->n_models > 1 ? list.models : NULL);
    }
    fs_many_end(&many, &list);
    return status;
}
