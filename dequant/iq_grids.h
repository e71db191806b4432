/*
 * The tables of the IQ types, part of those formats. Source: the tables published in ggml's
 * ggml-common.h.
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
