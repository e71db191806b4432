#include "contrib/runner/tokenizer/prefixes.h"

#include "contrib/runner/tokenizer/token_ids.h"

#include <stdlib.h>
#include <string.h>

int run_prefixes_add(struct run_prefixes *prefixes, const char *text, uint32_t length, int32_t id)
{
    int code;

    if (length == 0)
        return 0;
    code =
        run_reserve(&prefixes->list, &prefixes->capacity, prefixes->n + 1, sizeof *prefixes->list);
    if (code == 0)
        prefixes->list[prefixes->n++] = (struct run_prefix){text, length, id};
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

void run_prefixes_sort(struct run_prefixes *prefixes)
{
    size_t at = 0;

    if (prefixes->n > 0)
        qsort(prefixes->list, prefixes->n, sizeof *prefixes->list, compare);
    for (unsigned byte = 0; byte <= 256; byte++) {
        while (at < prefixes->n && (unsigned char)prefixes->list[at].text[0] < byte)
            at++;
        prefixes->firsts[byte] = (uint32_t)at;
    }
}

void run_prefixes_free(struct run_prefixes *prefixes)
{
    free(prefixes->list);
    *prefixes = (struct run_prefixes){0};
}

void run_prefix_walk_begin(const struct run_prefixes *prefixes, struct run_prefix_walk *walk)
{
    *walk = (struct run_prefix_walk){0, (uint32_t)prefixes->n, 0};
}

/* Return the first text, from `first` on, whose next byte is at least `byte`. */
static uint32_t lower_bound(const struct run_prefixes *prefixes, uint32_t first, uint32_t end,
                            uint32_t depth, unsigned byte)
{
    while (first < end) {
        const uint32_t middle = first + (end - first) / 2;

        if ((unsigned char)prefixes->list[middle].text[depth] < byte)
            first = middle + 1;
        else
            end = middle;
    }
    return first;
}

bool run_prefix_walk_step(const struct run_prefixes *prefixes, struct run_prefix_walk *walk,
                          unsigned char byte)
{
    if (walk->depth == 0) {
        walk->first = prefixes->firsts[byte];
        walk->end = prefixes->firsts[byte + 1];
    } else {
        /* Texts that end here are sorted first. */
        while (walk->first < walk->end && prefixes->list[walk->first].length == walk->depth)
            walk->first++;
        walk->first = lower_bound(prefixes, walk->first, walk->end, walk->depth, byte);
        walk->end = lower_bound(prefixes, walk->first, walk->end, walk->depth, byte + 1u);
    }
    walk->depth++;
    return walk->first < walk->end;
}

int32_t run_prefix_walk_id(const struct run_prefixes *prefixes, const struct run_prefix_walk *walk)
{
    if (walk->first >= walk->end || prefixes->list[walk->first].length != walk->depth)
        return -1;
    return prefixes->list[walk->first].id;
}

int32_t run_prefixes_longest(const struct run_prefixes *prefixes, const char *text, size_t length,
                             size_t *n_bytes)
{
    struct run_prefix_walk walk;
    int32_t id = -1;

    *n_bytes = 0;
    run_prefix_walk_begin(prefixes, &walk);
    for (size_t i = 0; i < length; i++) {
        if (!run_prefix_walk_step(prefixes, &walk, (unsigned char)text[i]))
            break;
        if (run_prefix_walk_id(prefixes, &walk) >= 0) {
            id = run_prefix_walk_id(prefixes, &walk);
            *n_bytes = i + 1;
        }
    }
    return id;
}
