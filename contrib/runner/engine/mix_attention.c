#include "contrib/runner/engine/mix_attention.h"

#include "contrib/runner/engine/recurrent_parts.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* A norm of queries, keys or values. */
struct head_norm {
    struct run_norm_layer norm; /* of a head, or of all heads of a token together */
    bool is_of_row;
};

struct attention_layer {
    const struct gguf_layer_shape *shape;
    struct run_attention attention;
    struct run_linear qkv; /* [n_embd] to queries, keys and values, or … */
    struct run_linear q, k,
        v;          /* … separately; without v, values are the keys before norm and rotation */
    bool has_gates; /* q has twice the rows: after each head's queries its gates, whose sigmoid
                       multiplies the head's result */
    struct run_linear
        gate; /* [n_embd] to a gate for each head's result or each element of it, or empty */
    struct run_linear output; /* [n_head · dim_v] to [n_embd] */
    struct head_norm q_norm, k_norm, v_norm;
    struct run_norm_layer sub_norm;       /* before `output` */
    struct run_indexer indexer;           /* attention is sparse unless it is empty */
    struct run_cache keys, values;        /* empty if an earlier layer's are used */
    const struct attention_layer *source; /* the layer whose keys and values are used */
};

/*
 * The shape of the weights selects one shared norm for all heads, a norm for each head, one norm
 * over all heads of a token, or a factor for each head.
 */
static void load_head_norm(struct run_loader *loader, const struct run_hparams *hparams,
                           const char *name, uint32_t n_head, uint32_t dim,
                           struct head_norm *head_norm)
{
    const struct run_architecture *row = hparams->architecture;
    struct run_norm_layer *norm = &head_norm->norm;
    char whole[64];
    uint64_t n, n_rows;

    snprintf(whole, sizeof whole, "%s.weight", name);
    n = run_load_n_elements(loader, whole);
    n_rows = run_load_n_rows(loader, whole);
    if (n == 0)
        return;
    *norm = (struct run_norm_layer){.is_there = true, .kind = RUN_NORM_RMS, .width = dim};
    norm->epsilon = hparams->norm_epsilon;
    norm->n_groups = n_head;
    if (n == n_head && n_rows == n_head) {
        norm->weight =
            run_load_repeated(loader, run_load_vector(loader, whole, n_head), n_head, dim);
        return;
    }
    head_norm->is_of_row = n != dim && n_rows == 1;
    run_load_norm_if(loader, name,
                     row->attention & RUN_QK_LAYER_NORM ? RUN_NORM_LAYER : hparams->norm_kind,
                     hparams->norm_epsilon, n == dim ? dim : (uint64_t)dim * n_head, norm);
    if (n != dim && !head_norm->is_of_row) {
        norm->width = dim;
        norm->n_groups = n_head;
    }
}

static void set_bare_norm(const struct run_hparams *hparams, unsigned which, uint32_t dim,
                          struct head_norm *head_norm)
{
    if (!(hparams->architecture->attention & which) || head_norm->norm.is_there)
        return;
    head_norm->norm = (struct run_norm_layer){
        .is_there = true,
        .kind = RUN_NORM_RMS,
        .epsilon = hparams->norm_epsilon,
        .width = dim,
        .n_groups = 1,
    };
}

/* Elements of a token's queries, keys and values. */
struct widths {
    uint64_t q, k, v;
};

static struct widths find_widths(const struct gguf_layer_shape *shape)
{
    return (struct widths){
        .q = (uint64_t)shape->n_head * shape->dim_k,
        .k = (uint64_t)shape->n_head_kv * shape->dim_k,
        .v = (uint64_t)shape->n_head_kv * shape->dim_v,
    };
}

static void load_qkv(struct run_loader *loader, const struct run_hparams *hparams, bool has_kv,
                     struct attention_layer *layer)
{
    const struct run_architecture *row = hparams->architecture;
    const struct gguf_layer_shape *shape = layer->shape;
    const struct widths widths = find_widths(shape);

