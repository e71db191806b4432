#include "contrib/runner/compute/wkv.h"

#include "contrib/runner/compute/team.h"

#include <math.h>
#include <string.h>

/* The columns of a state are independent; TILE of them are computed together. */
enum { TILE = 64 };

/* Elements in a piece of work: of states, and in version 4 of rows, each with four expf(). */
enum { PIECE_ELEMENTS = 16384, PIECE_EXPONENTIALS = 1024 };

/* The exponent before the first token: lower than any that follows. */
#define LEAST_EXPONENT (-1e38f)

void run_wkv4_reset(const struct run_wkv4 *wkv)
{
    memset(wkv->state, 0, 2 * wkv->width * sizeof *wkv->state);
    for (size_t i = 0; i < wkv->width; i++)
        wkv->state[2 * wkv->width + i] = LEAST_EXPONENT;
}

/* One channel of one token. */
static float step_4(float *numerator, float *denominator, float *exponent, float w, float u,
                    float k, float v)
{
    float largest = fmaxf(*exponent, u + k);
    float before = expf(*exponent - largest), now = expf(u + k - largest);
    const float found = (before * *numerator + now * v) / (before * *denominator + now);

    largest = fmaxf(*exponent + w, k);
    before = expf(*exponent + w - largest);
    now = expf(k - largest);
    *numerator = before * *numerator + now * v;
    *denominator = before * *denominator + now;
    *exponent = largest;
    return found;
}

/* The arguments of run_wkv4(). */
struct call_4 {
    const struct run_wkv4 *wkv;
    const float *decay, *bonus, *keys, *values;
    size_t n;
    float *out;
};

static void walk_channels(void *context, size_t first_tile, size_t end_tile, unsigned thread)
{
    const struct call_4 *call = context;
    const size_t width = call->wkv->width, first = first_tile * TILE;
    const size_t end = end_tile * TILE < width ? end_tile * TILE : width;
    float *numerators = call->wkv->state, *denominators = numerators + width;
    float *exponents = denominators + width;

    (void)thread;
    for (size_t t = 0; t < call->n; t++)
        for (size_t i = first; i < end; i++)
            call->out[t * width + i] =
                step_4(&numerators[i], &denominators[i], &exponents[i], call->decay[i],
                       call->bonus[i], call->keys[t * width + i], call->values[t * width + i]);
}

void run_wkv4(const struct run_wkv4 *wkv, const float *decay, const float *bonus, const float *keys,
              const float *values, size_t n, float *out)
{
    struct call_4 call = {wkv, decay, bonus, keys, values, n, out};

    run_parallel((wkv->width + TILE - 1) / TILE, run_grain(PIECE_EXPONENTIALS, n * TILE),
                 walk_channels, &call);
}

/* Some columns of a head's state, and a token. */
struct tile {
    size_t width, n_columns, first;
    float *state; /* rows lie `width` floats apart */
    const struct run_wkv_input *input;
    size_t t, head, at; /* `at`: where the head's elements of this token begin */
    float *out;
};

/* The state is read before the token is added to it; the token itself counts with the bonus. */
static void step_6(const struct tile *tile)
{
    const struct run_wkv_input *input = tile->input;
    const float *v = input->v + tile->at + tile->first,
                *bonus = input->u + tile->head * tile->width;
    const float *decay = input->w + tile->t * input->w_stride + tile->head * tile->width;

    for (size_t i = 0; i < tile->width; i++) {
        float *row = tile->state + i * tile->width;
        const float r = input->r[tile->at + i], k = input->k[tile->at + i], w = decay[i];
        const float u = bonus[i];

#pragma omp simd
        for (size_t j = 0; j < tile->n_columns; j++) {
            const float kv = k * v[j];

            tile->out[j] += r * (row[j] + u * kv);
            row[j] = row[j] * w + kv;
        }
    }
}

