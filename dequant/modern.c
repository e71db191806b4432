/* Conversion of old and interleaved blocks to blocks of ggml's types with the same values. */
#include <assert.h>
#include <string.h>

#include "dequant/old_blocks.h"
#include "dequant/types.h"

/* Both types have the same id in all eras. */
enum { Q5_0 = 6, Q5_1 = 7 };

const struct dequant_type *dequant_modern(const struct dequant_type *type)
{
    if (type->plain)
        return dequant_type_by_id(type->plain->id);
    if (type->era == DEQUANT_ERA)
        return type;
    if (type->id == Q5_0 || type->id == Q5_1)
        return dequant_type_by_id(type->id);
    return dequant_type_by_id(DEQUANT_F32);
}

size_t dequant_modern_bytes(const struct dequant_type *type)
{
    if (!type->plain)
        return type->block_bytes;
    return (size_t)type->plain->n_blocks * dequant_modern(type)->block_bytes;
}

/* Byte i holds elements 2i and 2i+1 in era 0, i and i+16 today; qh is the same in both. */
static void reorder(const uint8_t *restrict in, uint8_t *restrict out)
{
    for (size_t i = 0; i < DEQUANT_BLOCK / 2; i++) {
        const unsigned shift = i % 2 == 0 ? 0 : 4;
        const unsigned low = (unsigned)in[i / 2] >> shift & 15;
        const unsigned high = (unsigned)in[i / 2 + DEQUANT_BLOCK / 4] >> shift & 15;

        out[i] = (uint8_t)(low | high << 4);
    }
}

void dequant_modernize_blocks(const struct dequant_type *type, uint32_t index,
                              const void *restrict blocks, void *restrict out, size_t n_blocks)
{
    const size_t nibble_bytes = DEQUANT_BLOCK / 2;
    const size_t head_bytes = type->block_bytes - nibble_bytes; /* the nibbles come last */
    const uint8_t *from = blocks;
    uint8_t *to = out;

    if (type->plain) {
        type->plain->deinterleave(blocks, out, n_blocks, index);
        return;
    }
    assert(type->id == Q5_0 || type->id == Q5_1);
    for (size_t i = 0; i < n_blocks; i++) {
        memcpy(to, from, head_bytes);
        reorder(from + head_bytes, to + head_bytes);
        from += type->block_bytes;
        to += type->block_bytes;
    }
}
