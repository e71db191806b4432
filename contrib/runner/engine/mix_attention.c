#include "contrib/runner/engine/mix_attention.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/*
 * One norm for a head, one for each of them, or one for a row of all: the shape of the weights
 * tells.
 */
static void load_head_norm(struct run_loader *loader, const struct run_hparams *hparams,
                           const char *name, uint32_t n_head, struct run_head_norm *head_norm)
{
    const struct run_architecture *row = hparams->architecture;
    char whole[64];
    uint64_t n;

    snprintf(whole, sizeof whole, "%s.weight", name);
    n = run_load_n_elements(loader, whole);
    if (n == 0)
        return;
    head_norm->is_of_row = n != hparams->dim_k && run_load_n_rows(loader, whole) == 1;
    run_load_norm_if(loader, name, row->norm, hparams->norm_epsilon,
                     n == hparams->dim_k ? hparams->dim_k : (uint64_t)hparams->dim_k * n_head,
                     &head_norm->norm);
    if (n != hparams->dim_k && !head_norm->is_of_row) {
        head_norm->norm.width = hparams->dim_k;
        head_norm->norm.n_groups = n_head;
    }
}

void run_attention_load(struct run_loader *loader, const struct run_hparams *hparams,
                        const struct run_layer_shape *shape, bool is_cache_f16,
                        struct run_attention_layer *layer)
{
    const struct run_architecture *row = hparams->architecture;
    const uint64_t n_q = (uint64_t)shape->n_head * hparams->dim_k;
    const uint64_t n_k = (uint64_t)shape->n_head_kv * hparams->dim_k;
    const uint64_t n_v = (uint64_t)shape->n_head_kv * hparams->dim_v;
    const uint64_t n_out = (uint64_t)shape->n_head * hparams->dim_v;

    layer->shape = shape;
    if (row->rotary != RUN_ROTARY_NONE && hparams->n_rot > hparams->dim_k) {
        run_loader_refuse(loader,
                          "metadata.json: rope.dimension_count %u is above the %u elements of a "
                          "head's key",
                          hparams->n_rot, hparams->dim_k);
        return;
    }
    layer->attention = (struct run_attention){
        .n_head = shape->n_head,
        .n_head_kv = shape->n_head_kv,
        .dim_k = hparams->dim_k,
        .dim_v = hparams->dim_v,
        .scale = hparams->attention_scale,
        .softcap = hparams->attention_softcap,
        .max_alibi = hparams->max_alibi,
        .window_kind = shape->is_windowed ? row->window : RUN_WINDOW_NONE,
        .window = hparams->window,
        .sinks = run_load_vector_if(loader, "attn_sinks.weight", shape->n_head),
    };
    run_load_linear_if(loader, "attn_qkv", hparams->n_embd, n_q + n_k + n_v, &layer->qkv);
    if (!layer->qkv.weight.data) {
        layer->has_gates = n_q == n_out && run_load_n_rows(loader, "attn_q.weight") == 2 * n_q;
        run_load_linear(loader, "attn_q", hparams->n_embd, layer->has_gates ? 2 * n_q : n_q,
                        &layer->q);
        run_load_linear(loader, "attn_k", hparams->n_embd, n_k, &layer->k);
        run_load_linear(loader, "attn_v", hparams->n_embd, n_v, &layer->v);
    }
    run_load_linear(loader, "attn_output", n_out, hparams->n_embd, &layer->output);
    load_head_norm(loader, hparams, "attn_q_norm", shape->n_head, &layer->q_norm);
    load_head_norm(loader, hparams, "attn_k_norm", shape->n_head_kv, &layer->k_norm);
    run_load_norm_if(loader, "attn_sub_norm", row->norm, hparams->norm_epsilon, n_out,
                     &layer->sub_norm);
    layer->keys = (struct run_cache){.is_f16 = is_cache_f16, .width = n_k};
    layer->values = (struct run_cache){.is_f16 = is_cache_f16, .width = n_v};
}

void run_attention_free(struct run_attention_layer *layer)
{
    run_cache_free(&layer->keys);
    run_cache_free(&layer->values);
}

