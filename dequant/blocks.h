/*
 * The blocks of ggml's types, one packed struct per type. Other files: dequant/iq_blocks.h (IQ
 * types), dequant/ik_*blocks.h (ik_llama.cpp), dequant/old_blocks.h (layouts from before GGUF).
 *
 * The structs are packed, so a pointer to one may hold any address. Numbers wider than a byte are
 * little-endian, and the host must be little-endian too.
 *
 * Beside each struct stands a picture of its bits: the byte's offset in the block, then its bit
 * fields, the most significant on the left. A bare number in a field is the element of the block
 * that the field belongs to. `d` and `m` are scale and offset as f16, `q` is the integer that an
 * element's bits form; "low" and "high" name the parts of an integer that is stored in two places.
 *
 * Source of the layouts: ggml-common.h and ggml-quants.c of ggml.
 */
#pragma once

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the decoders need a little-endian host");
static_assert(sizeof(float) == 4 && sizeof(double) == 8, "the decoders need IEEE 754 numbers");

#define DEQUANT_PACKED __attribute__((packed))

/* Ends the struct dequant_LAYOUT, a block of n_bytes. */
#define DEQUANT_PACKED_BYTES(layout, n_bytes)                                                      \
    DEQUANT_PACKED;                                                                                \
    static_assert(sizeof(struct dequant_##layout) == (n_bytes), #layout " has another size")

/* Elements in a block. */
enum {
    DEQUANT_NUMBER = 1,       /* the plain number types */
    DEQUANT_BLOCK = 32,       /* the types that have one scale per block */
    DEQUANT_SUPERBLOCK = 256, /* the K, IQ and ternary types, with scales inside the block */
    DEQUANT_Q1_0_BLOCK = 128,
    DEQUANT_Q2_0_BLOCK = 64,
    DEQUANT_NVFP4_BLOCK = 64,
};

/* The parts of a superblock of 16 and of 32 elements. */
#define DEQUANT_N_16 (DEQUANT_SUPERBLOCK / 16)
#define DEQUANT_N_32 (DEQUANT_SUPERBLOCK / 32)

/* ---- Plain numbers: a block is one number ---- */

/* byte 0..3  | sign 1 | exponent 8 | fraction 23 |     kept as bits, so that no NaN changes */
struct dequant_f32 {
    uint32_t bits;
} DEQUANT_PACKED_BYTES(f32, 4);

/* byte 0..1  | sign 1 | exponent 5 | fraction 10 | */
struct dequant_f16 {
    uint16_t bits;
} DEQUANT_PACKED_BYTES(f16, 2);

/* byte 0..1  | sign 1 | exponent 8 | fraction 7 |     the upper half of an f32 */
struct dequant_bf16 {
    uint16_t bits;
} DEQUANT_PACKED_BYTES(bf16, 2);

/* byte 0..7  | sign 1 | exponent 11 | fraction 52 | */
struct dequant_f64 {
    double value;
} DEQUANT_PACKED_BYTES(f64, 8);

/* byte 0  | two's complement 8 | */
struct dequant_i8 {
    int8_t value;
} DEQUANT_PACKED_BYTES(i8, 1);

/* byte 0..1  | two's complement 16 | */
struct dequant_i16 {
    int16_t value;
} DEQUANT_PACKED_BYTES(i16, 2);

/* byte 0..3  | two's complement 32 | */
struct dequant_i32 {
    int32_t value;
} DEQUANT_PACKED_BYTES(i32, 4);

/* byte 0..7  | two's complement 64 | */
struct dequant_i64 {
    int64_t value;
} DEQUANT_PACKED_BYTES(i64, 8);

/* ---- One scale per block ---- */

/*
 * Q1_0, value = q ? d : -d
 *
 *   0..1  d
 *   2+i   | 8i+7 | 8i+6 | 8i+5 | 8i+4 | 8i+3 | 8i+2 | 8i+1 | 8i |             i = 0..15
 */
struct dequant_q1_0 {
    uint16_t d;
    uint8_t qs[DEQUANT_Q1_0_BLOCK / 8];
} DEQUANT_PACKED_BYTES(q1_0, 18);

/*
 * Q2_0, value = (q - 1) * d
 *
 *   0..1  d
 *   2+i   | 4i+3 : 2 bits | 4i+2 : 2 | 4i+1 : 2 | 4i : 2 |                    i = 0..15
 */
struct dequant_q2_0 {
    uint16_t d;
    uint8_t qs[DEQUANT_Q2_0_BLOCK / 4];
} DEQUANT_PACKED_BYTES(q2_0, 18);

/*
 * Q4_0, value = (q - 8) * d
 *
 *   0..1  d
 *   2+i   | i+16 : 4 bits | i : 4 |                                           i = 0..15
 */
struct dequant_q4_0 {
    uint16_t d;
    uint8_t qs[DEQUANT_BLOCK / 2];
} DEQUANT_PACKED_BYTES(q4_0, 18);

/*
 * Q4_1, value = q * d + m
 *
 *   0..1  d
 *   2..3  m
 *   4+i   | i+16 : 4 bits | i : 4 |                                           i = 0..15
 */
struct dequant_q4_1 {
    uint16_t d;
    uint16_t m;
    uint8_t qs[DEQUANT_BLOCK / 2];
} DEQUANT_PACKED_BYTES(q4_1, 20);

/*
 * Q5_0, value = (q - 16) * d
 *
 *   0..1  d
 *   2+k   | 8k+7 | 8k+6 | 8k+5 | 8k+4 | 8k+3 | 8k+2 | 8k+1 | 8k |  high bit   k = 0..3
 *   6+i   | i+16 : 4 bits | i : 4 |                                low bits   i = 0..15
 */
struct dequant_q5_0 {
    uint16_t d;
    uint8_t qh[DEQUANT_BLOCK / 8];
    uint8_t qs[DEQUANT_BLOCK / 2];
} DEQUANT_PACKED_BYTES(q5_0, 22);

/*
 * Q5_1, value = q * d + m
 *
 *   0..1  d
 *   2..3  m
 *   4+k   | 8k+7 | 8k+6 | 8k+5 | 8k+4 | 8k+3 | 8k+2 | 8k+1 | 8k |  high bit   k = 0..3
 *   8+i   | i+16 : 4 bits | i : 4 |                                low bits   i = 0..15
 */
struct dequant_q5_1 {
    uint16_t d;
    uint16_t m;
    uint8_t qh[DEQUANT_BLOCK / 8];
    uint8_t qs[DEQUANT_BLOCK / 2];
} DEQUANT_PACKED_BYTES(q5_1, 24);

/*
 * Q8_0, value = q * d
 *
 *   0..1  d
 *   2+i   | i : 8 bits, signed |                                              i = 0..31
 */
struct dequant_q8_0 {
    uint16_t d;
    int8_t qs[DEQUANT_BLOCK];
} DEQUANT_PACKED_BYTES(q8_0, 34);

/*
 * Q8_1, value = q * d
 *
 *   0..1  d
 *   2..3  s, d times the sum of all q, for dot products
 *   4+i   | i : 8 bits, signed |                                              i = 0..31
 */
struct dequant_q8_1 {
    uint16_t d;
    uint16_t s;
    int8_t qs[DEQUANT_BLOCK];
} DEQUANT_PACKED_BYTES(q8_1, 36);

/* ---- K types: a superblock of 8 or 16 sub-blocks, each with a scale of its own ---- */

/*
 * Q2_K, value = d * scale * q - m * min; sub-block s holds the elements 16s to 16s+15
 *
 *   s        | min s : 4 bits | scale s : 4 |                                 s = 0..15
 *   16+32h+l | 128h+96+l : 2 | 128h+64+l : 2 | 128h+32+l : 2 | 128h+l : 2 |   h = 0..1, l = 0..31
 *   80..81   d
 *   82..83   m
 */
struct dequant_q2_k {
    uint8_t scales[DEQUANT_SUPERBLOCK / 16];
    uint8_t qs[DEQUANT_SUPERBLOCK / 4];
    uint16_t d;
    uint16_t m;
} DEQUANT_PACKED_BYTES(q2_k, 84);

/*
 * Q3_K, value = d * (scale - 32) * (q - 4); sub-block s holds the elements 16s to 16s+15
 *
 *   l        | 224+l | 192+l | 160+l | 128+l | 96+l | 64+l | 32+l | l |   high bit   l = 0..31
 *   32+32h+l | 128h+96+l : 2 | 128h+64+l : 2 | 128h+32+l : 2 | 128h+l : 2 |   low    h = 0..1
 *   96+k     | scale k+8 : 4, low | scale k : 4, low |                               k = 0..7
 *   104+k    | scale k+12 : 2, high | scale k+8 : 2 | scale k+4 : 2 | scale k : 2 |  k = 0..3
 *   108..109 d
 */
struct dequant_q3_k {
    uint8_t qh[DEQUANT_SUPERBLOCK / 8];
    uint8_t qs[DEQUANT_SUPERBLOCK / 4];
    uint8_t scales_low[8];
    uint8_t scales_high[4];
    uint16_t d;
} DEQUANT_PACKED_BYTES(q3_k, 110);

/*
 * The eight scales and eight minima of Q4_K and Q5_K, 6 bits each
 *
 *   k    | scale k+4 : 2, high | scale k : 6 |                                k = 0..3
 *   4+k  | min k+4 : 2, high   | min k : 6 |
 *   8+k  | min k+4 : 4, low    | scale k+4 : 4, low |
 */
struct dequant_k_scales {
    uint8_t scales[4];
    uint8_t mins[4];
    uint8_t low[4];
} DEQUANT_PACKED;

/*
 * Q4_K, value = d * scale * q - m * min; sub-block s holds the elements 32s to 32s+31
 *
 *   0..1     d
 *   2..3     m
 *   4..15    scales and minima, above
 *   16+32p+l | 64p+32+l : 4 | 64p+l : 4 |                                     p = 0..3, l = 0..31
 */
struct dequant_q4_k {
    uint16_t d;
    uint16_t m;
    struct dequant_k_scales scales;
    uint8_t qs[DEQUANT_SUPERBLOCK / 2];
} DEQUANT_PACKED_BYTES(q4_k, 144);

/*
 * Q5_K, value = d * scale * q - m * min; sub-block s holds the elements 32s to 32s+31
 *
 *   0..1     d
 *   2..3     m
 *   4..15    scales and minima, above
 *   16+l     | 224+l | 192+l | 160+l | 128+l | 96+l | 64+l | 32+l | l |       high bit
 *   48+32p+l | 64p+32+l : 4 | 64p+l : 4 |                                     p = 0..3, l = 0..31
 */
struct dequant_q5_k {
    uint16_t d;
    uint16_t m;
    struct dequant_k_scales scales;
    uint8_t qh[DEQUANT_SUPERBLOCK / 8];
    uint8_t qs[DEQUANT_SUPERBLOCK / 2];
} DEQUANT_PACKED_BYTES(q5_k, 176);

/*
 * Q6_K, value = d * scale * (q - 32); sub-block s holds the elements 16s to 16s+15
 *
 *   64h+i     | 128h+64+i : 4, low | 128h+i : 4, low |                        h = 0..1, i = 0..63
 *   128+32h+l | 128h+96+l : 2, high | 128h+64+l : 2 | 128h+32+l : 2 | 128h+l : 2 |   l = 0..31
 *   192+s     | scale s : 8 bits, signed |                                    s = 0..15
 *   208..209  d
 */
struct dequant_q6_k {
    uint8_t ql[DEQUANT_SUPERBLOCK / 2];
    uint8_t qh[DEQUANT_SUPERBLOCK / 4];
    int8_t scales[DEQUANT_SUPERBLOCK / 16];
    uint16_t d;
} DEQUANT_PACKED_BYTES(q6_k, 210);

/*
 * Q8_K, value = d * q
 *
 *   0..3     d as f32
 *   4+i      | i : 8 bits, signed |                                           i = 0..255
 *   260+2s.. | sum of q over the elements 16s to 16s+15 : 16, signed |        s = 0..15
 */
struct dequant_q8_k {
    float d;
    int8_t qs[DEQUANT_SUPERBLOCK];
    int16_t sums[DEQUANT_SUPERBLOCK / 16];
} DEQUANT_PACKED_BYTES(q8_k, 292);

/* ---- Ternary: the elements are -d, 0 and d ---- */

/*
 * TQ1_0, value = (q - 1) * d. A byte holds five base-3 digits, in `tail` four, as the fraction
 * byte / 256 = 0.q0 q1 q2 q3 q4 in base 3: multiplied by 3, the part above 256 is the next digit.
 *
 *   l      digits of l, 32+l, 64+l, 96+l, 128+l                               l = 0..31
 *   32+l   digits of 160+l, 176+l, 192+l, 208+l, 224+l                        l = 0..15
 *   48+l   digits of 240+l, 244+l, 248+l, 252+l                               l = 0..3
 *   52..53 d
 */
struct dequant_tq1_0 {
    uint8_t wide[32];
    uint8_t narrow[16];
    uint8_t tail[4];
    uint16_t d;
} DEQUANT_PACKED_BYTES(tq1_0, 54);

/*
 * TQ2_0, value = (q - 1) * d
 *
 *   32h+l  | 128h+96+l : 2 | 128h+64+l : 2 | 128h+32+l : 2 | 128h+l : 2 |     h = 0..1, l = 0..31
 *   64..65 d
 */
struct dequant_tq2_0 {
    uint8_t qs[DEQUANT_SUPERBLOCK / 4];
    uint16_t d;
} DEQUANT_PACKED_BYTES(tq2_0, 66);

/* ---- 4-bit floats: | sign | exponent 2 | fraction 1 |, values 0 0.5 1 1.5 2 3 4 6 and minus */

/*
 * MXFP4, value = 2^(e - 127) * e2m1
 *
 *   0    e
 *   1+i  | i+16 : 4 | i : 4 |                                                 i = 0..15
 */
struct dequant_mxfp4 {
    uint8_t e;
    uint8_t qs[DEQUANT_BLOCK / 2];
} DEQUANT_PACKED_BYTES(mxfp4, 17);

/*
 * NVFP4, value = scale * e2m1; sub-block s holds the elements 16s to 16s+15
 *
 *   s      | not used 1 | exponent 4 | fraction 3 |  scale s, a ue4m3         s = 0..3
 *   4+8s+i | 16s+8+i : 4 | 16s+i : 4 |                                        i = 0..7
 */
struct dequant_nvfp4 {
    uint8_t scales[DEQUANT_NVFP4_BLOCK / 16];
    uint8_t qs[DEQUANT_NVFP4_BLOCK / 16][8];
} DEQUANT_PACKED_BYTES(nvfp4, 36);

/* Nibble i of eight: the low halves of four bytes are nibbles 0 to 3, the high halves 4 to 7. */
static inline int dequant_far_nibble(const uint8_t bytes[4], size_t i)
{
    return (bytes[i % 4] >> (4 * (i / 4))) & 15;
}
