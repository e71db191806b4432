/* Steps that select, join and divide rows of tensors: those of experts and of fused tensors. */
#include "gguf/surgery_parts.h"

#include "gguf/loader_checks.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- rows ---- */

static uint64_t product(const struct gguf_tensor *like, uint32_t first, uint32_t end)
{
    uint64_t n = 1;

    for (uint32_t i = first; i < end; i++)
        n *= like->ne[i];
    return n;
}

/* Return an item without rows in the dimension `axis`, else like `from`. */
static struct gguf_item begin_rows(struct gguf_work *work, const struct gguf_item *from,
                                   uint32_t axis, struct gguf_string name)
{
    struct gguf_item item = gguf_begin_item(work, &from->like, name);

    item.like.ne[axis] = item.like.n_elements = item.like.size_bytes = 0;
    return item;
}

/* Return how many runs of rows the dimensions after the axis count. */
static uint64_t count_runs(const struct gguf_item *item, uint32_t axis)
{
    return item->like.n_elements > 0 ? product(&item->like, axis + 1, GGUF_MAX_DIMS) : 0;
}

/* Append rows of one run. */
static void append_rows(struct gguf_work *work, struct gguf_item *made,
                        const struct gguf_item *from, uint32_t axis, uint64_t run, uint64_t first,
                        uint64_t n_rows)
{
    const uint64_t width = product(&from->like, 0, axis);

    if (run == 0)
        made->like.ne[axis] += n_rows;
    made->like.n_elements += n_rows * width;
    gguf_append(work, made, from, (run * from->like.ne[axis] + first) * width, n_rows * width);
}

/* ---- experts ---- */

/* Return the list of a block: `text` is one for all, or has a line "BLOCK: LIST" for each. */
static const char *experts_of(const char *text, uint32_t block)
{
    if (!strchr(text, ':'))
        return text;
    while (text) {
        char *colon;

        if (strtoull(text, &colon, 10) == block && colon > text && *colon == ':')
            return colon + 1 + strspn(colon + 1, " ");
        text = strchr(text, '\n');
        text = text ? text + 1 : NULL;
    }
    return NULL;
}

/* Return true if the last dimension of a block's tensor counts its experts. */
static bool is_of_experts(struct gguf_string rest)
{
    return gguf_string_contains(rest, "_exps") || gguf_string_contains(rest, "exp_probs_b") ||
           gguf_string_starts_with(rest, "ffn_gate_inp.");
}

static void select_experts(struct gguf_work *work, struct gguf_item *item, const char *list,
                           uint64_t n_experts)
{
    const uint32_t axis = item->like.n_dims > 0 ? item->like.n_dims - 1 : 0;
    struct gguf_item made = begin_rows(work, item, axis, item->like.name);
    uint64_t range[2];

    if (item->like.ne[axis] != n_experts)
        gguf_fail_step(work, gguf_place_of(item),
                       "its last dimension is %" PRIu64 ", not the %" PRIu64 " experts",
                       item->like.ne[axis], n_experts);
    while (list && gguf_read_range(work, &list, "expert", n_experts, range))
        append_rows(work, &made, item, axis, 0, range[0], range[1] - range[0] + 1);
    if (work->n_experts > 0 && made.like.ne[axis] != work->n_experts)
        gguf_fail_step(work, gguf_place_of(item),
                       "its block keeps %" PRIu64 " experts, others %" PRIu64
                       "; all must keep the same number",
                       made.like.ne[axis], work->n_experts);
    work->n_experts = made.like.ne[axis];
    *item = made;
}

void gguf_do_experts(struct gguf_work *work, const struct gguf_step *step)
{
    const uint64_t n_experts = work->n_experts > 0
                                   ? work->n_experts
                                   : gguf_arch_number(work, work->base, "expert_count", 0);

    work->n_experts = 0;
    for (size_t i = 0; work->result == 0 && i < work->n_items; i++) {
        struct gguf_item *item = &work->items[i];
        struct gguf_string rest;
        const uint32_t block = gguf_block_of(item->like.name, &rest);
        const char *list = experts_of(step->text, block);

        if (gguf_string_contains(rest, "tid2eid") || gguf_string_contains(rest, "chexps"))
            gguf_fail_step(work, gguf_place_of(item),
                           "--experts: it refers to experts in a way that has no rule here");
        else if (n_experts > 0 && is_of_experts(rest) && list)
            select_experts(work, item, list, n_experts);
        else if (n_experts > 0 && is_of_experts(rest))
            gguf_fail_step(work, GGUF_NO_PLACE,
                           "--experts: no line has the experts of block %" PRIu32, block);
    }
    if (work->n_experts == 0)
        gguf_fail_step(work, GGUF_NO_PLACE, "--experts: the model has no experts");
}