/*
 * A layer's queries, keys and values: [n][heads][width] each, without gaps; gates like queries, if
 * it has these.
 */
struct qkv {
    float *q, *k, *v, *gates;
};

/* Takes the fused product apart. */
static void split(const struct run_attention_layer *layer, const struct run_hparams *hparams,
                  const float *fused, size_t n, const struct qkv *to)
{
    const size_t dim_k = hparams->dim_k, dim_v = hparams->dim_v;
    const size_t n_groups = hparams->qkv_in_groups ? layer->shape->n_head_kv : 1;
    const size_t q = layer->shape->n_head * dim_k / n_groups;
    const size_t k = layer->shape->n_head_kv * dim_k / n_groups;
    const size_t v = layer->shape->n_head_kv * dim_v / n_groups;

    for (size_t i = 0; i < n * n_groups; i++, fused += q + k + v) {
        memcpy(to->q + i * q, fused, q * sizeof *fused);
        memcpy(to->k + i * k, fused + q, k * sizeof *fused);
        memcpy(to->v + i * v, fused + q + k, v * sizeof *fused);
    }
}

static void clamp(float *x, size_t n, float limit)
{
    for (size_t i = 0; i < n; i++)
        x[i] = fmaxf(fminf(x[i], limit), -limit);
}

/* Queries, and the gates that lie between their heads. */
static int project_gated(const struct run_attention_layer *layer, const struct run_pass *pass,
                         const float *x, const struct qkv *to)
{
    const size_t n_heads = pass->n * layer->shape->n_head, dim = pass->hparams->dim_k;
    float *both = run_scratch_take(pass->scratch, 2 * n_heads * dim);

    if (!both)
        return -ENOMEM;
    run_linear_apply(&layer->q, 0, x, pass->n, both);
    for (size_t i = 0; i < n_heads; i++, both += 2 * dim) {
        memcpy(to->q + i * dim, both, dim * sizeof *both);
        memcpy(to->gates + i * dim, both + dim, dim * sizeof *both);
    }
    return 0;
}

static int project(const struct run_attention_layer *layer, const struct run_pass *pass,
                   const float *x, const struct qkv *to)
{
    const struct run_hparams *hparams = pass->hparams;
    const struct run_layer_shape *shape = layer->shape;
    const size_t n = pass->n;

    if (layer->qkv.weight.data) {
        float *fused = run_scratch_take(pass->scratch, n * layer->qkv.weight.ne[1]);

        if (!fused)
            return -ENOMEM;
        run_linear_apply(&layer->qkv, 0, x, n, fused);
        split(layer, hparams, fused, n, to);
    } else {
        if (layer->has_gates) {
            if (project_gated(layer, pass, x, to) < 0)
                return -ENOMEM;
        } else {
            run_linear_apply(&layer->q, 0, x, n, to->q);
        }
        run_linear_apply(&layer->k, 0, x, n, to->k);
        run_linear_apply(&layer->v, 0, x, n, to->v);
    }
    if (hparams->clamp_kqv > 0) {
        clamp(to->q, n * shape->n_head * hparams->dim_k, hparams->clamp_kqv);
        clamp(to->k, n * shape->n_head_kv * hparams->dim_k, hparams->clamp_kqv);
        clamp(to->v, n * shape->n_head_kv * hparams->dim_v, hparams->clamp_kqv);
    }
    return 0;
}

static void norm_heads(const struct run_head_norm *head_norm, float *x, size_t n, size_t n_head,
                       size_t dim)
{
    if (head_norm->is_of_row)
        run_norm_apply(&head_norm->norm, x, n, n_head * dim, x);
    else
        run_norm_apply(&head_norm->norm, x, n * n_head, dim, x);
}

static void norm_qk(const struct run_attention_layer *layer, const struct run_pass *pass,
                    const struct qkv *qkv)
{
    const size_t dim = pass->hparams->dim_k;

    norm_heads(&layer->q_norm, qkv->q, pass->n, layer->shape->n_head, dim);
    norm_heads(&layer->k_norm, qkv->k, pass->n, layer->shape->n_head_kv, dim);
}

