#include "gguf/support/similar_names.h"

#include "gguf/support/strings.h"

#include <stdint.h>
#include <string.h>

/* Return the restricted edit distance: letters changed, added, removed or swapped with the next. */
static size_t edit_distance(const char *a, const char *b)
{
    const size_t length_a = strlen(a), length_b = strlen(b);
    size_t rows[GGUF_LONGEST_NAME + 1][GGUF_LONGEST_NAME + 1];

    if (length_a > GGUF_LONGEST_NAME || length_b > GGUF_LONGEST_NAME)
        return SIZE_MAX;
    for (size_t i = 0; i <= length_a; i++) {
        for (size_t j = 0; j <= length_b; j++) {
            size_t least;

            if (i == 0 || j == 0) {
                rows[i][j] = i + j;
                continue;
            }
            least = rows[i - 1][j - 1] + (a[i - 1] != b[j - 1]);
            if (rows[i - 1][j] + 1 < least)
                least = rows[i - 1][j] + 1;
            if (rows[i][j - 1] + 1 < least)
                least = rows[i][j - 1] + 1;
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
                rows[i - 2][j - 2] + 1 < least)
                least = rows[i - 2][j - 2] + 1;
            rows[i][j] = least;
        }
    }
    return rows[length_a][length_b];
}

bool gguf_is_closer(const char *word, const char *name, size_t *least)
{
    const size_t distance = edit_distance(word, name);
    const bool is_start = gguf_text_starts_with(name, word);
    const size_t limit = *least > 0 ? *least - 1 : strlen(word) / 3 + 1;

    if (distance > limit || (distance == limit && (*least == 0 || !is_start)))
        return false;
    *least = distance + 1;
    return true;
}
