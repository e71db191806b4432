/* Quantization of activations. tests/kernels/reference/multiply_panels.c computes the same. */
#include "dequant/kernels/simd_quantize.h"
#include "dequant/forms.h"

#include <math.h>

INLINE int sum_of(simd_bytes bytes)
{
#if defined(__AVX2__)
    /* The sums of the bytes plus 128. */
    const __m128i sums = _mm_sad_epu8((__m128i)(bytes ^ 128), _mm_setzero_si128());

    return _mm_cvtsi128_si32(_mm_add_epi32(sums, _mm_unpackhi_epi64(sums, sums))) - 16 * 128;
#else
    return vaddlvq_s8(vreinterpretq_s8_u8(bytes));
#endif
}

/* Quantize n_elements from `first` on, which share a scale. */
INLINE void quantize_block(const float *x, size_t first, size_t n_elements,
                           struct dequant_activations *out)
{
    int_vector most = magnitudes_of(simd_load_floats(x + first));
    uint32_t bits;
    float greatest, scale, factor;

    for (size_t i = first + 16; i < first + n_elements; i += 16)
        most = part_max(most, magnitudes_of(simd_load_floats(x + i)));
    bits = magnitudes_greatest(most);
    greatest = dequant_float_of_bits(bits);
    /* The reference makes zeros of blocks without a finite scale and a finite reciprocal of it. */
    if (bits >= 0x7f800000 || greatest < DEQUANT_LEAST_MAGNITUDE) {
        factor = 0;
        scale = bits >= 0x7f800000 ? NAN : 0;
    } else {
        factor = 127 / greatest;
        scale = greatest / 127;
    }
    for (size_t i = first; i < first + n_elements; i += 32)
        out->scales[i / 32] = scale;
    for (size_t i = first; i < first + n_elements; i += 16) {
        const simd_bytes q =
            factor == 0
                ? simd_all(0)
                : simd_round_to_bytes(simd_mul(simd_load_floats(x + i), simd_all_floats(factor)));

        memcpy(out->q + i, &q, sizeof q);
        out->sums_16[i / 16] = (int16_t)sum_of(q);
    }
}

void SIMD_NAME(quantize)(const float *x, size_t block_elements, struct dequant_activations *out)
{
    for (size_t i = 0; i < DEQUANT_PANEL_ELEMENTS; i += block_elements)
        quantize_block(x, i, block_elements, out);
    for (size_t i = 0; i < DEQUANT_PANEL_ELEMENTS / 32; i++)
        out->sums_32[i] = (int16_t)(out->sums_16[2 * i] + out->sums_16[2 * i + 1]);
}
