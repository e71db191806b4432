/* Kernels of the plain number types, and the encoders of F16 and BF16. */
#include "dequant/blocks.h"
#include "dequant/kernels/simd.h"

/* Define the kernel of a type by its load of 16 numbers; the reference decodes the rest. */
#define DEFINE_NUMBERS(type)                                                                       \
    void SIMD_NAME(type)(const void *restrict blocks, float *restrict out, size_t n_blocks,        \
                         struct dequant_row row)                                                   \
    {                                                                                              \
        const struct dequant_##type *numbers = blocks;                                             \
        size_t i = 0;                                                                              \
                                                                                                   \
        for (; i + 16 <= n_blocks; i += 16)                                                        \
            simd_store(out + i, simd_load_##type(numbers + i));                                    \
        dequant_scalar_##type(numbers + i, out + i, n_blocks - i, row);                            \
    }

DEFINE_NUMBERS(f16)
DEFINE_NUMBERS(bf16)
DEFINE_NUMBERS(f64)
DEFINE_NUMBERS(i8)
DEFINE_NUMBERS(i16)
DEFINE_NUMBERS(i32)
DEFINE_NUMBERS(i64)

void SIMD_NAME(f32)(const void *restrict blocks, float *restrict out, size_t n_blocks,
                    struct dequant_row row)
{
    memcpy(out, blocks, n_blocks * sizeof *out);
}

INLINE void store_bf16(uint8_t *to, simd_floats floats)
{
    simd_words halves[FLOAT_PARTS];

    UNROLL
    for (size_t i = 0; i < FLOAT_PARTS; i++) {
        const simd_words bits = (simd_words)floats.v[i], quiet = bits | 0x00400000;
        const simd_words rounded = bits + ((bits >> 16 & 1) + 0x7fff);
#if defined(__AVX512F__)
        const __mmask16 is_nan = _mm512_cmp_ps_mask(floats.v[i], floats.v[i], _CMP_UNORD_Q);
        const simd_words number =
            (simd_words)_mm512_mask_mov_epi32((simd_ints)rounded, is_nan, (simd_ints)quiet);
#elif defined(__AVX2__)
        const __m256 is_nan = _mm256_cmp_ps(floats.v[i], floats.v[i], _CMP_UNORD_Q);
        const simd_words number =
            (simd_words)_mm256_blendv_ps((__m256)rounded, (__m256)quiet, is_nan);
#else
        const simd_words is_nan = (simd_words)(floats.v[i] != floats.v[i]);
        const simd_words number = (quiet & is_nan) | (rounded & ~is_nan);
#endif

        halves[i] = number >> 16;
    }
#if defined(__AVX2__) && !defined(__AVX512F__)
    /* The instruction packs each half of the register on its own: put the quarters in order. */
    _mm256_storeu_si256((void *)to,
                        _mm256_permute4x64_epi64(
                            _mm256_packus_epi32((__m256i)halves[0], (__m256i)halves[1]), 0xd8));
#else
    for (size_t i = 0; i < FLOAT_PARTS; i++)
        part_store_shorts(to + i * FLOAT_WIDTH * sizeof(uint16_t), halves[i]);
#endif
}

/* Define an encoder by its store of 16 numbers; the reference encodes the rest. */
#define DEFINE_ENCODER(type, store)                                                                \
    void SIMD_NAME(to_##type)(const void *restrict values, void *restrict out, size_t n)           \
    {                                                                                              \
        const uint8_t *from = values;                                                              \
        uint8_t *to = out;                                                                         \
                                                                                                   \
        for (; n >= 16; n -= 16, from += 64, to += 32)                                             \
            store(to, simd_load_floats(from));                                                     \
        dequant_scalar_to_##type(from, to, n);                                                     \
    }

DEFINE_ENCODER(f16, simd_store_f16)
DEFINE_ENCODER(bf16, store_bf16)
