/* Texts in which U+2581 stands for a space. */
#include "contrib/runner/tokenizer/tokenizer_kinds.h"

#include <string.h>

size_t run_decode_space_marks(const struct run_tokenizer *tokenizer, const char *text,
                              size_t length, char *out)
{
    (void)tokenizer;
    return gguf_space_marks_decode(text, length, out);
}

int run_text_add_marked(struct gguf_buffer *text, const char *bytes, size_t length)
{
    int code = 0;
    size_t at = 0;

    while (code == 0 && at < length) {
        const char *space = memchr(bytes + at, ' ', length - at);
        const size_t end = space ? (size_t)(space - bytes) : length;

        code = gguf_buffer_add(text, bytes + at, end - at);
        if (code == 0 && space)
            code = gguf_buffer_add(text, GGUF_SPACE_MARK, GGUF_SPACE_MARK_BYTES);
        at = end + 1;
    }
    return code;
}
