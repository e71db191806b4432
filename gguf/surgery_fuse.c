#include "gguf/surgery_parts.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Tensors of a block that are one in other files: rows of each, one after the other. */
struct fusion {
    const char *kind, *parts[3], *whole;
};

static const struct fusion fusions[] = {
    {"gate_up_exps", {"ffn_gate_exps", "ffn_up_exps"}, "ffn_gate_up_exps"},
    {"qkv", {"attn_q", "attn_k", "attn_v"}, "attn_qkv"},
    {"ffn_gate_up", {"ffn_gate", "ffn_up"}, "ffn_up"},
};

/* Architectures for which llama.cpp reads ffn_gate_up_exps. Source: its src/models/, August 2026.
 */
static const char *const reads_gate_up[] = {"cohere2moe", "deepseek2", "deepseek2ocr",
                                            "hy-v3",      "qwen35moe", "qwen3next"};

static const char *const suffixes[] = {".weight", ".bias"};

static const struct fusion *find_fusion(const struct gguf_work *work, const struct gguf_step *step)
{
    for (size_t i = 0; i < sizeof fusions / sizeof *fusions; i++) {
        if (strcmp(fusions[i].kind, step->text) == 0)
            return &fusions[i];
    }
    gguf_fail_step(work, GGUF_NO_PLACE,
                   "%s is no kind of fused tensors; these are gate_up_exps, qkv and ffn_gate_up",
                   gguf_quote((struct gguf_string){step->text, strlen(step->text)}).text);
    return NULL;
}

static size_t count_parts(const struct fusion *fusion)
{
    return fusion->parts[2] ? 3 : 2;
}

struct name {
    char text[64];
};

static struct name name_of(uint64_t block, const char *part, const char *suffix)
{
    struct name name;

    snprintf(name.text, sizeof name.text, "blk.%" PRIu64 ".%s%s", block, part, suffix);
    return name;
}

/* Return the index of the item with a name, or n_items. */
static size_t find_item(const struct gguf_work *work, const char *name)
{
    size_t i = 0;

    while (i < work->n_items && !gguf_string_equals(work->items[i].like.name, name))
        i++;
    return i;
}

/* Return the dimension in which parts of the item follow one another. */
static uint32_t axis_of(const struct gguf_item *item, const char *suffix)
{
    return item->like.n_dims > 1 && strcmp(suffix, ".weight") == 0 ? 1 : 0;
}

/* Return the elements that the item has for one step of the dimensions after the axis. */
static uint64_t run_of(const struct gguf_item *item, uint32_t axis)
{
    return axis == 0 ? item->like.ne[0] : item->like.ne[0] * item->like.ne[1];
}

static int check_parts(const struct gguf_work *work, const struct gguf_item *first,
                       const struct gguf_item *other, uint32_t axis)
{
    const struct gguf_tensor *a = &first->like, *b = &other->like;
    const struct gguf_place place = gguf_at_tensor(b->name, GGUF_NO_OFFSET);

    if (!a->type || a->type != b->type)
        return gguf_fail_step(work, place, "--fuse: its type is %s, that of %s is %s",
                              b->type ? b->type->name : "unknown", gguf_quote(a->name).text,
                              a->type ? a->type->name : "unknown");
    for (uint32_t i = 0; i < GGUF_MAX_DIMS; i++) {
        if (i != axis && a->ne[i] != b->ne[i])
            return gguf_fail_step(
                work, place, "--fuse: dimension %" PRIu32 " is %" PRIu64 ", that of %s is %" PRIu64,
                i, b->ne[i], gguf_quote(a->name).text, a->ne[i]);
    }
    return 0;
}

