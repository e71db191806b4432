/* The keys that follow from the tensors of an edited model. */
#include "gguf/support/keyed_hash.h"
#include "gguf/surgery_parts.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* llama.cpp takes 512. */
#define MAX_BLOCKS 4096

/* A block of the new model: where it comes from, and what it has. */
struct block {
    const struct gguf_model *model;
    uint32_t number;
    uint64_t names; /* a sum, equal for blocks with the same names of tensors; 0: it has none */
    bool has_experts, has_nextn;
};

uint32_t gguf_count_blocks(const struct gguf_model *model)
{
    uint32_t n_blocks = 0;

    for (uint64_t i = 0; i < model->n_tensors; i++) {
        struct gguf_string rest;
        const uint32_t block = gguf_block_of(gguf_name_of(&model->tensors[i]), &rest);

        if (block != GGUF_NO_BLOCK && block >= n_blocks)
            n_blocks = block + 1;
    }
    return n_blocks;
}

/* Return what a tensor adds to the sum of its block; `rest` is its name in the block. */
static uint64_t sum_of(struct gguf_string rest)
{
    return gguf_hash(&(struct gguf_hash_key){{0}}, rest.data, rest.length_bytes);
}

/* Write the full name of a key of the architecture. */
static void write_name(const struct gguf_composition *made, const char *name,
                       char full[GGUF_NAME_BYTES])
{
    const struct gguf_string architecture = gguf_architecture_of(made->model);

    snprintf(full, GGUF_NAME_BYTES, "%.*s.%s", (int)architecture.length_bytes, architecture.data,
             name);
}

/* Give a key of the new model an integer, and say so. */
static void set_number(const struct gguf_composition *made, const struct gguf_key *key,
                       uint64_t number)
{
    struct gguf_key *own = (struct gguf_key *)(uintptr_t)key;

    if (!key || !gguf_value_is_integer(&key->value) || key->value.u64 == number)
        return;
    gguf_note(made->report, GGUF_RULE_COMPOSITION, gguf_at_key(key->name, GGUF_NO_OFFSET),
              "set to %" PRIu64 "; it was %" PRIu64, number, key->value.u64);
    own->value.u64 = number;
    own->file_offset = GGUF_NO_OFFSET;
}

static void set_arch_number(const struct gguf_composition *made, const char *name, uint64_t number)
{
    set_number(made, gguf_find_arch_key(made->model, name), number);
}

/* ---- blocks ---- */

/* Describe the blocks. Returns true if they are others than the base's. */
static bool find_blocks(struct gguf_composition *made, struct block *blocks, uint32_t *n_blocks)
{
    bool is_changed = false;

    for (uint32_t i = 0; i < MAX_BLOCKS; i++)
        blocks[i] = (struct block){.model = made->base, .number = i};
    for (size_t i = 0; i < made->n_items; i++) {
        const struct gguf_elements *origin = gguf_origin_of(made, &made->items[i]);
        struct gguf_string rest, old_rest;
        const uint32_t number = gguf_block_of(made->items[i].like.name, &rest);
        struct block *block = &blocks[number % MAX_BLOCKS];
        uint32_t old;

        if (number == GGUF_NO_BLOCK)
            continue;
        if (number >= MAX_BLOCKS) {
            gguf_compose_fail(made, gguf_place_of(&made->items[i]), "there are at most %d blocks",
                              MAX_BLOCKS);
            return false;
        }
        if (block->names == 0 && origin) {
            old = gguf_block_of(gguf_name_of(origin->tensor), &old_rest);
            block->model = origin->model;
            block->number = old == GGUF_NO_BLOCK ? number : old;
            is_changed |= origin->model != made->base || old != number;
        }
        block->names += sum_of(rest);
        block->has_experts |=
            gguf_string_contains(rest, "ffn_gate_inp") || gguf_string_contains(rest, "_exps");
        block->has_nextn |= gguf_string_contains(rest, "nextn.");
        if (number >= *n_blocks)
            *n_blocks = number + 1;
    }
    /* A model without blocks keeps its keys. */
    return *n_blocks > 0 && (is_changed || *n_blocks != gguf_count_blocks(made->base));
}

