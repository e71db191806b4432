#include "gguf/translate/draft.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool gguf_next_word(const char **list, struct gguf_string *word)
{
    if (!*list)
        return false;
    *list += strspn(*list, " ");
    *word = (struct gguf_string){*list, strcspn(*list, " ")};
    *list += word->length_bytes;
    return word->length_bytes > 0;
}

bool gguf_words_begin(const char *words, struct gguf_string name)
{
    struct gguf_string word;

    while (gguf_next_word(&words, &word))
        if (name.length_bytes >= word.length_bytes &&
            memcmp(name.data, word.data, word.length_bytes) == 0)
            return true;
    return false;
}

bool gguf_words_have(const char *words, struct gguf_string text)
{
    struct gguf_string word;

    while (gguf_next_word(&words, &word))
        if (gguf_string_compare(word, text) == 0)
            return true;
    return false;
}

bool gguf_words_end_with(const char *words, const char *end)
{
    struct gguf_string word;

    while (gguf_next_word(&words, &word))
        if (gguf_string_ends_with(word, end))
            return true;
    return false;
}

const char *gguf_split_number(struct gguf_string name, const char *prefix, uint64_t *number,
                              char text[GGUF_NAME_BYTES])
{
    char *end;

    snprintf(text, GGUF_NAME_BYTES, "%.*s", (int)name.length_bytes, name.data);
    if (strncmp(text, prefix, strlen(prefix)) != 0)
        return NULL;
    *number = strtoull(text + strlen(prefix), &end, 10);
    return *end == '.' && *number < GGUF_MAX_TENSORS ? end + 1 : NULL;
}

/* Replace part of a name, see struct gguf_layout for where; `is_end`: at the end of the name. */
static void rename_part(struct gguf_draft *draft, struct gguf_item *item, struct gguf_string part,
                        struct gguf_string by, bool is_end)
{
    const struct gguf_string name = item->like.name;
    const char *at = name.data, *end = at + name.length_bytes;

    for (; (uint64_t)(end - at) >= part.length_bytes; at++) {
        const char *behind = at + part.length_bytes;

        if (memcmp(at, part.data, part.length_bytes) == 0 &&
            (behind == end || (!is_end && (*behind == '.' || behind[-1] == '.')))) {
            item->like.name =
                gguf_compose_name(&draft->made, "%.*s%.*s%.*s", (int)(at - name.data), name.data,
                                  (int)by.length_bytes, by.data, (int)(end - behind), behind);
            return;
        }
        if (*part.data != '.')
            return;
    }
}

/* Split OLD>NEW or OLD$>NEW. Returns true for the latter. */
static bool split_word(struct gguf_string word, struct gguf_string *old, struct gguf_string *new)
{
    const char *arrow = memchr(word.data, '>', word.length_bytes);
    const bool is_end = arrow[-1] == '$';

    *old = (struct gguf_string){word.data, (uint64_t)(arrow - word.data) - is_end};
    *new = (struct gguf_string){arrow + 1, word.length_bytes - (uint64_t)(arrow + 1 - word.data)};
    return is_end;
}

void gguf_draft_names(struct gguf_draft *draft, struct gguf_item *item, const char *words)
{
    struct gguf_string word, old, new;

    while (draft->made.result == 0 && gguf_next_word(&words, &word)) {
        const bool is_end = split_word(word, &old, &new);

        rename_part(draft, item, old, new, is_end);
    }
}

void gguf_draft_undo_names(struct gguf_draft *draft, struct gguf_item *item, const char *words)
{
    struct gguf_string list[32], old, new;
    size_t n = 0;

    while (n < 32 && gguf_next_word(&words, &list[n]))
        n++;
    while (draft->made.result == 0 && n-- > 0) {
        const bool is_end = split_word(list[n], &old, &new);

        rename_part(draft, item, new, old, is_end);
    }
}
