/*
 * The tensor types: one table row per type holds everything that ggufs knows about it.
 *
 * This folder turns bytes into numbers and knows neither files nor FUSE. All data is little-endian
 * and may start at any address. Nothing here allocates or blocks, and but for the choice of kernels
 * nothing keeps state: every function may be called from any thread.
 */
#ifndef GGUFS_DEQUANT_TYPES_H
#define GGUFS_DEQUANT_TYPES_H

#include <stddef.h>
#include <stdint.h>

/*
 * One run of equal fields in a block, in the order in which they lie in memory. A type's map is a
 * list of such runs that ends with {0, 0}; the sum of width_bytes * count is its block_bytes.
 */
struct dequant_field {
    uint8_t width_bytes; /* 1, 2, 4 or 8 */
    uint16_t count;
};

/*
 * Decodes n_blocks blocks to n_blocks * block_elements floats, bit for bit as ggml converts them.
 * `blocks` holds n_blocks * block_bytes bytes at any alignment; `out` is aligned for float and does
 * not overlap it.
 */
typedef void dequant_decode_fn(const void *restrict blocks, float *restrict out, size_t n_blocks);

struct dequant_type {
    uint32_t id;             /* ggml_type, the number that GGUF files hold */
    uint32_t era;            /* of the layout, see dequant/old_blocks.h; DEQUANT_ERA today */
    const char *name;        /* as ggml prints it in capitals: "F16", "Q4_K", "IQ2_XXS" */
    uint32_t block_elements; /* elements in a block; 1 for the plain number types */
    uint32_t block_bytes;    /* bytes in a block */

    /*
     * The reference; dequant_decode() in dequant/kernels.h is faster. NULL for a type whose size is
     * known but whose values are not: its support was removed from ggml.
     */
    dequant_decode_fn *decode;

    const struct dequant_field *fields; /* the byte-order map; never NULL */
};

/* The id of plain floats, of which the values are what is stored. */
#define DEQUANT_F32 0u

/* The era of today's layouts. */
#define DEQUANT_ERA 2u

/* The number of today's types, and of the old layouts, which lie behind them in the table. */
size_t dequant_type_count(void);
size_t dequant_old_type_count(void);

/*
 * Row `index` of the table: today's types in the order of their ids, then the old layouts by era
 * and id. `index` must be below the sum of the counts.
 */
const struct dequant_type *dequant_type_at(size_t index);

/* The row of a ggml type id as GGUF files have it; NULL if the id is unknown. */
const struct dequant_type *dequant_type_by_id(uint32_t id);

/*
 * The row of the id in files of that era: an old layout, or today's where it was the same; NULL if
 * there was no such type.
 */
const struct dequant_type *dequant_type_of_era(uint32_t id, uint32_t era);

/*
 * The type of today that holds the same values exactly: the type itself; Q5_0 and Q5_1 for those of
 * era 0, which only have their elements in another order; else F32, for today's blocks have scales
 * of 16 bits where old ones have 32, or more elements to a scale.
 */
const struct dequant_type *dequant_modern(const struct dequant_type *type);

/*
 * Copies n_blocks blocks of era 0 to `out` as blocks of dequant_modern(), which must not be F32.
 * `blocks` and `out` hold n_blocks * block_bytes bytes each and do not overlap.
 */
void dequant_modernize_blocks(const struct dequant_type *type, const void *restrict blocks,
                              void *restrict out, size_t n_blocks);

/*
 * Copies n_blocks big-endian blocks to `out` in little-endian order, field by field. `blocks` and
 * `out` hold n_blocks * block_bytes bytes each, at any alignment, and do not overlap.
 */
void dequant_swap_blocks(const struct dequant_type *type, const void *restrict blocks,
                         void *restrict out, size_t n_blocks);

#endif
