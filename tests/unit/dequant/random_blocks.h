/* Pseudo-random blocks of every type, and the hashes of their decoded values. */
#pragma once

#include "dequant/types.h"

/* Enough elements to use nearly every entry of the largest grid. */
#define ELEMENTS 65536

/* Room for 16 interleaved rows of 16-bit numbers, the largest stored blocks. */
#define MAX_BYTES ((ELEMENTS + 256) * 16 * 2)

enum scale { NO_SCALE, F16_SCALE, TWO_F16_SCALES, F32_SCALE, TWO_F32_SCALES, SPLIT_F16_SCALE };

/*
 * Expected properties of a row of the type table. The sizes are from the format's documentation.
 * The hashes are 64-bit FNV-1a and were computed without the code under test:
 *
 * - `values` is the hash of the floats that the blocks of make_blocks() decode to. For types with
 *   row headers or interleaved rows, it covers all rows of a group, one after the other, with the
 *   headers of make_headers().
 * - `swapped` is the hash of the same blocks in the opposite byte order. For types without byte
 *   order (dequant_has_byte_order()), it is the hash of the blocks as they are.
 *
 * Sources of the hashes:
 *
 * - Types of ggml: its dequantize_row_* functions at commit
 * d99724f2b141fed9e1a9f402213506c081433465, its scalar conversions for F16 and BF16, and the
 * members of its block structs for the byte order. ggml does not convert integers, F64 and Q8_1 (d
 * * q), which follow from their definition.
 * - Old layouts: NumPy, from the pictures in dequant/old_blocks.h. Files of that time confirm them
 *   where the fixtures have any.
 * - Types of ik_llama.cpp: NumPy, from the pictures in dequant/ik_*blocks.h. Tensors that it made
 *   confirm them where the fixtures have any.
 * - Types that share an id with others: NumPy, from the sources of their programs.
 *
 * expected.py computes the hashes of a new type. Removed types have no decoder and so no hash.
 */
struct expectation {
    uint32_t id, era;
    const char *name;
    uint32_t block_elements;
    uint32_t block_bytes;
    enum scale scale;
    uint16_t scale_offset; /* in bytes; the next row's, then the second scales, follow the first */
    uint64_t values;
    uint64_t swapped;
};

/* One row per row of the type table, in the same order. */
extern const struct expectation expectations[];
extern const size_t n_expectations;

/*
 * Return the expectation for a row of the type table. Ends the program with a message if there is
 * none.
 */
const struct expectation *expectation_of(const struct dequant_type *type);

/* Return the row of the type table. */
const struct dequant_type *type_of(const struct expectation *e);

/* SplitMix64. */
uint64_t next_random(uint64_t *state);

uint64_t fnv1a(const void *data, size_t n_bytes);

/* Extend `hash`, the hash of some bytes, by further bytes. */
uint64_t fnv1a_more(uint64_t hash, const void *data, size_t n_bytes);

/* Return the number of stored blocks that make_blocks() makes, and the bytes of each. */
size_t blocks_for(const struct expectation *e);
size_t stride_of(const struct expectation *e);

/* Fill `to` with blocks_for(e) stored blocks of random bits and finite scales. */
void make_blocks(const struct expectation *e, uint8_t *to);

/* Fill `to` with the row headers of a group, or a tail, with finite scales. Returns their size. */
size_t make_headers(const struct expectation *e, uint8_t *to);

/* Fill `to` with a tensor of n_rows rows, whole groups, made of the blocks and headers. */
void make_data(const struct expectation *e, uint8_t *to, size_t row_elements, size_t n_rows);

/* Set the f16 scales of a block to these bits. Does nothing for types with other scales. */
void set_scales(const struct expectation *e, uint8_t *block, const uint16_t halves[2]);
