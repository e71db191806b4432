/* The kernels of recurrences, see contrib/runner/compute/run_kernels.h. */
#include "contrib/runner/kernels/vector_math.h"

#include <math.h>
#include <string.h>

/*
 * The columns of a state are independent. Each step is written for n columns, a constant where it
 * is inlined, so that sums over rows stay in registers.
 */
enum { COLUMNS = 64, FEW_COLUMNS = 16 };

/* Defines the kernel `name` as the function NAME_columns on as many columns at once as there are.
 */
#define DEFINE_STEP(name, token_type)                                                              \
    void RUN_KERNEL(name)(float *state, size_t stride, size_t n_columns,                           \
                          const struct token_type *token, float *out)                              \
    {                                                                                              \
        size_t c = 0;                                                                              \
                                                                                                   \
        for (; c + COLUMNS <= n_columns; c += COLUMNS)                                             \
            name##_columns(state, stride, c, COLUMNS, token, out);                                 \
        for (; c + FEW_COLUMNS <= n_columns; c += FEW_COLUMNS)                                     \
            name##_columns(state, stride, c, FEW_COLUMNS, token, out);                             \
        for (; c < n_columns; c++)                                                                 \
            name##_columns(state, stride, c, 1, token, out);                                       \
    }

INLINE void delta_step_columns(float *state, size_t stride, size_t first, size_t n,
                               const struct run_delta_token *token, float *restrict out)
{
    const float scale = 1 / sqrtf((float)token->n_rows);
    const float *restrict v = token->v + first;
    float change[COLUMNS] = {0}, found[COLUMNS] = {0};

    for (size_t i = 0; i < token->n_rows; i++) {
        float *restrict row = state + i * stride + first;
        const float factor = token->decay[i * token->decay_stride], key = token->k[i];

        for (size_t j = 0; j < n; j++) {
            row[j] *= factor;
            change[j] += key * row[j];
        }
    }
    for (size_t j = 0; j < n; j++)
        change[j] = (v[j] - change[j]) * token->beta;
    for (size_t i = 0; i < token->n_rows; i++) {
        float *restrict row = state + i * stride + first;
        const float query = token->q[i] * scale, key = token->k[i];

        for (size_t j = 0; j < n; j++) {
            row[j] += key * change[j];
            found[j] += query * row[j];
        }
    }
    memcpy(out + first, found, n * sizeof *out);
}
DEFINE_STEP(delta_step, run_delta_token)

/* The state is read before the token is added to it; the token itself counts with the bonus. */
INLINE void wkv6_step_columns(float *state, size_t stride, size_t first, size_t n,
                              const struct run_wkv_token *token, float *restrict out)
{
    const float *restrict v = token->v + first;
    float found[COLUMNS] = {0};

    for (size_t i = 0; i < token->n_rows; i++) {
        float *restrict row = state + i * stride + first;
        const float r = token->r[i], k = token->k[i], w = token->w[i], u = token->u[i];

        for (size_t j = 0; j < n; j++) {
            const float kv = k * v[j];

            found[j] += r * (row[j] + u * kv);
            row[j] = row[j] * w + kv;
        }
    }
    memcpy(out + first, found, n * sizeof *out);
}
DEFINE_STEP(wkv6_step, run_wkv_token)

INLINE void linear_step_columns(float *state, size_t stride, size_t first, size_t n,
                                const struct run_wkv_token *token, float *restrict out)
{
    const float scale = 1 / sqrtf((float)token->n_rows);
    const float *restrict v = token->v + first;
    float found[COLUMNS] = {0};

    for (size_t i = 0; i < token->n_rows; i++) {
        float *restrict row = state + i * stride + first;
        const float r = token->r[i] * scale, k = token->k[i], w = token->w[i];

        for (size_t j = 0; j < n; j++) {
            row[j] = row[j] * w + k * v[j];
            found[j] += r * row[j];
        }
    }
    memcpy(out + first, found, n * sizeof *out);
}
DEFINE_STEP(linear_step, run_wkv_token)

INLINE void wkv7_step_columns(float *state, size_t stride, size_t first, size_t n,
                              const struct run_wkv_token *token, float *restrict out)
{
    const float *restrict v = token->v + first;
    float product[COLUMNS] = {0}, found[COLUMNS] = {0}; /* a · S, r · S */

    for (size_t i = 0; i < token->n_rows; i++) {
        const float *restrict row = state + i * stride + first;
        const float a = token->a[i];

        for (size_t j = 0; j < n; j++)
            product[j] += a * row[j];
    }
    for (size_t i = 0; i < token->n_rows; i++) {
        float *restrict row = state + i * stride + first;
        const float r = token->r[i], k = token->k[i], w = token->w[i], b = token->b[i];

        for (size_t j = 0; j < n; j++) {
            row[j] = row[j] * w + k * v[j] + b * product[j];
            found[j] += r * row[j];
        }
    }
    memcpy(out + first, found, n * sizeof *out);
}
DEFINE_STEP(wkv7_step, run_wkv_token)