/* Join the items with these indices; the first takes their place. */
static int join(struct gguf_work *work, const size_t indices[], size_t n, const char *suffix,
                const char *name)
{
    struct gguf_item *first = &work->items[indices[0]], made = {.like = first->like};
    const uint32_t axis = axis_of(first, suffix);
    const uint64_t n_runs =
        made.like.n_elements > 0 ? made.like.n_elements / run_of(first, axis) : 0;
    int result = gguf_name_item(work, &made, name);

    for (size_t i = 1; result == 0 && i < n; i++) {
        const struct gguf_item *other = &work->items[indices[i]];

        result = check_parts(work, first, other, axis);
        made.like.ne[axis] += other->like.ne[axis];
        made.like.n_elements += other->like.n_elements;
        made.like.size_bytes += other->like.size_bytes;
    }
    for (uint64_t run = 0; result == 0 && run < n_runs; run++) {
        for (size_t i = 0; result == 0 && i < n; i++) {
            const struct gguf_item *part = &work->items[indices[i]];
            const uint64_t n_elements = run_of(part, axis);

            result = gguf_take_elements(work, &made, part, run * n_elements, n_elements);
        }
    }
    free(first->parts);
    *first = made;
    return result;
}

/* Fuse the tensors of a block with a suffix. Returns 1 if there were any. */
static int fuse_block(struct gguf_work *work, const struct fusion *fusion, uint64_t block,
                      const char *suffix)
{
    const size_t n = count_parts(fusion);
    size_t indices[3], n_found = 0;
    int result;

    for (size_t i = 0; i < n; i++) {
        indices[i] = find_item(work, name_of(block, fusion->parts[i], suffix).text);
        n_found += indices[i] < work->n_items;
    }
    if (n_found == 0)
        return 0;
    for (size_t i = 0; i < n; i++) {
        if (indices[i] == work->n_items)
            return gguf_fail_step(work, GGUF_NO_PLACE, "--fuse %s: the model has no %s",
                                  fusion->kind, name_of(block, fusion->parts[i], suffix).text);
    }
    result = join(work, indices, n, suffix, name_of(block, fusion->whole, suffix).text);
    /* From the last to the first, so that the other indices stay right. */
    for (size_t i = 1; result == 0 && i < n; i++) {
        for (size_t j = i + 1; j < n; j++) {
            if (indices[j] > indices[i]) {
                const size_t later = indices[j];

                indices[j] = indices[i];
                indices[i] = later;
            }
        }
        gguf_remove_item(work, indices[i]);
    }
    return result < 0 ? result : 1;
}

/* Return one more than the last block. */
static uint64_t count_blocks(const struct gguf_work *work)
{
    uint64_t n_blocks = 0;

    for (size_t i = 0; i < work->n_items; i++) {
        struct gguf_string rest;
        const uint64_t block = gguf_block_of(work->items[i].like.name, &rest);

        if (block != GGUF_NO_BLOCK && block >= n_blocks)
            n_blocks = block + 1;
    }
    return n_blocks;
}

/* Call `use` for each block and suffix. */
static int each_block(struct gguf_work *work, const struct gguf_step *step, const char *option,
                      int (*use)(struct gguf_work *, const struct fusion *, uint64_t, const char *))
{
    const struct fusion *fusion = find_fusion(work, step);
    const uint64_t n_blocks = count_blocks(work);
    uint64_t n_used = 0;
    int result = fusion ? 0 : -EINVAL;

    for (uint64_t block = 0; result >= 0 && block < n_blocks && block < GGUF_MAX_BLOCKS; block++) {
        for (size_t i = 0; result >= 0 && i < 2; i++) {
            result = use(work, fusion, block, suffixes[i]);
            n_used += result > 0;
        }
    }
    if (result >= 0 && n_used == 0)
        return gguf_fail_step(work, GGUF_NO_PLACE, "%s %s: the model has no such tensors", option,
                              step->text);
    return result < 0 ? result : 0;
}

int gguf_do_fuse(struct gguf_work *work, const struct gguf_step *step)
{
    int result = each_block(work, step, "--fuse", fuse_block);

    if (result < 0 || strcmp(step->text, "gate_up_exps") != 0)
        return result;
    for (size_t i = 0; i < sizeof reads_gate_up / sizeof *reads_gate_up; i++) {
        if (gguf_string_equals(work->architecture, reads_gate_up[i]))
            return 0;
    }
    gguf_warning(
        work->report, GGUF_RULE_COMPOSITION, GGUF_NO_PLACE,
        "llama.cpp reads ffn_gate_up_exps of some architectures only (deepseek2, qwen35moe "
        "and others), and %s is not one of them",
        gguf_quote(work->architecture).text);
    return 0;
}

