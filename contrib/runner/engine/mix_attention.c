#include "contrib/runner/engine/mix_attention.h"

#include "contrib/runner/engine/recurrent_parts.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { Q, K, V, N_PARTS };

/* Queries, keys or values. */
struct part {
    struct run_linear linear; /* [n_embd] to [n_heads][dim] */
    size_t n_heads, dim;      /* no heads: an earlier layer's keys and values are used */
    struct run_norm_layer norm;
    bool is_of_row; /* the norm is of all heads of a token together, not of a head */
};

struct attention_layer {
    const struct gguf_layer_shape *shape;
    struct run_attention attention;
    struct run_linear qkv; /* the products of all parts in one, or empty */
    struct part
        parts[N_PARTS]; /* without a product, values are the keys before norm and rotation */
    bool has_gates;     /* q has twice the rows: after each head's queries its gates, whose sigmoid
                           multiplies the head's result */
    struct run_linear
        gate; /* [n_embd] to a gate for each head's result or each element of it, or empty */
    struct run_linear output;             /* [n_head · dim_v] to [n_embd] */
    struct run_norm_layer sub_norm;       /* before `output` */
    struct run_indexer indexer;           /* attention is sparse unless it is empty */
    struct run_cache keys, values;        /* empty if an earlier layer's are used */
    const struct attention_layer *source; /* the layer whose keys and values are used */
};

static size_t width_of(const struct part *part)
{
    return part->n_heads * part->dim;
}

/*
 * The shape of the weights selects one shared norm for all heads, a norm for each head, one norm
 * over all heads of a token, or a factor for each head. Without weights, the rules decide.
 */
static void load_norm(struct run_loader *loader, const struct run_hparams *hparams, size_t which,
                      uint32_t n_head, struct part *part)
{
    static const char *const names[] = {"attn_q_norm", "attn_k_norm", NULL};
    static const enum run_attention_rules plain[] = {0, RUN_PLAIN_K_NORM, RUN_PLAIN_V_NORM};
    const enum run_attention_rules rules = hparams->architecture->attention;
    const uint64_t dim = part->dim;
    char whole[64];
    uint64_t n, n_rows;

    snprintf(whole, sizeof whole, "%s.weight", names[which] ? names[which] : "");
    n = run_load_n_elements(loader, whole);
    n_rows = run_load_n_rows(loader, whole);
    part->norm = (struct run_norm_layer){
        .is_there = n > 0 || (rules & plain[which]),
        .kind = RUN_NORM_RMS,
        .epsilon = hparams->norm_epsilon,
        .width = dim,
        .n_groups = n_head,
    };
    if (n == 0)
        return;
    if (n == n_head && n_rows == n_head) {
        part->norm.weight =
            run_load_repeated(loader, run_load_vector(loader, whole, n_head), n_head, dim);
        return;
    }
    part->is_of_row = n != dim && n_rows == 1;
    run_load_norm_if(loader, names[which],
                     rules & RUN_QK_LAYER_NORM ? RUN_NORM_LAYER : hparams->norm_kind,
                     hparams->norm_epsilon, n == dim ? dim : dim * n_head, &part->norm);
    if (n != dim && !part->is_of_row) {
        part->norm.width = dim;
        part->norm.n_groups = n_head;
    }
}

static void load_products(struct run_loader *loader, const struct run_hparams *hparams,
                          struct attention_layer *layer)
{
    const struct gguf_layer_shape *shape = layer->shape;
    struct part *parts = layer->parts;
    const uint64_t n_embd = hparams->n_embd, n_q = width_of(&parts[Q]);

