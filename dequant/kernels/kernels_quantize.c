/* Quantization of activations. dequant/reference/multiply_panels.c computes the same. */
#include "dequant/kernels/simd.h"
#include "dequant/products.h"

#include <math.h>

/* Sixteen floats as their bits without sign: an order of magnitudes, in which NaNs are greatest. */
#if defined(__AVX512F__)

typedef __m512i magnitudes;

static inline magnitudes magnitudes_of(simd_floats v)
{
    return _mm512_and_si512(_mm512_castps_si512(v.v), _mm512_set1_epi32(0x7fffffff));
}

static inline magnitudes magnitudes_max(magnitudes a, magnitudes b)
{
    return _mm512_max_epi32(a, b);
}

static inline uint32_t magnitudes_greatest(magnitudes v)
{
    return (uint32_t)_mm512_reduce_max_epi32(v);
}

/* The nearest integers, ties to even, within -127 and 127. */
static inline simd_bytes bytes_of(simd_floats v)
{
    return _mm512_cvtepi32_epi8(_mm512_cvtps_epi32(v.v));
}

#elif defined(__AVX2__)

typedef __m256i magnitudes;

static inline magnitudes magnitudes_max(magnitudes a, magnitudes b)
{
    return _mm256_max_epi32(a, b);
}

static inline magnitudes magnitudes_of(simd_floats v)
{
    const __m256i mask = _mm256_set1_epi32(0x7fffffff);

    return magnitudes_max(_mm256_and_si256(_mm256_castps_si256(v.low), mask),
                          _mm256_and_si256(_mm256_castps_si256(v.high), mask));
}

static inline uint32_t magnitudes_greatest(magnitudes v)
{
    __m128i most = _mm_max_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));

    most = _mm_max_epi32(most, _mm_shuffle_epi32(most, 0x4e));
    most = _mm_max_epi32(most, _mm_shuffle_epi32(most, 0xb1));
    return (uint32_t)_mm_cvtsi128_si32(most);
}

static inline simd_bytes bytes_of(simd_floats v)
{
    const __m256i pairs = _mm256_packs_epi32(_mm256_cvtps_epi32(v.low), _mm256_cvtps_epi32(v.high));
    const __m256i ordered = _mm256_permute4x64_epi64(pairs, 0xd8);

    return _mm_packs_epi16(_mm256_castsi256_si128(ordered), _mm256_extracti128_si256(ordered, 1));
}

#else

typedef uint32x4_t magnitudes;

static inline magnitudes magnitudes_max(magnitudes a, magnitudes b)
{
    return vmaxq_u32(a, b);
}

static inline magnitudes magnitudes_of(simd_floats v)
{
    uint32x4_t all[4];

    for (size_t i = 0; i < 4; i++)
        all[i] = vreinterpretq_u32_f32(vabsq_f32(v.v[i]));
    return vmaxq_u32(vmaxq_u32(all[0], all[1]), vmaxq_u32(all[2], all[3]));
}

static inline uint32_t magnitudes_greatest(magnitudes v)
{
    return vmaxvq_u32(v);
}

static inline simd_bytes bytes_of(simd_floats v)
{
    int16x4_t pairs[4];

    for (size_t i = 0; i < 4; i++)
        pairs[i] = vmovn_s32(vcvtnq_s32_f32(v.v[i]));
    return vreinterpretq_u8_s8(vcombine_s8(vmovn_s16(vcombine_s16(pairs[0], pairs[1])),
                                           vmovn_s16(vcombine_s16(pairs[2], pairs[3]))));
}

#endif

static inline int sum_of(simd_bytes bytes)
{
#if defined(__AVX2__)
    /* The sums of the bytes plus 128. */
    const __m128i sums = _mm_sad_epu8(_mm_xor_si128(bytes, simd_all(-128)), _mm_setzero_si128());

    return _mm_cvtsi128_si32(_mm_add_epi32(sums, _mm_unpackhi_epi64(sums, sums))) - 16 * 128;
#else
    return vaddlvq_s8(vreinterpretq_s8_u8(bytes));
#endif
}

/* Quantize n_elements from `first` on, which share a scale. */
static inline void quantize_block(const float *x, size_t first, size_t n_elements,
                                  struct dequant_activations *out)
{
    magnitudes most = magnitudes_of(simd_load_floats(x + first));
    uint32_t bits;
    float greatest, scale, factor;

    for (size_t i = first + 16; i < first + n_elements; i += 16)
        most = magnitudes_max(most, magnitudes_of(simd_load_floats(x + i)));
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
            factor == 0 ? simd_all(0)
                        : bytes_of(simd_mul(simd_load_floats(x + i), simd_all_floats(factor)));

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