static uint64_t number_of(const struct gguf_work *work, const struct gguf_part *part,
                          const char *name)
{
    const struct gguf_key *key = gguf_find_arch_key(work, part->model, name);
    struct gguf_string rest;
    struct gguf_value value;

    return key &&
                   gguf_value_of_block(key, gguf_block_of(gguf_name_of(part->tensor), &rest),
                                       &value) &&
                   gguf_value_is_integer(&value)
               ? value.u64
               : 0;
}

/* Find how the rows of a whole are divided. */
static void find_sizes(const struct gguf_work *work, const struct fusion *fusion,
                       const struct gguf_item *item, uint64_t rows, uint64_t sizes[3])
{
    if (fusion->parts[2]) {
        const uint64_t heads = number_of(work, item->parts, "attention.head_count");
        const uint64_t kv = number_of(work, item->parts, "attention.head_count_kv");
        uint64_t key = number_of(work, item->parts, "attention.key_length");
        uint64_t value = number_of(work, item->parts, "attention.value_length");
        const uint64_t width = heads ? number_of(work, item->parts, "embedding_length") / heads : 0;

        key = key ? key : width;
        value = value ? value : width;
        sizes[0] = heads * key;
        sizes[1] = (kv ? kv : heads) * key;
        sizes[2] = (kv ? kv : heads) * value;
    } else {
        sizes[0] = sizes[1] = rows / 2;
        sizes[2] = 0;
    }
}

static int unfuse_block(struct gguf_work *work, const struct fusion *fusion, uint64_t block,
                        const char *suffix)
{
    const size_t index = find_item(work, name_of(block, fusion->whole, suffix).text);
    struct gguf_item item, *made;
    uint64_t sizes[3], before = 0, row, rows;
    uint32_t axis;
    int result = 0;

    if (index == work->n_items ||
        find_item(work, name_of(block, fusion->parts[0], suffix).text) < work->n_items)
        return 0;
    item = work->items[index];
    axis = axis_of(&item, suffix);
    rows = item.like.ne[axis];
    row = axis == 0 ? 1 : item.like.ne[0];
    find_sizes(work, fusion, &item, rows, sizes);
    if (rows == 0 || row == 0 || sizes[0] + sizes[1] + sizes[2] != rows)
        return gguf_fail_step(work, gguf_at_tensor(item.like.name, GGUF_NO_OFFSET),
                              "--unfuse: it has %" PRIu64 " rows, which do not divide into %" PRIu64
                              ", %" PRIu64 " and %" PRIu64,
                              rows, sizes[0], sizes[1], sizes[2]);
    for (size_t i = 0; result == 0 && i < count_parts(fusion); i++) {
        const uint64_t n = sizes[i] * row, n_runs = item.like.n_elements / (rows * row);

        made = gguf_insert_item(work, index + i);
        if (!made) {
            result = -ENOMEM;
            break;
        }
        made->like = item.like;
        made->like.ne[axis] = sizes[i];
        made->like.n_elements = n * n_runs;
        made->like.size_bytes = item.like.size_bytes / rows * sizes[i];
        result = gguf_name_item(work, made, name_of(block, fusion->parts[i], suffix).text);
        for (uint64_t run = 0; result == 0 && run < n_runs; run++)
            result = gguf_take_elements(work, made, &item, run * rows * row + before, n);
        before += n;
    }
    if (result == 0)
        gguf_remove_item(work, index + count_parts(fusion));
    return result < 0 ? result : 1;
}

int gguf_do_unfuse(struct gguf_work *work, const struct gguf_step *step)
{
    return each_block(work, step, "--unfuse", unfuse_block);
}
