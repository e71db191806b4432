/*
 * The tensor types: a table with one row per type.
 *
 * This folder turns bytes into numbers and back, and knows neither files nor FUSE. All data is
 * little-endian and may start at any address. Nothing here allocates or blocks, and apart from the
 * choice of kernels (dequant/kernels.h) nothing keeps state: any thread may call any function.
 */
#pragma once

#include "dequant/forms.h"
#include "dequant/sets.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * One run of equal fields in a stored block, in the order in which they lie in memory. A type's
 * byte-order map is a list of these runs that ends with {0, 0}; the widths times the counts sum up
 * to dequant_stride_bytes().
 */
struct dequant_field {
    uint8_t width_bytes; /* 1, 2, 4 or 8 */
    uint16_t count;
};

/*
 * A decoder's arguments in addition to the blocks of a row; all zero for types without row headers,
 * interleaved rows and tail.
 */
struct dequant_row {
    const void *headers; /* of the group, or the tail; dequant_headers_bytes(), any alignment */
    uint32_t index;      /* of the row in its group, below interleave_rows */
};

/*
 * Decode n_blocks blocks of one row to n_blocks * block_elements floats, bit for bit as the type's
 * program (ggml for most types) decodes them. `blocks` holds n_blocks stored blocks, n_blocks *
 * dequant_stride_bytes() bytes, at any alignment. `out` is aligned for float and does not overlap
 * it.
 */
typedef void dequant_decode_fn(const void *restrict blocks, float *restrict out, size_t n_blocks,
                               struct dequant_row row);

/*
 * Encode n floats, a multiple of block_elements. `values` and `out`, which holds the blocks of n
 * elements, may have any alignment.
 *
 * To F16 and BF16: to nearest with ties to even. A number that is too large becomes an infinity; a
 * NaN keeps its sign and the upper part of its payload and becomes quiet.
 *
 * To Q8_0 and Q4_0: bit for bit as ggml's quantize_row_q8_0_ref() and quantize_row_q4_0_ref(),
 * compiled without fused multiply-add. Q8_0: d is the greatest magnitude / 127, and q = x * (1 /
 * d), to nearest with ties away from zero. Q4_0: d is the first number of the greatest magnitude /
 * -8, and q = x * (1 / d) + 8.5, truncated, at most 15. If d is 0 or 1 / d infinite, the block is
 * zeros. A block with an infinity or NaN, where ggml's result is undefined, decodes to NaNs. A d
 * beyond the range of f16 becomes an infinity.
 */
typedef void dequant_encode_fn(const void *restrict values, void *restrict out, size_t n);

/*
 * Add to out[c * out_stride + r] the dot product of row r of `w` (n_rows rows of the type, each
 * aligned for its numbers, w_stride_bytes from one to the next) and row c of `x` (n_columns rows of
 * floats, x_stride floats from one to the next), of n elements each. Defined to the bit: sum i % 16
 * gets the fused multiply-add of element i; the 16 sums are added in pairs, halving their number (i
 * and i + 8, i + 4, i + 2, i + 1). A product therefore depends neither on the CPU nor on the other
 * rows and columns of the call. `out` overlaps neither operand.
 */
typedef void dequant_dot_fn(const void *w, size_t w_stride_bytes, size_t n_rows, const float *x,
                            size_t x_stride, size_t n_columns, size_t n, float *out,
                            size_t out_stride);

/*
 * Copy row `index` of n_blocks stored blocks to `out`, as plain blocks. `blocks` and `out` have any
 * alignment and do not overlap.
 */
typedef void dequant_convert_fn(const void *restrict blocks, void *restrict out, size_t n_blocks,
                                uint32_t index);

/* Conversion of rows of an interleaved type to a plain type with the same values. */
struct dequant_plain {
    uint32_t id;       /* of the plain type, of today */
    uint32_t n_blocks; /* plain blocks that a block of the type becomes */

