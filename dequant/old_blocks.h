/*
 * The block layouts from before GGUF that differ from today's; dequant/blocks.h explains the
 * pictures.
 *
 * Era 0: files of ggml, ggmf and ggjt 1, and quantization version 0. Era 1: ggjt 2, and
 * quantization version 1. Era 2: ggjt 3 and GGUF. In era 0 a byte holds two adjacent elements,
 * later two elements half a block apart.
 *
 * Source of the layouts: ggml.h and ggml.c of llama.cpp from March to June 2023.
 */
#pragma once

#include "dequant/blocks.h"

/* Elements in a Q4_2 or Q4_3 block. */
#define DEQUANT_HALF_BLOCK (DEQUANT_BLOCK / 2)

/*
 * Q4_0, value = (q - 8) * d
 *
 *   0..3  d as f32
 *   4+i   | 2i+1 : 4 bits | 2i : 4 |      in era 0                            i = 0..15
 *   4+i   | i+16 : 4 bits | i : 4 |       in era 1
 */
struct dequant_old_q4_0 {
    float d;
    uint8_t qs[DEQUANT_BLOCK / 2];
} DEQUANT_PACKED_BYTES(old_q4_0, 20);

/*
 * Q4_1, value = q * d + m
 *
 *   0..3  d as f32
 *   4..7  m as f32
 *   8+i   as 4+i of Q4_0
 */
struct dequant_old_q4_1 {
    float d;
    float m;
    uint8_t qs[DEQUANT_BLOCK / 2];
} DEQUANT_PACKED_BYTES(old_q4_1, 24);

/*
 * Q4_2, value = (q - 8) * d; era 0 only
 *
 *   0..1  d
 *   2+i   | 2i+1 : 4 bits | 2i : 4 |                                          i = 0..7
 */
struct dequant_old_q4_2 {
    uint16_t d;
    uint8_t qs[DEQUANT_HALF_BLOCK / 2];
} DEQUANT_PACKED_BYTES(old_q4_2, 10);

/*
 * Q4_3, value = q * d + m; era 0 only
 *
 *   0..1  d
 *   2..3  m
 *   4+i   | 2i+1 : 4 bits | 2i : 4 |                                          i = 0..7
 */
struct dequant_old_q4_3 {
    uint16_t d;
    uint16_t m;
    uint8_t qs[DEQUANT_HALF_BLOCK / 2];
} DEQUANT_PACKED_BYTES(old_q4_3, 12);

/*
 * Q5_0 and Q5_1 of era 0 have today's structs, dequant_q5_0 and dequant_q5_1. Bit k of the high
 * bits belongs to element k as it does today, but the low bits are
 *
 *   +i    | 2i+1 : 4 bits | 2i : 4 |                                          i = 0..15
 */

/*
 * Q8_0, value = q * d; of eras 0 and 1
 *
 *   0..3  d as f32
 *   4+i   | i : 8 bits, signed |                                              i = 0..31
 */
struct dequant_old_q8_0 {
    float d;
    int8_t qs[DEQUANT_BLOCK];
} DEQUANT_PACKED_BYTES(old_q8_0, 36);