INLINE void scan_step_columns(float *state, size_t stride, size_t first, size_t n,
                              const struct run_scan_token *token, float *restrict out)
{
    const float *restrict x = token->x + first;
    float y[COLUMNS] = {0};

    for (size_t i = 0; i < token->n_rows; i++) {
        float *restrict row = state + i * stride + first;
        const float input = token->step * token->b[i], weight = token->c[i];

        for (size_t j = 0; j < n; j++) {
            row[j] = row[j] * token->decay + input * x[j];
            y[j] += weight * row[j];
        }
    }
    for (size_t j = 0; j < n; j++)
        out[first + j] = y[j] + token->d * x[j];
}
DEFINE_STEP(scan_step, run_scan_token)

/* ---- with an exponential per element ---- */

/* Up to RUN_LANES floats, and zeros. */
static void load_some(const float *from, size_t n, float to[RUN_LANES])
{
    memset(to, 0, RUN_LANES * sizeof *to);
    memcpy(to, from, n * sizeof *to);
}

float RUN_KERNEL(scan_channel)(float *state, size_t n, const float *a, const float *b,
                               const float *c, float step, float x)
{
    const float input = step * x;
    float_vector sums[FLOAT_PARTS] = {0};
    float lanes[RUN_LANES];

    for (size_t i = 0; i < n; i += RUN_LANES) {
        float h[RUN_LANES], rate[RUN_LANES], in[RUN_LANES], weight[RUN_LANES];
        const size_t n_here = n - i < RUN_LANES ? n - i : RUN_LANES;

        load_some(state + i, n_here, h);
        load_some(a + i, n_here, rate);
        load_some(b + i, n_here, in);
        load_some(c + i, n_here, weight);
        for (size_t part = 0; part < FLOAT_PARTS; part++) {
            const size_t at = part * FLOAT_WIDTH;
            const float_vector next =
                float_load(h + at) * vector_exp(step * float_load(rate + at)) +
                input * float_load(in + at);

            float_store(h + at, next);
            sums[part] += float_load(weight + at) * next;
        }
        memcpy(state + i, h, n_here * sizeof *h);
    }
    memcpy(lanes, sums, sizeof lanes);
    return dequant_dot_sum(lanes);
}

/* A vector of channels of one token. */
static float_vector wkv4_channels(float *numerator, float *denominator, float *exponent,
                                  float_vector w, float_vector u, float_vector k, float_vector v)
{
    const float_vector old = float_load(exponent), with_bonus = u + k, decayed = old + w;
    float_vector largest = chosen(old > with_bonus, old, with_bonus), found;
    float_vector before = vector_exp(old - largest), now = vector_exp(with_bonus - largest);

    found = (before * float_load(numerator) + now * v) / (before * float_load(denominator) + now);
    largest = chosen(decayed > k, decayed, k);
    before = vector_exp(decayed - largest);
    now = vector_exp(k - largest);
    float_store(numerator, before * float_load(numerator) + now * v);
    float_store(denominator, before * float_load(denominator) + now);
    float_store(exponent, largest);
    return found;
}

void RUN_KERNEL(wkv4_step)(float *numerators, float *denominators, float *exponents, size_t n,
                           const float *w, const float *u, const float *k, const float *v,
                           float *out)
{
    size_t i = 0;

    for (; i + FLOAT_WIDTH <= n; i += FLOAT_WIDTH)
        float_store(out + i, wkv4_channels(numerators + i, denominators + i, exponents + i,
                                           float_load(w + i), float_load(u + i), float_load(k + i),
                                           float_load(v + i)));
    if (i < n) {
        float *const states[] = {numerators + i, denominators + i, exponents + i};
        const float *const inputs[] = {w + i, u + i, k + i, v + i};
        float state[3][RUN_LANES], input[4][RUN_LANES];
        float_vector found;

        for (size_t s = 0; s < 3; s++)
            load_some(states[s], n - i, state[s]);
        for (size_t s = 0; s < 4; s++)
            load_some(inputs[s], n - i, input[s]);
        found = wkv4_channels(state[0], state[1], state[2], float_load(input[0]),
                              float_load(input[1]), float_load(input[2]), float_load(input[3]));
        for (size_t s = 0; s < 3; s++)
            memcpy(states[s], state[s], (n - i) * sizeof **state);
        memcpy(out + i, &found, (n - i) * sizeof *out);
    }
}
