/* The keys that follow from the tensors of an edited model. */
#include "gguf/surgery_parts.h"

#include "gguf/made_values.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Where a block of the new model comes from. */
struct source {
    const struct gguf_model *model; /* NULL: there are no tensors of the block */
    uint64_t block;
};

struct blocks {
    struct source *list;
    uint64_t count, old_count; /* of the base: its block_count */
    bool are_changed;
};

static int fail_memory(const struct gguf_work *work)
{
    return gguf_system_error(work->report, -ENOMEM, GGUF_NO_PLACE);
}

static struct gguf_place place_of(const struct gguf_key *key)
{
    return gguf_at_key(key->name, GGUF_NO_OFFSET);
}

const struct gguf_key *gguf_find_arch_key(const struct gguf_work *work,
                                          const struct gguf_model *model, const char *name)
{
    const struct gguf_string architecture = work->architecture;

    for (uint64_t i = 0; i < model->n_keys; i++) {
        const struct gguf_string key = model->keys[i].name;
        const uint64_t head = architecture.length_bytes;

        if (key.length_bytes == head + 1 + strlen(name) &&
            memcmp(key.data, architecture.data, (size_t)head) == 0 && key.data[head] == '.' &&
            gguf_string_ends_with(key, name))
            return &model->keys[i];
    }
    return NULL;
}

static uint64_t number_of(const struct gguf_key *key)
{
    return key && gguf_value_is_integer(&key->value) ? key->value.u64 : 0;
}

bool gguf_value_of_block(const struct gguf_key *key, uint64_t block, struct gguf_value *value)
{
    *value = key->value;
    if (key->value.type != GGUF_ARRAY)
        return true;
    if (block >= key->value.array.n_elements)
        return false;
    for (struct gguf_cursor cursor = gguf_array_begin(&key->value.array);; block--) {
        gguf_array_next(&cursor, key->value.array.element_type, value);
        if (block == 0)
            return true;
    }
}

/* Give a key of the new model an integer, and say so. */
static void set_number(const struct gguf_work *work, const struct gguf_key *key, uint64_t number)
{
    struct gguf_key *own = (struct gguf_key *)(uintptr_t)key;

    if (!gguf_value_is_integer(&key->value) || number_of(key) == number)
        return;
    gguf_note(work->report, GGUF_RULE_COMPOSITION, place_of(key),
              "set to %" PRIu64 "; it was %" PRIu64, number, number_of(key));
    own->value.u64 = number;
    own->file_offset = GGUF_NO_OFFSET;
}

static void remove_key(const struct gguf_work *work, const struct gguf_key *key)
{
    struct gguf_model *model = work->model;
    const uint64_t index = (uint64_t)(key - model->keys);

    gguf_note(work->report, GGUF_RULE_COMPOSITION, place_of(key), "removed");
    model->n_keys--;
    memmove(&model->keys[index], &model->keys[index + 1],
            (model->n_keys - index) * sizeof *model->keys);
}

/* ---- blocks ---- */

static int find_blocks(const struct gguf_work *work, struct blocks *blocks)
{
    const struct gguf_key *key = gguf_find_arch_key(work, work->base, "block_count");
    struct gguf_string rest;

    for (size_t i = 0; i < work->n_items; i++) {
        const uint64_t block = gguf_block_of(work->items[i].like.name, &rest);

        if (block != GGUF_NO_BLOCK && block >= GGUF_MAX_BLOCKS)
            return gguf_fail_step(work, gguf_at_tensor(work->items[i].like.name, GGUF_NO_OFFSET),
                                  "there are at most %d blocks", GGUF_MAX_BLOCKS);
        if (block != GGUF_NO_BLOCK && block >= blocks->count)
            blocks->count = block + 1;
    }
    blocks->are_changed = blocks->count != gguf_count_blocks(work->base);
    /* A model without blocks keeps its keys. */
    if (blocks->count == 0)
        blocks->are_changed = false;
    blocks->old_count = number_of(key);
    blocks->list = calloc(blocks->count + 1, sizeof *blocks->list);
    if (!blocks->list)
        return fail_memory(work);
    for (size_t i = 0; i < work->n_items; i++) {
        const uint64_t block = gguf_block_of(work->items[i].like.name, &rest);
        const struct gguf_part *part = work->items[i].parts;
        uint64_t old;

        if (block == GGUF_NO_BLOCK || blocks->list[block].model || work->items[i].n_parts == 0)
            continue;
        old = gguf_block_of(gguf_name_of(part->tensor), &rest);
        blocks->list[block] = (struct source){part->model, old == GGUF_NO_BLOCK ? block : old};
        blocks->are_changed |= part->model != work->base || old != block;
    }
    for (uint64_t i = 0; i < blocks->count; i++) {
        if (!blocks->list[i].model)
            blocks->list[i] = (struct source){work->base, i};
    }
    return 0;
}

/* Return true if block `index` has a tensor whose name contains `part`. */
static bool has_tensor(const struct gguf_work *work, uint64_t index, const char *part)
{
    for (size_t i = 0; i < work->n_items; i++) {
        struct gguf_string rest;

        if (gguf_block_of(work->items[i].like.name, &rest) == index &&
            gguf_string_contains(rest, part))
            return true;
    }
    return false;
}