static void warn_of_gaps(const struct gguf_composition *made, const struct block *blocks,
                         uint32_t n_blocks)
{
    for (uint32_t i = 1; i < n_blocks && blocks[0].names != 0; i++) {
        if (blocks[i].names == 0)
            gguf_warning(made->report, GGUF_RULE_COMPOSITION, GGUF_NO_PLACE,
                         "block %" PRIu32 " has no tensors, the last block is %" PRIu32
                         "; --layers leaves out a block and renumbers the others",
                         i, n_blocks - 1);
    }
}

void gguf_warn_of_names(struct gguf_composition *made)
{
    uint64_t sums[MAX_BLOCKS] = {0};
    struct block *blocks = calloc(MAX_BLOCKS, sizeof *blocks);
    uint32_t n_blocks = 0, first = 0, n_others = 0;
    bool are_own = true;

    if (!blocks)
        made->result = -ENOMEM;
    if (made->result == 0)
        find_blocks(made, blocks, &n_blocks);
    for (uint64_t i = 0; i < made->base->n_tensors; i++) {
        struct gguf_string rest;
        const uint32_t block = gguf_block_of(gguf_name_of(&made->base->tensors[i]), &rest);

        if (block < MAX_BLOCKS)
            sums[block] += sum_of(rest);
    }
    while (n_blocks > 0 && blocks[n_blocks - 1].has_nextn)
        n_blocks--;
    for (uint32_t i = n_blocks; made->result == 0 && i-- > 0;) {
        uint32_t same = 0;

        while (same < MAX_BLOCKS && sums[same] != blocks[i].names)
            same++;
        if (same < MAX_BLOCKS)
            continue;
        first = i;
        n_others++;
        are_own &= blocks[i].model == made->base;
    }
    if (n_others > 0 && (n_others < n_blocks || !are_own))
        gguf_warning(made->report, GGUF_RULE_COMPOSITION, GGUF_NO_PLACE,
                     "%" PRIu32 " of %" PRIu32 " blocks, the first is block %" PRIu32
                     ", have other tensors than every block of the base",
                     n_others, n_blocks, first);
    free(blocks);
}

/* ---- values per block ---- */

/* Return true if the key is an array of a number for each of n_blocks blocks. */
static bool is_per_block(const struct gguf_key *key, uint64_t n_blocks)
{
    static const char *const others[] = {"sections", ".vision.", ".audio."};
    const struct gguf_array *array = &key->value.array;

    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        if (gguf_string_contains(key->name, others[i]))
            return false;
    }
    return key->value.type == GGUF_ARRAY && array->n_elements == n_blocks && n_blocks > 0 &&
           gguf_value_type_bytes(array->element_type) > 0;
}

/* Return the key of the same name of a block's model. */
static const struct gguf_key *same_key(const struct block *block, const struct gguf_key *key)
{
    const struct gguf_model *model = block->model;

    for (uint64_t i = 0; i < model->n_keys; i++) {
        if (gguf_string_compare(model->keys[i].name, key->name) == 0)
            return &model->keys[i];
    }
    return NULL;
}

/* Make a key an array of the values that the blocks had where they come from. */
static void gather(struct gguf_composition *made, const struct block *blocks, uint32_t n_blocks,
                   struct gguf_key *key, enum gguf_value_type type)
{
    const struct gguf_place place = gguf_at_key(key->name, GGUF_NO_OFFSET);
    const unsigned width = gguf_value_type_bytes(type);
    uint8_t *numbers = gguf_model_alloc(made->model, n_blocks * width);

