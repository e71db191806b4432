#include "contrib/runner/engine/mix_latent.h"

#include "contrib/runner/engine/mix_attention.h"
#include "contrib/runner/engine/recurrent_parts.h"

#include <errno.h>

static void load_queries(struct run_loader *loader, const struct run_hparams *hparams, uint64_t n_q,
                         struct run_latent_layer *layer)
{
    const uint64_t rank = run_load_n_rows(loader, "attn_q_a.weight");

    if (rank == 0) {
        run_load_linear(loader, "attn_q", hparams->n_embd, n_q, &layer->q);
        return;
    }
    run_load_linear(loader, "attn_q_a", hparams->n_embd, rank, &layer->q_a);
    run_load_norm_if(loader, "attn_q_a_norm", hparams->norm_kind, hparams->norm_epsilon, rank,
                     &layer->q_a_norm);
    run_load_linear(loader, "attn_q_b", rank, n_q, &layer->q_b);
}

/* Make a layer without indexer use the selection of the latent attention before it. */
static void follow(struct run_loader *loader, const struct run_mixer_place *place,
                   struct run_latent_layer *layer)
{
    for (uint32_t i = place->index; i-- > 0;) {
        const struct run_latent_layer *before =
            run_mixers_find(&place->layers[i], &run_latent_mixer);

        if (before) {
            run_latent_follow(loader, layer, before);
            return;
        }
    }
}

static void load(struct run_loader *loader, const struct run_mixer_place *place, void *mixer)
{
    const struct run_hparams *hparams = place->hparams;
    const struct run_layer_shape *shape = &hparams->layers[place->index];
    struct run_latent_layer *layer = mixer;
    const uint32_t rank = hparams->latent_rank, n_rot = hparams->n_rot, n_head = shape->n_head;
    const bool is_main = place->index < hparams->n_layer; /* not a nextn layer */

    layer->shape = shape;
    if (hparams->latent_k <= n_rot) {
        run_loader_refuse(loader,
                          "metadata: key_length_mla %u is not above "
                          "rope.dimension_count %u",
                          hparams->latent_k, n_rot);
        return;
    }
    layer->plain = hparams->latent_k - n_rot;
    load_queries(loader, hparams, (uint64_t)n_head * hparams->latent_k, layer);
    run_load_linear(loader, "attn_kv_a_mqa", hparams->n_embd, (uint64_t)rank + n_rot, &layer->kv_a);
    run_load_norm_if(loader, "attn_kv_a_norm", hparams->norm_kind, hparams->norm_epsilon, rank,
                     &layer->kv_a_norm);
    layer->attention = (struct run_attention){
        .n_head = n_head,
        .n_head_kv = n_head,
        .dim_k = hparams->latent_k,
        .dim_v = hparams->latent_v,
        .scale = hparams->latent_scale,
    };
    run_load_linear_if(loader, "attn_kv_b", rank,
                       (uint64_t)n_head * (layer->plain + hparams->latent_v), &layer->kv_b);
    if (!layer->kv_b.weight.data) {
        run_load_linears(loader, "attn_k_b", layer->plain, rank, n_head, &layer->k_b);
        run_load_linears(loader, "attn_v_b", rank, hparams->latent_v, n_head, &layer->v_b);
        layer->attention.n_head_kv = 1;
        layer->attention.dim_k = rank + n_rot;
        layer->attention.dim_v = rank;
    }
    run_indexer_load(loader, hparams, shape, is_main,
                     layer->q_a.weight.data ? layer->q_a.weight.ne[1] : hparams->n_embd, n_head,
                     &layer->indexer);
    if (layer->indexer.q.weight.data)
        layer->followed = &layer->indexer;
    run_load_linear(loader, "attn_output", (uint64_t)n_head * hparams->latent_v, hparams->n_embd,
                    &layer->output);
    /* Compressed rows are values, and continue as keys. */
    layer->values =
        run_attention_cache(place, (uint64_t)layer->attention.n_head_kv * layer->attention.dim_v,
                            layer->attention.dim_v);
    layer->keys =
        run_attention_cache(place, (uint64_t)layer->attention.n_head_kv * layer->attention.dim_k,
                            layer->attention.dim_k);
    layer->keys.type = run_cache_type(layer->values.type, layer->attention.dim_k);
    if (is_main)
        follow(loader, place, layer);
    if (is_main && hparams->indexer.n_heads > 0 && !layer->followed)
        run_loader_refuse(loader,
                          "metadata: %s.attention.indexer.types: layer %u has no indexer, and no "
                          "earlier layer has one whose selection it could use",
                          hparams->name, place->index);
}