static void rotate_qk(const struct run_attention_layer *layer, const struct run_pass *pass,
                      const struct qkv *qkv)
{
    const struct run_layer_shape *shape = layer->shape;
    const struct run_rotary *rotary = &pass->rotary[shape->is_windowed];
    const size_t dim = pass->hparams->dim_k;

    if (!shape->is_rotated)
        return;
    run_rotate(rotary, qkv->q, pass->n, shape->n_head, dim, shape->n_head * dim, pass->first);
    run_rotate(rotary, qkv->k, pass->n, shape->n_head_kv, dim, shape->n_head_kv * dim, pass->first);
}

/* A norm without weights, of all heads of rotated layers. */
static void norm_rotated(const struct run_attention_layer *layer, const struct run_pass *pass,
                         const struct qkv *qkv)
{
    const size_t dim = pass->hparams->dim_k;
    const float epsilon = pass->hparams->norm_epsilon;

    if (!pass->hparams->norms_rotated || !layer->shape->is_rotated)
        return;
    run_norm(RUN_NORM_RMS, epsilon, qkv->q, pass->n * layer->shape->n_head, dim, dim, NULL, NULL, 1,
             qkv->q);
    run_norm(RUN_NORM_RMS, epsilon, qkv->k, pass->n * layer->shape->n_head_kv, dim, dim, NULL, NULL,
             1, qkv->k);
}

/* Queries that lie far behind the context of the training get sharper. */
static void heat(const struct run_attention_layer *layer, const struct run_pass *pass,
                 const struct qkv *qkv)
{
    const struct run_architecture *row = pass->hparams->architecture;
    const size_t width = (size_t)layer->shape->n_head * pass->hparams->dim_k;

    if (row->temperature_scale == 0 || layer->shape->is_rotated)
        return;
    for (size_t i = 0; i < pass->n; i++) {
        const size_t times = (pass->first + i + 1) / row->temperature_length;
        const float scale = 1 + row->temperature_scale * logf((float)(times + 1));

        for (size_t j = 0; j < width; j++)
            qkv->q[i * width + j] *= scale;
    }
}

int run_attention_apply(struct run_attention_layer *layer, const struct run_pass *pass,
                        const float *x, float *out)
{
    const struct run_hparams *hparams = pass->hparams;
    const size_t n = pass->n, width = layer->output.weight.ne[0];
    const size_t n_q = (size_t)layer->shape->n_head * hparams->dim_k;
    const struct qkv qkv = {
        .q = run_scratch_take(pass->scratch, n * n_q),
        .k = run_scratch_take(pass->scratch, n * layer->keys.width),
        .v = run_scratch_take(pass->scratch, n * layer->values.width),
        .gates = run_scratch_take(pass->scratch, layer->has_gates ? n * n_q : 0),
    };
    float *found = run_scratch_take(pass->scratch, n * width);
    int code;

    if (!qkv.q || !qkv.k || !qkv.v || !qkv.gates || !found ||
        run_cache_reserve(&layer->keys, pass->first + n) < 0 ||
        run_cache_reserve(&layer->values, pass->first + n) < 0)
        return -ENOMEM;
    code = project(layer, pass, x, &qkv);
    if (code < 0)
        return code;
    if (!hparams->architecture->norm_after_rotary)
        norm_qk(layer, pass, &qkv);
    rotate_qk(layer, pass, &qkv);
    if (hparams->architecture->norm_after_rotary)
        norm_qk(layer, pass, &qkv);
    norm_rotated(layer, pass, &qkv);
    heat(layer, pass, &qkv);
    run_cache_store(&layer->keys, pass->first, qkv.k, n, layer->keys.width);
    run_cache_store(&layer->values, pass->first, qkv.v, n, layer->values.width);
    code = run_attend(&layer->attention, qkv.q, n_q, &layer->keys, &layer->values, n, pass->first,
                      found);
    if (code < 0)
        return code;
    if (layer->has_gates)
        for (size_t i = 0; i < n * n_q; i++)
            found[i] *= run_sigmoid(qkv.gates[i]);
    run_norm_apply(&layer->sub_norm, found, n, width, found);
    run_linear_apply(&layer->output, 0, found, n, out);
    return 0;
}