    if (!numbers) {
        made->result = -ENOMEM;
        return;
    }
    for (uint32_t i = 0; i < n_blocks; i++) {
        const struct gguf_key *from = same_key(&blocks[i], key);
        struct gguf_value value = {.type = GGUF_STRING};

        if (from &&
            (from->value.type != GGUF_ARRAY || blocks[i].number < from->value.array.n_elements))
            value = gguf_value_of_layer(&from->value, blocks[i].number);
        if (gguf_value_type_bytes(value.type) != width ||
            gguf_value_type_is_integer(value.type) != gguf_value_type_is_integer(type)) {
            gguf_compose_fail(made, place,
                              "the model of block %" PRIu32 " has no value of it for block %" PRIu32
                              " that fits",
                              i, blocks[i].number);
            return;
        }
        memcpy(numbers + i * width, &value.u64, width); /* little-endian, as the array */
    }
    key->value = gguf_value_of_numbers(type, numbers, n_blocks);
    key->file_offset = GGUF_NO_OFFSET;
    gguf_note(made->report, GGUF_RULE_COMPOSITION, place,
              "set to an array of %" PRIu32 " values, which the blocks had where they come from",
              n_blocks);
}

/*
 * Gather a key if it is an array by block in the base or in a model that blocks come from. A plain
 * value that differs is left to the user.
 */
static void follow_key(struct gguf_composition *made, const struct block *blocks, uint32_t n_blocks,
                       struct gguf_key *key)
{
    const struct gguf_model *warned = made->base;

    if (is_per_block(key, gguf_arch_number(made->base, "block_count", 0))) {
        gather(made, blocks, n_blocks, key, key->value.array.element_type);
        return;
    }
    for (uint32_t i = 0; i < n_blocks; i++) {
        const struct gguf_model *model = blocks[i].model;
        const struct gguf_key *other = model == warned ? NULL : same_key(&blocks[i], key);

        if (!other || gguf_value_equals(&other->value, &key->value))
            continue;
        if (is_per_block(other, gguf_arch_number(model, "block_count", 0))) {
            gather(made, blocks, n_blocks, key, key->value.type);
            return;
        }
        warned = model;
        gguf_warning(made->report, GGUF_RULE_COMPOSITION, gguf_at_key(key->name, GGUF_NO_OFFSET),
                     "it has another value in the model that block %" PRIu32 " comes from", i);
    }
}

static void follow_blocks(struct gguf_composition *made, const struct block *blocks,
                          uint32_t n_blocks)
{
    char start[GGUF_NAME_BYTES];
    uint64_t n_dense = 0;

    write_name(made, "", start);
    for (uint64_t i = 0; made->result == 0 && i < made->model->n_keys; i++) {
        struct gguf_key *key = &made->model->keys[i];

        /* These are counted, not gathered. */
        if (gguf_string_starts_with(key->name, start) &&
            !gguf_string_ends_with(key->name, "block_count") &&
            !gguf_string_ends_with(key->name, ".nextn_predict_layers"))
            follow_key(made, blocks, n_blocks, key);
    }
    set_arch_number(made, "block_count", n_blocks);
    while (n_dense < n_blocks && !blocks[n_dense].has_experts)
        n_dense++;
    set_arch_number(made, "leading_dense_block_count", n_dense);
    warn_of_gaps(made, blocks, n_blocks);
}

/* nextn_predict_layers: the trailing blocks that predict further tokens. */
static void follow_nextn(struct gguf_composition *made, const struct block *blocks,
                         uint32_t n_blocks)
{
    const struct gguf_key *key = gguf_find_arch_key(made->model, "nextn_predict_layers");
    char full[GGUF_NAME_BYTES];
    uint32_t n = 0;

    write_name(made, "nextn_predict_layers", full);
    while (n < n_blocks && blocks[n_blocks - 1 - n].has_nextn)
        n++;
    if (key && n == 0 && n_blocks > 0) {
        gguf_note(made->report, GGUF_RULE_COMPOSITION, gguf_at_key(key->name, GGUF_NO_OFFSET),
                  "removed");
        gguf_remove_key(made->model, full);
    }
    if (!key && n > 0) {
        key = gguf_set_key(made->model, full, (struct gguf_value){.type = GGUF_UINT32});
        made->result = key ? 0 : -ENOMEM;
    }
    if (n > 0)
        set_number(made, key, n);
}

