#include "contrib/runner/engine/required.h"

#include "contrib/runner/engine/mix_attention.h"
#include "contrib/runner/engine/mix_latent.h"
#include "gguf/models/tensor_lists.h"
#include "gguf/support/grow.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static bool has_tensor(const void *weights, const char *name)
{
    return run_weights_has(weights, name);
}

static void refuse(struct run_loader *loader, const struct run_hparams *hparams,
                   const struct gguf_missing_tensor *missing)
{
    static const char remedy[] = "the file is incomplete: get it again, or convert the model again";
    const bool has_others = missing->others[0] != '\0';

    if (loader->code < 0)
        return;
    loader->code =
        missing->part ? run_fail(loader->failure, -ENOENT,
                                 "tensors/%s: no %s; layers of the architecture %s have one; %s",
                                 missing->name, missing->part, hparams->name, remedy)
        : missing->because[0] != '\0'
            ? run_fail(loader->failure, -ENOENT, "tensors/%s: missing; %s requires it; %s",
                       missing->name, missing->because, remedy)
            : run_fail(loader->failure, -ENOENT,
                       "tensors/%s: missing%s%s; the architecture %s requires it; %s",
                       missing->name, has_others ? ", and so is " : "", missing->others,
                       hparams->name, remedy);
}

void run_require_ends(struct run_loader *loader, const struct run_hparams *hparams)
{
    struct gguf_missing_tensor missing;

    if (!gguf_check_model_tensors(hparams->model, has_tensor, loader->weights, &missing))
        refuse(loader, hparams, &missing);
}

void run_require_layer(struct run_loader *loader, const struct run_hparams *hparams, uint32_t index)
{
    struct gguf_missing_tensor missing;

    if (!gguf_check_layer_tensors(hparams->model, has_tensor, loader->weights,
                                  index % hparams->n_stored, &missing))
        refuse(loader, hparams, &missing);
}

/* Layers with equal members must have the same tensors. */
struct traits {
    const struct run_mixer_ops *ops[RUN_MAX_MIXERS];
    bool has_experts, has_network, has_channel_mix;
    bool is_windowed, shares_kv, has_indexer;
};

struct run_layer_kind {
    struct traits traits;
    uint32_t layer; /* the first layer of the kind */
    struct run_used_names names;
};

static bool has_indexer(const struct run_mixers *mixers)
{
    const struct run_attention_layer *attention = run_mixers_find(mixers, &run_attention_mixer);
    const struct run_latent_layer *latent = run_mixers_find(mixers, &run_latent_mixer);

    return (attention && attention->indexer.q.weight.data) ||
           (latent && latent->indexer.q.weight.data);
}

static struct traits find_traits(const struct run_hparams *hparams, uint32_t index,
                                 const struct run_layer *layer)
{
    struct traits traits = {
        .has_experts = layer->feed_forward.has_experts,
        .has_network = layer->feed_forward.network.down.weight.data,
        .has_channel_mix = layer->feed_forward.channel_mix.is_there,
        .is_windowed = hparams->layers[index].is_windowed,
        .shares_kv = hparams->layers[index].shares_kv,
        .has_indexer = has_indexer(layer->mixers),
    };

    for (size_t i = 0; i < layer->mixers->n; i++)
        traits.ops[i] = layer->mixers->list[i].ops;
    return traits;
}

static bool are_equal(const struct traits *a, const struct traits *b)
{
    return a->ops[0] == b->ops[0] && a->ops[1] == b->ops[1] && a->has_experts == b->has_experts &&
           a->has_network == b->has_network && a->has_channel_mix == b->has_channel_mix &&
           a->is_windowed == b->is_windowed && a->shares_kv == b->shares_kv &&
           a->has_indexer == b->has_indexer;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(((const struct run_used_name *)a)->end, ((const struct run_used_name *)b)->end);
}

/* Sorts the names and drops duplicates. */
static void sort_names(struct run_used_names *names)
{
    size_t n = 0;

    if (names->n == 0)
        return;
    qsort(names->list, names->n, sizeof *names->list, compare_names);
    for (size_t i = 1; i < names->n; i++)
        if (strcmp(names->list[i].end, names->list[n].end) != 0)
            names->list[++n] = names->list[i];
    names->n = n + 1;
}

static void refuse_difference(struct run_loader *loader, const struct run_used_name *name,
                              uint32_t has, uint32_t lacks)
{
    loader->code =
        run_fail(loader->failure, -ENOENT,
                 "tensors/%s: layer %u, of the same kind as layer %u, has no such tensor",
                 name->full, lacks, has);
}

static void compare(struct run_loader *loader, const struct run_layer_kind *kind, uint32_t index)
{
    const struct run_used_names *a = &kind->names, *b = loader->used;
    size_t i = 0, j = 0;

    while (i < a->n || j < b->n) {
        const int order = i == a->n ? 1 : j == b->n ? -1 : strcmp(a->list[i].end, b->list[j].end);

        if (order < 0)
            refuse_difference(loader, &a->list[i], kind->layer, index);
        if (order > 0)
            refuse_difference(loader, &b->list[j], index, kind->layer);
        if (order != 0)
            return;
        i++;
        j++;
    }
}

void run_layer_kinds_check(struct run_layer_kinds *kinds, struct run_loader *loader,
                           const struct run_hparams *hparams, uint32_t index,
                           const struct run_layer *layer)
{
    const struct traits traits = find_traits(hparams, index, layer);
    struct run_layer_kind *list;

    if (loader->code < 0)
        return;
    sort_names(loader->used);
    for (size_t i = 0; i < kinds->n; i++) {
        if (are_equal(&kinds->list[i].traits, &traits)) {
            compare(loader, &kinds->list[i], index);
            loader->used->n = 0;
            return;
        }
    }
    list = gguf_grow(kinds->list, &kinds->room, kinds->n + 1, sizeof *list);
    if (!list) {
        loader->code = run_fail_memory(loader->failure);
        return;
    }
    kinds->list = list;
    list[kinds->n++] = (struct run_layer_kind){traits, index, *loader->used};
    *loader->used = (struct run_used_names){0};
}

void run_layer_kinds_free(struct run_layer_kinds *kinds)
{
    for (size_t i = 0; i < kinds->n; i++)
        free(kinds->list[i].names.list);
    free(kinds->list);
    *kinds = (struct run_layer_kinds){0};
}
