/*
 * Vocabularies that collide in a hash without a key. The tables must not have long runs of used
 * slots.
 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "contrib/runner/tokenizer/bpe.h"
#include "contrib/runner/tokenizer/token_vocabulary.h"
#include "tests/unit/runner/run_tree_files.h"

enum { N_TOKENS = 20000, N_SLOTS = 65536, TEXT_BYTES = 6 };

/* In a random table with half of its slots free, this run has a probability below 1e-20. */
enum { LONG_RUN = 500 };

/* 64-bit FNV-1a, folded to 32 bits: the hash in which the tokens collide. */
static uint32_t fnv(const char *text, size_t length)
{
    uint64_t hash = 0xcbf29ce484222325u;

    for (size_t i = 0; i < length; i++)
        hash = (hash ^ (unsigned char)text[i]) * 0x100000001b3u;
    return (uint32_t)(hash ^ hash >> 32);
}

/* Store the next text of letters and digits whose hash is among the first 64 slots. */
static void next_text(uint64_t *counter, char text[TEXT_BYTES + 1])
{
    do {
        uint64_t rest = (*counter)++;

        for (size_t i = 0; i < TEXT_BYTES; i++, rest /= 36)
            text[i] = "abcdefghijklmnopqrstuvwxyz0123456789"[rest % 36];
    } while ((fnv(text, TEXT_BYTES) & (N_SLOTS - 1)) >= 64);
    text[TEXT_BYTES] = '\0';
}

static void read_vocabulary(const char *metadata, struct run_vocabulary *vocabulary)
{
    struct run_failure failure = {0};
    struct run_files files;
    struct run_tree tree;

    run_files_make(&files);
    run_files_metadata(&files, metadata);
    tree = run_files_open(&files);
    cr_assert_eq(run_vocabulary_read(tree.metadata, vocabulary, &failure), 0, "%s", failure.text);
    run_tree_close(&tree);
    run_files_remove(&files);
}

static size_t longest_run(const struct run_vocabulary *vocabulary)
{
    size_t longest = 0, n = 0;

    for (uint32_t i = 0; i <= vocabulary->slot_mask; i++) {
        n = vocabulary->slots[i] != 0 ? n + 1 : 0;
        longest = n > longest ? n : longest;
    }
    return longest;
}

Test(run_tokenizer_collisions, tokens_with_equal_unkeyed_hashes)
{
    const size_t room = N_TOKENS * (TEXT_BYTES + 3) + 64;
    char *metadata = malloc(room), text[TEXT_BYTES + 1];
    struct run_vocabulary first, second;
    uint64_t counter = 0;
    size_t at;

    cr_assert_not_null(metadata);
    at = (size_t)snprintf(metadata, room, "{\"tokenizer.ggml.tokens\":[");
    for (size_t i = 0; i < N_TOKENS; i++) {
        next_text(&counter, text);
        at += (size_t)snprintf(metadata + at, room - at, i > 0 ? ",\"%s\"" : "\"%s\"", text);
    }
    snprintf(metadata + at, room - at, "]}");
    read_vocabulary(metadata, &first);
    read_vocabulary(metadata, &second);
    cr_expect_eq(first.n, (uint32_t)N_TOKENS);
    cr_expect_eq(first.slot_mask, (uint32_t)N_SLOTS - 1);
    cr_expect_lt(longest_run(&first), (size_t)LONG_RUN);
    cr_expect_neq(first.key.words[0], second.key.words[0], "two vocabularies have the same key");
    cr_expect_eq(run_vocabulary_find(&first, text, TEXT_BYTES), N_TOKENS - 1);
    run_vocabulary_free(&first);
    run_vocabulary_free(&second);
    free(metadata);
}

/*
 * Pairs of ids that have one slot in a multiplicative hash: their products with its factor are
 * below 2^45.
 */
Test(run_tokenizer_collisions, merges_with_equal_unkeyed_hashes)
{
    /* inverse of 0x9e3779b97f4a7c15 modulo 2^64 */
    const uint64_t inverse = 0xf1de83e19937733du;
    struct run_merge_table table, other;
    size_t longest = 0, run = 0;
    int32_t left = 0, right = 0;

    cr_assert_eq(inverse * 0x9e3779b97f4a7c15u, (uint64_t)1);
    cr_assert_eq(run_merge_table_open(&table, N_TOKENS), 0);
    cr_assert_eq(run_merge_table_open(&other, 0), 0);
    cr_expect_neq(table.key.words[0], other.key.words[0], "two tables have the same key");
    for (uint64_t i = 1, n = 0; n < N_TOKENS; i++) {
        const uint64_t pair = i * inverse;
        struct run_merge merge = {.rank = 1, .id = 5};

        if (pair >> 63 || pair >> 31 & 1)
            continue; /* not valid ids */
        merge.left = left = (int32_t)(pair >> 32);
        merge.right = right = (int32_t)(pair & UINT32_MAX);
        run_merge_table_add(&table, &merge);
        n++;
    }
    for (uint32_t i = 0; i <= table.slot_mask; i++) {
        run = table.slots[i].id >= 0 ? run + 1 : 0;
        longest = run > longest ? run : longest;
    }
    cr_expect_lt(longest, (size_t)LONG_RUN);
    cr_assert_not_null(run_merge_table_find(&table, left, right));
    cr_expect_eq(run_merge_table_find(&table, left, right)->id, 5);
    cr_expect_null(run_merge_table_find(&table, right, -1));
    free(table.slots);
    free(other.slots);
}