    if (!shape->shares_kv)
        run_load_linear_if(loader, "attn_qkv", n_embd,
                           n_q + width_of(&parts[K]) + width_of(&parts[V]), &layer->qkv);
    if (layer->qkv.weight.data)
        return;
    layer->has_gates =
        shape->dim_k == shape->dim_v && run_load_n_rows(loader, "attn_q.weight") == 2 * n_q;
    run_load_linear(loader, "attn_q", n_embd, layer->has_gates ? 2 * n_q : n_q, &parts[Q].linear);
    if (shape->shares_kv)
        return;
    run_load_linear(loader, "attn_k", n_embd, width_of(&parts[K]), &parts[K].linear);
    if (!(hparams->architecture->attention & RUN_KEYS_ARE_VALUES) || shape->is_windowed ||
        run_loader_has(loader, "attn_v.weight") || shape->dim_k != shape->dim_v)
        run_load_linear(loader, "attn_v", n_embd, width_of(&parts[V]), &parts[V].linear);
}

/* Return the layer whose keys and values are used: an earlier one if this layer has none. */
static const struct attention_layer *find_source(struct run_loader *loader,
                                                 const struct run_mixer_place *place,
                                                 const struct attention_layer *layer)
{
    const struct attention_layer *source;

    if (!layer->shape->shares_kv)
        return layer;
    source = run_mixers_find(&place->layers[layer->shape->kv_layer], &run_attention_mixer);
    if (!source)
        run_loader_refuse(loader, "metadata: attention.shared_kv_layers counts layers without "
                                  "attention");
    return source;
}

void run_attention_cache(struct run_loader *loader, const struct run_mixer_place *place,
                         uint64_t width, uint32_t dim, struct run_cache *cache)
{
    const struct run_hparams *hparams = place->hparams;

    *cache = (struct run_cache){
        .type = run_cache_type(place->cache_type, dim),
        .width = width,
        .dim = dim,
        .window = hparams->layers[place->index].is_windowed ? hparams->window : 0,
        .n_batch = place->n_batch,
    };
    run_load_cache(&loader->arena->caches, cache);
}

static void load(struct run_loader *loader, const struct run_mixer_place *place, void *mixer)
{
    const struct run_hparams *hparams = place->hparams;
    const struct gguf_layer_shape *shape = &hparams->layers[place->index];
    struct attention_layer *layer = mixer;
    const struct run_architecture *row = hparams->architecture;
    const uint32_t n_kv = shape->shares_kv ? 0 : shape->n_head_kv;
    const uint64_t n_out = (uint64_t)shape->n_head * shape->dim_v;
    const uint32_t n_rot = shape->is_windowed ? hparams->n_rot_windowed : hparams->n_rot;

    layer->shape = shape;
    layer->source = find_source(loader, place, layer);
    if (row->rotary != RUN_ROTARY_NONE && n_rot > shape->dim_k)
        run_loader_refuse(loader, "metadata: rope.dimension_count %u is above a head's width %u",
                          n_rot, shape->dim_k);
    layer->attention = (struct run_attention){
        .n_head = shape->n_head,
        .n_head_kv = shape->n_head_kv,
        .dim_k = shape->dim_k,
        .dim_v = shape->dim_v,
        .scale = hparams->attention_scale,
        .softcap = hparams->attention_softcap,
        .max_alibi = hparams->max_alibi,
        .window_kind = !shape->is_windowed                      ? RUN_WINDOW_NONE
                       : (row->attention & RUN_CHUNKED_WINDOWS) ? RUN_WINDOW_CHUNKED
                                                                : RUN_WINDOW_SLIDING,
        .window = hparams->window,
        .sinks = run_load_vector_if(loader, "attn_sinks.weight", shape->n_head),
    };
    layer->parts[Q] = (struct part){.n_heads = shape->n_head, .dim = shape->dim_k};
    layer->parts[K] = (struct part){.n_heads = n_kv, .dim = shape->dim_k};
    layer->parts[V] = (struct part){.n_heads = n_kv, .dim = shape->dim_v};
    load_products(loader, hparams, layer);
    if (run_load_n_rows(loader, "attn_gate.weight") == shape->n_head)
        run_load_linear(loader, "attn_gate", hparams->n_embd, shape->n_head, &layer->gate);
    else
        run_load_linear_if(loader, "attn_gate", hparams->n_embd, n_out, &layer->gate);
    run_load_linear(loader, "attn_output", n_out, hparams->n_embd, &layer->output);
    for (size_t i = 0; i < N_PARTS; i++)
        load_norm(loader, hparams, i, i == Q ? shape->n_head : shape->n_head_kv, &layer->parts[i]);
    run_load_norm_if(loader, "attn_sub_norm", hparams->norm_kind, hparams->norm_epsilon, n_out,
                     &layer->sub_norm);
    run_indexer_load(loader, hparams, shape, false, hparams->n_embd, shape->n_head_kv,
                     &layer->indexer);
    run_attention_cache(loader, place, width_of(&layer->parts[K]), shape->dim_k, &layer->keys);
    run_attention_cache(loader, place, width_of(&layer->parts[V]), shape->dim_v, &layer->values);
    /* A selection of positions reads single rows, from any place. */
    if (layer->indexer.q.weight.data)
        layer->keys.window = layer->values.window = 0;
    layer->keys.is_transposed = !layer->indexer.q.weight.data && layer->keys.type != DEQUANT_Q8_0;
}

