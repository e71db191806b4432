#include "gguf/parse_file.h"

#include "gguf/formats.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int parse(struct gguf_model *model, const struct gguf_open_options *options,
                 struct gguf_report *report)
{
    struct gguf_source *file = &model->files[0];
    struct gguf_cursor cursor = gguf_cursor_begin(file, 0, (struct gguf_encoding){0});
    struct gguf_start start = {.n_bytes = GGUF_START_BYTES, .file_bytes = file->size_bytes};
    const struct gguf_format *format;

    if (start.n_bytes > file->size_bytes)
        start.n_bytes = (size_t)file->size_bytes;
    if (start.n_bytes > 0) {
        start.bytes = gguf_cursor_take(&cursor, start.n_bytes);
        if (!start.bytes)
            return gguf_cursor_fail(&cursor, "header", "its start", report);
    }
    format = gguf_format_of(&start, report);
    return format ? format->parse(model, options, report) : -EINVAL;
}

int gguf_parse_file(struct gguf_source *file, const struct gguf_open_options *options,
                    struct gguf_model **model, struct gguf_report *report)
{
    struct gguf_model *made = calloc(1, sizeof *made);
    int result;

    *model = NULL;
    if (made)
        made->files = calloc(1, sizeof *made->files);
    if (!made || !made->files) {
        gguf_close(made);
        gguf_source_close(file);
        return gguf_error(report, -ENOMEM, GGUF_NO_OFFSET, "%s", strerror(ENOMEM));
    }
    made->alignment_bytes = GGUF_DEFAULT_ALIGNMENT;
    made->files[0] = *file;
    made->n_files = 1;
    *file = (struct gguf_source){0};
    result = parse(made, options, report);
    if (result < 0)
        gguf_close(made);
    else
        *model = made;
    return result;
}
