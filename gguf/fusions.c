#include "gguf/fusions.h"

#include "gguf/models/tensor_names.h"
#include "gguf/support/arrays.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_PARTS = 5 };

static const struct fusion {
    const char *kind, *whole;
    const char *parts[MAX_PARTS]; /* with '#': as many parts as there are numbers from 0 on */
    uint32_t axis;                /* 0: of the rows of a matrix, or of a vector */
} fusions[GGUF_N_FUSIONS] = {
    [GGUF_FUSION_GATE_UP_EXPS] = {"gate_up_exps",
                                  "blk.%.ffn_gate_up_exps",
                                  {"blk.%.ffn_gate_exps", "blk.%.ffn_up_exps"}},
    [GGUF_FUSION_QKV] = {"qkv", "blk.%.attn_qkv", {"blk.%.attn_q", "blk.%.attn_k", "blk.%.attn_v"}},
    [GGUF_FUSION_FFN_GATE_UP] = {"ffn_gate_up", "blk.%.ffn_up", {"blk.%.ffn_gate", "blk.%.ffn_up"}},
    [GGUF_FUSION_VISION_QKV] = {NULL,
                                "v.blk.%.attn_qkv",
                                {"v.blk.%.attn_q", "v.blk.%.attn_k", "v.blk.%.attn_v"}},
    [GGUF_FUSION_MTP_GATE] = {NULL,
                              "mtp.layers.%.ffn_gate_exps",
                              {"mtp.layers.%.mlp.experts.#.gate_proj"},
                              2},
    [GGUF_FUSION_MTP_UP] = {NULL,
                            "mtp.layers.%.ffn_up_exps",
                            {"mtp.layers.%.mlp.experts.#.up_proj"},
                            2},
    [GGUF_FUSION_MTP_DOWN] = {NULL,
                              "mtp.layers.%.ffn_down_exps",
                              {"mtp.layers.%.mlp.experts.#.down_proj"},
                              2},
    [GGUF_FUSION_RWKV] = {NULL,
                          "blk.%.time_mix_lerp_fused.weight",
                          {"blocks.%.att.time_maa_w", "blocks.%.att.time_maa_k",
                           "blocks.%.att.time_maa_v", "blocks.%.att.time_maa_r",
                           "blocks.%.att.time_maa_g"},
                          3},
};

const char *gguf_fusion_name(size_t id)
{
    return fusions[id].kind;
}

/* Return the dimension in which parts of the item follow one another. */
static uint32_t axis_of(const struct fusion *fusion, const struct gguf_item *item,
                        const struct gguf_name_match *match)
{
    return fusion->axis > 0 ? fusion->axis
                            : item->like.n_dims > 1 && strcmp(match->suffix, ".bias") != 0;
}

/* ---- joining ---- */

struct part {
    size_t item, index;
    struct gguf_name_match match;
};

struct job {
    struct gguf_composition *made;
    const struct fusion *fusion;
    enum gguf_fuse_mode mode;
    struct part *parts; /* of all layers */
    size_t n_parts, room;
};

static int compare_layers(const struct part *a, const struct part *b)
{
    return a->match.layer != b->match.layer ? (a->match.layer > b->match.layer ? 1 : -1)
                                            : strcmp(a->match.suffix, b->match.suffix);
}

static int compare_parts(const void *first, const void *second)
{
    const struct part *a = first, *b = second;
    const int order = compare_layers(a, b);

    return order != 0 ? order : (a->index > b->index) - (a->index < b->index);
}

static bool is_stack(const struct fusion *fusion)
{
    return strchr(fusion->parts[0], '#');
}

static size_t count_parts(const struct fusion *fusion)
{
    size_t n = 0;

    while (n < MAX_PARTS && fusion->parts[n])
        n++;
    return n;
}