    dequant_convert_fn *convert[DEQUANT_SETS]; /* as `decode` of struct dequant_type */
};

/*
 * A tensor's data are its rows, ne[0] elements each, one after the other. A row is a header, which
 * most types lack, and blocks. A type with one scale for the whole tensor stores it in a tail after
 * the rows; it has neither headers nor interleaved rows.
 *
 * If interleave_rows is n > 1, groups of n rows are stored together: the n headers, then the stored
 * blocks. A stored block holds one block of each row of the group, mixed as the type's decoder
 * expects. In all other types, a stored block is a block. dequant/rows.h does the arithmetic.
 */
struct dequant_type {
    uint32_t id;               /* ggml_type, the number that GGUF files hold */
    uint32_t era;              /* of the layout, see dequant/old_blocks.h; DEQUANT_ERA today */
    const char *name;          /* as its program prints it, in capitals: "F16", "Q4_K", "IQ4_KS" */
    const char *program;       /* that assigned the id to this type: "ggml", "ik_llama.cpp" */
    const char *until;         /* the day on which it dropped or changed the layout; or NULL */
    uint32_t block_elements;   /* elements in a block; 1 for the plain number types */
    uint32_t block_bytes;      /* bytes of a block; of an interleaved type, its share per row */
    uint32_t row_header_bytes; /* bytes at the start of each row, 0 for most types */
    uint32_t interleave_rows;  /* rows stored together, 1 for most types */
    uint32_t tail_bytes;       /* bytes after the last row of the tensor, 0 for most types */
    bool is_in_ggml;           /* ggml has the type and its layout today, so llama.cpp loads it */

    /*
     * Computes the size of a tensor, for dequant_rows_bytes(), if the layout is not made of blocks;
     * otherwise NULL.
     */
    int (*rows_bytes)(uint64_t row_elements, uint64_t n_rows, uint64_t *n_bytes);

    const struct dequant_field *fields; /* the byte-order map of a stored block; never NULL */

    /*
     * Slots by kernel set; dequant/kernels.h calls the chosen set's. The scalar slot is the
     * reference, which is also used if a set's own slot is NULL. If the reference is NULL, the type
     * can't be decoded, encoded or multiplied without decoding.
     */
    dequant_decode_fn *decode[DEQUANT_SETS];
    dequant_encode_fn *encode[DEQUANT_SETS];
    dequant_dot_fn *dot[DEQUANT_SETS];

    const struct dequant_product *product; /* integer products, or NULL */
    const struct dequant_plain *plain;     /* NULL unless a type of ggml holds the same values */

    /*
     * Return true if a scale of row `index` of the stored block is its format's NaN, which decodes
     * to a number as in ggml. NULL for types whose bad scales show in their values.
     */
    bool (*has_nan_scale)(const void *block, uint32_t index);

    /*
     * Return true if a scale or offset of the whole little-endian block, stored as f16 (e8m0 in
     * MXFP4, ue4m3 in NVFP4), is at the limit of its format: the largest number, infinity, NaN, or
     * a subnormal number other than 0, which has lost bits; in e8m0, the largest power, or the
     * smallest in a block that is not all zeros. NULL for plain numbers and scales of 32 bits.
     */
    bool (*is_scale_at_limit)(const struct dequant_type *type, const void *block);
    uint16_t f16_offset; /* for that: bytes of a block before its f16 scale, or scale and offset */
    uint16_t n_f16;
};

/* Type ids used by number. */
enum {
    DEQUANT_F32 = 0,
    DEQUANT_F16 = 1,
    DEQUANT_Q4_0 = 2,
    DEQUANT_Q8_0 = 8,
    DEQUANT_I8 = 24,
    DEQUANT_I16 = 25,
    DEQUANT_I32 = 26,
    DEQUANT_I64 = 27,
    DEQUANT_F64 = 28,
    DEQUANT_BF16 = 30
};

/* Length of the longest type name, for tables. */
enum { DEQUANT_NAME_COLUMNS = 10 };

