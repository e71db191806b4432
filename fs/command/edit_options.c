#include "fs/command/edit_options.h"

#include "fs/command/command_line.h"
#include "fs/command/edit_file.h"
#include "fs/command/options.h"
#include "fs/command/terminal.h"
#include "gguf/support/shard_names.h"

#include <string.h>

int fs_take_edit(void *target, const struct gguf_option_use *use)
{
    struct gguf_edits *edits = &((struct fs_options *)target)->edits;
    const char *option = use->option->names, *name = option + strspn(option, "-");
    struct gguf_report report = {0};
    struct gguf_buffer text = {0};
    int result;

    if (strcmp(name, "set") == 0)
        result = name > option ? fs_edit_set(use->value, edits, &report)
                               : gguf_edits_set(edits, use->value, &report);
    else if (strcmp(name, "unset") == 0)
        result = gguf_edits_unset(edits, use->value, &report);
    else if (strcmp(name, "edits") == 0)
        result = fs_edit_file_read(use->value, edits, &report);
    else if (*use->value != '@' || strcmp(name, "experts") != 0)
        result = gguf_surgery_add(&edits->surgery, option, use->value, &report);
    else if ((result = fs_file_read(use->value + 1, &text, &report)) == 0)
        result = gguf_surgery_add(&edits->surgery, option, text.bytes ? text.bytes : use->value,
                                  &report);
    gguf_buffer_free(&text);
    if (result < 0)
        fs_print_error("%s: %s%s", use->shown, report.first_error.message,
                       use->has_successor && name == option
                           ? " (a comma ends the value: write it as \\, or use --set, which needs "
                             "no escaping)"
                           : "");
    return result;
}

bool fs_is_list(const char *word)
{
    const char *part = strrchr(word, ',');

    for (const char *at = part ? part + 1 : word; *at; at++) {
        if (*at == ':' && at[1] != '\0')
            word = at + 1;
    }
    return *word != '\0' && word[strspn(word, "0123456789,-")] == '\0';
}

/* With --info, it has no value. */
int fs_take_layers(void *target, const struct gguf_option_use *use)
{
    if (use->value)
        return fs_take_edit(target, use);
    ((struct fs_options *)target)->layers = true;
    return 0;
}

/* A number of files, a size, or "tensor". */
int fs_take_shards(void *target, const struct gguf_option_use *use)
{
    static const struct gguf_option size = {.names = "--shards",
                                            .argument = "SIZE",
                                            .kind = GGUF_OPTION_BYTES,
                                            .offset =
                                                offsetof(struct fs_options, split.limit_bytes),
                                            .least = 1};
    static const struct gguf_option number = {.names = "--shards",
                                              .argument = "N",
                                              .kind = GGUF_OPTION_UINT32,
                                              .offset = offsetof(struct fs_options, split.count),
                                              .least = 1,
                                              .most = GGUF_MAX_SHARDS};
    struct fs_options *options = target;
    struct gguf_option_use as = *use;

    options->split.count = 0;
    options->split.limit_bytes = 1; /* a tensor each */
    if (strcmp(use->value, "tensor") == 0)
        return 0;
    as.option = use->value[strspn(use->value, "0123456789")] == '\0' ? &number : &size;
    return gguf_option_set(&fs_command_line, target, &as);
}
