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

float *run_load_rwkv(struct run_loader *loader, const char *name, const char *own_name, uint64_t n)
{
    struct run_loader own = with_own_names(loader);
    float *values;

    if (run_loader_has(loader, name) || !run_loader_has(&own, own_name))
        return run_load_vector(loader, name, n);
    values = run_load_vector(&own, own_name, n);
    loader->code = own.code;
    return values;
}

const float *run_load_rwkv_heads(struct run_loader *loader, const char *name, const char *own_name,
                                 uint64_t n_head, uint64_t width)
{
    struct run_loader own = with_own_names(loader);

    return run_load_n_elements(&own, own_name) == n_head
               ? run_load_repeated(loader, run_load_rwkv(loader, name, own_name, n_head), n_head,
                                   width)
               : run_load_rwkv(loader, name, own_name, n_head * width);
}

const float *run_load_rwkv_lerp(struct run_loader *loader, const char *name, const char *own_name,
                                uint64_t n)
{
    const bool is_own = !run_loader_has(loader, name);
    float *lerp = run_load_rwkv(loader, name, own_name, n);

    for (uint64_t i = 0; is_own && lerp && i < n; i++)
        lerp[i] = 1 - lerp[i];
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

/* The arguments of run_token_shift() and run_lerp(). */
struct call {
    const float *x, *more; /* the row before x, or lerp */
    const float *difference;
    size_t width, lerp_stride;
    float *out;
};

static void subtract_row(void *context, size_t t)
{
    const struct call *call = context;
    const size_t width = call->width;
    const float *row = call->x + t * width, *before = t == 0 ? call->more : row - width;

    for (size_t i = 0; i < width; i++)
        call->out[t * width + i] = before[i] - row[i];
}

void run_token_shift(const struct run_pass *pass, float *last, const float *x, float *difference)
{
    const size_t width = pass->hparams->n_embd;
    struct call call = {.x = x, .more = last, .width = width, .out = difference};

    run_parallel_for_each(pass->n, run_grain(PIECE_ELEMENTS, width), subtract_row, &call);
    memcpy(last, x + (pass->n - 1) * width, width * sizeof *x);
}

static void lerp_row(void *context, size_t t)
{
    const struct call *call = context;
    const size_t width = call->width, at = t * width;

    for (size_t i = 0; i < width; i++)
        call->out[at + i] =
            call->x[at + i] + call->difference[at + i] * call->more[t * call->lerp_stride + i];
}

void run_lerp(const struct run_pass *pass, const float *x, const float *difference,
              const float *lerp, bool has_rows, float *out)
{
    const size_t width = pass->hparams->n_embd;
    struct call call = {x, lerp, difference, width, has_rows ? width : 0, out};

    run_parallel_for_each(pass->n, run_grain(PIECE_ELEMENTS, width), lerp_row, &call);
}
