/* Rows of interleaved types as blocks of ggml's types. */
#include "dequant/deinterleave.h"
#include "dequant/slots.h"

#define DEFINE(unused, type, plain, n_plain, elements, header_bytes)                               \
    void dequant_deinterleave_##type(const void *restrict blocks, void *restrict out,              \
                                     size_t n_blocks, uint32_t index)                              \
    {                                                                                              \
        const struct dequant_##type *block = blocks;                                               \
        struct dequant_##plain(*to)[n_plain] = out;                                                \
                                                                                                   \
        for (size_t i = 0; i < n_blocks; i++)                                                      \
            type##_deinterleave(&block[i], index, to[i]);                                          \
    }

DEQUANT_INTERLEAVED(DEFINE, )
DEFINE(, iq4_nl_r4, iq4_nl, 1, DEQUANT_BLOCK, 0)
DEFINE(, q5_0_r4, q5_0, 1, DEQUANT_BLOCK, 0)
DEFINE(, bf16_r16, bf16, 2, 2, 0)
