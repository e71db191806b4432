#include "gguf/legacy/rwkv_tensors.h"

#include "gguf/legacy/families.h"
#include "gguf/legacy/old_tensors.h"
#include "gguf/support/arrays.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define FUSED "blk.%.time_mix_lerp_fused.weight"

const struct gguf_rwkv_rule gguf_rwkv6_rules[] = {
    {"blocks.%.att.time_faaaa", "blk.%.time_mix_first.weight", GGUF_SHAPE_COMPACT, 0},
    {"blocks.%.att.time_decay", "blk.%.time_mix_decay.weight", GGUF_SHAPE_FLAT, 0},
    {"blocks.%.att.time_maa_w", FUSED, GGUF_SHAPE_STACKED, 0},
    {"blocks.%.att.time_maa_k", FUSED, GGUF_SHAPE_STACKED, 1},
    {"blocks.%.att.time_maa_v", FUSED, GGUF_SHAPE_STACKED, 2},
    {"blocks.%.att.time_maa_r", FUSED, GGUF_SHAPE_STACKED, 3},
    {"blocks.%.att.time_maa_g", FUSED, GGUF_SHAPE_STACKED, 4},
    {0},
};

/*
 * The first layer has no values of an earlier one to mix in. llama.cpp wants the tensors for that
 * nevertheless, with the shapes of a0, a1 and a2; its converter takes these.
 */
const struct gguf_rwkv_rule gguf_rwkv7_rules[] = {
    {"blocks.%.att.x_rwkvag", FUSED, GGUF_SHAPE_STACKED, 0},
    {"blocks.%.att.r_k", "blk.%.time_mix_r_k.weight", GGUF_SHAPE_FLAT, 0},
    {"blocks.0.att.v0", NULL, GGUF_SHAPE_STORED, 0},
    {"blocks.0.att.v1", NULL, GGUF_SHAPE_STORED, 0},
    {"blocks.0.att.v2", NULL, GGUF_SHAPE_STORED, 0},
    {"blocks.0.att.a0", "blk.0.time_mix_a0.weight", GGUF_SHAPE_STORED, 0},
    {"blocks.0.att.a0", "blk.0.time_mix_v0.weight", GGUF_SHAPE_STORED, 0},
    {"blocks.0.att.a1", "blk.0.time_mix_a1.weight", GGUF_SHAPE_STORED, 0},
    {"blocks.0.att.a1", "blk.0.time_mix_v1.weight", GGUF_SHAPE_STORED, 0},
    {"blocks.0.att.a2", "blk.0.time_mix_a2.weight", GGUF_SHAPE_STORED, 0},
    {"blocks.0.att.a2", "blk.0.time_mix_v2.weight", GGUF_SHAPE_STORED, 0},
    {0},
};

/* Rules that one tensor matches. */
#define MAX_MATCHES 2u

struct conversion {
    struct gguf_model *model;
    const struct gguf_rwkv_rule *rules;
    uint64_t *joined; /* per layer: 1 + the index of its joined tensor, 0: not made yet */
    uint32_t n_layers;
};

static struct gguf_converted_tensor *add(struct gguf_model *model, struct gguf_string name)
{
    struct gguf_converted_tensor *tensor = &model->converted[model->n_converted++];

    tensor->name = name;
    return tensor;
}

static void set_shape(struct gguf_converted_tensor *converted, const struct gguf_tensor *tensor,
                      const struct gguf_rwkv_rule *rule)
{
    uint32_t n_dims = 0;

    memcpy(converted->ne, tensor->ne, sizeof converted->ne);
    converted->n_dims = tensor->n_dims;
    if (!rule || rule->shape == GGUF_SHAPE_STORED)
        return;
    for (uint32_t i = 0; i < GGUF_MAX_DIMS; i++)
        converted->ne[i] = 1;
    switch (rule->shape) {
    case GGUF_SHAPE_FLAT:
        converted->n_dims = 1;
        converted->ne[0] = tensor->n_elements;
        break;
    case GGUF_SHAPE_COMPACT:
        for (uint32_t i = 0; i < tensor->n_dims; i++) {
            if (tensor->ne[i] != 1)
                converted->ne[n_dims++] = tensor->ne[i];
        }
        converted->n_dims = n_dims;
        break;
    default: /* stacked */
        converted->n_dims = 4;
        converted->ne[0] = tensor->ne[0];
        converted->ne[3] = tensor->ne[0] > 0 ? tensor->n_elements / tensor->ne[0] : 0;
    }
}

