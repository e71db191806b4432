#include "contrib/runner/compute/activation.h"

#include "contrib/runner/compute/run_kernels.h"
#include "contrib/runner/compute/thread_pool.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

/* Elements in a piece of work; most need an exponential. */
#define PIECE_ELEMENTS 2048

float run_sigmoid(float x)
{
    return 1.0f / (1.0f + expf(-x));
}

float run_softplus(float x)
{
    return x > 20.0f ? x : log1pf(expf(x));
}

static float gelu_erf(float x)
{
    return 0.5f * x * (1.0f + erff(x * 0.70710678118654752440f));
}

static float xielu(const struct run_xielu *parameters, float x)
{
    if (x > 0)
        return parameters->alpha_p * x * x + parameters->beta * x;
    return (expm1f(fminf(x, parameters->epsilon)) - x) * parameters->alpha_n + parameters->beta * x;
}

/* Elements computed at a time; a multiple of RUN_LANES. */
enum { CHUNK = 256 };

/* x[i] = f(x[i]) for n elements, at most CHUNK. Elements up to the next multiple of RUN_LANES
 * change too. */
static void apply(run_vector_function_fn *f, float x[CHUNK], size_t n)
{
    const size_t n_padded = (n + RUN_LANES - 1) / RUN_LANES * RUN_LANES;

    memset(x + n, 0, (n_padded - n) * sizeof *x);
    f(x, n_padded);
}

/* x[i] = x[i] · sigmoid(factor · x[i]) for at most CHUNK elements. */
static void gate_by_itself(float factor, float *x, size_t n)
{
    float sigmoids[CHUNK];

    for (size_t i = 0; i < n; i++)
        sigmoids[i] = factor * x[i];
    apply(run_kernels()->sigmoids, sigmoids, n);
    for (size_t i = 0; i < n; i++)
        x[i] *= sigmoids[i];
}

static void gelu(float *x, size_t n)
{
    float tangents[CHUNK];

    for (size_t i = 0; i < n; i++)
        tangents[i] = 0.79788456080286535588f * x[i] * (1.0f + 0.044715f * x[i] * x[i]);
    apply(run_kernels()->tangents, tangents, n);
    for (size_t i = 0; i < n; i++)
        x[i] = 0.5f * x[i] * (1.0f + tangents[i]);
}

/* x[i] = f(x[i]) for at most CHUNK elements. */
static void activate(enum run_activation activation, const struct run_xielu *parameters, float *x,
                     size_t n)
{
    float values[CHUNK];

    switch (activation) {
    case RUN_SILU:
        gate_by_itself(1, x, n);
        return;
    case RUN_SWIGLU_OAI:
        gate_by_itself(1.702f, x, n);
        return;
    case RUN_GELU:
        gelu(x, n);
        return;
    case RUN_GELU_ERF:
        for (size_t i = 0; i < n; i++)
            x[i] = gelu_erf(x[i]);
        return;
    case RUN_RELU:
        for (size_t i = 0; i < n; i++)
            x[i] = fmaxf(x[i], 0);
        return;
    case RUN_RELU_SQUARED:
        for (size_t i = 0; i < n; i++)
            x[i] = fmaxf(x[i], 0) * fmaxf(x[i], 0);
        return;
    case RUN_XIELU:
        for (size_t i = 0; i < n && parameters; i++)
            x[i] = xielu(parameters, x[i]);
        return;
    case RUN_SIGMOID:
    case RUN_TANH:
        memcpy(values, x, n * sizeof *x);
        apply(activation == RUN_TANH ? run_kernels()->tangents : run_kernels()->sigmoids, values,
              n);
        memcpy(x, values, n * sizeof *x);
        return;
    case RUN_IDENTITY:
        return;
    }
}

/* The arguments of the functions below. */
struct elements {
    enum run_activation activation;
    const struct run_xielu *parameters;
    float *x;
    const float *up; /* NULL: no gates */
    float limit;     /* 0: none */
};

/* gate[i] = f(gate[i]) · up[i] for at most CHUNK elements. */
static void gate_chunk(const struct elements *elements, float *gate, const float *up, size_t n)
{
    const bool is_swiglu_oai = elements->activation == RUN_SWIGLU_OAI;
    const float limit = elements->limit;

    if (elements->activation == RUN_SILU && n % RUN_LANES == 0 && limit == 0) {
        run_kernels()->silu_gates(gate, up, n);
        return;
    }
    for (size_t i = 0; i < n && is_swiglu_oai; i++)
        gate[i] = fminf(gate[i], 7.0f);
    activate(elements->activation, NULL, gate, n);
    for (size_t i = 0; i < n; i++)
        if (limit > 0)
            gate[i] = fminf(gate[i], limit) * fmaxf(fminf(up[i], limit), -limit);
        else
            gate[i] *= is_swiglu_oai ? fmaxf(fminf(up[i], 7.0f), -7.0f) + 1.0f : up[i];
}

static void work_on(void *context, size_t first, size_t end)
{
    const struct elements *elements = context;

    for (; first < end; first += CHUNK) {
        const size_t n = end - first < CHUNK ? end - first : CHUNK;

        if (elements->up)
            gate_chunk(elements, elements->x + first, elements->up + first, n);
        else
            activate(elements->activation, elements->parameters, elements->x + first, n);
    }
}

void run_activate(enum run_activation activation, const struct run_xielu *parameters, float *x,
                  size_t n)
{
    struct elements elements = {.activation = activation, .parameters = parameters, .x = x};

    run_parallel_for(n, PIECE_ELEMENTS, work_on, &elements);
}

void run_activate_gated_clamped(enum run_activation activation, float limit, float *gate,
                                const float *up, size_t n)
{
    struct elements elements = {.activation = activation, .x = gate, .up = up, .limit = limit};

    run_parallel_for(n, PIECE_ELEMENTS, work_on, &elements);
}

void run_activate_gated(enum run_activation activation, float *gate, const float *up, size_t n)
{
    run_activate_gated_clamped(activation, 0, gate, up, n);
}

void run_gaussian_top_k(float factor, float *x, size_t n_rows, size_t width)
{
    for (size_t i = 0; i < n_rows; i++, x += width) {
        double mean = 0, sum = 0;
        float threshold;

        for (size_t j = 0; j < width; j++)
            mean += (double)x[j];
        mean /= (double)width;
        for (size_t j = 0; j < width; j++)
            sum += ((double)x[j] - mean) * ((double)x[j] - mean);
        threshold = (float)(mean + (double)factor * sqrt(sum / (double)width));
        for (size_t j = 0; j < width; j++)
            x[j] = fmaxf(x[j] - threshold, 0);
    }
}

size_t run_find_highest(const float *x, size_t n)
{
    size_t best = 0;

    for (size_t i = 1; i < n; i++)
        if (x[i] > x[best])
            best = i;
    return best;
}

void run_softmax(float *x, size_t n)
{
    float highest = -INFINITY;
    double sum = 0;

    for (size_t i = 0; i < n; i++)
        highest = fmaxf(highest, x[i]);
    for (size_t i = 0; i < n; i++) {
        x[i] = expf(x[i] - highest);
        sum += (double)x[i];
    }
    for (size_t i = 0; i < n; i++)
        x[i] = (float)((double)x[i] / sum);
}
