/* Rows of interleaved types as blocks of ggml's types. */
#include "dequant/deinterleave.h"
#include "dequant/slots.h"

#define DEFINE(set, type, plain, n_plain, elements, header_bytes)                                  \
    DEQUANT_DEFINE_DEINTERLEAVER(type, plain, n_plain)

DEQUANT_INTERLEAVED(DEFINE, )
DEQUANT_DEFINE_DEINTERLEAVER(iq4_nl_r4, iq4_nl, 1)
DEQUANT_DEFINE_DEINTERLEAVER(q5_0_r4, q5_0, 1)
DEQUANT_DEFINE_DEINTERLEAVER(bf16_r16, bf16, 2)
