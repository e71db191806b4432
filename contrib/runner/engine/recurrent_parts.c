#include "contrib/runner/engine/recurrent_parts.h"

#include "contrib/runner/compute/thread_pool.h"

#include <stdio.h>
#include <string.h>

void run_load_convolution(struct run_loader *loader, const char *name, const char *parts,
                          uint64_t n_channels, struct run_convolution *convolution)
{
    const size_t n_parts = parts[0] != '\0' ? strlen(parts) : 1;
    const uint64_t n_part = n_channels / n_parts;
    uint64_t n_taps = 0;
    float *taps = NULL;

    for (size_t part = 0; part < n_parts; part++) {
        char whole[64];
        const float *weights;
        int length = snprintf(whole, sizeof whole, "%s%s%.1s.weight", name,
                              parts[0] != '\0' ? "_" : "", parts + part);

        if (part == 0) {
            n_taps = n_part ? run_load_n_elements(loader, whole) / n_part : 0;
            if (n_taps == 0 || n_channels > RUN_MAX_CHANNELS) {
                run_loader_refuse(loader,
                                  "tensors/%s%s: missing, too small for %llu channels, or over %d "
                                  "channels",
                                  loader->prefix, whole, (unsigned long long)n_part,
                                  RUN_MAX_CHANNELS);
                return;
            }
            taps = run_load_memory(loader, n_taps, n_channels);
        }
        weights = run_load_vector(loader, whole, n_taps * n_part);
        snprintf(whole + length - strlen("weight"), sizeof "bias", "bias");
        convolution->bias = run_load_vector_if(loader, whole, n_part);
        if (loader->code < 0)
            return;
        for (size_t c = 0; c < n_part; c++)
            for (size_t k = 0; k < n_taps; k++)
                taps[k * n_channels + part * n_part + c] = weights[c * n_taps + k];
    }
    convolution->past = run_load_state(loader, n_taps - 1, n_channels, 0);
    convolution->taps = taps;
    convolution->n_channels = n_channels;
    convolution->n_taps = n_taps;
}

void run_copy_rows(const float *from, size_t from_stride, size_t n, size_t width, float *to,
                   size_t to_stride)
{
    for (size_t i = 0; i < n; i++)
        memcpy(to + i * to_stride, from + i * from_stride, width * sizeof *to);
}

void run_low_rank_load(struct run_loader *loader, const char *name, char first, uint64_t in,
                       uint64_t out, uint64_t n_parts, enum run_activation activation,
                       const float *bias, struct run_low_rank *low_rank)
{
    char whole[64];
    uint64_t rank;

    low_rank->activation = activation;
    snprintf(whole, sizeof whole, "%s%c.weight", name, first);
    rank = run_load_n_rows(loader, whole) / n_parts;
    snprintf(whole, sizeof whole, "%s%c", name, first);
    run_load_linear(loader, whole, in, rank * n_parts, &low_rank->down);
    low_rank->down.weight.ne[1] = rank;
    low_rank->down.weight.ne[2] = n_parts;
    snprintf(whole, sizeof whole, "%s%c", name, first + 1);
    run_load_linears(loader, whole, rank, out, n_parts, &low_rank->up);
    if (bias)
        low_rank->up.bias = bias;
}

void run_low_rank_apply(const struct run_low_rank *low_rank, const struct run_pass *pass,
                        uint64_t part, const float *x, float *out)
{
    const struct run_scratch_mark mark = run_scratch_mark(pass->scratch);
    const size_t n_narrow = pass->n * low_rank->down.weight.ne[1];
    float *narrow = run_scratch_take(pass->scratch, n_narrow);

    run_linear_apply(&low_rank->down, part, x, pass->n, narrow);
    run_activate(low_rank->activation, NULL, narrow, n_narrow);
    run_linear_apply(&low_rank->up, part, narrow, pass->n, out);
    run_scratch_release(pass->scratch, mark);
}

/* ---- RWKV ---- */

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