/* Append the item to the parts if it is one. */
static void add_part(struct job *job, size_t item)
{
    const size_t n = count_parts(job->fusion);
    struct part part = {.item = item};

    while (part.index < n && !gguf_tensor_name_matches(job->made->items[item].like.name,
                                                       job->fusion->parts[part.index], &part.match))
        part.index++;
    if (part.index == n || job->made->items[item].is_dropped)
        return;
    if (is_stack(job->fusion))
        part.index = part.match.expert;
    if (gguf_reserve(&job->parts, &job->room, job->n_parts + 1, sizeof part) < 0)
        job->made->result = -ENOMEM;
    else
        job->parts[job->n_parts++] = part;
}

/* Check a part against the first. *type is the whole's type. */
static bool fits(const struct job *job, const struct gguf_item *first,
                 const struct gguf_item *other, uint32_t axis, const struct dequant_type **type)
{
    const struct gguf_tensor *a = &first->like, *b = &other->like;
    const bool is_strict = job->mode == GGUF_FUSE_ALL;

    for (uint32_t i = 0; i < GGUF_MAX_DIMS; i++) {
        if (i == axis || a->ne[i] == b->ne[i])
            continue;
        if (is_strict)
            gguf_compose_fail(job->made, gguf_place_of(other),
                              "--fuse: dimension %" PRIu32 " is %" PRIu64
                              ", that of %s is %" PRIu64,
                              i, b->ne[i], gguf_quote(a->name).text, a->ne[i]);
        return false;
    }
    if (a->type && b->type && job->mode >= GGUF_FUSE_ANY) {
        if (a->type != b->type || job->mode == GGUF_FUSE_F32)
            *type = dequant_type_by_id(DEQUANT_F32);
        return true;
    }
    if (is_strict && (!a->type || a->type != b->type))
        gguf_compose_fail(job->made, gguf_place_of(other),
                          "--fuse: its type is %s, that of %s is %s",
                          b->type ? b->type->name : "unknown", gguf_quote(a->name).text,
                          a->type ? a->type->name : "unknown");
    return a->type && a->type == b->type;
}

/* Join the n parts of a layer. */
static void fuse_layer(const struct job *job, const struct part *parts, size_t n)
{
    struct gguf_composition *made = job->made;
    struct gguf_item *items = made->items, *first = &items[parts->item], whole;
    const size_t n_needed = is_stack(job->fusion) ? n : count_parts(job->fusion);
    const uint32_t axis = axis_of(job->fusion, first, &parts->match);
    const struct dequant_type *type = first->like.type;
    size_t at = parts->item;
    char name[GGUF_NAME_BYTES];

    for (size_t i = 0; i < n_needed; i++) {
        if (i < n && parts[i].index == i) {
            if (!fits(job, first, &items[parts[i].item], axis, &type))
                return;
            at = parts[i].item < at ? parts[i].item : at;
            continue;
        }
        gguf_tensor_name_expand(job->fusion->parts[i % MAX_PARTS], &parts->match, name);
        if (job->mode == GGUF_FUSE_ALL)
            gguf_compose_fail(made, GGUF_NO_PLACE, "--fuse %s: the model has no %s",
                              job->fusion->kind, name);
        return;
    }
    gguf_tensor_name_expand(job->fusion->whole, &parts->match, name);
    whole = gguf_begin_rows(made, first, axis, gguf_compose_name(made, "%s", name));
    whole.like.type = type;
    for (uint64_t run = 0; made->result == 0 && run < gguf_count_runs(first, axis); run++) {
        for (size_t i = 0; i < n; i++) {
            const struct gguf_item *part = &items[parts[i].item];

            gguf_append_rows(made, &whole, part, axis, run, 0, part->like.ne[axis]);
        }
    }
    for (size_t i = 0; i < n; i++)
        items[parts[i].item].is_dropped = true;
    items[at] = whole;
}