    if (has_kv)
        run_load_linear_if(loader, "attn_qkv", hparams->n_embd, widths.q + widths.k + widths.v,
                           &layer->qkv);
    if (layer->qkv.weight.data)
        return;
    layer->has_gates =
        shape->dim_k == shape->dim_v && run_load_n_rows(loader, "attn_q.weight") == 2 * widths.q;
    run_load_linear(loader, "attn_q", hparams->n_embd, layer->has_gates ? 2 * widths.q : widths.q,
                    &layer->q);
    if (!has_kv)
        return;
    run_load_linear(loader, "attn_k", hparams->n_embd, widths.k, &layer->k);
    if (!(row->attention & RUN_KEYS_ARE_VALUES) || shape->is_windowed ||
        run_loader_has(loader, "attn_v.weight") || shape->dim_k != shape->dim_v)
        run_load_linear(loader, "attn_v", hparams->n_embd, widths.v, &layer->v);
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
    const bool has_kv = !shape->shares_kv;
    const struct widths widths = find_widths(shape);
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
        .window_kind = !shape->is_windowed                    ? RUN_WINDOW_NONE
                       : row->attention & RUN_CHUNKED_WINDOWS ? RUN_WINDOW_CHUNKED
                                                              : RUN_WINDOW_SLIDING,
        .window = hparams->window,
        .sinks = run_load_vector_if(loader, "attn_sinks.weight", shape->n_head),
    };
    load_qkv(loader, hparams, has_kv, layer);
    if (run_load_n_rows(loader, "attn_gate.weight") == shape->n_head)
        run_load_linear(loader, "attn_gate", hparams->n_embd, shape->n_head, &layer->gate);
    else
        run_load_linear_if(loader, "attn_gate", hparams->n_embd, n_out, &layer->gate);
    run_load_linear(loader, "attn_output", n_out, hparams->n_embd, &layer->output);
    load_head_norm(loader, hparams, "attn_q_norm", shape->n_head, shape->dim_k, &layer->q_norm);
    load_head_norm(loader, hparams, "attn_k_norm", shape->n_head_kv, shape->dim_k, &layer->k_norm);
    set_bare_norm(hparams, RUN_PLAIN_K_NORM, shape->dim_k, &layer->k_norm);
    set_bare_norm(hparams, RUN_PLAIN_V_NORM, shape->dim_v, &layer->v_norm);
    run_load_norm_if(loader, "attn_sub_norm", hparams->norm_kind, hparams->norm_epsilon, n_out,
                     &layer->sub_norm);
    run_indexer_load(loader, hparams, shape, false, hparams->n_embd, shape->n_head_kv,
                     &layer->indexer);
    run_attention_cache(loader, place, has_kv ? widths.k : 0, shape->dim_k, &layer->keys);
    run_attention_cache(loader, place, has_kv ? widths.v : 0, shape->dim_v, &layer->values);
    /* A selection of positions reads single rows, from any place. */
    if (layer->indexer.q.weight.data)
        layer->keys.window = layer->values.window = 0;
    layer->keys.is_transposed = !layer->indexer.q.weight.data && layer->keys.type != DEQUANT_Q8_0;
}

/*
 * Queries, keys and values: [n][heads][width] each, without gaps. Gates have the shape of queries.
 */
struct qkv {
    float *q, *k, *v, *gates;
};

/* Splits the fused product. */
static void split(const struct attention_layer *layer, const struct run_hparams *hparams,
                  const float *fused, size_t n, const struct qkv *to)
{
    const struct widths widths = find_widths(layer->shape);
    const size_t n_groups = hparams->qkv_in_groups ? layer->shape->n_head_kv : 1;
    const size_t q = widths.q / n_groups, k = widths.k / n_groups, v = widths.v / n_groups;

    run_copy_rows(fused, q + k + v, n * n_groups, q, to->q, q);
    run_copy_rows(fused + q, q + k + v, n * n_groups, k, to->k, k);
    run_copy_rows(fused + q + k, q + k + v, n * n_groups, v, to->v, v);
}

static void clamp(float *x, size_t n, float limit)
{
    for (size_t i = 0; i < n; i++)
        x[i] = fmaxf(fminf(x[i], limit), -limit);
}

/* Splits q's product into queries and gates, which alternate by head. */
static void project_gated(const struct attention_layer *layer, const struct run_pass *pass,
                          const float *x, const struct qkv *to)
{
    const size_t n_heads = pass->n * layer->shape->n_head, dim = layer->shape->dim_k;
    float *both = run_scratch_take(pass->scratch, 2 * n_heads * dim);

    run_linear_apply(&layer->q, 0, x, pass->n, both);
    run_copy_rows(both, 2 * dim, n_heads, dim, to->q, dim);
    run_copy_rows(both + dim, 2 * dim, n_heads, dim, to->gates, dim);
}

static void project(const struct attention_layer *layer, const struct run_pass *pass,
                    const float *x, const struct qkv *to)
{
    const struct run_hparams *hparams = pass->hparams;
    const struct widths widths = find_widths(layer->shape);
    const size_t n = pass->n;

    if (layer->qkv.weight.data) {
        float *fused = run_scratch_take(pass->scratch, n * layer->qkv.weight.ne[1]);

        run_linear_apply(&layer->qkv, 0, x, n, fused);
        split(layer, hparams, fused, n, to);
    } else {
        const struct run_linear_to list[] = {
            {&layer->q, to->q}, {&layer->k, to->k}, {&layer->v, to->v}};

        if (layer->has_gates)
            project_gated(layer, pass, x, to);
        run_linears_apply(list + layer->has_gates, 3 - layer->has_gates, 0, x, n);
        if (layer->k.weight.data && !layer->v.weight.data)
            memcpy(to->v, to->k, n * widths.k * sizeof *to->v);
    }
    if (hparams->clamp_kqv > 0) {
        clamp(to->q, n * widths.q, hparams->clamp_kqv);
        clamp(to->k, n * layer->keys.width, hparams->clamp_kqv);
        clamp(to->v, n * layer->values.width, hparams->clamp_kqv);
    }
}