static void warn_of_gaps(const struct gguf_work *work, const struct blocks *blocks)
{
    for (uint64_t i = 0; i < blocks->count && has_tensor(work, 0, ""); i++) {
        if (!has_tensor(work, i, ""))
            gguf_warning(work->report, GGUF_RULE_COMPOSITION, GGUF_NO_PLACE,
                         "block %" PRIu64 " has no tensors, the last block is %" PRIu64
                         "; --layers leaves out a block and renumbers the others",
                         i, blocks->count - 1);
    }
}

/* ---- values per block ---- */

/* Return true if the key is an array of a number for each of n_blocks blocks. */
static bool is_per_block(const struct gguf_key *key, uint64_t n_blocks)
{
    const struct gguf_array *array = &key->value.array;

    return key->value.type == GGUF_ARRAY && array->n_elements == n_blocks && n_blocks > 0 &&
           gguf_value_type_bytes(array->element_type) > 0 &&
           !gguf_string_contains(key->name, "sections") &&
           !gguf_string_contains(key->name, ".vision.") &&
           !gguf_string_contains(key->name, ".audio.");
}

/* Return the key of the same name of a block's model. */
static const struct gguf_key *same_key(const struct source *source, const struct gguf_key *key)
{
    const struct gguf_model *model = source->model;

    for (uint64_t i = 0; i < model->n_keys; i++) {
        if (gguf_string_compare(model->keys[i].name, key->name) == 0)
            return &model->keys[i];
    }
    return NULL;
}

/* Make a key that is an array of the values that the blocks had where they come from. */
static int gather(const struct gguf_work *work, const struct blocks *blocks, struct gguf_key *key,
                  enum gguf_value_type type)
{
    const unsigned width = gguf_value_type_bytes(type);
    struct gguf_array_builder builder;

    if (gguf_make_array(work->model, type, blocks->count, blocks->count * width, &builder) < 0)
        return fail_memory(work);
    for (uint64_t i = 0; i < blocks->count; i++) {
        const struct gguf_key *from = same_key(&blocks->list[i], key);
        struct gguf_value value;

        if (!from || !gguf_value_of_block(from, blocks->list[i].block, &value) ||
            gguf_value_type_bytes(value.type) != width)
            return gguf_fail_step(work, place_of(key),
                                  "the model of block %" PRIu64
                                  " has no value of it for block %" PRIu64 " that fits",
                                  i, blocks->list[i].block);
        memcpy(builder.at, &value.u64, width); /* little-endian, as the array */
        builder.at += width;
    }
    key->value = (struct gguf_value){.type = GGUF_ARRAY, .array = builder.array};
    key->file_offset = GGUF_NO_OFFSET;
    gguf_note(work->report, GGUF_RULE_COMPOSITION, place_of(key),
              "set to an array of %" PRIu64 " values, which the blocks had where they come from",
              blocks->count);
    return 0;
}

/*
 * Gather a key if it is an array by block in the base or in a model that blocks come from. A plain
 * value that differs is left to the user.
 */
static int follow_key(const struct gguf_work *work, const struct blocks *blocks,
                      struct gguf_key *key)
{
    const struct gguf_model *warned = work->base;

    if (is_per_block(key, blocks->old_count))
        return gather(work, blocks, key, key->value.array.element_type);
    for (uint64_t i = 0; i < blocks->count; i++) {
        const struct gguf_model *model = blocks->list[i].model;
        const struct gguf_key *other = model == warned ? NULL : same_key(&blocks->list[i], key);

        if (!other || gguf_value_equals(&other->value, &key->value))
            continue;
        if (is_per_block(other, number_of(gguf_find_arch_key(work, model, "block_count"))))
            return gather(work, blocks, key, key->value.type);
        warned = model;
        gguf_warning(work->report, GGUF_RULE_COMPOSITION, place_of(key),
                     "it has another value in the model that block %" PRIu64 " comes from", i);
    }
    return 0;
}

static int follow_blocks(const struct gguf_work *work, const struct blocks *blocks)
{
    static const char *const counted[] = {"block_count", "leading_dense_block_count",
                                          "nextn_predict_layers"};
    const struct gguf_key *key = gguf_find_arch_key(work, work->model, counted[0]);
    int result = 0;

    if (!blocks->are_changed)
        return 0;
    if (key)
        set_number(work, key, blocks->count);
    for (uint64_t i = 0; result == 0 && i < work->model->n_keys; i++) {
        struct gguf_key *own = &work->model->keys[i];
        bool is_counted = false;

        for (size_t j = 0; j < sizeof counted / sizeof *counted; j++)
            is_counted |= own == gguf_find_arch_key(work, work->model, counted[j]);
        if (!is_counted && own->name.length_bytes > work->architecture.length_bytes &&
            own->name.data[work->architecture.length_bytes] == '.' &&
            memcmp(own->name.data, work->architecture.data,
                   (size_t)work->architecture.length_bytes) == 0)
            result = follow_key(work, blocks, own);
    }
    key = gguf_find_arch_key(work, work->model, counted[1]);
    if (result == 0 && key) {
        uint64_t n_dense = 0;

        while (n_dense < blocks->count && !has_tensor(work, n_dense, "ffn_gate_inp") &&
               !has_tensor(work, n_dense, "_exps"))
            n_dense++;
        set_number(work, key, n_dense);
    }
    return result;
}

