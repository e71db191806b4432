/*
 * The tables of the IQ types, part of those formats. Source: the tables published in the
 * ggml-common.h of ggml and of ik_llama.cpp.
 *
 * A grid entry holds the values of a run of elements, a byte each, the first element in the lowest
 * byte. The bytes of the IQ2 and IQ3 grids are positive; IQ1's bytes are -1 (0xff), 0 and 1.
 */
#pragma once

#include <stdint.h>

extern const int8_t dequant_iq4_values[16]; /* IQ4_NL, IQ4_XS, types of ik_llama.cpp */

extern const uint64_t dequant_iq2_xxs_grid[256];
extern const uint64_t dequant_iq2_xs_grid[512];
extern const uint64_t dequant_iq2_s_grid[1024];

extern const uint32_t dequant_iq3_xxs_grid[256];
extern const uint32_t dequant_iq3_s_grid[512];

extern const uint64_t dequant_iq1_grid[2048]; /* IQ1_S and IQ1_M */

/* ---- The values of the codes of ik_llama.cpp's types ---- */

/* Values of the codes of 2 and 3 bits: [flag of the sub-block][code]. */
extern const int8_t dequant_iq2_k_values[2][4];
extern const int8_t dequant_iq3_k_values[2][8];

/* Values of the codes of 5 and 6 bits. The flag adds 2 to a value of IQ5_K, 1 to one of IQ6_K. */
extern const int8_t dequant_iq5_k_values[32];
extern const int8_t dequant_iq6_k_values[64];

/* IQ2_KL: a code stands for a pair of elements. [0] has the even element's value, [1] the odd's. */
extern const int8_t dequant_iq2_kl_values[2][32];