/* The era of today's layouts. */
#define DEQUANT_ERA 2u

/*
 * Return the number of today's types, of old layouts, and of other candidates for today's ids, in
 * the order in which they stand in the table.
 */
size_t dequant_type_count(void);
size_t dequant_old_type_count(void);
size_t dequant_other_type_count(void);

/* Return the number of rows, the sum of the three. */
size_t dequant_row_count(void);

/*
 * Row `index` of the table: today's types in the order of their ids, then the old layouts by era
 * and id, then the other candidates by id. `index` must be below dequant_row_count().
 */
const struct dequant_type *dequant_type_at(size_t index);

/* The row of a ggml type id as GGUF files have it; NULL if the id is unknown. */
const struct dequant_type *dequant_type_by_id(uint32_t id);

/*
 * The row of the id in files of an era: an old layout, or today's if the layout did not change;
 * NULL if the id did not exist in that era.
 */
const struct dequant_type *dequant_type_of_era(uint32_t id, uint32_t era);

/*
 * Return candidate type `index` of an id in GGUF files, or NULL after the last. An id has several
 * candidates, with different names, if several programs assigned it or ik_llama.cpp changed the
 * layout. Candidate 0 is the type of dequant_type_by_id().
 */
const struct dequant_type *dequant_candidate_at(uint32_t id, size_t index);

/* The candidate of that name, in upper or lower case, or NULL. */
const struct dequant_type *dequant_candidate_by_name(uint32_t id, const char *name);

/*
 * Return true if the values can be computed. They cannot if only the type's size is known, as for
 * types that ggml has removed, or if the file does not determine the layout.
 */
static inline bool dequant_is_decodable(const struct dequant_type *type)
{
    return type->decode[DEQUANT_SET_scalar] != NULL;
}

/* Bytes of a group's headers or of the tail: a decoder's input beside the blocks. */
static inline size_t dequant_headers_bytes(const struct dequant_type *type)
{
    return (size_t)type->row_header_bytes * type->interleave_rows + type->tail_bytes;
}

/* Bytes of a stored block: one block of each row stored together. */
static inline size_t dequant_stride_bytes(const struct dequant_type *type)
{
    return (size_t)type->block_bytes * type->interleave_rows;
}

/*
 * Return the type of ggml that holds the same values exactly; zeros may differ in sign. A type of
 * today gives its plain type or itself. Q5_0 and Q5_1 of era 0, which only order their elements
 * differently, give today's Q5_0 and Q5_1. All other old layouts give F32, because their scales
 * have 32 bits or belong to fewer elements than in today's types.
 */
const struct dequant_type *dequant_modern(const struct dequant_type *type);

/* Bytes of a block converted to dequant_modern(), unless that is F32 for an old layout. */
size_t dequant_modern_bytes(const struct dequant_type *type);

/*
 * Convert n_blocks stored blocks of era 0, or row `index` of n_blocks interleaved blocks, to
 * dequant_modern(), which must be neither the same type nor F32. `blocks` holds n_blocks *
 * dequant_stride_bytes() bytes and `out` n_blocks * dequant_modern_bytes(); they do not overlap.
 */
void dequant_modernize_blocks(const struct dequant_type *type, uint32_t index,
                              const void *restrict blocks, void *restrict out, size_t n_blocks);

/*
 * Return true if the data differ between big-endian and little-endian files. They do not differ for
 * types that consist of bytes. Types that never occur in big-endian files also give false: removed
 * types, old layouts, and types of other programs than ggml.
 */
bool dequant_has_byte_order(const struct dequant_type *type);

/*
 * Copy n_blocks stored big-endian blocks to `out` in little-endian order, field by field, or the
 * other way round. `blocks` and `out` hold n_blocks * dequant_stride_bytes() bytes each, at any
 * alignment, and do not overlap.
 */
void dequant_swap_blocks(const struct dequant_type *type, const void *restrict blocks,
                         void *restrict out, size_t n_blocks);