/* ---- joining and dividing ---- */

/* Tensors of a block that are one in other files: rows of each, one after the other. */
static const struct fusion {
    const char *kind, *whole, *parts[3];
    size_t n_parts;
} fusions[] = {
    {"gate_up_exps", "blk.%.ffn_gate_up_exps", {"blk.%.ffn_gate_exps", "blk.%.ffn_up_exps"}, 2},
    {"qkv", "blk.%.attn_qkv", {"blk.%.attn_q", "blk.%.attn_k", "blk.%.attn_v"}, 3},
    {"ffn_gate_up", "blk.%.ffn_up", {"blk.%.ffn_gate", "blk.%.ffn_up"}, 2},
};

static const struct fusion *find_fusion(struct gguf_work *work, const struct gguf_step *step)
{
    for (size_t i = 0; i < sizeof fusions / sizeof *fusions; i++) {
        if (strcmp(fusions[i].kind, step->text) == 0)
            return &fusions[i];
    }
    gguf_fail_step(work, GGUF_NO_PLACE,
                   "%s is no kind of fused tensors; these are gate_up_exps, qkv and ffn_gate_up",
                   gguf_quote(gguf_string_of(step->text)).text);
    return NULL;
}

/* Return the dimension in which parts of the item follow one another. */
static uint32_t axis_of(const struct gguf_item *item, const struct gguf_name_match *match)
{
    return item->like.n_dims > 1 && strcmp(match->suffix, ".bias") != 0 ? 1 : 0;
}

static void check_parts(struct gguf_work *work, const struct gguf_item *first,
                        const struct gguf_item *other, uint32_t axis)
{
    const struct gguf_tensor *a = &first->like, *b = &other->like;

    if (!a->type || a->type != b->type)
        gguf_fail_step(work, gguf_place_of(other), "--fuse: its type is %s, that of %s is %s",
                       b->type ? b->type->name : "unknown", gguf_quote(a->name).text,
                       a->type ? a->type->name : "unknown");
    for (uint32_t i = 0; i < GGUF_MAX_DIMS; i++) {
        if (i != axis && a->ne[i] != b->ne[i])
            gguf_fail_step(work, gguf_place_of(other),
                           "--fuse: dimension %" PRIu32 " is %" PRIu64 ", that of %s is %" PRIu64,
                           i, b->ne[i], gguf_quote(a->name).text, a->ne[i]);
    }
}

/* Join the parts of a block; the new item is at `index`. */
static void fuse_block(struct gguf_work *work, const struct fusion *fusion,
                       const struct gguf_name_match *match, size_t index)
{
    struct gguf_item *parts[3] = {0}, made;
    char name[GGUF_NAME_BYTES];
    uint32_t axis;

    for (size_t i = 0; i < fusion->n_parts; i++) {
        size_t found;

        gguf_tensor_name_expand(fusion->parts[i], match, name);
        found = gguf_find_item(work, gguf_string_of(name));
        if (found == work->n_items) {
            gguf_fail_step(work, GGUF_NO_PLACE, "--fuse %s: the model has no %s", fusion->kind,
                           name);
            return;
        }
        parts[i] = &work->items[found];
    }
    axis = axis_of(parts[0], match);
    gguf_tensor_name_expand(fusion->whole, match, name);
    made = begin_rows(work, parts[0], axis,
                      gguf_new_name(work, gguf_model_print(work->model, "%s", name)));
    for (size_t i = 0; i < fusion->n_parts; i++) {
        check_parts(work, parts[0], parts[i], axis);
        parts[i]->is_dropped = true;
    }
    for (uint64_t run = 0; work->result == 0 && run < count_runs(parts[0], axis); run++) {
        for (size_t i = 0; i < fusion->n_parts; i++)
            append_rows(work, &made, parts[i], axis, run, 0, parts[i]->like.ne[axis]);
    }
    work->items[index] = made;
}

