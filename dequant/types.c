/* The type table. Its interface is types.h. */
#include <string.h>

#include "dequant/blocks.h"
#include "dequant/reference/decoders.h"
#include "dequant/iq_blocks.h"
#include "dequant/old_blocks.h"
#include "dequant/types.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* What a row of a type with a decoder begins with. */
#define DECODED(number, of_era, capitals, elements, layout, decoder)                               \
    .id = (number), .era = (of_era), .name = (capitals), .block_elements = (elements),             \
    .block_bytes = sizeof(struct dequant_##layout), .decode = dequant_decode_##decoder

#define FIELDS(...)                                                                                \
    .fields = (const struct dequant_field[])                                                       \
    {                                                                                              \
        __VA_ARGS__,                                                                               \
        {                                                                                          \
            0, 0                                                                                   \
        }                                                                                          \
    }

/* A row of a type with a decoder; `layout` names block struct and decoder, then comes the map. */
#define ROW(number, capitals, elements, layout, ...)                                               \
    {                                                                                              \
        DECODED(number, DEQUANT_ERA, capitals, elements, layout, layout), FIELDS(__VA_ARGS__)      \
    }

/* The same where ggml makes numbers of scales that are NaN. */
#define FP4(number, capitals, elements, layout, ...)                                               \
    {                                                                                              \
        DECODED(number, DEQUANT_ERA, capitals, elements, layout, layout), FIELDS(__VA_ARGS__),     \
            .has_nan_scale = dequant_##layout##_has_nan_scale                                      \
    }

/*
 * A row of a removed type: the size of `layout`, but the blocks of four or eight rows of the matrix
 * are interleaved, so that no block has a layout of its own and the bytes stay as they are.
 */
#define REMOVED(number, capitals, elements, layout)                                                \
    {                                                                                              \
        .id = (number), .era = DEQUANT_ERA, .name = (capitals), .block_elements = (elements),      \
        .block_bytes = sizeof(struct dequant_##layout), .decode = NULL,                            \
        .fields = (const struct dequant_field[]){{1, sizeof(struct dequant_##layout)}, {0, 0}},    \
    }

/* A row of an old layout. No file has these in big-endian order. */
#define OLD(number, of_era, capitals, elements, layout, decoder)                                   \
    {                                                                                              \
        DECODED(number, of_era, capitals, elements, layout, decoder),                              \
            FIELDS({1, sizeof(struct dequant_##layout)})                                           \
    }

/*
 * In the order of the ids, of which 4 and 5 (Q4_2, Q4_3) are missing. Source of ids and names: enum
 * ggml_type in ggml.h. The maps follow ggml's declarations of the blocks: what ggml declares as
 * bytes counts as bytes, also where it reads several of them as one number.
 */
static const struct dequant_type rows[] = {
    ROW(0, "F32", DEQUANT_NUMBER, f32, {4, 1}),
    ROW(1, "F16", DEQUANT_NUMBER, f16, {2, 1}),
    ROW(2, "Q4_0", DEQUANT_BLOCK, q4_0, {2, 1}, {1, 16}),
    ROW(3, "Q4_1", DEQUANT_BLOCK, q4_1, {2, 2}, {1, 16}),
    ROW(6, "Q5_0", DEQUANT_BLOCK, q5_0, {2, 1}, {1, 20}),
    ROW(7, "Q5_1", DEQUANT_BLOCK, q5_1, {2, 2}, {1, 20}),
    ROW(8, "Q8_0", DEQUANT_BLOCK, q8_0, {2, 1}, {1, 32}),
    ROW(9, "Q8_1", DEQUANT_BLOCK, q8_1, {2, 2}, {1, 32}),
    ROW(10, "Q2_K", DEQUANT_SUPERBLOCK, q2_k, {1, 80}, {2, 2}),
    ROW(11, "Q3_K", DEQUANT_SUPERBLOCK, q3_k, {1, 108}, {2, 1}),
    ROW(12, "Q4_K", DEQUANT_SUPERBLOCK, q4_k, {2, 2}, {1, 140}),
    ROW(13, "Q5_K", DEQUANT_SUPERBLOCK, q5_k, {2, 2}, {1, 172}),
    ROW(14, "Q6_K", DEQUANT_SUPERBLOCK, q6_k, {1, 208}, {2, 1}),
    ROW(15, "Q8_K", DEQUANT_SUPERBLOCK, q8_k, {4, 1}, {1, 256}, {2, 16}),
    ROW(16, "IQ2_XXS", DEQUANT_SUPERBLOCK, iq2_xxs, {2, 33}),
    ROW(17, "IQ2_XS", DEQUANT_SUPERBLOCK, iq2_xs, {2, 33}, {1, 8}),
    ROW(18, "IQ3_XXS", DEQUANT_SUPERBLOCK, iq3_xxs, {2, 1}, {1, 96}),
    ROW(19, "IQ1_S", DEQUANT_SUPERBLOCK, iq1_s, {2, 1}, {1, 32}, {2, 8}),
    ROW(20, "IQ4_NL", DEQUANT_BLOCK, iq4_nl, {2, 1}, {1, 16}),
    ROW(21, "IQ3_S", DEQUANT_SUPERBLOCK, iq3_s, {2, 1}, {1, 108}),
    ROW(22, "IQ2_S", DEQUANT_SUPERBLOCK, iq2_s, {2, 1}, {1, 80}),
    ROW(23, "IQ4_XS", DEQUANT_SUPERBLOCK, iq4_xs, {2, 2}, {1, 132}),
    ROW(24, "I8", DEQUANT_NUMBER, i8, {1, 1}),
    ROW(25, "I16", DEQUANT_NUMBER, i16, {2, 1}),
    ROW(26, "I32", DEQUANT_NUMBER, i32, {4, 1}),
    ROW(27, "I64", DEQUANT_NUMBER, i64, {8, 1}),
    ROW(28, "F64", DEQUANT_NUMBER, f64, {8, 1}),
    ROW(29, "IQ1_M", DEQUANT_SUPERBLOCK, iq1_m, {1, 56}),
    ROW(30, "BF16", DEQUANT_NUMBER, bf16, {2, 1}),
    REMOVED(31, "Q4_0_4_4", DEQUANT_BLOCK, q4_0),
    REMOVED(32, "Q4_0_4_8", DEQUANT_BLOCK, q4_0),
    REMOVED(33, "Q4_0_8_8", DEQUANT_BLOCK, q4_0),
    ROW(34, "TQ1_0", DEQUANT_SUPERBLOCK, tq1_0, {1, 52}, {2, 1}),
    ROW(35, "TQ2_0", DEQUANT_SUPERBLOCK, tq2_0, {1, 64}, {2, 1}),
    REMOVED(36, "IQ4_NL_4_4", DEQUANT_BLOCK, iq4_nl),
    REMOVED(37, "IQ4_NL_4_8", DEQUANT_BLOCK, iq4_nl),
    REMOVED(38, "IQ4_NL_8_8", DEQUANT_BLOCK, iq4_nl),
    FP4(39, "MXFP4", DEQUANT_BLOCK, mxfp4, {1, 17}),
    FP4(40, "NVFP4", DEQUANT_NVFP4_BLOCK, nvfp4, {1, 36}),
    ROW(41, "Q1_0", DEQUANT_Q1_0_BLOCK, q1_0, {2, 1}, {1, 16}),
    ROW(42, "Q2_0", DEQUANT_Q2_0_BLOCK, q2_0, {2, 1}, {1, 16}),

    OLD(2, 0, "Q4_0", DEQUANT_BLOCK, old_q4_0, era0_q4_0),
    OLD(3, 0, "Q4_1", DEQUANT_BLOCK, old_q4_1, era0_q4_1),
    OLD(4, 0, "Q4_2", DEQUANT_HALF_BLOCK, old_q4_2, era0_q4_2),
    OLD(5, 0, "Q4_3", DEQUANT_HALF_BLOCK, old_q4_3, era0_q4_3),
    OLD(6, 0, "Q5_0", DEQUANT_BLOCK, q5_0, era0_q5_0),
    OLD(7, 0, "Q5_1", DEQUANT_BLOCK, q5_1, era0_q5_1),
    OLD(8, 0, "Q8_0", DEQUANT_BLOCK, old_q8_0, old_q8_0),
    OLD(2, 1, "Q4_0", DEQUANT_BLOCK, old_q4_0, era1_q4_0),
    OLD(3, 1, "Q4_1", DEQUANT_BLOCK, old_q4_1, era1_q4_1),
    OLD(8, 1, "Q8_0", DEQUANT_BLOCK, old_q8_0, old_q8_0),
};

#define N_OLD     10
#define N_CURRENT (COUNT(rows) - N_OLD)

size_t dequant_type_count(void)
{
    return N_CURRENT;
}

size_t dequant_old_type_count(void)
{
    return N_OLD;
}

const struct dequant_type *dequant_type_at(size_t index)
{
    assert(index < COUNT(rows));
    return &rows[index];
}

/* The table starts at id 0 and lacks few ids, so a row lies at or a little before its id. */
const struct dequant_type *dequant_type_by_id(uint32_t id)
{
    size_t index = id < N_CURRENT ? id : N_CURRENT - 1;

    while (rows[index].id > id)
        index--;
    return rows[index].id == id ? &rows[index] : NULL;
}

const struct dequant_type *dequant_type_of_era(uint32_t id, uint32_t era)
{
    for (size_t i = N_CURRENT; i < COUNT(rows); i++) {
        if (rows[i].id == id && rows[i].era == era)
            return &rows[i];
    }
    return dequant_type_by_id(id);
}

/* Reverses the bytes of each of `count` numbers of `width_bytes`. */
static void swap_numbers(const uint8_t *restrict in, uint8_t *restrict out, size_t width_bytes,
                         size_t count)
{
    uint16_t two;
    uint32_t four;
    uint64_t eight;

    switch (width_bytes) {
    case 1:
        memcpy(out, in, count);
        break;
    case 2:
        for (size_t i = 0; i < count; i++) {
            memcpy(&two, in + 2 * i, 2);
            two = __builtin_bswap16(two);
            memcpy(out + 2 * i, &two, 2);
        }
        break;
    case 4:
        for (size_t i = 0; i < count; i++) {
            memcpy(&four, in + 4 * i, 4);
            four = __builtin_bswap32(four);
            memcpy(out + 4 * i, &four, 4);
        }
        break;
    case 8:
        for (size_t i = 0; i < count; i++) {
            memcpy(&eight, in + 8 * i, 8);
            eight = __builtin_bswap64(eight);
            memcpy(out + 8 * i, &eight, 8);
        }
        break;
    default:
        assert(0 && "a width in a byte-order map");
    }
}

void dequant_swap_blocks(const struct dequant_type *type, const void *restrict blocks,
                         void *restrict out, size_t n_blocks)
{
    const struct dequant_field *fields = type->fields;
    const uint8_t *from = blocks;
    uint8_t *to = out;

    if (n_blocks == 0)
        return;

    /* Of a type with one kind of field, which the plain numbers are, all blocks are one run. */
    if (fields[1].width_bytes == 0) {
        swap_numbers(from, to, fields[0].width_bytes, fields[0].count * n_blocks);
        return;
    }

    for (size_t i = 0; i < n_blocks; i++) {
        for (const struct dequant_field *field = fields; field->width_bytes != 0; field++) {
            swap_numbers(from, to, field->width_bytes, field->count);
            from += (size_t)field->width_bytes * field->count;
            to += (size_t)field->width_bytes * field->count;
        }
    }
}
