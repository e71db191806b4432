/* Pseudo-random blocks of every type, and what they decode to. */
#ifndef GGUFS_TESTS_RANDOM_BLOCKS_H
#define GGUFS_TESTS_RANDOM_BLOCKS_H

#include "dequant/types.h"

/* Enough elements that nearly every entry of the largest grid is used. */
#define ELEMENTS 65536

/* The largest type in bytes per element is 8 bytes wide. */
#define MAX_BYTES ((ELEMENTS + 256) * 8)

enum scale { NO_SCALE, F16_SCALE, TWO_F16_SCALES, F32_SCALE, TWO_F32_SCALES, SPLIT_F16_SCALE };

/*
 * What each row of the table must hold and do. The hashes are FNV-1a (64 bits) and were not made
 * with the code under test:
 *
 * - `values`, of the floats that make_blocks() decodes to, is made with the dequantize_row_*
 *   functions of ggml at commit d99724f2b141fed9e1a9f402213506c081433465, F16 and BF16 with its
 *   scalar conversions; integers, F64 and Q8_1 (d * q), which ggml does not convert, by definition.
 * - `swapped`, of the same blocks in the other byte order, is made by swapping the members of
 *   ggml's own block structs.
 *
 * - `values` of the old layouts is made with NumPy after the pictures in dequant/old_blocks.h;
 * files of their time confirm it, where there are fixtures. Nobody has them in the other byte
 * order.
 *
 * - `values` of the types with row headers or interleaved rows is that of the rows of a group, one
 *   after the other, with the headers of make_headers(). It is made with NumPy after the pictures
 * in dequant/ik_blocks.h; tensors that ik_llama.cpp made confirm it, where there are fixtures.
 *
 * The removed types have no decoder, and so no hash.
 */
struct expectation {
    uint32_t id, era;
    const char *name;
    uint32_t block_elements;
    uint32_t block_bytes;
    uint32_t row_header_bytes; /* 0, 2 for an f16 scale, 4 for a float */
    uint32_t interleave_rows;
    enum scale scale;
    uint16_t scale_offset; /* bytes; a second scale, or that of the next row, follows the first */
    uint64_t values;
    uint64_t swapped;
};

/* One row for each row of the type table, in its order. */
extern const struct expectation expectations[];
extern const size_t n_expectations;

/* The expectation of a row of the type table. Ends the program with a message if it has none. */
const struct expectation *expectation_of(const struct dequant_type *type);

/* SplitMix64 */
uint64_t next_random(uint64_t *state);

uint64_t fnv1a(const void *data, size_t n_bytes);

/* The hash of what `hash` is of and then these bytes. */
uint64_t fnv1a_more(uint64_t hash, const void *data, size_t n_bytes);

/* The number of stored blocks that make_blocks() makes, and the bytes of each. */
size_t blocks_for(const struct expectation *e);
size_t stride_of(const struct expectation *e);

/* Fills `to` with blocks_for(e) stored blocks of random bits and sane scales. */
void make_blocks(const struct expectation *e, uint8_t *to);

/* Fills `to` with the row headers of a group, with sane scales. Returns how many bytes they have.
 */
size_t make_headers(const struct expectation *e, uint8_t *to);

/* Fills `to` with rows of so many elements, in whole groups, made of the blocks and headers. */
void make_data(const struct expectation *e, uint8_t *to, size_t row_elements);

/* Sets the f16 scales of a block to these bits; of a type that has other scales, nothing. */
void set_scales(const struct expectation *e, uint8_t *block, const uint16_t halves[2]);

#endif
