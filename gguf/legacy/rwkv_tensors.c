#include "gguf/legacy/rwkv_tensors.h"

#include "gguf/fusions.h"
#include "gguf/models/tensor_names.h"

#include <string.h>

const struct gguf_rwkv_rule gguf_rwkv6_rules[] = {
    {"blocks.%.att.time_faaaa", "blk.%.time_mix_first.weight", GGUF_SHAPE_COMPACT},
    {"blocks.%.att.time_decay", "blk.%.time_mix_decay.weight", GGUF_SHAPE_FLAT},
    {0},
};

/*
 * The first layer has no values of an earlier one to mix in. llama.cpp wants the tensors for that
 * nevertheless, with the shapes of a0, a1 and a2; its converter takes these.
 */
const struct gguf_rwkv_rule gguf_rwkv7_rules[] = {
    {"blocks.%.att.x_rwkvag", "blk.%.time_mix_lerp_fused.weight", GGUF_SHAPE_STACKED},
    {"blocks.%.att.r_k", "blk.%.time_mix_r_k.weight", GGUF_SHAPE_FLAT},
    {"blocks.0.att.v0", NULL, GGUF_SHAPE_STORED},
    {"blocks.0.att.v1", NULL, GGUF_SHAPE_STORED},
    {"blocks.0.att.v2", NULL, GGUF_SHAPE_STORED},
    {"blocks.0.att.a0", "blk.0.time_mix_a0.weight", GGUF_SHAPE_STORED},
    {"blocks.0.att.a0", "blk.0.time_mix_v0.weight", GGUF_SHAPE_STORED},
    {"blocks.0.att.a1", "blk.0.time_mix_a1.weight", GGUF_SHAPE_STORED},
    {"blocks.0.att.a1", "blk.0.time_mix_v1.weight", GGUF_SHAPE_STORED},
    {"blocks.0.att.a2", "blk.0.time_mix_a2.weight", GGUF_SHAPE_STORED},
    {"blocks.0.att.a2", "blk.0.time_mix_v2.weight", GGUF_SHAPE_STORED},
    {0},
};

static void reshape(struct gguf_tensor *like, const struct gguf_rwkv_rule *rule)
{
    const struct gguf_tensor old = *like;
    uint32_t n_dims = 0;

    for (uint32_t i = 0; i < GGUF_MAX_DIMS && rule->shape != GGUF_SHAPE_STORED; i++)
        like->ne[i] = 1;
    switch (rule->shape) {
    case GGUF_SHAPE_STORED:
        break;
    case GGUF_SHAPE_FLAT:
        like->n_dims = 1;
        like->ne[0] = old.n_elements;
        break;
    case GGUF_SHAPE_COMPACT:
        for (uint32_t i = 0; i < old.n_dims; i++) {
            if (old.ne[i] != 1)
                like->ne[n_dims++] = old.ne[i];
        }
        like->n_dims = n_dims;
        break;
    case GGUF_SHAPE_STACKED:
        like->n_dims = 4;
        like->ne[0] = old.ne[0];
        like->ne[3] = old.ne[0] > 0 ? old.n_elements / old.ne[0] : 0;
        break;
    }
}

/* Convert an item by all its rules. Returns how many it has become. */
static size_t convert(struct gguf_composition *made, size_t index,
                      const struct gguf_rwkv_rule *rule)
{
    const struct gguf_item old = made->items[index];
    size_t n = 0;

    made->items[index].like.name = gguf_name_of(gguf_origin_of(made, &old)->tensor);
    for (; rule->old_name; rule++) {
        struct gguf_item item = old;
        struct gguf_name_match match;
        char name[GGUF_NAME_BYTES];

        if (!gguf_tensor_name_matches(old.like.name, rule->old_name, &match) ||
            *match.suffix != '\0')
            continue;
        made->items[index].is_dropped = n == 0 && !rule->name;
        if (!rule->name)
            continue;
        gguf_tensor_name_expand(rule->name, &match, name);
        item.like.name = gguf_compose_name(made, "%s", name);
        reshape(&item.like, rule);
        if (n > 0)
            gguf_insert_item(made, index + n, item);
        else
            made->items[index] = item;
        n++;
    }
    return n > 0 ? n : 1;
}

int gguf_rwkv_convert(const struct gguf_model *model, struct gguf_model **converted,
                      struct gguf_report *report)
{
    struct gguf_composition made;

    gguf_compose_begin(&made, model, report);
    gguf_append_items(&made, model);
    for (size_t i = 0; i < made.n_items; i++)
        made.items[i].like.name = model->tensors[i].name;
    gguf_fuse(&made, GGUF_FUSION_RWKV, GGUF_FUSE_EQUAL);
    for (size_t i = 0; made.result == 0 && i < made.n_items;) {
        const struct gguf_elements *origin = gguf_origin_of(&made, &made.items[i]);
        const bool is_fused = origin && made.items[i].like.name.data != origin->tensor->name.data;

        i += origin && !is_fused ? convert(&made, i, model->rwkv_rules) : 1;
    }
    return gguf_compose_end(&made, converted);
}