/* nextn_predict_layers: the trailing blocks that predict further tokens. */
static int follow_nextn(struct gguf_work *work, const struct blocks *blocks)
{
    const struct gguf_key *key = gguf_find_arch_key(work, work->model, "nextn_predict_layers");
    const struct gguf_value value = {.type = GGUF_UINT32};
    uint64_t n = 0;
    char *name;

    while (n < blocks->count && has_tensor(work, blocks->count - 1 - n, "nextn."))
        n++;
    if (key && n > 0)
        set_number(work, key, n);
    else if (key && blocks->count > 0)
        remove_key(work, key);
    if (key || n == 0)
        return 0;
    name = gguf_model_print(work->model, "%.*s.nextn_predict_layers",
                            (int)work->architecture.length_bytes, work->architecture.data);
    if (!name)
        return fail_memory(work);
    if (gguf_add_key(work->model, name, value) < 0)
        return fail_memory(work);
    set_number(work, &work->model->keys[work->model->n_keys - 1], n);
    return 0;
}

/* ---- experts ---- */

static void follow_experts(const struct gguf_work *work)
{
    const struct gguf_key *count = gguf_find_arch_key(work, work->model, "expert_count");
    const struct gguf_key *used = gguf_find_arch_key(work, work->model, "expert_used_count");
    const struct gguf_key *groups = gguf_find_arch_key(work, work->model, "expert_group_count");

    if (work->n_experts == 0)
        return;
    if (count)
        set_number(work, count, work->n_experts);
    if (used && number_of(used) > work->n_experts)
        set_number(work, used, work->n_experts);
    if (number_of(groups) > 1 && work->n_experts % number_of(groups) != 0)
        gguf_warning(work->report, GGUF_RULE_COMPOSITION, place_of(groups),
                     "%" PRIu64 " groups do not divide %" PRIu64
                     " experts equally, so that llama.cpp ends",
                     number_of(groups), work->n_experts);
}

/* ---- types ---- */

/* The numbers of general.file_type. Source: enum llama_ftype in llama.cpp's llama.h. */
static const struct {
    uint32_t type_id, file_type;
} file_types[] = {{0, 0},   {1, 1},   {2, 2},   {3, 3},   {8, 7},   {6, 8},   {7, 9},   {10, 10},
                  {11, 12}, {12, 15}, {13, 17}, {14, 18}, {30, 32}, {39, 38}, {20, 25}, {23, 30}};

/* Add the elements of a tensor to those of its type. Returns the id with the most so far. */
static uint32_t count_type(uint64_t counts[256], const struct gguf_tensor *tensor, uint32_t most)
{
    if (tensor->type_id >= 256)
        return most;
    counts[tensor->type_id] += tensor->n_elements;
    return counts[tensor->type_id] > counts[most] ? tensor->type_id : most;
}

/* Change the file type if most elements have another type than before. */
static void follow_types(const struct gguf_work *work)
{
    const struct gguf_key *key = gguf_find_key(work->model, "general.file_type");
    uint64_t old_counts[256] = {0}, counts[256] = {0};
    uint32_t old_most = 0, most = 0;

    for (uint64_t i = 0; i < work->base->n_tensors; i++)
        old_most = count_type(old_counts, &work->base->tensors[i], old_most);
    for (size_t i = 0; i < work->n_items; i++)
        most = count_type(counts, &work->items[i].like, most);
    if (!key || most == old_most || work->n_items == 0)
        return;
    for (size_t i = 0; i < sizeof file_types / sizeof *file_types; i++) {
        if (file_types[i].type_id == most) {
            set_number(work, key, file_types[i].file_type);
            return;
        }
    }
    gguf_warning(work->report, GGUF_RULE_COMPOSITION, place_of(key),
                 "most weights have another type now, %s; --set changes the key",
                 dequant_type_by_id(most) ? dequant_type_by_id(most)->name : "of no known name");
}

int gguf_set_following_keys(struct gguf_work *work)
{
    static const char *const of_split[] = {"split.no", "split.count", "split.tensors.count"};
    struct blocks blocks = {0};
    int result = find_blocks(work, &blocks);

    if (result == 0)
        result = follow_blocks(work, &blocks);
    if (result == 0)
        result = follow_nextn(work, &blocks);
    if (result == 0) {
        follow_experts(work);
        follow_types(work);
        if (blocks.are_changed)
            warn_of_gaps(work, &blocks);
    }
    for (size_t i = 0; result == 0 && i < sizeof of_split / sizeof *of_split; i++)
        gguf_remove_key(work->model, of_split[i]);
    free(blocks.list);
    return result;
}
