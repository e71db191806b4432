#include "contrib/runner/sampling/stop_texts.h"

#include <string.h>

/* Return the length of the longest end of `bytes` that is a proper prefix of `text`. */
static size_t begun_at_end(const char *text, size_t text_length, const char *bytes, size_t length)
{
    size_t n = text_length - 1 < length ? text_length - 1 : length;

    while (n > 0 && memcmp(bytes + length - n, text, n) != 0)
        n--;
    return n;
}

bool run_stop_texts_find(const char *const *texts, size_t n_texts, const char *bytes, size_t length,
                         size_t *n_free)
{
    bool is_found = false;
    size_t longest_begun = 0;

    *n_free = length;
    for (size_t i = 0; i < n_texts; i++) {
        const size_t text_length = strlen(texts[i]);
        const char *found;
        size_t n_begun;

        if (text_length == 0 || length == 0)
            continue;
        found = memmem(bytes, length, texts[i], text_length);
        if (found && (size_t)(found - bytes) < *n_free) {
            *n_free = (size_t)(found - bytes);
            is_found = true;
        }
        n_begun = begun_at_end(texts[i], text_length, bytes, length);
        if (n_begun > longest_begun)
            longest_begun = n_begun;
    }
    if (!is_found)
        *n_free = length - longest_begun;
    return is_found;
}