bool gguf_fuse(struct gguf_composition *made, enum gguf_fusion_id id, enum gguf_fuse_mode mode)
{
    struct job job = {.made = made, .fusion = &fusions[id], .mode = mode};

    for (size_t i = 0; made->result == 0 && i < made->n_items; i++)
        add_part(&job, i);
    if (job.n_parts > 0)
        qsort(job.parts, job.n_parts, sizeof *job.parts, compare_parts);
    for (size_t first = 0, end; made->result == 0 && first < job.n_parts; first = end) {
        for (end = first + 1;
             end < job.n_parts && compare_layers(&job.parts[first], &job.parts[end]) == 0;)
            end++;
        fuse_layer(&job, &job.parts[first], end - first);
    }
    free(job.parts);
    return job.n_parts > 0;
}

/* ---- dividing ---- */

/* Find how the rows of a whole are divided: equally, but for heads of other numbers. */
static void find_sizes(const struct gguf_composition *made, enum gguf_fusion_id id,
                       const struct gguf_item *whole, const struct gguf_name_match *match,
                       uint64_t n_rows, uint64_t sizes[MAX_PARTS])
{
    static const char *const keys[] = {"attention.head_count", "attention.head_count_kv",
                                       "attention.key_length", "attention.value_length",
                                       "embedding_length"};
    const struct gguf_elements *origin = gguf_origin_of(made, whole);
    const size_t n = count_parts(&fusions[id]);
    uint64_t numbers[5] = {0}, width;

    for (size_t i = 0; i < n && id != GGUF_FUSION_QKV; i++)
        sizes[i] = n_rows / n;
    if (id != GGUF_FUSION_QKV || !origin)
        return;
    for (size_t i = 0; i < 5; i++)
        numbers[i] = gguf_arch_number(origin->model, keys[i], match->layer);
    width = numbers[0] > 0 ? numbers[4] / numbers[0] : 0;
    numbers[1] = numbers[1] > 0 ? numbers[1] : numbers[0];
    sizes[0] = numbers[0] * (numbers[2] > 0 ? numbers[2] : width);
    sizes[1] = numbers[1] * (numbers[2] > 0 ? numbers[2] : width);
    sizes[2] = numbers[1] * (numbers[3] > 0 ? numbers[3] : width);
}

/* Replace an item by its parts. */
static void unfuse_layer(struct gguf_composition *made, enum gguf_fusion_id id,
                         const struct gguf_name_match *match, size_t index)
{
    const struct gguf_item whole = made->items[index];
    const uint32_t axis = axis_of(&fusions[id], &whole, match);
    const uint64_t n_rows = whole.like.ne[axis];
    uint64_t sizes[MAX_PARTS] = {0}, first = 0;

    find_sizes(made, id, &whole, match, n_rows, sizes);
    if (n_rows == 0 || sizes[0] + sizes[1] + sizes[2] != n_rows)
        gguf_compose_fail(made, gguf_place_of(&whole),
                          "--unfuse: it has %" PRIu64 " rows, which do not divide into %" PRIu64
                          ", %" PRIu64 " and %" PRIu64,
                          n_rows, sizes[0], sizes[1], sizes[2]);
    for (size_t i = 0; made->result == 0 && i < count_parts(&fusions[id]); i++) {
        struct gguf_item part = whole;
        char name[GGUF_NAME_BYTES];

        gguf_tensor_name_expand(fusions[id].parts[i], match, name);
        gguf_take_rows(made, &part, axis, first, sizes[i]);
        part.like.name = gguf_compose_name(made, "%s", name);
        first += sizes[i];
        if (i == 0)
            made->items[index] = part;
        else
            gguf_insert_item(made, index + i, part);
    }
}

bool gguf_unfuse(struct gguf_composition *made, enum gguf_fusion_id id)
{
    bool is_used = false;

    for (size_t i = made->n_items; made->result == 0 && i-- > 0;) {
        struct gguf_name_match match;
        char name[GGUF_NAME_BYTES];

        if (!gguf_tensor_name_matches(made->items[i].like.name, fusions[id].whole, &match))
            continue;
        gguf_tensor_name_expand(fusions[id].parts[0], &match, name);
        if (gguf_find_item(made, gguf_string_of(name)) < made->n_items)
            continue;
        unfuse_layer(made, id, &match, i);
        is_used = true;
    }
    return is_used;
}