/* Add a tensor to the joined tensor of its layer. */
static int join(struct conversion *conversion, uint64_t index, const struct gguf_rwkv_rule *rule,
                uint32_t layer)
{
    struct gguf_model *model = conversion->model;
    struct gguf_converted_tensor *converted;
    struct gguf_string name;

    assert(rule->part < GGUF_MAX_JOINED_TENSORS);
    if (conversion->joined[layer] == 0) {
        if (gguf_old_tensors_make_name(model, rule->name, layer, &name) < 0)
            return -ENOMEM;
        set_shape(add(model, name), &model->tensors[index], rule);
        conversion->joined[layer] = model->n_converted;
    }
    converted = &model->converted[conversion->joined[layer] - 1];
    converted->stored[rule->part] = index;
    if (converted->n_stored <= rule->part)
        converted->n_stored = rule->part + 1;
    return 0;
}

/* Convert a tensor by all its rules. */
static int convert(struct conversion *conversion, uint64_t index)
{
    struct gguf_model *model = conversion->model;
    const struct gguf_tensor *tensor = &model->tensors[index];
    struct gguf_converted_tensor *converted;
    const struct gguf_rwkv_rule *rule;
    bool has_rule = false;
    int result = 0;

    for (rule = conversion->rules; result == 0 && rule->old_name; rule++) {
        struct gguf_string name;
        uint32_t layer;

        if (!gguf_matches_rule(rule->old_name, tensor->name, conversion->n_layers, 0, &layer))
            continue;
        has_rule = true;
        if (!rule->name)
            continue;
        if (rule->shape == GGUF_SHAPE_STACKED) {
            result = join(conversion, index, rule, layer);
            continue;
        }
        result = gguf_old_tensors_make_name(model, rule->name, layer, &name);
        if (result < 0)
            return result;
        converted = add(model, name);
        converted->stored[converted->n_stored++] = index;
        set_shape(converted, tensor, rule);
    }
    if (has_rule)
        return result;
    converted = add(model, gguf_name_of(tensor));
    converted->stored[converted->n_stored++] = index;
    set_shape(converted, tensor, NULL);
    return 0;
}

static int compare_names(const void *a, const void *b)
{
    const struct gguf_converted_tensor *const *first = a, *const *second = b;

    return gguf_string_compare((*first)->name, (*second)->name);
}

/* A tensor with a name that no converter writes may have the name of a converted tensor. */
static int check_names(const struct gguf_model *model, struct gguf_report *report)
{
    const struct gguf_converted_tensor **order = (const struct gguf_converted_tensor **)gguf_sorted(
        model->converted, model->n_converted, sizeof *model->converted, compare_names);
    int result = 0;

    if (!order)
        return gguf_system_error(report, -ENOMEM, GGUF_NO_PLACE);
    for (uint64_t i = 1; result == 0 && i < model->n_converted; i++) {
        const struct gguf_tensor *tensor = &model->tensors[order[i]->stored[0]];

        if (compare_names(&order[i - 1], &order[i]) == 0)
            result =
                gguf_error(report, GGUF_RULE_DUPLICATE_TENSOR, -EEXIST, gguf_tensor_place(tensor),
                           "its name in GGUF files, %s, belongs to another tensor",
                           gguf_quote(order[i]->name).text);
    }
    free(order);
    return result;
}

/* Give joined tensors their last dimension. Returns false if their parts are no equal vectors. */
static bool finish_joined(struct gguf_model *model)
{
    for (uint64_t i = 0; i < model->n_converted; i++) {
        struct gguf_converted_tensor *converted = &model->converted[i];
        const struct gguf_tensor *first = &model->tensors[converted->stored[0]];

        for (uint32_t j = 0; converted->n_stored > 1 && j < converted->n_stored; j++) {
            const struct gguf_tensor *tensor = &model->tensors[converted->stored[j]];

            if (tensor->type != first->type || tensor->n_elements != converted->ne[0])
                return false;
            converted->ne[3] = converted->n_stored;
        }
    }
    return true;
}

int gguf_rwkv_convert(struct gguf_model *model, const struct gguf_rwkv_rule *rules,
                      uint32_t n_layers, struct gguf_report *report)
{
    struct conversion conversion = {.model = model, .rules = rules, .n_layers = n_layers};
    int result = 0;

    model->converted =
        gguf_model_alloc(model, model->n_tensors * MAX_MATCHES * sizeof *model->converted);
    conversion.joined = calloc(n_layers, sizeof *conversion.joined);
    if (!model->converted || !conversion.joined)
        result = -ENOMEM;
    for (uint64_t i = 0; result == 0 && i < model->n_tensors; i++)
        result = convert(&conversion, i);
    free(conversion.joined);
    if (result < 0)
        return gguf_system_error(report, result, GGUF_NO_PLACE);
    if (finish_joined(model))
        return check_names(model, report);
    model->converted = NULL;
    model->n_converted = 0;
    return 0;
}
