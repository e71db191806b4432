/*
 * The values that the codes of ik_llama.cpp's types stand for, part of those formats. IQ4_KS and
 * its kin use dequant_iq4_values (dequant/iq_grids.h). Source: the tables published in
 * ik_llama.cpp's ggml-common.h.
 */
#ifndef GGUFS_DEQUANT_IK_TABLES_H
#define GGUFS_DEQUANT_IK_TABLES_H

#include <stdint.h>

/* Of two and three bits, by the flag of the sub-block, then by code. */
extern const int8_t dequant_iq2_k_values[2][4];
extern const int8_t dequant_iq3_k_values[2][8];

/* Of five and six bits; a flag adds 2 or 1. */
extern const int8_t dequant_iq5_k_values[32];
extern const int8_t dequant_iq6_k_values[64];

/* Of IQ2_KL: the values of the even and of the odd element of a pair, by the code of the pair. */
extern const int8_t dequant_iq2_kl_values[2][32];

#endif
