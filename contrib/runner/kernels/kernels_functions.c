/* Functions of many elements, for attention, gates and activations. */
#include "contrib/runner/kernels/vector_math.h"

/* Define the kernel `name`, which replaces each vector x by `value`. */
#define DEFINE_FUNCTION(name, value)                                                               \
    void RUN_KERNEL(name)(float *elements, size_t n)                                               \
    {                                                                                              \
        for (size_t i = 0; i < n; i += FLOAT_WIDTH) {                                              \
            const float_vector x = float_load(elements + i);                                       \
                                                                                                   \
            float_store(elements + i, value);                                                      \
        }                                                                                          \
    }

DEFINE_FUNCTION(exponentials, vector_exp(x))
DEFINE_FUNCTION(sigmoids, vector_sigmoid(x))
DEFINE_FUNCTION(tangents, vector_tanh(x))

void RUN_KERNEL(silu_gates)(float *gate, const float *up, size_t n)
{
    for (size_t i = 0; i < n; i += FLOAT_WIDTH) {
        const float_vector x = float_load(gate + i);

        float_store(gate + i, x * vector_sigmoid(x) * float_load(up + i));
    }
}
