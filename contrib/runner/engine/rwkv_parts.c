#include "contrib/runner/engine/rwkv_parts.h"

#include "contrib/runner/compute/thread_pool.h"

#include <stdio.h>
#include <string.h>

/* Elements in a piece of work. */
#define PIECE_ELEMENTS 32768

/* Return a copy of the loader with the prefix of rwkv.cpp's names: "blocks.7." for "blk.7.". */
static struct run_loader with_own_names(const struct run_loader *loader)
{
    struct run_loader own = *loader;

    snprintf(own.prefix, sizeof own.prefix, "blocks.%s", loader->prefix + strlen("blk."));
    return own;
}

static const float *load_own(struct run_loader *loader, const char *own_name, uint64_t n)
{
    struct run_loader own = with_own_names(loader);
    const float *values = run_load_vector(&own, own_name, n);

    loader->code = own.code;
    return values;
}

static bool has_own(const struct run_loader *loader, const char *own_name)
{
    const struct run_loader own = with_own_names(loader);

    return run_loader_has(&own, own_name);
}

const float *run_load_rwkv(struct run_loader *loader, const char *name, const char *own_name,
                           uint64_t n)
{
    if (!run_loader_has(loader, name) && has_own(loader, own_name))
        return load_own(loader, own_name, n);
    return run_load_vector(loader, name, n);
}

const float *run_load_rwkv_heads(struct run_loader *loader, const char *name, const char *own_name,
                                 uint64_t n_head, uint64_t width)
{
    struct run_loader own = with_own_names(loader);
    const float *heads;
    float *values;

    if (run_load_n_elements(&own, own_name) != n_head)
        return run_load_rwkv(loader, name, own_name, n_head * width);
    heads = load_own(loader, own_name, n_head);
    values = run_load_memory(loader, n_head, width);
    if (!heads || !values)
        return NULL;
    for (uint64_t i = 0; i < n_head * width; i++)
        values[i] = heads[i / width];
    return values;
}

const float *run_load_rwkv_lerp(struct run_loader *loader, const char *name, const char *own_name,
                                uint64_t n)
{
    const float *mix;
    float *lerp;

    if (run_loader_has(loader, name) || !has_own(loader, own_name))
        return run_load_vector(loader, name, n);
    mix = load_own(loader, own_name, n);
    lerp = run_load_memory(loader, 1, n);
    if (!mix || !lerp)
        return NULL;
    for (uint64_t i = 0; i < n; i++)
        lerp[i] = 1 - mix[i];
    return lerp;
}

void run_load_rwkv_norm(struct run_loader *loader, const struct run_hparams *hparams, float epsilon,
                        struct run_norm_layer *norm)
{
    run_load_norm_if(loader, "time_mix_ln", RUN_NORM_LAYER, epsilon, hparams->n_embd, norm);
    norm->width = hparams->wkv_head_size;
    norm->n_groups = hparams->n_embd / hparams->wkv_head_size;
    if (!norm->is_there && hparams->norm_kind == RUN_NORM_LAYER)
        run_loader_miss(loader, "time_mix_ln.weight");
}

void run_token_shift_load(struct run_loader *loader, size_t width, struct run_token_shift *shift)
{
    shift->width = width;
    shift->last = run_load_state(loader, 1, width, 0);
}

/* The arguments of run_token_shift(). */
struct shift_call {
    const struct run_token_shift *shift;
    const float *x;
    float *difference;
};

static void subtract_row(void *context, size_t t)
{
    const struct shift_call *call = context;
    const size_t width = call->shift->width;
    const float *row = call->x + t * width;
    const float *before = t == 0 ? call->shift->last : row - width;

    for (size_t i = 0; i < width; i++)
        call->difference[t * width + i] = before[i] - row[i];
}

void run_token_shift(const struct run_token_shift *shift, const float *x, size_t n,
                     float *difference)
{
    const size_t width = shift->width;
    struct shift_call call = {shift, x, difference};

    run_parallel_for_each(n, run_grain(PIECE_ELEMENTS, width), subtract_row, &call);
    if (n > 0)
        memcpy(shift->last, x + (n - 1) * width, width * sizeof *x);
}

/* The arguments of run_lerp(). */
struct lerp_call {
    const float *x, *difference, *lerp;
    size_t lerp_stride, width;
    float *out;
};

static void lerp_row(void *context, size_t t)
{
    const struct lerp_call *call = context;
    const size_t width = call->width;

    for (size_t i = 0; i < width; i++)
        call->out[t * width + i] =
            call->x[t * width + i] +
            call->difference[t * width + i] * call->lerp[t * call->lerp_stride + i];
}

void run_lerp(const float *x, const float *difference, const float *lerp, size_t lerp_stride,
              size_t n, size_t width, float *out)
{
    struct lerp_call call = {x, difference, lerp, lerp_stride, width, out};

    run_parallel_for_each(n, run_grain(PIECE_ELEMENTS, width), lerp_row, &call);
}