/* The parts, without gaps: [n][n_heads][dim] each; the gates have the shape of queries. */
struct made {
    float *x[N_PARTS], *gates;
};

static void project_fused(const struct attention_layer *layer, const struct run_pass *pass,
                          const float *x, const struct made *to)
{
    const size_t n_groups = pass->hparams->qkv_in_groups ? layer->shape->n_head_kv : 1;
    const size_t row = layer->qkv.weight.ne[1] / n_groups;
    float *fused = run_scratch_take(pass->scratch, pass->n * layer->qkv.weight.ne[1]);

    run_linear_apply(&layer->qkv, 0, x, pass->n, fused);
    for (size_t i = 0; i < N_PARTS; i++) {
        const size_t width = width_of(&layer->parts[i]) / n_groups;

        run_copy_rows(fused, row, pass->n * n_groups, width, to->x[i], width);
        fused += width;
    }
}

static void project(const struct attention_layer *layer, const struct run_pass *pass,
                    const float *x, const struct made *to)
{
    const struct part *parts = layer->parts;
    const struct run_linear_to list[N_PARTS] = {
        {&parts[Q].linear, to->x[Q]}, {&parts[K].linear, to->x[K]}, {&parts[V].linear, to->x[V]}};
    const size_t n = pass->n, n_queries = n * parts[Q].n_heads, dim = parts[Q].dim;

    if (layer->qkv.weight.data) {
        project_fused(layer, pass, x, to);
        return;
    }
    if (layer->has_gates) { /* queries and gates alternate by head */
        float *both = run_scratch_take(pass->scratch, 2 * n_queries * dim);

        run_linear_apply(&parts[Q].linear, 0, x, n, both);
        run_copy_rows(both, 2 * dim, n_queries, dim, to->x[Q], dim);
        run_copy_rows(both + dim, 2 * dim, n_queries, dim, to->gates, dim);
    }
    run_linears_apply(list + layer->has_gates, N_PARTS - layer->has_gates, 0, x, n);
    if (parts[K].linear.weight.data && !parts[V].linear.weight.data)
        memcpy(to->x[V], to->x[K], n * width_of(&parts[K]) * sizeof *x);
}

static void norm_part(const struct part *part, size_t n, float *x)
{
    if (part->is_of_row)
        run_norm_apply(&part->norm, x, n, width_of(part), x);
    else
        run_norm_apply(&part->norm, x, n * part->n_heads, part->dim, x);
}

void run_scale_queries_by_position(const struct run_pass *pass,
                                   const struct gguf_layer_shape *shape, float *q, size_t width)
{
    const struct run_hparams *hparams = pass->hparams;

    if (hparams->temperature_scale == 0 || (shape->is_rotated && hparams->temperature_of_unrotated))
        return;
    for (size_t i = 0; i < pass->n; i++) {
        const size_t times =
            (pass->first + i + hparams->temperature_of_unrotated) / hparams->temperature_length;
        const float scale = 1 + hparams->temperature_scale * logf((float)(times + 1));

        for (size_t j = 0; j < width; j++)
            q[i * width + j] *= scale;
    }
}

