/* The table of a set: which types it has a kernel for. */
#include "dequant/kernels.h"
#include "dequant/kernels/simd.h"

#define KERNELS(ROW)                                                                               \
    ROW(0, f32)                                                                                    \
    ROW(1, f16)                                                                                    \
    ROW(2, q4_0)                                                                                   \
    ROW(3, q4_1)                                                                                   \
    ROW(6, q5_0)                                                                                   \
    ROW(7, q5_1)                                                                                   \
    ROW(8, q8_0)                                                                                   \
    ROW(9, q8_1)                                                                                   \
    ROW(10, q2_k)                                                                                  \
    ROW(11, q3_k)                                                                                  \
    ROW(12, q4_k)                                                                                  \
    ROW(13, q5_k)                                                                                  \
    ROW(14, q6_k)                                                                                  \
    ROW(15, q8_k)                                                                                  \
    ROW(16, iq2_xxs)                                                                               \
    ROW(17, iq2_xs)                                                                                \
    ROW(18, iq3_xxs)                                                                               \
    ROW(19, iq1_s)                                                                                 \
    ROW(20, iq4_nl)                                                                                \
    ROW(21, iq3_s)                                                                                 \
    ROW(22, iq2_s)                                                                                 \
    ROW(23, iq4_xs)                                                                                \
    ROW(24, i8)                                                                                    \
    ROW(25, i16)                                                                                   \
    ROW(26, i32)                                                                                   \
    ROW(27, i64)                                                                                   \
    ROW(28, f64)                                                                                   \
    ROW(29, iq1_m)                                                                                 \
    ROW(30, bf16)                                                                                  \
    ROW(34, tq1_0)                                                                                 \
    ROW(35, tq2_0)                                                                                 \
    ROW(39, mxfp4)                                                                                 \
    ROW(40, nvfp4)                                                                                 \
    ROW(41, q1_0)                                                                                  \
    ROW(42, q2_0)

#define OLD_KERNELS(ROW)                                                                           \
    ROW(2, 0, era0_q4_0)                                                                           \
    ROW(3, 0, era0_q4_1)                                                                           \
    ROW(4, 0, era0_q4_2)                                                                           \
    ROW(5, 0, era0_q4_3)                                                                           \
    ROW(6, 0, era0_q5_0)                                                                           \
    ROW(7, 0, era0_q5_1)                                                                           \
    ROW(8, 0, old_q8_0)                                                                            \
    ROW(2, 1, era1_q4_0)                                                                           \
    ROW(3, 1, era1_q4_1)

#define DECLARATION(id, type)          dequant_decode_fn SIMD_NAME(type);
#define OLD_DECLARATION(id, era, type) dequant_decode_fn SIMD_NAME(type);
#define TABLE_ROW(id, type)            {(id), DEQUANT_ERA, SIMD_NAME(type)},
#define OLD_TABLE_ROW(id, era, type)   {(id), (era), SIMD_NAME(type)},

KERNELS(DECLARATION)
OLD_KERNELS(OLD_DECLARATION)
dequant_encode_fn SIMD_NAME(to_f16), SIMD_NAME(to_bf16);
dequant_dot_fn SIMD_NAME(dot);
bool SIMD_NAME(is_supported)(void);

#define STRING_OF(name) #name
#define STRING(name)    STRING_OF(name)

const struct dequant_kernel_set SIMD_NAME(set) = {
    .name = STRING(DEQUANT_SET),
    .is_supported = SIMD_NAME(is_supported),
    .kernels =
        (const struct dequant_kernel[]){
            KERNELS(TABLE_ROW) OLD_KERNELS(OLD_TABLE_ROW) /* the same in both eras: */
            {8, 1, SIMD_NAME(old_q8_0)},
            {0, 0, NULL},
        },
    .to_f16 = SIMD_NAME(to_f16),
    .to_bf16 = SIMD_NAME(to_bf16),
    .dot = SIMD_NAME(dot),
};
