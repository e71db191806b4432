#include "fs/tree/facts/tensor_pairs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct fs_tensor_pairs {
    const struct gguf_tensor *first; /* of the model */
    const struct gguf_tensor *others[];
};

static const struct {
    enum fs_pair_kind kind;
    const char *suffixes[2];
} suffixes[] = {
    {FS_IMPORTANCE_PAIR, {FS_SUMS_SUFFIX, FS_COUNTS_SUFFIX}},
    {FS_LORA_PAIR, {".lora_a", ".lora_b"}},
    {FS_LORA_PAIR, {".lora_A.weight", ".lora_B.weight"}},
    {FS_LORA_PAIR, {".lora_down.weight", ".lora_up.weight"}},
};

struct fs_half fs_half_of(const struct gguf_tensor *tensor)
{
    const struct gguf_string name = tensor->name;

    for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++) {
        for (size_t j = 0; j < 2; j++) {
            const char *suffix = suffixes[i].suffixes[j];
            const size_t length = strlen(suffix);

            if (name.length_bytes > length && gguf_string_ends_with(name, suffix))
                return (struct fs_half){suffixes[i].kind,
                                        j == 1,
                                        suffixes[i].suffixes[1 - j],
                                        {name.data, name.length_bytes - length}};
        }
    }
    return (struct fs_half){0};
}

/* Compare the name of the other half with a tensor's. */
static int compare_to_other(const void *key, const void *element)
{
    const struct fs_half *half = key;
    const struct gguf_string name = (*(const struct gguf_tensor *const *)element)->name;
    const struct gguf_string suffix = {half->other, strlen(half->other)};
    const uint64_t length = half->base.length_bytes;
    int result;

    if (name.length_bytes < length)
        return gguf_string_compare(half->base, name);
    result = memcmp(half->base.data, name.data, length);
    if (result != 0)
        return result;
    return gguf_string_compare(
        suffix, (struct gguf_string){name.data + length, name.length_bytes - length});
}

const struct gguf_tensor *fs_find_half(const struct gguf_tensor *const *by_name, uint64_t n_tensors,
                                       struct gguf_string base, const char *suffix)
{
    const struct fs_half half = {.other = suffix, .base = base};
    const struct gguf_tensor *const *found =
        bsearch(&half, by_name, n_tensors, sizeof *by_name, compare_to_other);

    return found ? *found : NULL;
}

int fs_tensor_pairs_make(const struct gguf_model *model, struct fs_tensor_pairs **pairs)
{
    const struct gguf_tensor **order;
    uint64_t first = 0;

    *pairs = NULL;
    while (first < model->n_tensors && fs_half_of(&model->tensors[first]).kind == FS_NO_PAIR)
        first++;
    if (first == model->n_tensors)
        return 0;
    order = gguf_tensors_by_name(model);
    if (order)
        *pairs = calloc(1, sizeof **pairs + model->n_tensors * sizeof *(*pairs)->others);
    if (!*pairs) {
        free(order);
        return -ENOMEM;
    }
    (*pairs)->first = model->tensors;
    for (uint64_t i = first; i < model->n_tensors; i++) {
        const struct fs_half half = fs_half_of(&model->tensors[i]);

        if (half.kind != FS_NO_PAIR)
            (*pairs)->others[i] = fs_find_half(order, model->n_tensors, half.base, half.other);
    }
    free(order);
    return 0;
}

const struct gguf_tensor *fs_other_half(const struct fs_tensor_pairs *pairs,
                                        const struct gguf_tensor *tensor)
{
    return pairs ? pairs->others[tensor - pairs->first] : NULL;
}

uint64_t fs_lora_rank(const struct gguf_tensor *a, const struct gguf_tensor *b)
{
    const uint64_t rank = b->ne[0];

    return a->ne[1] == rank || a->ne[0] == rank ? rank : 0;
}