static void make_parts(const struct attention_layer *layer, const struct run_pass *pass,
                       const float *x, const struct made *made)
{
    const struct run_hparams *hparams = pass->hparams;
    const bool is_rotated = layer->shape->is_rotated;
    const bool norm_is_late = hparams->architecture->attention & RUN_QK_NORM_AFTER_ROTARY;
    const float limit = hparams->clamp_kqv;

    project(layer, pass, x, made);
    for (size_t which = 0; which < N_PARTS; which++) {
        const struct part *part = &layer->parts[which];
        const size_t width = width_of(part), dim = part->dim;
        float *values = made->x[which];

        for (size_t i = 0; i < pass->n * width && limit > 0; i++)
            values[i] = fmaxf(fminf(values[i], limit), -limit);
        if (!norm_is_late || which == V)
            norm_part(part, pass->n, values);
        if (which == V)
            continue;
        if (is_rotated)
            run_rotate(&pass->rotary[layer->shape->is_windowed], values, pass->n, part->n_heads,
                       dim, width, pass->first);
        if (norm_is_late)
            norm_part(part, pass->n, values);
        if (is_rotated && hparams->qk_plain_norm)
            run_norm(RUN_NORM_RMS, hparams->norm_epsilon, values, pass->n * part->n_heads, dim, dim,
                     NULL, NULL, 1, values);
    }
    run_scale_queries_by_position(pass, layer->shape, made->x[Q], width_of(&layer->parts[Q]));
}

/* Multiplies attention's result, `found`, [n][width], by the gates made from the layer's input x.
 */
static void apply_gate(const struct attention_layer *layer, const struct run_pass *pass,
                       const float *x, size_t width, float *found)
{
    const bool is_softplus = pass->hparams->architecture->attention & RUN_SOFTPLUS_GATES;
    const size_t n_gates = layer->gate.weight.ne[1];
    float *gates;

    if (!layer->gate.weight.data)
        return;
    gates = run_scratch_take(pass->scratch, pass->n * n_gates);
    run_linear_apply(&layer->gate, 0, x, pass->n, gates);
    for (size_t i = 0; i < pass->n * n_gates; i++)
        gates[i] = is_softplus ? run_softplus(gates[i]) : run_sigmoid(gates[i]);
    for (size_t i = 0; i < pass->n * width; i++)
        found[i] *= gates[i / (width / n_gates)];
}

static void apply(void *mixer, const struct run_pass *pass, const float *x, float *out)
{
    struct attention_layer *layer = mixer;
    const float value_scale = pass->hparams->value_scale;
    struct run_attention attention = layer->attention;
    const size_t n = pass->n, width = layer->output.weight.ne[0];
    const size_t n_q = width_of(&layer->parts[Q]);
    struct made made = {.gates = run_scratch_take(pass->scratch, layer->has_gates ? n * n_q : 0)};
    float *found = run_scratch_take(pass->scratch, n * width);

    for (size_t i = 0; i < N_PARTS; i++)
        made.x[i] = run_scratch_take(pass->scratch, n * width_of(&layer->parts[i]));
    make_parts(layer, pass, x, &made);
    if (layer->indexer.q.weight.data) {
        run_indexer_apply(&layer->indexer, pass, x, x);
        attention.selection = pass->selection;
    }
    run_pass_store(pass, &layer->keys, made.x[K]);
    run_pass_store(pass, &layer->values, made.x[V]);
    if (run_attend(&attention, made.x[Q], n_q, &layer->source->keys, &layer->source->values, n,
                   pass->first, found) < 0)
        run_scratch_fail(pass->scratch);
    apply_gate(layer, pass, x, width, found);
    if (layer->has_gates)
        for (size_t i = 0; i < n * n_q; i++)
            found[i] *= run_sigmoid(made.gates[i]);
    if (value_scale != 1)
        for (size_t i = 0; i < n * width; i++)
            found[i] *= value_scale;
    run_norm_apply(&layer->sub_norm, found, n, width, found);
    run_linear_apply(&layer->output, 0, found, n, out);
}

