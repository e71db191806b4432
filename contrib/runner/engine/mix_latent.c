/*
 * Multi-head latent attention (MLA, DeepSeek 2, 2024): keys and values of all heads are
 * decompressed from a narrow row per token.
 */
#include "contrib/runner/engine/mix_attention.h"
#include "contrib/runner/engine/recurrent_parts.h"

struct latent_layer {
    const struct gguf_layer_shape *shape;
    struct run_attention attention;
    uint32_t plain;             /* elements of a head's query and key that are not rotated */
    struct run_linear q;        /* [n_embd] to [n_head][latent_k], or … */
    struct run_linear q_a, q_b; /* … through a narrower row */
    struct run_norm_layer q_a_norm, kv_a_norm;
    struct run_linear kv_a; /* [n_embd] to the compressed row and the rotated part of all keys */
    struct run_linear kv_b; /* decompression of [n_head][plain + latent_v], or … */
    struct run_linear k_b,
        v_b; /* … a matrix for each head: [plain] to [rank], [rank] to [latent_v]:
                attention is then on the compressed rows themselves */
    struct run_linear output;
    struct run_indexer indexer;
    bool is_sparse;                /* uses the selection of its indexer, or of an earlier layer's */
    struct run_cache keys, values; /* values: not with k_b, v_b */
};

static void load_queries(struct run_loader *loader, const struct run_hparams *hparams, uint64_t n_q,
                         struct latent_layer *layer)
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

/* Return true if latent attention before the layer makes a selection. */
static bool is_sparse_before(const struct run_mixer_place *place)
{
    const struct latent_layer *before = NULL;

    for (uint32_t i = place->index; i-- > 0 && !before;)
        before = run_mixers_find(&place->layers[i], &run_latent_mixer);
    return before && before->is_sparse;
}

static void load(struct run_loader *loader, const struct run_mixer_place *place, void *mixer)
{
    const struct run_hparams *hparams = place->hparams;
    const struct gguf_layer_shape *shape = &hparams->layers[place->index];
    struct latent_layer *layer = mixer;
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
    layer->is_sparse = layer->indexer.q.weight.data || (is_main && is_sparse_before(place));
    run_load_linear(loader, "attn_output", (uint64_t)n_head * hparams->latent_v, hparams->n_embd,
                    &layer->output);
    /* Compressed rows are values, and continue as keys. */
    run_attention_cache(loader, place,
                        (uint64_t)layer->attention.n_head_kv * layer->attention.dim_v,
                        layer->attention.dim_v, &layer->values);
    run_attention_cache(loader, place,
                        (uint64_t)layer->attention.n_head_kv * layer->attention.dim_k,
                        layer->attention.dim_k, &layer->keys);
    layer->keys.type = run_cache_type(layer->values.type, layer->attention.dim_k);
    if (is_main && hparams->indexer.n_heads > 0 && !layer->is_sparse)
        run_loader_refuse(loader,
                          "metadata: %s.attention.indexer.types: layer %u has no indexer, and no "
                          "earlier layer has one whose selection it could use",
                          hparams->name, place->index);
}

/* Queries: [n][n_head][latent_k], in each head the rotated part last. *from = their input. */
static float *make_queries(const struct latent_layer *layer, const struct run_pass *pass,
                           const float *x, const float **from)
{
    const struct run_hparams *hparams = pass->hparams;
    const size_t n = pass->n, width = (size_t)layer->shape->n_head * hparams->latent_k;
    float *queries = run_scratch_take(pass->scratch, n * width);

    *from = x;
    if (layer->q.weight.data) {
        run_linear_apply(&layer->q, 0, x, n, queries);
    } else {
        const size_t rank = layer->q_a.weight.ne[1];
        float *narrow = run_scratch_take(pass->scratch, n * rank);

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
static void attend_compressed(struct latent_layer *layer, const struct run_pass *pass,
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

    for (size_t head = 0; head < n_head; head++) {
        const float *query = queries + head * latent_k;

        run_copy_rows(query, n_head * latent_k, n, plain, part, plain);
        run_linear_apply(&layer->k_b, head, part, n, product);
        run_copy_rows(product, rank, n, rank, wide + head * width, n_head * width);
        run_copy_rows(query + plain, n_head * latent_k, n, hparams->n_rot,
                      wide + head * width + rank, n_head * width);
    }
    run_pass_store(pass, &layer->keys, compressed);
    if (run_attend(attention, wide, n_head * width, &layer->keys, &layer->keys, n, pass->first,
                   narrow) < 0)
        run_scratch_fail(pass->scratch);
    for (size_t head = 0; head < n_head; head++) {
        run_copy_rows(narrow + head * rank, n_head * rank, n, rank, part, rank);
        run_linear_apply(&layer->v_b, head, part, n, product);
        run_copy_rows(product, latent_v, n, latent_v, found + head * latent_v, n_head * latent_v);
    }
}

static void attend_decompressed(struct latent_layer *layer, const struct run_pass *pass,
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

    run_copy_rows(compressed, row, n, rank, narrow, rank);
    run_linear_apply(&layer->kv_b, 0, narrow, n, wide);
    run_copy_rows(wide, both, n * n_head, plain, keys, latent_k);
    run_copy_rows(wide + plain, both, n * n_head, latent_v, values, latent_v);
    for (size_t head = 0; head < n_head; head++)
        run_copy_rows(compressed + rank, row, n, hparams->n_rot, keys + head * latent_k + plain,
                      n_head * latent_k);
    run_pass_store(pass, &layer->keys, keys);
    run_pass_store(pass, &layer->values, values);
    if (run_attend(attention, queries, n_head * latent_k, &layer->keys, &layer->values, n,
                   pass->first, found) < 0)
        run_scratch_fail(pass->scratch);
}

static void apply(void *mixer, const struct run_pass *pass, const float *x, float *out)
{
    struct latent_layer *layer = mixer;
    const struct run_hparams *hparams = pass->hparams;
    const size_t n = pass->n, rank = hparams->latent_rank, row = rank + hparams->n_rot;
    struct run_attention attention = layer->attention;
    const float *from;
    const float *queries = make_queries(layer, pass, x, &from);
    float *compressed = run_scratch_take(pass->scratch, n * row);
    float *found = run_scratch_take(pass->scratch, n * layer->output.weight.ne[0]);

    run_linear_apply(&layer->kv_a, 0, x, n, compressed);
    run_norm_rows(&layer->kv_a_norm, compressed, n, row);
    run_rotate(&pass->rotary[0], compressed + rank, n, 1, hparams->n_rot, row, pass->first);
    if (layer->indexer.q.weight.data)
        run_indexer_apply(&layer->indexer, pass, x, from);
    if (layer->is_sparse)
        attention.selection = pass->selection;
    (layer->kv_b.weight.data ? attend_decompressed : attend_compressed)(layer, pass, &attention,
                                                                        queries, compressed, found);
    run_linear_apply(&layer->output, 0, found, n, out);
}

const struct run_mixer_ops run_latent_mixer = {
    .n_bytes = sizeof(struct latent_layer),
    .load = load,
    .apply = apply,
};
