#include "contrib/runner/tokenizer/prefix_trie.h"

#include "gguf/support/arrays.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

int run_prefix_trie_add(struct run_prefix_trie *trie, const char *text, uint32_t length, int32_t id)
{
    int code;

    if (length == 0)
        return 0;
    code = gguf_reserve(&trie->list, &trie->capacity, trie->n + 1, sizeof *trie->list);
    if (code == 0)
        trie->list[trie->n++] = (struct run_prefix){.text = text, .length = length, .id = id};
    return code;
}

static int compare(const void *a, const void *b)
{
    const struct run_prefix *left = a, *right = b;
    const uint32_t length = left->length < right->length ? left->length : right->length;
    const int order = memcmp(left->text, right->text, length);

    if (order != 0)
        return order;
    if (left->length != right->length)
        return left->length < right->length ? -1 : 1;
    return left->id < right->id ? -1 : left->id > right->id;
}

static bool is_prefix(const struct run_prefix *prefix, const struct run_prefix *other)
{
    return prefix->length <= other->length &&
           memcmp(prefix->text, other->text, prefix->length) == 0;
}

/*
 * Link a text to its parent. It jumps over its parent if the two jumps from there have the same
 * length, as in a skew-binary list.
 */
static void link_text(const struct run_prefix *list, struct run_prefix *text, uint32_t parent)
{
    const struct run_prefix *up = parent > 0 ? &list[parent - 1] : NULL;
    const struct run_prefix *over = up && up->jump > 0 ? &list[up->jump - 1] : NULL;

    text->parent = parent;
    text->jump = parent;
    text->depth = up ? up->depth + 1 : 0;
    if (over && over->jump > 0 &&
        up->depth - over->depth == over->depth - list[over->jump - 1].depth)
        text->jump = over->jump;
}

void run_prefix_trie_sort(struct run_prefix_trie *trie)
{
    uint32_t n = 0, at = 0;

    if (trie->n > 0)
        qsort(trie->list, trie->n, sizeof *trie->list, compare);
    for (size_t i = 0; i < trie->n; i++) {
        struct run_prefix *text = &trie->list[n];
        uint32_t parent = n;

        *text = trie->list[i];
        /* Its prefixes are the text before it and that one's prefixes, unless they differ. */
        while (parent > 0 && !is_prefix(&trie->list[parent - 1], text))
            parent = trie->list[parent - 1].parent;
        if (parent > 0 && trie->list[parent - 1].length == text->length)
            continue; /* an equal text, with a lower id */
        link_text(trie->list, text, parent);
        n++;
    }
    trie->n = n;
    for (unsigned byte = 0; byte <= 256; byte++) {
        while (at < n && (unsigned char)trie->list[at].text[0] < byte)
            at++;
        trie->firsts[byte] = at;
    }
}

void run_prefix_trie_free(struct run_prefix_trie *trie)
{
    free(trie->list);
    *trie = (struct run_prefix_trie){0};
}

/* Return the number of equal bytes that two texts begin with; the first n_known of them are. */
static size_t count_common(const char *a, const char *b, size_t n_known, size_t length)
{
    size_t i = n_known;

    for (; length - i >= sizeof(uint64_t); i += sizeof(uint64_t))
        if (memcmp(a + i, b + i, sizeof(uint64_t)) != 0)
            break;
    while (i < length && a[i] == b[i])
        i++;
    return i;
}

const struct run_prefix *run_prefix_trie_longest(const struct run_prefix_trie *trie,
                                                 const char *text, size_t length, size_t *n_steps)
{
    const unsigned char byte = length > 0 ? (unsigned char)text[0] : 0;
    uint32_t first = trie->firsts[byte], end = length > 0 ? trie->firsts[byte + 1] : first;
    size_t common_first = 1, common_end = 1, steps = 0;
    const struct run_prefix *found = NULL;

    /* Find the last text that does not sort after `text`: all prefixes are prefixes of that one. */
    while (first < end) {
        const uint32_t middle = first + (end - first) / 2;
        const struct run_prefix *prefix = &trie->list[middle];
        const size_t shorter = prefix->length < length ? prefix->length : length;
        const size_t known = common_first < common_end ? common_first : common_end;
        const size_t common = count_common(text, prefix->text, known, shorter);

        steps++;
        if (common == prefix->length || (common < length && (unsigned char)prefix->text[common] <
                                                                (unsigned char)text[common])) {
            first = middle + 1;
            common_first = common;
            found = prefix;
        } else {
            end = middle;
            common_end = common;
        }
    }
    /* Its longest prefix within the bytes that both have in common. */
    for (; found && found->length > common_first; steps++) {
        const struct run_prefix *jump = found->jump > 0 ? &trie->list[found->jump - 1] : NULL;

        found = jump && jump->length > common_first ? jump : run_prefix_trie_shorter(trie, found);
    }
    if (n_steps)
        *n_steps += steps;
    return found;
}
