#include "fs/command/edit_file.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* Larger than any metadata that a program would read back. */
#define MAX_FILE_BYTES ((size_t)1 << 30)

int fs_stream_read(FILE *file, const char *name, struct gguf_buffer *text,
                   struct gguf_report *report)
{
    char bytes[16384];
    int result = file ? 0 : -errno;

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
    if (result < 0)
        gguf_error(report, GGUF_RULE_EDIT, result, GGUF_NO_PLACE, "%s: %s",
                   gguf_quote((struct gguf_string){name, strlen(name)}).text, strerror(-result));
    return result;
}

int fs_file_read(const char *path, struct gguf_buffer *text, struct gguf_report *report)
{
    FILE *file = fopen(path, "re");
    const int result = fs_stream_read(file, path, text, report);

    if (file)
        fclose(file);
    return result;
}

int fs_edit_file_read(const char *path, struct gguf_edits *edits, struct gguf_report *report)
{
    const struct gguf_string name = {path, strlen(path)};
    struct gguf_buffer text = {0};
    int result = fs_file_read(path, &text, report);

    if (result == 0 && text.length == 0)
        result = gguf_error(report, GGUF_RULE_EDIT, -EINVAL, GGUF_NO_PLACE, "%s: it is empty",
                            gguf_quote(name).text);
    if (result == 0)
        result = gguf_edits_add_json(edits, text.bytes, text.length, gguf_quote(name).text, report);
    gguf_buffer_free(&text);
    return result;
}

int fs_edit_set(const char *text, struct gguf_edits *edits, struct gguf_report *report)
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
        result = fs_file_read(value + 1, &edit, report);
    if (result == 0 && strlen(edit.bytes) != edit.length)
        result =
            gguf_error(report, GGUF_RULE_EDIT, -EINVAL, GGUF_NO_PLACE, "%s: it holds a NUL byte",
                       gguf_quote((struct gguf_string){value + 1, strlen(value + 1)}).text);
    if (result == 0)
        result = gguf_edits_set(edits, edit.bytes, report);
    gguf_buffer_free(&edit);
    return result;
}
