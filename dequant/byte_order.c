/* Blocks of big-endian files, by the byte-order maps of the type table. */
#include <assert.h>
#include <string.h>

#include "dequant/types.h"

bool dequant_has_byte_order(const struct dequant_type *type)
{
    for (const struct dequant_field *field = type->fields; field->width_bytes != 0; field++) {
        if (field->width_bytes > 1)
            return true;
    }
    return false;
}

/* Reverses the bytes of each of `count` numbers of `bits` bits. */
#define SWAP_NUMBERS(bits)                                                                         \
    for (size_t i = 0; i < count; i++) {                                                           \
        uint##bits##_t number;                                                                     \
                                                                                                   \
        memcpy(&number, in + i * sizeof number, sizeof number);                                    \
        number = __builtin_bswap##bits(number);                                                    \
        memcpy(out + i * sizeof number, &number, sizeof number);                                   \
    }

static void swap_numbers(const uint8_t *restrict in, uint8_t *restrict out, size_t width_bytes,
                         size_t count)
{
    switch (width_bytes) {
    case 1:
        memcpy(out, in, count);
        break;
    case 2:
        SWAP_NUMBERS(16)
        break;
    case 4:
        SWAP_NUMBERS(32)
        break;
    case 8:
        SWAP_NUMBERS(64)
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

    /* One kind of field, as in the plain numbers, makes all blocks one run. */
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