static void step_linear(const struct tile *tile)
{
    const struct run_wkv_input *input = tile->input;
    const float *v = input->v + tile->at + tile->first;
    const float *decay = input->w + tile->t * input->w_stride + tile->head * tile->width;
    const float scale = 1 / sqrtf((float)tile->width);

    for (size_t i = 0; i < tile->width; i++) {
        float *row = tile->state + i * tile->width;
        const float r = input->r[tile->at + i] * scale, k = input->k[tile->at + i], w = decay[i];

#pragma omp simd
        for (size_t j = 0; j < tile->n_columns; j++) {
            row[j] = row[j] * w + k * v[j];
            tile->out[j] += r * row[j];
        }
    }
}

static void step_7(const struct tile *tile)
{
    const struct run_wkv_input *input = tile->input;
    const float *v = input->v + tile->at + tile->first;
    const float *decay = input->w + tile->t * input->w_stride + tile->head * tile->width;
    float found[TILE] = {0}; /* a · S */

    for (size_t i = 0; i < tile->width; i++) {
        const float *row = tile->state + i * tile->width;
        const float a = input->a[tile->at + i];

#pragma omp simd
        for (size_t j = 0; j < tile->n_columns; j++)
            found[j] += a * row[j];
    }
    for (size_t i = 0; i < tile->width; i++) {
        float *row = tile->state + i * tile->width;
        const float r = input->r[tile->at + i], k = input->k[tile->at + i], w = decay[i];
        const float b = input->b[tile->at + i];

#pragma omp simd
        for (size_t j = 0; j < tile->n_columns; j++) {
            row[j] = row[j] * w + k * v[j] + b * found[j];
            tile->out[j] += r * row[j];
        }
    }
}

/* The arguments of the later versions. */
struct call {
    const struct run_wkv *wkv;
    const struct run_wkv_input *input;
    void (*step)(const struct tile *);
    size_t n, n_tiles; /* tokens, and tiles of a head */
    float *out;
};

/* Compute all tokens for a tile of a head's columns, from `first` on. */
static void walk_tile(const struct call *call, size_t head, size_t first)
{
    const struct run_wkv *wkv = call->wkv;
    struct tile tile = {
        .width = wkv->width,
        .n_columns = wkv->width - first < TILE ? wkv->width - first : TILE,
        .first = first,
        .state = wkv->state + head * wkv->width * wkv->width + first,
        .input = call->input,
        .head = head,
    };

    for (tile.t = 0; tile.t < call->n; tile.t++) {
        tile.at = (tile.t * wkv->n_head + head) * wkv->width;
        tile.out = call->out + tile.at + first;
        memset(tile.out, 0, tile.n_columns * sizeof *tile.out);
        call->step(&tile);
    }
}

static void walk_tiles(void *context, size_t first, size_t end, unsigned thread)
{
    const struct call *call = context;

    (void)thread;
    for (size_t i = first; i < end; i++)
        walk_tile(call, i / call->n_tiles, i % call->n_tiles * TILE);
}

static void walk(const struct run_wkv *wkv, const struct run_wkv_input *input,
                 void (*step)(const struct tile *), size_t n, float *out)
{
    struct call call = {wkv, input, step, n, (wkv->width + TILE - 1) / TILE, out};

    run_parallel(wkv->n_head * call.n_tiles, run_grain(PIECE_ELEMENTS, n * wkv->width * TILE),
                 walk_tiles, &call);
}

void run_wkv6(const struct run_wkv *wkv, const struct run_wkv_input *input, size_t n, float *out)
{
    walk(wkv, input, step_6, n, out);
}

void run_gated_linear_attention(const struct run_wkv *wkv, const struct run_wkv_input *input,
                                size_t n, float *out)
{
    walk(wkv, input, step_linear, n, out);
}

void run_wkv7(const struct run_wkv *wkv, const struct run_wkv_input *input, size_t n, float *out)
{
    walk(wkv, input, step_7, n, out);
}