static void norm_heads(const struct head_norm *head_norm, float *x, size_t n, size_t n_head,
                       size_t dim)
{
    if (head_norm->is_of_row)
        run_norm_apply(&head_norm->norm, x, n, n_head * dim, x);
    else
        run_norm_apply(&head_norm->norm, x, n * n_head, dim, x);
}

/* Return the number of key heads that this layer computes. */
static size_t n_made(const struct attention_layer *layer)
{
    return layer->source == layer ? layer->shape->n_head_kv : 0;
}

static void norm_qk(const struct attention_layer *layer, const struct run_pass *pass,
                    const struct qkv *qkv)
{
    const size_t dim = layer->shape->dim_k;

    norm_heads(&layer->q_norm, qkv->q, pass->n, layer->shape->n_head, dim);
    norm_heads(&layer->k_norm, qkv->k, pass->n, n_made(layer), dim);
}

static void rotate_qk(const struct attention_layer *layer, const struct run_pass *pass,
                      const struct qkv *qkv)
{
    const struct gguf_layer_shape *shape = layer->shape;
    const struct run_rotary *rotary = &pass->rotary[shape->is_windowed];
    const size_t dim = shape->dim_k, n_keys = n_made(layer);

    if (!shape->is_rotated)
        return;
    run_rotate(rotary, qkv->q, pass->n, shape->n_head, dim, shape->n_head * dim, pass->first);
    run_rotate(rotary, qkv->k, pass->n, n_keys, dim, n_keys * dim, pass->first);
}

/* An RMS norm without weights, of each head in rotated layers. */
static void norm_rotated(const struct attention_layer *layer, const struct run_pass *pass,
                         const struct qkv *qkv)
{
    const size_t dim = layer->shape->dim_k;
    const float epsilon = pass->hparams->norm_epsilon;

    if (!pass->hparams->qk_plain_norm || !layer->shape->is_rotated)
        return;
    run_norm(RUN_NORM_RMS, epsilon, qkv->q, pass->n * layer->shape->n_head, dim, dim, NULL, NULL, 1,
             qkv->q);
    run_norm(RUN_NORM_RMS, epsilon, qkv->k, pass->n * n_made(layer), dim, dim, NULL, NULL, 1,
             qkv->k);
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

static void make_qkv(const struct attention_layer *layer, const struct run_pass *pass,
                     const float *x, const struct qkv *qkv)
{
    const bool norm_after_rotary =
        pass->hparams->architecture->attention & RUN_QK_NORM_AFTER_ROTARY;

    project(layer, pass, x, qkv);
    norm_heads(&layer->v_norm, qkv->v, pass->n, n_made(layer), layer->shape->dim_v);
    if (!norm_after_rotary)
        norm_qk(layer, pass, qkv);
    rotate_qk(layer, pass, qkv);
    if (norm_after_rotary)
        norm_qk(layer, pass, qkv);
    norm_rotated(layer, pass, qkv);
    run_scale_queries_by_position(pass, layer->shape, qkv->q, find_widths(layer->shape).q);
}

static void apply(void *mixer, const struct run_pass *pass, const float *x, float *out)
{
    struct attention_layer *layer = mixer;
    const float value_scale = pass->hparams->value_scale;
    struct run_attention attention = layer->attention;
    const size_t n = pass->n, width = layer->output.weight.ne[0];
    const size_t n_q = find_widths(layer->shape).q;
    const struct qkv qkv = {
        .q = run_scratch_take(pass->scratch, n * n_q),
        .k = run_scratch_take(pass->scratch, n * layer->keys.width),
        .v = run_scratch_take(pass->scratch, n * layer->values.width),
        .gates = run_scratch_take(pass->scratch, layer->has_gates ? n * n_q : 0),
    };
    float *found = run_scratch_take(pass->scratch, n * width);

    make_qkv(layer, pass, x, &qkv);
    if (layer->indexer.q.weight.data) {
        run_indexer_apply(&layer->indexer, pass, x, x);
        attention.selection = pass->selection;
    }
    run_pass_store(pass, &layer->keys, qkv.k);
    run_pass_store(pass, &layer->values, qkv.v);
    if (run_attend(&attention, qkv.q, n_q, &layer->source->keys, &layer->source->values, n,
                   pass->first, found) < 0)
        run_scratch_fail(pass->scratch);
    apply_gate(layer, pass, x, width, found);
    if (layer->has_gates)
        for (size_t i = 0; i < n * n_q; i++)
            found[i] *= run_sigmoid(qkv.gates[i]);
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
