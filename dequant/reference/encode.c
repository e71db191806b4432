/* The reference encoders. */
#include "dequant/slots.h"
#include "dequant/small_floats.h"

void dequant_scalar_to_f16(const void *restrict values, void *restrict out, size_t n)
{
    const uint8_t *from = values;
    uint8_t *to = out;

    for (size_t i = 0; i < n; i++) {
        float value;
        uint16_t half;

        memcpy(&value, from + i * sizeof value, sizeof value);
        half = dequant_f32_to_f16(value);
        memcpy(to + i * sizeof half, &half, sizeof half);
    }
}

void dequant_scalar_to_bf16(const void *restrict values, void *restrict out, size_t n)
{
    const uint8_t *from = values;
    uint8_t *to = out;

    for (size_t i = 0; i < n; i++) {
        float value;
        uint16_t upper;

        memcpy(&value, from + i * sizeof value, sizeof value);
        upper = dequant_f32_to_bf16(value);
        memcpy(to + i * sizeof upper, &upper, sizeof upper);
    }
}