void gguf_do_fuse(struct gguf_work *work, const struct gguf_step *step)
{
    const struct fusion *fusion = find_fusion(work, step);
    bool is_used = false;

    for (size_t i = 0; fusion && work->result == 0 && i < work->n_items; i++) {
        const struct gguf_string name = work->items[i].like.name;
        struct gguf_name_match match;
        bool is_part = false;

        for (size_t j = 0; j < fusion->n_parts && !is_part && !work->items[i].is_dropped; j++)
            is_part = gguf_tensor_name_matches(name, fusion->parts[j], &match);
        if (is_part)
            fuse_block(work, fusion, &match, i);
        is_used |= is_part;
    }
    if (!is_used)
        gguf_fail_step(work, GGUF_NO_PLACE, "--fuse %s: the model has no such tensors", step->text);
    if (is_used && fusion == fusions && !gguf_reads_gate_up_exps(work->architecture))
        gguf_warning(work->report, GGUF_RULE_COMPOSITION, GGUF_NO_PLACE,
                     "llama.cpp reads ffn_gate_up_exps of some architectures only (deepseek2, "
                     "qwen35moe and others), and %s is not one of them",
                     gguf_quote(work->architecture).text);
}

/* Find how the rows of a whole are divided. */
static void find_sizes(const struct gguf_work *work, const struct fusion *fusion,
                       const struct gguf_item *whole, uint64_t n_rows, uint64_t sizes[3])
{
    static const char *const keys[] = {"attention.head_count", "attention.head_count_kv",
                                       "attention.key_length", "attention.value_length",
                                       "embedding_length"};
    const struct gguf_elements *origin = gguf_origin_of(work, whole);
    uint64_t numbers[5] = {0}, width;
    struct gguf_string rest;

    if (fusion->n_parts == 2) {
        sizes[0] = sizes[1] = n_rows / 2;
        return;
    }
    for (size_t i = 0; i < 5 && origin; i++)
        numbers[i] = gguf_arch_number(work, origin->model, keys[i],
                                      gguf_block_of(gguf_name_of(origin->tensor), &rest));
    width = numbers[0] > 0 ? numbers[4] / numbers[0] : 0;
    sizes[0] = numbers[0] * (numbers[2] > 0 ? numbers[2] : width);
    numbers[1] = numbers[1] > 0 ? numbers[1] : numbers[0];
    sizes[1] = numbers[1] * (numbers[2] > 0 ? numbers[2] : width);
    sizes[2] = numbers[1] * (numbers[3] > 0 ? numbers[3] : width);
}

/* Insert the parts of an item behind it. */
static void unfuse_block(struct gguf_work *work, const struct fusion *fusion,
                         const struct gguf_name_match *match, size_t index)
{
    const struct gguf_item whole = work->items[index];
    const uint32_t axis = axis_of(&whole, match);
    const uint64_t n_rows = whole.like.ne[axis];
    uint64_t sizes[3] = {0}, first = 0;

    find_sizes(work, fusion, &whole, n_rows, sizes);
    if (n_rows == 0 || sizes[0] + sizes[1] + sizes[2] != n_rows)
        gguf_fail_step(work, gguf_place_of(&whole),
                       "--unfuse: it has %" PRIu64 " rows, which do not divide into %" PRIu64
                       ", %" PRIu64 " and %" PRIu64,
                       n_rows, sizes[0], sizes[1], sizes[2]);
    work->items[index].is_dropped = true;
    for (size_t i = 0; work->result == 0 && i < fusion->n_parts; i++) {
        char name[GGUF_NAME_BYTES];
        struct gguf_item made;

        gguf_tensor_name_expand(fusion->parts[i], match, name);
        made = begin_rows(work, &whole, axis,
                          gguf_new_name(work, gguf_model_print(work->model, "%s", name)));
        for (uint64_t run = 0; work->result == 0 && run < count_runs(&whole, axis); run++)
            append_rows(work, &made, &whole, axis, run, first, sizes[i]);
        first += sizes[i];
        gguf_insert_item(work, index + 1 + i, made);
    }
}

void gguf_do_unfuse(struct gguf_work *work, const struct gguf_step *step)
{
    const struct fusion *fusion = find_fusion(work, step);
    bool is_used = false;

    for (size_t i = 0; fusion && work->result == 0 && i < work->n_items; i++) {
        struct gguf_name_match match;
        char name[GGUF_NAME_BYTES];

        if (!gguf_tensor_name_matches(work->items[i].like.name, fusion->whole, &match))
            continue;
        gguf_tensor_name_expand(fusion->parts[0], &match, name);
        if (gguf_find_item(work, gguf_string_of(name)) < work->n_items)
            continue;
        unfuse_block(work, fusion, &match, i);
        is_used = true;
    }
    if (!is_used)
        gguf_fail_step(work, GGUF_NO_PLACE, "--unfuse %s: the model has no such tensors",
                       step->text);
}
