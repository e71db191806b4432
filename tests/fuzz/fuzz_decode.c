/*
 * Target: the decoders and encoders. They must stay within their buffers and write every element,
 * and no block may depend on another. All kernel sets must give the same bits. A byte swap must
 * undo itself.
 *
 * The first byte of the input selects the row of the type table and the alignment. The rest is the
 * row headers of a group, if the type has any, and stored blocks.
 */
#include "dequant/kernels.h"
#include "tests/fuzz/fuzz_check.h"

#include <stdlib.h>
#include <string.h>

/*
 * Return `n_bytes` of memory at an odd address, filled with `filler` and ending where *memory ends.
 * The caller frees *memory.
 */
static uint8_t *misaligned(size_t n_bytes, size_t shift, int filler, uint8_t **memory)
{
    *memory = fuzz_alloc(shift + n_bytes);
    memset(*memory, filler, shift + n_bytes);
    return *memory + shift;
}

/* Decode a row into memory that was filled with `filler`. The caller frees the values. */
static float *decode(const struct dequant_type *type, struct dequant_row row, const uint8_t *blocks,
                     size_t n_blocks, int filler)
{
    const size_t n_bytes = n_blocks * type->block_elements * sizeof(float);
    float *out = fuzz_alloc(n_bytes);

    if (n_blocks > 0)
        memset(out, filler, n_bytes);
    type->decode[DEQUANT_SET_scalar](blocks, out, n_blocks, row);
    return out;
}

static void check_kernels(const struct dequant_type *type, struct dequant_row row,
                          const uint8_t *blocks, size_t n_blocks, const float *expected)
{
    const size_t n_bytes = n_blocks * type->block_elements * sizeof(float);
    const struct dequant_kernel_set *set;
    float *out = fuzz_alloc(n_bytes);

    for (size_t i = 0; (set = dequant_kernel_set_at(i)) != NULL; i++) {
        if (!set->is_supported())
            continue;
        dequant_choose_kernels(set->name);
        dequant_decode_row(type, row, blocks, out, n_blocks);
        FUZZ_CHECK(n_blocks == 0 || memcmp(out, expected, n_bytes) == 0,
                   "%s: the %s kernels and the reference differ", type->name, set->name);
    }
    free(out);
}

static void check_row(const struct dequant_type *type, struct dequant_row row,
                      const uint8_t *blocks, size_t n_blocks)
{
    float *first = decode(type, row, blocks, n_blocks, 0x00);
    float *second = decode(type, row, blocks, n_blocks, 0xff);

    if (n_blocks > 0)
        FUZZ_CHECK(memcmp(first, second, n_blocks * type->block_elements * sizeof(float)) == 0,
                   "%s: the decoder leaves an element unwritten", type->name);
    for (size_t i = 0; i < n_blocks; i++) {
        float *alone = decode(type, row, blocks + i * dequant_stride_bytes(type), 1, 0x55);

        FUZZ_CHECK(memcmp(alone, first + i * type->block_elements,
                          type->block_elements * sizeof(float)) == 0,
                   "%s: block %zu depends on its neighbours", type->name, i);
        free(alone);
    }
    check_kernels(type, row, blocks, n_blocks, first);
    free(second);
    free(first);
}

static void check_decoder(const struct dequant_type *type, const uint8_t *headers,
                          const uint8_t *blocks, size_t n_blocks)
{
    for (uint32_t i = 0; i < type->interleave_rows; i++)
        check_row(type, (struct dequant_row){headers, i}, blocks, n_blocks);
}

/* Encode n floats at any address by every kernel set. */
static void check_encoder(const struct dequant_type *type, const uint8_t *values, size_t n)
{
    const size_t n_bytes = n / type->block_elements * type->block_bytes;
    const struct dequant_kernel_set *set;
    uint8_t *expected = fuzz_alloc(n_bytes), *out = fuzz_alloc(n_bytes);

    type->encode[DEQUANT_SET_scalar](values, expected, n);
    for (size_t i = 0; (set = dequant_kernel_set_at(i)) != NULL; i++) {
        if (!set->is_supported())
            continue;
        dequant_choose_kernels(set->name);
        if (n_bytes > 0)
            memset(out, 0x5a, n_bytes);
        dequant_encode(type, values, out, n);
        FUZZ_CHECK(n_bytes == 0 || memcmp(out, expected, n_bytes) == 0,
                   "to %s: the %s kernels and the reference differ", type->name, set->name);
    }
    for (size_t i = 0; i < n; i += type->block_elements) {
        type->encode[DEQUANT_SET_scalar](values + i * sizeof(float), out, type->block_elements);
        FUZZ_CHECK(memcmp(out, expected + i / type->block_elements * type->block_bytes,
                          type->block_bytes) == 0,
                   "to %s: block %zu depends on its neighbours", type->name,
                   i / type->block_elements);
    }
    free(out);
    free(expected);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct dequant_type *type;
    uint8_t *memory[4], *headers, *blocks, *swapped, *back;
    size_t n_types = dequant_row_count(), shift, n_blocks, n_bytes;
    size_t headers_bytes;

    if (size == 0)
        return 0;
    type = dequant_type_at(data[0] % n_types);
    shift = 1 + 2 * (data[0] / n_types);
    headers_bytes = dequant_headers_bytes(type);
    if (size - 1 < headers_bytes)
        return 0;
    n_blocks = (size - 1 - headers_bytes) / dequant_stride_bytes(type);
    n_bytes = n_blocks * dequant_stride_bytes(type);
    headers = misaligned(headers_bytes, shift, 0x00, &memory[3]);
    memcpy(headers, data + 1, headers_bytes);
    blocks = misaligned(n_bytes, shift, 0x00, &memory[0]);
    swapped = misaligned(n_bytes, shift, 0x00, &memory[1]);
    back = misaligned(n_bytes, shift, 0xa5, &memory[2]);
    memcpy(blocks, data + 1 + headers_bytes, n_bytes);

    dequant_swap_blocks(type, blocks, swapped, n_blocks);
    dequant_swap_blocks(type, swapped, back, n_blocks);
    FUZZ_CHECK(memcmp(blocks, back, n_bytes) == 0, "%s: two byte swaps do not restore the block",
               type->name);
    if (dequant_is_decodable(type)) {
        check_decoder(type, headers, blocks, n_blocks);
        check_decoder(type, headers, swapped, n_blocks);
    }
    if (type->encode[DEQUANT_SET_scalar])
        check_encoder(type, blocks,
                      n_bytes / sizeof(float) / type->block_elements * type->block_elements);
    for (int i = 0; i < 4; i++)
        free(memory[i]);
    return 0;
}