/* ---- experts and types ---- */

static void follow_experts(const struct gguf_composition *made, uint64_t n_experts)
{
    const uint64_t n_groups = gguf_arch_number(made->model, "expert_group_count", 0);

    set_arch_number(made, "expert_count", n_experts);
    if (gguf_arch_number(made->model, "expert_used_count", 0) > n_experts)
        set_arch_number(made, "expert_used_count", n_experts);
    if (n_groups > 1 && n_experts % n_groups != 0)
        gguf_warning(made->report, GGUF_RULE_COMPOSITION,
                     gguf_key_place(gguf_find_arch_key(made->model, "expert_group_count")),
                     "%" PRIu64 " groups do not divide %" PRIu64
                     " experts equally, so that llama.cpp ends",
                     n_groups, n_experts);
}

/* The numbers of general.file_type. Source: enum llama_ftype in llama.cpp's llama.h. */
static const struct {
    uint32_t type_id, file_type;
} file_types[] = {{0, 0},   {1, 1},   {2, 2},   {3, 3},   {8, 7},   {6, 8},   {7, 9},   {10, 10},
                  {11, 12}, {12, 15}, {13, 17}, {14, 18}, {30, 32}, {39, 38}, {20, 25}, {23, 30}};

/* Add the elements of a tensor to the elements of its type. Returns the id with the most so far. */
static uint32_t count_type(uint64_t counts[256], const struct gguf_tensor *tensor, uint32_t most)
{
    if (tensor->type_id >= 256)
        return most;
    counts[tensor->type_id] += tensor->n_elements;
    return counts[tensor->type_id] > counts[most] ? tensor->type_id : most;
}

/* Change the file type if most elements have another type than before. */
static void follow_types(const struct gguf_composition *made)
{
    const struct gguf_key *key = gguf_find_key(made->model, "general.file_type");
    uint64_t old_counts[256] = {0}, counts[256] = {0};
    uint32_t old_most = 0, most = 0;

    for (uint64_t i = 0; i < made->base->n_tensors; i++)
        old_most = count_type(old_counts, &made->base->tensors[i], old_most);
    for (size_t i = 0; i < made->n_items; i++)
        most = count_type(counts, &made->items[i].like, most);
    if (!key || most == old_most || made->n_items == 0)
        return;
    for (size_t i = 0; i < sizeof file_types / sizeof *file_types; i++) {
        if (file_types[i].type_id == most) {
            set_number(made, key, file_types[i].file_type);
            return;
        }
    }
    gguf_warning(made->report, GGUF_RULE_COMPOSITION, gguf_at_key(key->name, GGUF_NO_OFFSET),
                 "most weights have another type now, %s; --set changes the key",
                 dequant_type_by_id(most) ? dequant_type_by_id(most)->name : "of no known name");
}

void gguf_set_following_keys(struct gguf_composition *made, uint64_t n_experts)
{
    static const char *const of_split[] = {"split.no", "split.count", "split.tensors.count"};
    struct block *blocks = calloc(MAX_BLOCKS, sizeof *blocks);
    uint32_t n_blocks = 0;

    if (!blocks)
        made->result = -ENOMEM;
    if (made->result == 0 && find_blocks(made, blocks, &n_blocks))
        follow_blocks(made, blocks, n_blocks);
    if (made->result == 0)
        follow_nextn(made, blocks, n_blocks);
    if (made->result == 0 && n_experts > 0)
        follow_experts(made, n_experts);
    if (made->result == 0)
        follow_types(made);
    for (size_t i = 0; i < sizeof of_split / sizeof *of_split; i++)
        gguf_remove_key(made->model, of_split[i]);
    free(blocks);
}