void run_latent_follow(struct run_loader *loader, struct run_latent_layer *layer,
                       const struct run_latent_layer *before)
{
    const struct run_indexer *indexer = before->followed;

    if (layer->followed || !indexer)
        return;
    if (layer->shape && layer->shape->n_head % indexer->n_groups != 0)
        run_loader_refuse(loader,
                          "metadata: attention.head_count %u is not a multiple of the %u groups "
                          "of the indexer that the layer uses",
                          layer->shape->n_head, indexer->n_groups);
    layer->followed = indexer;
}

static uint64_t cache_bytes(const void *mixer)
{
    const struct run_latent_layer *layer = mixer;

    return run_cache_bytes(&layer->keys) + run_cache_bytes(&layer->values) +
           run_cache_bytes(&layer->indexer.keys);
}

static void free_layer(void *mixer)
{
    struct run_latent_layer *layer = mixer;

    run_indexer_free(&layer->indexer);
    run_cache_free(&layer->keys);
    run_cache_free(&layer->values);
}

/* Queries: [n][n_head][latent_k], in each head the rotated part last. *from = their input. NULL if
 * out of memory. */
static float *make_queries(const struct run_latent_layer *layer, const struct run_pass *pass,
                           const float *x, const float **from)
{
    const struct run_hparams *hparams = pass->hparams;
    const size_t n = pass->n, width = (size_t)layer->shape->n_head * hparams->latent_k;
    float *queries = run_scratch_take(pass->scratch, n * width);

    *from = x;
    if (!queries)
        return NULL;
    if (layer->q.weight.data) {
        run_linear_apply(&layer->q, 0, x, n, queries);
    } else {
        const size_t rank = layer->q_a.weight.ne[1];
        float *narrow = run_scratch_take(pass->scratch, n * rank);

        if (!narrow)
            return NULL;
        run_linear_apply(&layer->q_a, 0, x, n, narrow);
        run_norm_apply(&layer->q_a_norm, narrow, n, rank, narrow);
        run_linear_apply(&layer->q_b, 0, narrow, n, queries);
        *from = narrow;
    }
    run_rotate(&pass->rotary[0], queries + layer->plain, n, layer->shape->n_head, hparams->latent_k,
               width, pass->first);
    run_scale_queries_by_position(pass, layer->shape, queries, width);
    return queries;
}

/*
 * Attention on the compressed rows: queries are projected to them, and the result is decompressed.
 */
static int attend_compressed(struct run_latent_layer *layer, const struct run_pass *pass,
                             const struct run_attention *attention, const float *queries,
                             const float *compressed, float *found)
{
    const struct run_hparams *hparams = pass->hparams;
    const size_t n = pass->n, n_head = layer->shape->n_head, rank = hparams->latent_rank;
    const size_t width = layer->attention.dim_k, latent_k = hparams->latent_k;
    const size_t latent_v = hparams->latent_v, plain = layer->plain;
    float *wide = run_scratch_take(pass->scratch, n * n_head * width);
    float *narrow = run_scratch_take(pass->scratch, n * n_head * rank);
    float *part = run_scratch_take(pass->scratch, n * (plain > rank ? plain : rank));
    float *product = run_scratch_take(pass->scratch, n * (latent_v > rank ? latent_v : rank));
    int code;

    if (!wide || !narrow || !part || !product)
        return -ENOMEM;
    for (size_t head = 0; head < n_head; head++) {
        const float *query = queries + head * latent_k;

        run_copy_rows(query, n_head * latent_k, n, plain, part, plain);
        run_linear_apply(&layer->k_b, head, part, n, product);
        run_copy_rows(product, rank, n, rank, wide + head * width, n_head * width);
        run_copy_rows(query + plain, n_head * latent_k, n, hparams->n_rot,
                      wide + head * width + rank, n_head * width);
    }
    run_cache_store(&layer->keys, pass->first, compressed, n, width);
    code = run_attend(attention, wide, n_head * width, &layer->keys, &layer->keys, n, pass->first,
                      narrow);
    for (size_t head = 0; code == 0 && head < n_head; head++) {
        run_copy_rows(narrow + head * rank, n_head * rank, n, rank, part, rank);
        run_linear_apply(&layer->v_b, head, part, n, product);
        run_copy_rows(product, latent_v, n, latent_v, found + head * latent_v, n_head * latent_v);
    }
    return code;
}

