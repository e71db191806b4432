/*
 * The values of the codes of ik_llama.cpp's types, part of the formats. IQ4_KS and the types like
 * it use dequant_iq4_values (dequant/iq_grids.h). Source: the tables published in ik_llama.cpp's
 * ggml-common.h.
 */
#pragma once

#include <stdint.h>

/* Values of the codes of 2 and 3 bits: [flag of the sub-block][code]. */
extern const int8_t dequant_iq2_k_values[2][4];
extern const int8_t dequant_iq3_k_values[2][8];

/* Values of the codes of 5 and 6 bits. The flag adds 2 to a value of IQ5_K, 1 to one of IQ6_K. */
extern const int8_t dequant_iq5_k_values[32];
extern const int8_t dequant_iq6_k_values[64];

/* IQ2_KL: a code stands for a pair of elements. [0] has the even element's value, [1] the odd's. */
extern const int8_t dequant_iq2_kl_values[2][32];
