#include "fs/command/edit_options.h"

#include "fs/command/command_line.h"
#include "fs/command/options.h"
#include "fs/command/terminal.h"
#include "gguf/stores/stores.h"
#include "gguf/support/shard_names.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Larger than any metadata that a program would read back. */
#define MAX_FILE_BYTES ((size_t)1 << 30)

int fs_file_read(const char *path, bool is_stdin, struct gguf_buffer *text,
                 struct gguf_report *report)
{
    FILE *file = is_stdin ? stdin : fopen(path, "re");
    int result = file ? 0 : -errno;
    char bytes[16384];

    while (result == 0) {
        const size_t n_bytes = fread(bytes, 1, sizeof bytes, file);

        if (ferror(file))
            result = -errno;
        else if (n_bytes == 0)
            break;
        else if (text->length > MAX_FILE_BYTES - n_bytes)
            result = -EFBIG;
        else
            result = gguf_buffer_add(text, bytes, n_bytes);
    }
    if (file && !is_stdin)
        fclose(file);
    return result < 0
               ? gguf_error(report, GGUF_RULE_EDIT, result, GGUF_NO_PLACE, "%s: %s",
                            gguf_quote(gguf_string_of(is_stdin ? "standard input" : path)).text,
                            strerror(-result))
               : 0;
}

/* Add the edits in a JSON file. */
static int read_edits(const char *path, struct gguf_edits *edits, struct gguf_report *report)
{
    const struct gguf_quoted name = gguf_quote(gguf_string_of(path));
    struct gguf_buffer text = {0};
    int result = fs_file_read(path, false, &text, report);

    if (result == 0 && text.length == 0)
        result = gguf_error(report, GGUF_RULE_EDIT, -EINVAL, GGUF_NO_PLACE, "%s: it is empty",
                            name.text);
    if (result == 0)
        result = gguf_edits_add_json(edits, text.bytes, text.length, name.text, report);
    gguf_buffer_free(&text);
    return result;
}

/*
 * Add an edit in which a VALUE "@FILE" means the contents of FILE, and "@@" at its start means "@".
 */
static int set_with_file(const char *text, struct gguf_edits *edits, struct gguf_report *report)
{
    struct gguf_string type;
    const char *value = gguf_edit_find_value(text, &type);
    struct gguf_buffer edit = {0};
    int result;

    if (!value || *value != '@')
        return gguf_edits_set(edits, text, report);
    result = gguf_buffer_add(&edit, text, (size_t)(value - text));
    if (result < 0)
        gguf_system_error(report, result, GGUF_NO_PLACE);
    else if (value[1] == '@')
        result = gguf_buffer_add_string(&edit, value + 1);
    else
        result = fs_file_read(value + 1, false, &edit, report);
    if (result == 0 && strlen(edit.bytes) != edit.length)
        result = gguf_error(report, GGUF_RULE_EDIT, -EINVAL, GGUF_NO_PLACE,
                            "%s: it holds a NUL byte", gguf_quote(gguf_string_of(value + 1)).text);
    if (result == 0)
        result = gguf_edits_set(edits, edit.bytes, report);
    gguf_buffer_free(&edit);
    return result;
}

int fs_take_edit(void *target, const struct gguf_option_use *use)
{
    struct gguf_edits *edits = &((struct fs_options *)target)->edits;
    const char *option = use->option->names, *name = option + strspn(option, "-");
    struct gguf_report report = {0};
    struct gguf_buffer text = {0};
    int result;

    if (strcmp(name, "set") == 0)
        result = name > option ? set_with_file(use->value, edits, &report)
                               : gguf_edits_set(edits, use->value, &report);
    else if (strcmp(name, "unset") == 0)
        result = gguf_edits_unset(edits, use->value, &report);
    else if (strcmp(name, "edits") == 0)
        result = read_edits(use->value, edits, &report);
    else if (*use->value != '@' || strcmp(name, "experts") != 0)
        result = gguf_surgery_add(&edits->surgery, option, use->value, &report);
    else if ((result = fs_file_read(use->value + 1, false, &text, &report)) == 0)
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
    const char *colon = strrchr(word, ':'), *list = colon ? colon + 1 : word;

    if (list[strspn(list, "0123456789,-")] == '\0' && *list != '\0')
        return true;
    return *word != '-' && access(word, F_OK) < 0 && !gguf_has_model_ending(word) &&
           !gguf_store_is_name(word);
}

/* With --info, it has no value. */
int fs_take_layers(void *target, const struct gguf_option_use *use)
{
    struct fs_options *options = target;

    options->layers |= !use->value;
    if (use->value && !strchr(use->value, ':') && use->value[strspn(use->value, "0123456789,-")])
        options->no_list = use->value;
    return use->value ? fs_take_edit(target, use) : 0;
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