static int attend_decompressed(struct run_latent_layer *layer, const struct run_pass *pass,
                               const struct run_attention *attention, const float *queries,
                               const float *compressed, float *found)
{
    const struct run_hparams *hparams = pass->hparams;
    const size_t n = pass->n, n_head = layer->shape->n_head, rank = hparams->latent_rank;
    const size_t latent_k = hparams->latent_k, latent_v = hparams->latent_v;
    const size_t plain = layer->plain, both = plain + latent_v, row = rank + hparams->n_rot;
    float *narrow = run_scratch_take(pass->scratch, n * rank);
    float *wide = run_scratch_take(pass->scratch, n * n_head * both);
    float *keys = run_scratch_take(pass->scratch, n * n_head * latent_k);
    float *values = run_scratch_take(pass->scratch, n * n_head * latent_v);

    if (!narrow || !wide || !keys || !values ||
        run_cache_reserve(&layer->values, pass->first + n) < 0)
        return -ENOMEM;
    run_copy_rows(compressed, row, n, rank, narrow, rank);
    run_linear_apply(&layer->kv_b, 0, narrow, n, wide);
    run_copy_rows(wide, both, n * n_head, plain, keys, latent_k);
    run_copy_rows(wide + plain, both, n * n_head, latent_v, values, latent_v);
    for (size_t head = 0; head < n_head; head++)
        run_copy_rows(compressed + rank, row, n, hparams->n_rot, keys + head * latent_k + plain,
                      n_head * latent_k);
    run_cache_store(&layer->keys, pass->first, keys, n, n_head * latent_k);
    run_cache_store(&layer->values, pass->first, values, n, n_head * latent_v);
    return run_attend(attention, queries, n_head * latent_k, &layer->keys, &layer->values, n,
                      pass->first, found);
}

static int try_apply(void *mixer, const struct run_pass *pass, const float *x, float *out)
{
    struct run_latent_layer *layer = mixer;
    const struct run_hparams *hparams = pass->hparams;
    const size_t n = pass->n, rank = hparams->latent_rank, row = rank + hparams->n_rot;
    struct run_attention attention = layer->attention;
    const float *from;
    const float *queries = make_queries(layer, pass, x, &from);
    float *compressed = run_scratch_take(pass->scratch, n * row);
    float *found = run_scratch_take(pass->scratch, n * layer->output.weight.ne[0]);
    int code = 0;

    if (!queries || !compressed || !found || run_cache_reserve(&layer->keys, pass->first + n) < 0)
        return -ENOMEM;
    run_linear_apply(&layer->kv_a, 0, x, n, compressed);
    run_norm(layer->kv_a_norm.kind, layer->kv_a_norm.epsilon, compressed, n, rank, row,
             layer->kv_a_norm.weight, layer->kv_a_norm.bias, 1, compressed);
    run_rotate(&pass->rotary[0], compressed + rank, n, 1, hparams->n_rot, row, pass->first);
    if (layer->indexer.q.weight.data)
        code = run_indexer_apply(&layer->indexer, pass, x, from);
    if (layer->followed)
        attention.selection = &layer->followed->selection;
    if (code == 0)
        code = layer->kv_b.weight.data
                   ? attend_decompressed(layer, pass, &attention, queries, compressed, found)
                   : attend_compressed(layer, pass, &attention, queries, compressed, found);
    if (code == 0)
        run_linear_apply(&layer->output, 0, found, n, out);
    return code;
}

static void apply(void *mixer, const struct run_pass *pass, const float *x, float *out)
{
    if (try_apply(mixer, pass, x, out) < 0)
        run_scratch_fail(pass->scratch);
}

const struct run_mixer_ops run_latent_mixer = {
    .n_bytes = sizeof(struct run_latent_layer),
    .load = load,
    .apply = apply,
    .cache_bytes = cache_bytes,
    .free = free_layer,
};
