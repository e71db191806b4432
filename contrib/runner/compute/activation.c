#include "contrib/runner/compute/activation.h"

#include "contrib/runner/compute/team.h"

#include <math.h>

/* Elements in a piece of work; most need expf() or tanhf(). */
#define PIECE_ELEMENTS 2048

float run_sigmoid(float x)
{
    return 1.0f / (1.0f + expf(-x));
}

float run_silu(float x)
{
    return x / (1.0f + expf(-x));
}

float run_softplus(float x)
{
    return x > 20.0f ? x : log1pf(expf(x));
}

static float gelu(float x)
{
    return 0.5f * x * (1.0f + tanhf(0.79788456080286535588f * x * (1.0f + 0.044715f * x * x)));
}

static float gelu_erf(float x)
{
    return 0.5f * x * (1.0f + erff(x * 0.70710678118654752440f));
}

static float swiglu_oai(float gate, float up)
{
    gate = fminf(gate, 7.0f);
    up = fmaxf(fminf(up, 7.0f), -7.0f);
    return gate / (1.0f + expf(-1.702f * gate)) * (up + 1.0f);
}

static float xielu(const struct run_xielu *parameters, float x)
{
    if (x > 0)
        return parameters->alpha_p * x * x + parameters->beta * x;
    return (expm1f(fminf(x, parameters->epsilon)) - x) * parameters->alpha_n + parameters->beta * x;
}

static float activate(enum run_activation activation, const struct run_xielu *parameters, float x)
{
    switch (activation) {
    case RUN_GELU:
        return gelu(x);
    case RUN_GELU_ERF:
        return gelu_erf(x);
    case RUN_RELU:
        return fmaxf(x, 0);
    case RUN_RELU_SQUARED:
        return fmaxf(x, 0) * fmaxf(x, 0);
    case RUN_XIELU:
        return parameters ? xielu(parameters, x) : x;
    case RUN_SIGMOID:
        return run_sigmoid(x);
    case RUN_TANH:
        return tanhf(x);
    case RUN_IDENTITY:
        return x;
    case RUN_SILU:
    case RUN_SWIGLU_OAI:
        break;
    }
    return run_silu(x);
}

/* The arguments of run_activate() and run_activate_gated(). */
struct elements {
    enum run_activation activation;
    const struct run_xielu *parameters;
    float *x;
    const float *up;
};

static void activate_elements(void *context, size_t first, size_t end, unsigned thread)
{
    const struct elements *elements = context;
    float *x = elements->x;

    (void)thread;
    for (size_t i = first; i < end; i++)
        x[i] = activate(elements->activation, elements->parameters, x[i]);
}

void run_activate(enum run_activation activation, const struct run_xielu *parameters, float *x,
                  size_t n)
{
    struct elements elements = {.activation = activation, .parameters = parameters, .x = x};

    run_parallel(n, PIECE_ELEMENTS, activate_elements, &elements);
}

static void gate_elements(void *context, size_t first, size_t end, unsigned thread)
{
    const struct elements *elements = context;
    const float *up = elements->up;
    float *gate = elements->x;

    (void)thread;
    for (size_t i = first; i < end; i++)
        gate[i] = elements->activation == RUN_SWIGLU_OAI
                      ? swiglu_oai(gate[i], up[i])
                      : activate(elements->activation, NULL, gate[i]) * up[i];
}

void run_activate_gated(enum run_activation activation, float *gate, const float *up, size_t n)
{
    struct elements elements = {.activation = activation, .x = gate, .up = up};

    run_parallel(n, PIECE_ELEMENTS, gate_elements, &elements);
}

void run_activate_gated_clamped(enum run_activation activation, float limit, float *gate,
                                const float *up, size_t n)
{
    for (size_t i = 0; i < n; i++)
        gate[i] =
            fminf(activate(activation, NULL, gate[i]), limit) * fmaxf(fminf(up[i], limit), -limit);
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
