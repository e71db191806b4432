/* The type table. Its interface is types.h. */
#include "dequant/types.h"

#include "dequant/blocks.h"
#include "dequant/fork_blocks.h"
#include "dequant/ik_k_blocks.h"
#include "dequant/ik_kt_blocks.h"
#include "dequant/ik_row_blocks.h"
#include "dequant/iq_blocks.h"
#include "dequant/old_blocks.h"
#include "dequant/slots.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Slots of a type that has a kernel in every set. */
#define KERNEL_SLOT(set, name) [DEQUANT_SET_##set] = dequant_##set##_##name,
#define KERNELS(name)                                                                              \
    {                                                                                              \
        KERNEL_SLOT(scalar, name) DEQUANT_VECTOR_SETS(KERNEL_SLOT, name)                           \
    }

/* Slots of a type that is decoded in plain C alone. */
#define REFERENCE(name)                                                                            \
    {                                                                                              \
        dequant_scalar_##name                                                                      \
    }

/* The bytes of a stored block for each of the rows in it. */
#define SHARE(layout, rows)                                                                        \
    (sizeof(struct dequant_##layout) / (rows) +                                                    \
     0 * sizeof(struct {                                                                           \
         static_assert(sizeof(struct dequant_##layout) % (rows) == 0,                              \
                       #layout " has no such rows");                                               \
         char unused;                                                                              \
     }))

/* How a type is multiplied that has kernels in every set. */
#define UNPACK_SLOT(set, name) [DEQUANT_SET_##set] = dequant_##set##_unpack_##name,
#define COLUMN_SLOT(set, name) [DEQUANT_SET_##set] = dequant_##set##_multiply_##name,
#define PRODUCT(name)                                                                              \
    .product = &(const struct dequant_product)                                                     \
    {                                                                                              \
        DEQUANT_FORM_##name, {DEQUANT_VECTOR_SETS(UNPACK_SLOT, name)},                             \
        {                                                                                          \
            DEQUANT_VECTOR_SETS(COLUMN_SLOT, name)                                                 \
        }                                                                                          \
    }

/* Name, sizes and byte-order map of a type with the block struct dequant_LAYOUT. */
#define LAYOUT(number, of_era, capitals, elements, layout, header_bytes, rows, ...)                \
    .id = (number), .era = (of_era), .name = (capitals), .block_elements = (elements),             \
    .block_bytes = SHARE(layout, rows), .row_header_bytes = (header_bytes),                        \
    .interleave_rows = (rows), .fields = (const struct dequant_field[])                            \
    {                                                                                              \
        __VA_ARGS__,                                                                               \
        {                                                                                          \
            0, 0                                                                                   \
        }                                                                                          \
    }

/* The map of a layout that no big-endian file has. */
#define BYTES(layout)                                                                              \
    {                                                                                              \
        1, sizeof(struct dequant_##layout)                                                         \
    }

/*
 * A type of ggml. `layout` names block struct and decoders. Then come the {width, count} runs of
 * the byte-order map, see struct dequant_field.
 */
#define GGML(number, capitals, elements, layout, ...)                                              \
    LAYOUT(number, DEQUANT_ERA, capitals, elements, layout, 0, 1, __VA_ARGS__),                    \
        .program = "ggml", .is_in_ggml = true, .decode = KERNELS(layout)

/* The same for a type that is multiplied in integers, and has an f16 scale, `d`. */
#define QUANT(number, capitals, elements, layout, ...)                                             \
    GGML(number, capitals, elements, layout, __VA_ARGS__), PRODUCT(layout), D(layout)

/* The members of a block from `first` to `last` are f16 scales or offsets. */
#define F16(layout, first, last)                                                                   \
    .is_scale_at_limit = dequant_f16_at_limit,                                                     \
    .f16_offset = offsetof(struct dequant_##layout, first),                                        \
    .n_f16 =                                                                                       \
        1 + (offsetof(struct dequant_##layout, last) - offsetof(struct dequant_##layout, first)) / \
                sizeof(uint16_t)
#define D(layout)   F16(layout, d, d)
#define D_M(layout) F16(layout, d, m)

/*
 * A type that ggml removed: the size of `layout`, but the blocks of four or eight rows of the
 * matrix are interleaved, so no block has a layout of its own.
 */
#define REMOVED(number, capitals, elements, layout)                                                \
    FORK("ggml", number, capitals, elements, layout, 0, 1)

/* A type of some program: headers of header_bytes, groups of `rows` rows. */
#define FORK(by, number, capitals, elements, layout, header_bytes, rows)                           \
    LAYOUT(number, DEQUANT_ERA, capitals, elements, layout, header_bytes, rows, BYTES(layout)),    \
        .program = (by)

/* A type of ik_llama.cpp of today, and one that it gave another id or layout on the day
 * `until_day`. */
#define IK(number, capitals, elements, layout, header_bytes, rows)                                 \
    FORK("ik_llama.cpp", number, capitals, elements, layout, header_bytes, rows),                  \
        .decode = KERNELS(layout)
#define OLD_IK(until_day, number, capitals, elements, layout, header_bytes, rows, ...)             \
    FORK("ik_llama.cpp", number, capitals, elements, layout, header_bytes, rows),                  \
        .until = (until_day), .decode = __VA_ARGS__

/* The type converts to `count` blocks of ggml's type `number`. */
#define PLAIN(layout, number, count)                                                               \
    .plain = &(const struct dequant_plain)                                                         \
    {                                                                                              \
        number, count, KERNELS(convert_##layout)                                                   \
    }

/* A type that stores `rows` rows of `count` blocks of ggml's type `plain` together. */
#define INTERLEAVED(by, number, capitals, elements, layout, rows, plain, count)                    \
    FORK(by, number, capitals, elements, layout, 0, rows), .decode = KERNELS(layout),              \
                                                           PLAIN(layout, plain, count)

/* A layout from before GGUF. */
#define OLD(number, of_era, capitals, elements, layout, decoder)                                   \
    LAYOUT(number, of_era, capitals, elements, layout, 0, 1, BYTES(layout)),                       \
        .program = "ggml", .decode = KERNELS(decoder)

/*
 * Today's types in the order of their ids; 4 and 5 (Q4_2, Q4_3) were removed with their layouts. If
 * several programs use one id, this table has ggml's type; without one, the type found in published
 * files.
 * Source of ids and names: enum ggml_type in ggml.h of ggml, and of ik_llama.cpp for its types. The
 * maps follow ggml's declarations of the blocks: what ggml declares as bytes counts as bytes, also
 * where it reads several of them as one number.
 */
static const struct dequant_type current[] = {
    {GGML(0, "F32", DEQUANT_NUMBER, f32, {4, 1}), .dot = KERNELS(dot_f32)},
    {GGML(1, "F16", DEQUANT_NUMBER, f16, {2, 1}), .encode = KERNELS(to_f16),
     .dot = KERNELS(dot_f16)},
    {QUANT(2, "Q4_0", DEQUANT_BLOCK, q4_0, {2, 1}, {1, 16}), .encode = KERNELS(to_q4_0)},
    {GGML(3, "Q4_1", DEQUANT_BLOCK, q4_1, {2, 2}, {1, 16}), PRODUCT(q4_1), D_M(q4_1)},
    {QUANT(6, "Q5_0", DEQUANT_BLOCK, q5_0, {2, 1}, {1, 20})},
    {GGML(7, "Q5_1", DEQUANT_BLOCK, q5_1, {2, 2}, {1, 20}), PRODUCT(q5_1), D_M(q5_1)},
    {QUANT(8, "Q8_0", DEQUANT_BLOCK, q8_0, {2, 1}, {1, 32}), .encode = KERNELS(to_q8_0)},
    {GGML(9, "Q8_1", DEQUANT_BLOCK, q8_1, {2, 2}, {1, 32}), D(q8_1)},
    {GGML(10, "Q2_K", DEQUANT_SUPERBLOCK, q2_k, {1, 80}, {2, 2}), PRODUCT(q2_k), D_M(q2_k)},
    {QUANT(11, "Q3_K", DEQUANT_SUPERBLOCK, q3_k, {1, 108}, {2, 1})},
    {GGML(12, "Q4_K", DEQUANT_SUPERBLOCK, q4_k, {2, 2}, {1, 140}), PRODUCT(q4_k), D_M(q4_k)},
    {GGML(13, "Q5_K", DEQUANT_SUPERBLOCK, q5_k, {2, 2}, {1, 172}), PRODUCT(q5_k), D_M(q5_k)},
    {QUANT(14, "Q6_K", DEQUANT_SUPERBLOCK, q6_k, {1, 208}, {2, 1})},
    {GGML(15, "Q8_K", DEQUANT_SUPERBLOCK, q8_k, {4, 1}, {1, 256}, {2, 16})},
    {QUANT(16, "IQ2_XXS", DEQUANT_SUPERBLOCK, iq2_xxs, {2, 33})},
    {QUANT(17, "IQ2_XS", DEQUANT_SUPERBLOCK, iq2_xs, {2, 33}, {1, 8})},
    {QUANT(18, "IQ3_XXS", DEQUANT_SUPERBLOCK, iq3_xxs, {2, 1}, {1, 96})},
    {QUANT(19, "IQ1_S", DEQUANT_SUPERBLOCK, iq1_s, {2, 1}, {1, 32}, {2, 8})},
    {QUANT(20, "IQ4_NL", DEQUANT_BLOCK, iq4_nl, {2, 1}, {1, 16})},
    {QUANT(21, "IQ3_S", DEQUANT_SUPERBLOCK, iq3_s, {2, 1}, {1, 108})},
    {QUANT(22, "IQ2_S", DEQUANT_SUPERBLOCK, iq2_s, {2, 1}, {1, 80})},
    {QUANT(23, "IQ4_XS", DEQUANT_SUPERBLOCK, iq4_xs, {2, 2}, {1, 132})},
    {GGML(24, "I8", DEQUANT_NUMBER, i8, {1, 1})},
    {GGML(25, "I16", DEQUANT_NUMBER, i16, {2, 1})},
    {GGML(26, "I32", DEQUANT_NUMBER, i32, {4, 1})},
    {GGML(27, "I64", DEQUANT_NUMBER, i64, {8, 1})},
    {GGML(28, "F64", DEQUANT_NUMBER, f64, {8, 1})},
    {GGML(29, "IQ1_M", DEQUANT_SUPERBLOCK, iq1_m, {1, 56}), PRODUCT(iq1_m),
     .is_scale_at_limit = dequant_iq1_m_at_limit},
    {GGML(30, "BF16", DEQUANT_NUMBER, bf16, {2, 1}), .encode = KERNELS(to_bf16),
     .dot = KERNELS(dot_bf16)},
    {INTERLEAVED("ggml", 31, "Q4_0_4_4", DEQUANT_BLOCK, q4_0_4_4, 4, 2, 1)},
    {INTERLEAVED("ggml", 32, "Q4_0_4_8", DEQUANT_BLOCK, q4_0_4_8, 4, 2, 1)},
    {INTERLEAVED("ggml", 33, "Q4_0_8_8", DEQUANT_BLOCK, q4_0_8_8, 8, 2, 1)},
    {QUANT(34, "TQ1_0", DEQUANT_SUPERBLOCK, tq1_0, {1, 52}, {2, 1})},
    {QUANT(35, "TQ2_0", DEQUANT_SUPERBLOCK, tq2_0, {1, 64}, {2, 1})},
    {FORK("BitNet", 36, "I2_S", DEQUANT_I2_S_BLOCK, i2_s, 0, 1), .decode = KERNELS(i2_s),
     .tail_bytes = 32},
    {REMOVED(37, "IQ4_NL_4_8", DEQUANT_BLOCK, iq4_nl)},
    {REMOVED(38, "IQ4_NL_8_8", DEQUANT_BLOCK, iq4_nl)},
    {GGML(39, "MXFP4", DEQUANT_BLOCK, mxfp4, {1, 17}), PRODUCT(mxfp4),
     .has_nan_scale = dequant_mxfp4_has_nan_scale, .is_scale_at_limit = dequant_mxfp4_at_limit},
    {GGML(40, "NVFP4", DEQUANT_NVFP4_BLOCK, nvfp4, {1, 36}), PRODUCT(nvfp4),
     .has_nan_scale = dequant_nvfp4_has_nan_scale, .is_scale_at_limit = dequant_nvfp4_at_limit},
    {QUANT(41, "Q1_0", DEQUANT_Q1_0_BLOCK, q1_0, {2, 1}, {1, 16})},
    {QUANT(42, "Q2_0", DEQUANT_Q2_0_BLOCK, q2_0, {2, 1}, {1, 16})},

    {IK(133, "Q6_0", DEQUANT_BLOCK, q6_0, 0, 1), D(q6_0)},
    {IK(134, "IQ1_BN", DEQUANT_BN_BLOCK, iq1_bn, sizeof(uint16_t), 1)},
    {IK(135, "IQ2_BN", DEQUANT_BN_BLOCK, iq2_bn, sizeof(float), 1)},
    {IK(137, "IQ2_K", DEQUANT_SUPERBLOCK, iq2_k, 0, 1), D(iq2_k)},
    {IK(138, "IQ3_K", DEQUANT_SUPERBLOCK, iq3_k, 0, 1), D(iq3_k)},
    {IK(139, "IQ4_K", DEQUANT_SUPERBLOCK, iq4_k, 0, 1), D(iq4_k)},
    {IK(140, "IQ5_K", DEQUANT_SUPERBLOCK, iq5_k, 0, 1), D(iq5_k)},
    {IK(141, "IQ6_K", DEQUANT_SUPERBLOCK, iq6_k, 0, 1), D(iq6_k)},
    {FORK("PrismML", 142, "PQ2_0", DEQUANT_PRISM_BLOCK, pq2_0, 0, 1), .decode = KERNELS(pq2_0),
     D(pq2_0), PLAIN(pq2_0, 42, 2)},
    {FORK("PrismML", 143, "PTQ1_0", DEQUANT_PRISM_BLOCK, ptq1_0, 0, 1), .decode = KERNELS(ptq1_0),
     D(ptq1_0), PLAIN(ptq1_0, 42, 2)},
    {IK(144, "IQ4_KS", DEQUANT_SUPERBLOCK, iq4_ks, sizeof(float), 1)},
    {IK(145, "IQ2_KS", DEQUANT_SUPERBLOCK, iq2_ks, sizeof(uint16_t), 1)},
    {IK(146, "IQ4_KSS", DEQUANT_SUPERBLOCK, iq4_kss, sizeof(float), 1)},
    {IK(151, "Q8_KV", DEQUANT_BLOCK, q8_kv, 2 * sizeof(float), 1)},
    {IK(152, "IQ5_KS", DEQUANT_SUPERBLOCK, iq5_ks, sizeof(float), 1)},
    {IK(153, "IQ2_KT", DEQUANT_SUPERBLOCK, iq2_kt, sizeof(float), 1)},
    {IK(154, "IQ3_KT", DEQUANT_SUPERBLOCK, iq3_kt, sizeof(float), 1)},
    {IK(155, "IQ4_KT", DEQUANT_SUPERBLOCK, iq4_kt, sizeof(float), 1)},
    {IK(156, "IQ3_KS", DEQUANT_SUPERBLOCK, iq3_ks, sizeof(uint16_t), 1)},
    {IK(157, "IQ2_KL", DEQUANT_SUPERBLOCK, iq2_kl, sizeof(uint16_t), 1)},
    {IK(158, "IQ1_KT", DEQUANT_SUPERBLOCK, iq1_kt, sizeof(float), 1)},
    {INTERLEAVED("ik_llama.cpp", 202, "Q4_0_R8", DEQUANT_BLOCK, q4_0_r8, 8, 2, 1)},
    {INTERLEAVED("ik_llama.cpp", 206, "Q5_0_R4", DEQUANT_BLOCK, q5_0_r4, 4, 6, 1)},
    {INTERLEAVED("ik_llama.cpp", 208, "Q8_0_R8", DEQUANT_BLOCK, q8_0_r8, 8, 8, 1)},
    {INTERLEAVED("ik_llama.cpp", 210, "Q2_K_R4", DEQUANT_SUPERBLOCK, q2_k_r4, 4, 10, 1)},
    {INTERLEAVED("ik_llama.cpp", 211, "Q3_K_R4", DEQUANT_SUPERBLOCK, q3_k_r4, 4, 11, 1)},
    {INTERLEAVED("ik_llama.cpp", 212, "Q4_K_R4", DEQUANT_SUPERBLOCK, q4_k_r4, 4, 12, 1)},
    {INTERLEAVED("ik_llama.cpp", 213, "Q5_K_R4", DEQUANT_SUPERBLOCK, q5_k_r4, 4, 13, 1)},
    {INTERLEAVED("ik_llama.cpp", 214, "Q6_K_R4", DEQUANT_SUPERBLOCK, q6_k_r4, 4, 14, 1)},
    {INTERLEAVED("ik_llama.cpp", 216, "IQ2_XXS_R4", DEQUANT_SUPERBLOCK, iq2_xxs_r4, 4, 16, 1)},
    {INTERLEAVED("ik_llama.cpp", 217, "IQ2_XS_R4", DEQUANT_SUPERBLOCK, iq2_xs_r4, 4, 17, 1)},
    {INTERLEAVED("ik_llama.cpp", 218, "IQ3_XXS_R4", DEQUANT_SUPERBLOCK, iq3_xxs_r4, 4, 18, 1)},
    {IK(219, "IQ1_S_R4", DEQUANT_BLOCK, iq1_s_r4, sizeof(uint16_t), 4)},
    {INTERLEAVED("ik_llama.cpp", 220, "IQ4_NL_R4", DEQUANT_BLOCK, iq4_nl_r4, 4, 20, 1)},
    {INTERLEAVED("ik_llama.cpp", 221, "IQ3_S_R4", DEQUANT_SUPERBLOCK, iq3_s_r4, 4, 21, 1)},
    {INTERLEAVED("ik_llama.cpp", 222, "IQ2_S_R4", DEQUANT_SUPERBLOCK, iq2_s_r4, 4, 22, 1)},
    {INTERLEAVED("ik_llama.cpp", 223, "IQ4_XS_R8", DEQUANT_SUPERBLOCK, iq4_xs_r8, 8, 23, 1)},
    {IK(229, "IQ1_M_R4", DEQUANT_BLOCK, iq1_m_r4, sizeof(uint16_t), 4)},
    {INTERLEAVED("ik_llama.cpp", 230, "BF16_R16", 2, bf16_r16, 16, 30, 2)},
    {IK(233, "Q6_0_R4", DEQUANT_BLOCK, q6_0_r4, 0, 4)},
    {IK(335, "IQ2_BN_R4", DEQUANT_BN_BLOCK, iq2_bn_r4, sizeof(float), 4)},
    {IK(337, "IQ2_K_R4", DEQUANT_SUPERBLOCK, iq2_k_r4, 0, 4)},
    {IK(338, "IQ3_K_R4", DEQUANT_SUPERBLOCK, iq3_k_r4, 0, 4)},
    {IK(339, "IQ4_K_R4", DEQUANT_SUPERBLOCK, iq4_k_r4, 0, 4)},
    {IK(340, "IQ5_K_R4", DEQUANT_SUPERBLOCK, iq5_k_r4, 0, 4)},
    {IK(344, "IQ4_KS_R4", DEQUANT_SUPERBLOCK, iq4_ks_r4, sizeof(float), 4)},
    {IK(352, "IQ5_KS_R4", DEQUANT_SUPERBLOCK, iq5_ks_r4, sizeof(float), 4)},
    {INTERLEAVED("ik_llama.cpp", 353, "MXFP4_R8", DEQUANT_BLOCK, mxfp4_r8, 8, 39, 1),
     .has_nan_scale = dequant_mxfp4_r8_has_nan_scale},
    {INTERLEAVED("ik_llama.cpp", 397, "Q8_K_R16", DEQUANT_SUPERBLOCK, q8_k_r16, 16, 8, 8)},
    {IK(398, "Q8_KV_R8", DEQUANT_BLOCK, q8_kv_r8, sizeof(float), 8)},
    {INTERLEAVED("ik_llama.cpp", 399, "Q8_K_R8", DEQUANT_SUPERBLOCK, q8_k_r8, 8, 8, 8)},
};

/* By era and id. */
static const struct dequant_type old[] = {
    {OLD(2, 0, "Q4_0", DEQUANT_BLOCK, old_q4_0, era0_q4_0)},
    {OLD(3, 0, "Q4_1", DEQUANT_BLOCK, old_q4_1, era0_q4_1)},
    {OLD(4, 0, "Q4_2", DEQUANT_HALF_BLOCK, old_q4_2, era0_q4_2)},
    {OLD(5, 0, "Q4_3", DEQUANT_HALF_BLOCK, old_q4_3, era0_q4_3)},
    {OLD(6, 0, "Q5_0", DEQUANT_BLOCK, q5_0, era0_q5_0)},
    {OLD(7, 0, "Q5_1", DEQUANT_BLOCK, q5_1, era0_q5_1)},
    {OLD(8, 0, "Q8_0", DEQUANT_BLOCK, old_q8_0, old_q8_0)},
    {OLD(2, 1, "Q4_0", DEQUANT_BLOCK, old_q4_0, era1_q4_0)},
    {OLD(3, 1, "Q4_1", DEQUANT_BLOCK, old_q4_1, era1_q4_1)},
    {OLD(8, 1, "Q8_0", DEQUANT_BLOCK, old_q8_0, old_q8_0)},
};

/*
 * The size of a TL2 tensor: three elements take five bits; in 256 of each row, two take four; the
 * tail follows. Source: ggml_nbytes() of BitNet's llama.cpp.
 */
static int tl2_bytes(uint64_t row_elements, uint64_t n_rows, uint64_t *n_bytes)
{
    const uint64_t tail_bytes = 32;
    uint64_t n_threes, n_pairs;

    if (row_elements < 256)
        return -EINVAL;
    if (__builtin_mul_overflow(row_elements - 256, n_rows, &n_threes) ||
        __builtin_mul_overflow(256, n_rows, &n_pairs) || n_threes > INT64_MAX / 2 ||
        n_pairs > INT64_MAX / 2)
        return -EOVERFLOW;
    *n_bytes = n_threes / 3 * 5 / 8 + n_pairs / 2 * 4 / 8;
    *n_bytes = (*n_bytes + tail_bytes - 1) / tail_bytes * tail_bytes + tail_bytes;
    return 0;
}

#define SEP_2024 "2024-09-09"
#define OCT_2024 "2024-10-25"
#define JAN_2025 "2025-01-27"
#define JUN_2025 "2025-06-18"

/*
 * The other candidates for ids, by id. A name ends in _OLD if ik_llama.cpp gave it another layout
 * later. Sources: enum ggml_type and the history of ik_llama.cpp, of BitNet's llama.cpp (branch
 * merge-dev), of PrismML's (Q1_0 and Q2_0 before they came to ggml) and of llama-turboquant.
 */
static const struct dequant_type other[] = {
    {OLD_IK(SEP_2024, 34, "IQ1_BN_OLD", DEQUANT_BN_BLOCK, iq1_bn, 0, 1, KERNELS(bare_iq1_bn)),
     PLAIN(bare_iq1_bn, 42, 1)},
    {OLD_IK(SEP_2024, 35, "IQ2_BN_OLD", DEQUANT_BN_BLOCK, iq2_bn, 0, 1, KERNELS(bare_iq2_bn)),
     PLAIN(bare_iq2_bn, 42, 1)},
    {INTERLEAVED("ggml", 36, "IQ4_NL_4_4", DEQUANT_BLOCK, iq4_nl_4_4, 4, 20, 1)},
    {OLD_IK(SEP_2024, 37, "IQ2_K_OLD", DEQUANT_SUPERBLOCK, iq2_k, 0, 1, KERNELS(old_iq2_k)),
     D(iq2_k)},
    {FORK("BitNet", 38, "TL1", 4, tl1, 0, 1), .tail_bytes = 32},
    {OLD_IK(SEP_2024, 38, "IQ3_K", DEQUANT_SUPERBLOCK, iq3_k, 0, 1, KERNELS(iq3_k)), D(iq3_k)},
    {FORK("BitNet", 39, "TL2", 1, tl2, 0, 1), .rows_bytes = tl2_bytes},
    {OLD_IK(SEP_2024, 39, "IQ4_K", DEQUANT_SUPERBLOCK, iq4_k, 0, 1, KERNELS(iq4_k)), D(iq4_k)},
    {FORK("PrismML", 40, "Q1_0_G32", DEQUANT_BLOCK, q1_0_g32, 0, 1), .decode = KERNELS(q1_0_g32),
     D(q1_0_g32), PLAIN(q1_0_g32, 2, 1)},
    {OLD_IK(SEP_2024, 40, "IQ5_K", DEQUANT_SUPERBLOCK, iq5_k, 0, 1, KERNELS(iq5_k)), D(iq5_k)},
    {FORK("llama-turboquant", 41, "TQ3_0", DEQUANT_BLOCK, tq3_0, 0, 1), .decode = REFERENCE(tq3_0)},
    {OLD_IK(SEP_2024, 41, "IQ6_K", DEQUANT_SUPERBLOCK, iq6_k, 0, 1, KERNELS(iq6_k)), D(iq6_k)},
    {FORK("PrismML", 42, "PQ2_0", DEQUANT_PRISM_BLOCK, pq2_0, 0, 1), .decode = KERNELS(pq2_0),
     D(pq2_0), PLAIN(pq2_0, 42, 2)},
    {OLD_IK(SEP_2024, 42, "IQ2_TN", DEQUANT_SUPERBLOCK, iq2_tn, 0, 1, KERNELS(iq2_tn)),
     PLAIN(iq2_tn, 35, 1)},
    {OLD_IK(OCT_2024, 134, "IQ1_BN_OLD", DEQUANT_BN_BLOCK, iq1_bn, 0, 1, KERNELS(bare_iq1_bn)),
     PLAIN(bare_iq1_bn, 42, 1)},
    {OLD_IK(OCT_2024, 135, "IQ2_BN_OLD", DEQUANT_BN_BLOCK, iq2_bn, 0, 1, KERNELS(bare_iq2_bn)),
     PLAIN(bare_iq2_bn, 42, 1)},
    {OLD_IK("2024-10-13", 137, "IQ2_K_OLD", DEQUANT_SUPERBLOCK, iq2_k, 0, 1, KERNELS(old_iq2_k)),
     D(iq2_k)},
    {OLD_IK(OCT_2024, 142, "IQ2_TN", DEQUANT_SUPERBLOCK, row_iq2_tn, sizeof(float), 1,
            KERNELS(row_iq2_tn))},
    {OLD_IK(OCT_2024, 143, "IQ1_TN", DEQUANT_BN_BLOCK, iq1_bn, sizeof(uint16_t), 1,
            KERNELS(iq1_bn))},
    {OLD_IK(JUN_2025, 153, "IQ2_KT_OLD", DEQUANT_SUPERBLOCK, iq2_kt, sizeof(float), 1,
            REFERENCE(old_iq2_kt))},
    {OLD_IK(JUN_2025, 154, "IQ3_KT_OLD", DEQUANT_SUPERBLOCK, iq3_kt, sizeof(float), 1,
            REFERENCE(old_iq3_kt))},
    {OLD_IK(JUN_2025, 155, "IQ4_KT_OLD", DEQUANT_SUPERBLOCK, iq4_kt, 2 * sizeof(float), 1,
            REFERENCE(old_iq4_kt))},
    {OLD_IK(JAN_2025, 202, "Q4_0_R4", DEQUANT_BLOCK, q4_0_r4, 0, 4, KERNELS(q4_0_r4)),
     PLAIN(q4_0_r4, 2, 1)},
    {OLD_IK(JAN_2025, 208, "Q8_0_R4", DEQUANT_BLOCK, q8_0_r4, 0, 4, KERNELS(q8_0_r4)),
     PLAIN(q8_0_r4, 8, 1)},
    {OLD_IK(JAN_2025, 223, "IQ4_XS_R4", DEQUANT_SUPERBLOCK, iq4_xs_r4, 0, 4, KERNELS(iq4_xs_r4)),
     PLAIN(iq4_xs_r4, 23, 1)},
};

size_t dequant_type_count(void)
{
    return COUNT(current);
}

size_t dequant_old_type_count(void)
{
    return COUNT(old);
}

size_t dequant_other_type_count(void)
{
    return COUNT(other);
}

size_t dequant_row_count(void)
{
    return COUNT(current) + COUNT(old) + COUNT(other);
}

const struct dequant_type *dequant_type_at(size_t index)
{
    if (index < COUNT(current))
        return &current[index];
    index -= COUNT(current);
    if (index < COUNT(old))
        return &old[index];
    index -= COUNT(old);
    assert(index < COUNT(other));
    return &other[index];
}

/* The table starts at id 0 and a row lies at or before the index that is its id. */
const struct dequant_type *dequant_type_by_id(uint32_t id)
{
    size_t index = id < COUNT(current) ? id : COUNT(current) - 1;

    while (current[index].id > id)
        index--;
    return current[index].id == id ? &current[index] : NULL;
}

const struct dequant_type *dequant_type_of_era(uint32_t id, uint32_t era)
{
    for (size_t i = 0; i < COUNT(old); i++) {
        if (old[i].id == id && old[i].era == era)
            return &old[i];
    }
    return dequant_type_by_id(id);
}

const struct dequant_type *dequant_candidate_at(uint32_t id, size_t index)
{
    if (index == 0)
        return dequant_type_by_id(id);
    for (size_t i = 0; i < COUNT(other); i++) {
        if (other[i].id == id && --index == 0)
            return &other[i];
    }
    return NULL;
}

const struct dequant_type *dequant_candidate_by_name(uint32_t id, const char *name)
{
    const struct dequant_type *type;

    for (size_t i = 0; (type = dequant_candidate_at(id, i)); i++) {
        if (strcasecmp(type->name, name) == 0)
            return type;
    }
    return NULL;
}
