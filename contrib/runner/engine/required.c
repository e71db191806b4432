#include "contrib/runner/engine/loader.h"

#include "gguf/models/tensor_lists.h"
#include "gguf/support/strings.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static bool has_tensor(const void *weights, const char *name)
{
    return run_weights_has(weights, name);
}

static void refuse(struct run_loader *loader, const struct run_hparams *hparams,
                   const struct gguf_missing_tensor *missing)
{
    char rule[256];

    if (loader->code < 0)
        return;
    if (missing->part)
        snprintf(rule, sizeof rule, "no %s; layers of the architecture %s have one", missing->part,
                 hparams->name);
    else if (missing->because[0] != '\0')
        snprintf(rule, sizeof rule, "missing; %s requires it", missing->because);
    else
        snprintf(rule, sizeof rule, "missing%s%s; the architecture %s requires it",
                 missing->others[0] != '\0' ? ", and so is " : "", missing->others, hparams->name);
    loader->code = run_fail(loader->failure, -ENOENT,
                            "tensors/%s: %s; the file is incomplete: get it again, or convert the "
                            "model again",
                            missing->name, rule);
}

void run_require_ends(struct run_loader *loader, const struct run_hparams *hparams)
{
    struct gguf_missing_tensor missing;
    char beyond[sizeof "blk.4294967295."];
    const char *name;

    snprintf(beyond, sizeof beyond, "blk.%u.", hparams->n_stored);
    name = run_weights_starting(loader->weights, beyond);
    if (!gguf_check_model_tensors(hparams->model, has_tensor, loader->weights, &missing))
        refuse(loader, hparams, &missing);
    else if (name)
        run_loader_refuse(loader,
                          "tensors/%s: %s.block_count is %u, so there is no such layer; the key or "
                          "the file is wrong: get it again, or set the key with ggufs --set",
                          name, hparams->name, hparams->n_stored);
}

void run_require_layer(struct run_loader *loader, const struct run_hparams *hparams, uint32_t index)
{
    struct gguf_missing_tensor missing;

    if (!gguf_check_layer_tensors(hparams->model, has_tensor, loader->weights,
                                  index % hparams->n_stored, &missing))
        refuse(loader, hparams, &missing);
}

/* Tensors that a layer may have or lack, whatever the other layers have, and need not use. */
static const struct {
    const char *start; /* of names */
    bool is_shared;    /* only in layers that use keys and values of others */
    const char *reason;
} free_names[] = {
    {"attn_k", true, "files have keys and values that the model does not use"},
    {"attn_v", true, "files have keys and values that the model does not use"},
    {"attn_k_b", false, "files of ik_llama.cpp have attn_kv_b both as a whole and in parts"},
    {"attn_v_b", false, "files of ik_llama.cpp have attn_kv_b both as a whole and in parts"},
    {"indexer.", false, "some layers use the selection of an earlier layer"},
    {"time_mix_v0", false, "the first layer of RWKV 7 has no other layer's values to mix in"},
    {"time_mix_v1", false, "the first layer of RWKV 7 has no other layer's values to mix in"},
    {"time_mix_v2", false, "the first layer of RWKV 7 has no other layer's values to mix in"},
    {"time_mix_first", false, "files of RWKV6-Qwen2 have it, although the model does not"},
};

/* Compares a layer with an earlier one. */
struct comparison {
    struct run_loader *loader;
    bool shares_kv;
    uint32_t layer, earlier;
};

static bool is_free(const struct comparison *layers, const char *name)
{
    for (size_t i = 0; i < sizeof free_names / sizeof *free_names; i++)
        if (gguf_text_starts_with(name, free_names[i].start) &&
            (layers->shares_kv || !free_names[i].is_shared))
            return true;
    return false;
}

/* Check tensor NAME END. A scale is part of the storage format, which may differ by layer. */
static void check_name(const struct comparison *layers, const char *name, size_t length,
                       const char *end)
{
    struct run_loader *loader = layers->loader;
    char full[GGUF_LIST_NAME_BYTES], other[GGUF_LIST_NAME_BYTES];
    bool is_there, other_is_there;

    snprintf(full, sizeof full, "blk.%u.%.*s%s", layers->layer, (int)length, name, end);
    snprintf(other, sizeof other, "blk.%u.%.*s%s", layers->earlier, (int)length, name, end);
    is_there = run_weights_has(loader->weights, full);
    other_is_there = run_weights_has(loader->weights, other);
    if (is_there && !run_weights_is_used(loader->weights, full))
        run_loader_refuse(loader,
                          "tensors/%s: not used, since other tensors of the layer or the metadata "
                          "leave it out; get the file again, or convert the model again",
                          full);
    else if (is_there != other_is_there && strcmp(end, ".scale") != 0 && loader->code == 0)
        loader->code =
            run_fail(loader->failure, -ENOENT,
                     "tensors/%s: layer %u, of the same kind as layer %u, has no such tensor",
                     is_there ? full : other, is_there ? layers->earlier : layers->layer,
                     is_there ? layers->layer : layers->earlier);
}

static int check_listed(void *user, const char *name, size_t length, bool is_required)
{
    static const char *const ends[] = {"", ".weight", ".scale"};
    const struct comparison *layers = user;

    for (size_t i = 0; i < sizeof ends / sizeof *ends && !is_free(layers, name); i++)
        check_name(layers, name, length, ends[i]);
    return layers->loader->code;
}

/* Layers of equal kinds must have the same tensors. */
static unsigned find_kind(const struct run_loader *loader, const struct run_hparams *hparams,
                          uint32_t layer)
{
    const struct gguf_layer_shape *shape = &hparams->layers[layer];
    const bool has_network = run_loader_has(loader, "ffn_down_shexp.weight") ||
                             run_loader_has(loader, "ffn_down.weight");

    return (gguf_layer_parts(hparams->model, has_tensor, loader->weights, layer) &
            (GGUF_PART_NEXTN - 1u)) |
           (unsigned)shape->is_windowed << 4 | (unsigned)shape->shares_kv << 5 |
           (unsigned)has_network << 6 | (unsigned)(shape->n_head > 0) << 7;
}

void run_check_layer(struct run_loader *loader, const struct run_hparams *hparams, uint32_t index,
                     struct run_layer_kinds *kinds)
{
    const struct gguf_tensor_lists *lists = &hparams->model->tensors;
    const char *const all[] = {lists->layer, lists->attention, lists->recurrence, lists->dense,
                               lists->experts};
    struct comparison layers = {
        .loader = loader, .shares_kv = hparams->layers[index].shares_kv, .layer = index};
    unsigned kind;

    if (index >= hparams->n_stored || loader->code < 0)
        return;
    kind = find_kind(loader, hparams, index);
    if (kinds->first[kind] == 0)
        kinds->first[kind] = index + 1;
    layers.earlier = kinds->first[kind] - 1;
    for (size_t i = 0; i < sizeof all / sizeof *all && loader->code == 0; i++)
        gguf_list_walk(all[i], check_listed, &layers);
}
