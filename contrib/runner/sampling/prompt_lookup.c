#include "contrib/runner/sampling/prompt_lookup.h"

#include <errno.h>
#include <stdlib.h>

enum { HASH_BITS = 15 };

/* Limits of a search: places, and tokens compared at each. */
enum { MOST_PLACES = 32, MOST_COMMON = 32 };

/* A hash of the n-gram that ends at `last` (Fibonacci hashing: Knuth, TAOCP volume 3, 6.4). */
static uint32_t hash_of(const int32_t *last)
{
    uint64_t hash = 0;

    for (int i = 0; i < RUN_NGRAM; i++)
        hash = (hash + (uint32_t)last[-i]) * 0x9E3779B97F4A7C15;
    return (uint32_t)(hash >> (64 - HASH_BITS));
}

void run_lookup_free(struct run_lookup *lookup)
{
    run_ids_free(&lookup->text);
    free(lookup->heads);
    free(lookup->previous);
    *lookup = (struct run_lookup){0};
}

int run_lookup_add(struct run_lookup *lookup, int32_t token)
{
    struct run_ids *text = &lookup->text;
    uint32_t *head;

    if (!lookup->heads)
        lookup->heads = calloc((size_t)1 << HASH_BITS, sizeof *lookup->heads);
    if (!lookup->heads ||
        run_reserve(&lookup->previous, &lookup->previous_capacity, text->n + 1,
                    sizeof *lookup->previous) < 0 ||
        run_ids_add(text, token) < 0)
        return -ENOMEM;
    lookup->previous[text->n - 1] = 0;
    if (text->n < RUN_NGRAM)
        return 0;
    head = &lookup->heads[hash_of(&text->list[text->n - 1])];
    lookup->previous[text->n - 1] = *head;
    *head = (uint32_t)text->n;
    return 0;
}

/* Return the number of tokens that are equal before `end` and at the end of the text. */
static size_t common_length(const struct run_ids *text, size_t end)
{
    size_t n = 0;

    while (n < MOST_COMMON && n < end && text->list[end - 1 - n] == text->list[text->n - 1 - n])
        n++;
    return n;
}

size_t run_lookup_find(const struct run_lookup *lookup, size_t most, int32_t *draft)
{
    const struct run_ids *text = &lookup->text;
    size_t longest = RUN_NGRAM - 1, best = 0;
    size_t end = text->n > 0 ? lookup->previous[text->n - 1] : 0;

    for (int i = 0; i < MOST_PLACES && end > 0 && longest < MOST_COMMON; i++) {
        const size_t n = common_length(text, end);

        if (n > longest) {
            longest = n;
            best = end;
        }
        end = lookup->previous[end - 1];
    }
    if (best == 0)
        return 0;
    /* A draft longer than the rest of the text goes on with its own tokens. */
    for (size_t i = 0; i < most; i++)
        draft[i] = best + i < text->n ? text->list[best + i] : draft[best + i - text->n];
    return most;
}
