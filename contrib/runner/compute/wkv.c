#include "contrib/runner/compute/wkv.h"

#include <math.h>
#include <string.h>

/* The columns of a state are independent; TILE of them are computed together. */
enum { TILE = 64 };

/* With fewer multiplications, a team of threads costs more than it saves. */
#define PARALLEL_PRODUCTS 65536

/* The exponent before the first token: lower than any that follows. */
#define LEAST_EXPONENT (-1e38f)

static size_t tile_end(size_t first, size_t width)
{
    return width - first < TILE ? width : first + TILE;
}

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

void run_wkv4(const struct run_wkv4 *wkv, const float *decay, const float *bonus, const float *keys,
              const float *values, size_t n, float *out)
{
    const size_t width = wkv->width;
    float *numerators = wkv->state, *denominators = wkv->state + width;
    float *exponents = wkv->state + 2 * width;

#pragma omp parallel for schedule(static) if (n * width > PARALLEL_PRODUCTS / 16)
    for (size_t first = 0; first < width; first += TILE)
        for (size_t t = 0; t < n; t++)
            for (size_t i = first; i < tile_end(first, width); i++)
                out[t * width + i] =
                    step_4(&numerators[i], &denominators[i], &exponents[i], decay[i], bonus[i],
                           keys[t * width + i], values[t * width + i]);
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

/* Compute all tokens for a tile of a head's columns, from `first` on. */
static void walk_tile(const struct run_wkv *wkv, const struct run_wkv_input *input,
                      void (*step)(const struct tile *), size_t head, size_t first, size_t n,
                      float *out)
{
    struct tile tile = {
        .width = wkv->width,
        .n_columns = tile_end(first, wkv->width) - first,
        .first = first,
        .state = wkv->state + head * wkv->width * wkv->width + first,
        .input = input,
        .head = head,
    };

    for (tile.t = 0; tile.t < n; tile.t++) {
        tile.at = (tile.t * wkv->n_head + head) * wkv->width;
        tile.out = out + tile.at + first;
        memset(tile.out, 0, tile.n_columns * sizeof *tile.out);
        step(&tile);
    }
}

static void walk(const struct run_wkv *wkv, const struct run_wkv_input *input,
                 void (*step)(const struct tile *), size_t n, float *out)
{
#pragma omp parallel for collapse(2)                                                               \
    schedule(static) if (n * wkv->n_head * wkv->width * wkv->width > PARALLEL_PRODUCTS)
    for (size_t head = 0; head < wkv->n_head; head++)
        for (size_t first = 0; first < wkv->width; first += TILE)
            walk_tile(wkv, input, step, head, first, n, out);
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
