/* Texts in which U+2581 stands for a space. */
#include "contrib/runner/tokenizer/tokenizer_kinds.h"

#include <string.h>

size_t run_decode_space_marks(const struct run_tokenizer *tokenizer, const char *text,
                              size_t length, char *out)
{
    (void)tokenizer;
    return gguf_space_marks_decode(text, length, out);
}

int run_text_add(struct run_text *text, const char *bytes, size_t length)
{
    const int code = run_reserve(&text->bytes, &text->capacity, text->n + length + 1, 1);

    if (code < 0)
        return code;
    if (length > 0)
        memcpy(text->bytes + text->n, bytes, length);
    text->n += length;
    return 0;
}

int run_text_add_marked(struct run_text *text, const char *bytes, size_t length)
{
    int code = 0;
    size_t at = 0;

    while (code == 0 && at < length) {
        const char *space = memchr(bytes + at, ' ', length - at);
        const size_t end = space ? (size_t)(space - bytes) : length;

        code = run_text_add(text, bytes + at, end - at);
        if (code == 0 && space)
            code = run_text_add(text, GGUF_SPACE_MARK, GGUF_SPACE_MARK_BYTES);
        at = end + 1;
    }
    return code;
}