const struct run_mixer_ops run_attention_mixer = {
    .n_bytes = sizeof(struct attention_layer),
    .load = load,
    .apply = apply,
};

/* ---- the indexer ---- */

/* The epsilon of the indexer's norm of keys if it has biases, which make it a layer norm. */
#define LAYER_EPSILON 1e-6f

static void load_indexer_norms(struct run_loader *loader, const struct run_hparams *hparams,
                               struct run_indexer *indexer)
{
    const bool is_layer = run_loader_has(loader, "indexer.k_norm.bias");

    run_load_norm_if(loader, "indexer.q_norm", RUN_NORM_RMS, hparams->norm_epsilon,
                     hparams->indexer.width, &indexer->q_norm);
    run_load_norm_if(loader, "indexer.k_norm", is_layer ? RUN_NORM_LAYER : RUN_NORM_RMS,
                     is_layer ? LAYER_EPSILON : hparams->norm_epsilon, hparams->indexer.width,
                     &indexer->k_norm);
}

void run_indexer_load(struct run_loader *loader, const struct run_hparams *hparams,
                      const struct gguf_layer_shape *shape, bool is_required, uint64_t q_in,
                      uint32_t n_head_kv, struct run_indexer *indexer)
{
    const struct run_index *sizes = &hparams->indexer;
    const bool has_blocks = sizes->block > 0;
    const char *q = has_blocks ? "indexer.q_proj" : "indexer.attn_q_b";
    const char *k = has_blocks ? "indexer.k_proj" : "indexer.attn_k";

    if (sizes->n_heads == 0 || !shape->has_indexer ||
        (!is_required &&
         !run_loader_has(loader, has_blocks ? "indexer.q_proj.weight" : "indexer.attn_q_b.weight")))
        return;
    if (has_blocks && sizes->n_heads != n_head_kv)
        run_loader_refuse(loader,
                          "metadata: attention.indexer.head_count %u is not "
                          "attention.head_count_kv, %u",
                          sizes->n_heads, n_head_kv);
    run_load_linear(loader, q, q_in, (uint64_t)sizes->n_heads * sizes->width, &indexer->q);
    run_load_linear(loader, k, hparams->n_embd, sizes->width, &indexer->k);
    if (!has_blocks)
        run_load_linear(loader, "indexer.proj", hparams->n_embd, sizes->n_heads, &indexer->weights);
    load_indexer_norms(loader, hparams, indexer);
    indexer->keys = (struct run_cache){.width = sizes->width, .dim = sizes->width};
    run_load_cache(&loader->arena->caches, &indexer->keys);
}

void run_indexer_apply(struct run_indexer *indexer, const struct run_pass *pass, const float *x,
                       const float *q_from)
{
    struct run_index index = pass->hparams->indexer;
    const size_t n = pass->n, n_heads = index.n_heads, width = index.width;
    struct run_rotary rotary = pass->rotary[0];
    float *queries = run_scratch_take(pass->scratch, n * n_heads * width);
    float *keys = run_scratch_take(pass->scratch, n * width);
    float *weights = run_scratch_take(pass->scratch, n * n_heads);

    rotary.kind = pass->hparams->architecture->attention & RUN_INDEXER_NEOX ? RUN_ROTARY_NEOX
                                                                            : RUN_ROTARY_NORMAL;
    run_linear_apply(&indexer->q, 0, q_from, n, queries);
    run_linear_apply(&indexer->k, 0, x, n, keys);
    if (indexer->weights.weight.data)
        run_linear_apply(&indexer->weights, 0, x, n, weights);
    run_norm_apply(&indexer->q_norm, queries, n * n_heads, width, queries);
    run_norm_apply(&indexer->k_norm, keys, n, width, keys);
    run_rotate(&rotary, queries, n, n_heads, width, n_heads * width, pass->first);
    run_rotate(&rotary, keys, n, 1, width, width, pass->first);
    run_pass_store(pass, &indexer->keys, keys);
    index.keys = indexer->keys.rows;
    if (run_select(&index, queries, weights, n, pass->first, pass->selection) < 0)
        run_scratch_fail(pass->scratch);
}
