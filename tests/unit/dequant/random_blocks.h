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
 * The removed types have no decoder, and so no hash.
 */
struct expectation {
    uint32_t id, era;
    const char *name;
    uint32_t block_elements;
    uint32_t block_bytes;
    enum scale scale;
    uint16_t scale_offset; /* bytes; a second scale follows the first */
    uint64_t values;
    uint64_t swapped;
};

/* One row for each row of the type table, in its order. */
extern const struct expectation expectations[];
extern const size_t n_expectations;

/* The expectation of a row, which must have one. */
const struct expectation *expectation_of(const struct dequant_type *type);

/* SplitMix64 */
uint64_t next_random(uint64_t *state);

uint64_t fnv1a(const void *data, size_t n_bytes);

/* The number of blocks that make_blocks() makes. */
size_t blocks_for(const struct expectation *e);

/* Fills `to` with blocks_for(e) blocks of random bits and sane scales. */
void make_blocks(const struct expectation *e, uint8_t *to);

/* Sets the f16 scales of a block to these bits; of a type that has other scales, nothing. */
void set_scales(const struct expectation *e, uint8_t *block, const uint16_t halves[2]);

#endif
