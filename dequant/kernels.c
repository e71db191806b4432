#include "dequant/kernels.h"

#include "dequant/old_blocks.h"
#include "dequant/rows.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

static bool scalar_is_supported(void)
{
    return true;
}

#if defined(__x86_64__)

static bool avx2_is_supported(void)
{
    unsigned a, b, c, d;

    /* The compiler's check of AVX2 includes whether the system saves the registers. */
    return __builtin_cpu_supports("avx2") && __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C) &&
           (c & bit_FMA);
}

static bool avx512_is_supported(void)
{
    return avx2_is_supported() && __builtin_cpu_supports("avx512f") &&
           __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512vl");
}

#elif defined(__aarch64__)

/* Part of the architecture. */
static bool neon_is_supported(void)
{
    return true;
}

#endif

/* Return the set to multiply integers by where the kernels of `set` decode. */
static size_t find_product_set(size_t set)
{
#if defined(__x86_64__)
    if (set == DEQUANT_SET_avx512 && !__builtin_cpu_supports("avx512vnni"))
        return DEQUANT_SET_avx2;
#endif
    return set;
}

#define SET(set, unused) [DEQUANT_SET_##set] = {#set, set##_is_supported},

static const struct dequant_kernel_set sets[DEQUANT_SETS] = {SET(scalar, )
                                                                 DEQUANT_VECTOR_SETS(SET, )};

static size_t chosen = DEQUANT_SET_scalar, chosen_for_products = DEQUANT_SET_scalar;

#define CHOSEN(slots) ((slots)[chosen] ? (slots)[chosen] : (slots)[DEQUANT_SET_scalar])

const struct dequant_kernel_set *dequant_kernel_set_at(size_t index)
{
    return index < DEQUANT_SETS ? &sets[index] : NULL;
}

int dequant_choose_kernels(const char *name)
{
    size_t set = DEQUANT_SETS;

    while (set > 0 &&
           (name ? strcmp(sets[set - 1].name, name) != 0 : !sets[set - 1].is_supported()))
        set--;
    if (set == 0)
        return -EINVAL;
    if (!sets[set - 1].is_supported())
        return -ENOTSUP;
    chosen = set - 1;
    chosen_for_products = find_product_set(chosen);
    return 0;
}

size_t dequant_product_set(void)
{
    return chosen_for_products;
}

const struct dequant_kernel_set *dequant_chosen_kernels(void)
{
    return &sets[chosen];
}

void dequant_decode_row(const struct dequant_type *type, struct dequant_row row,
                        const void *restrict blocks, float *restrict out, size_t n_blocks)
{
    CHOSEN(type->decode)(blocks, out, n_blocks, row);
}

void dequant_decode(const struct dequant_type *type, const void *restrict blocks,
                    float *restrict out, size_t n_blocks)
{
    assert(!dequant_has_row_layout(type));
    dequant_decode_row(type, (struct dequant_row){0}, blocks, out, n_blocks);
}

void dequant_decode_elements(const struct dequant_type *type, struct dequant_shape shape,
                             const void *data, uint64_t first, uint64_t n, float *out)
{
    const uint64_t end = first + n;
    const uint8_t *bytes = data;

    if (!dequant_has_row_layout(type)) {
        dequant_decode(type, bytes + first / type->block_elements * type->block_bytes, out,
                       n / type->block_elements);
        return;
    }
    while (first < end) {
        const struct dequant_span span = dequant_span_of(type, shape, first, end, UINT64_MAX);
        const struct dequant_row row = {bytes + span.headers_offset, span.row_index};
        const uint64_t n_elements = span.n_blocks * type->block_elements;

        dequant_decode_row(type, row, bytes + span.blocks_offset, out, span.n_blocks);
        first += n_elements;
        out += n_elements;
    }
}

void dequant_encode(const struct dequant_type *type, const void *restrict values,
                    void *restrict out, size_t n)
{
    CHOSEN(type->encode)(values, out, n);
}

void dequant_dot_rows(const struct dequant_type *type, const void *w, size_t w_stride_bytes,
                      size_t n_rows, const float *x, size_t x_stride, size_t n_columns, size_t n,
                      float *out, size_t out_stride)
{
    CHOSEN(type->dot)(w, w_stride_bytes, n_rows, x, x_stride, n_columns, n, out, out_stride);
}

void dequant_dot(const float *w, size_t w_stride, size_t n_rows, const float *x, size_t x_stride,
                 size_t n_columns, size_t n, float *out, size_t out_stride)
{
    dequant_dot_rows(dequant_type_by_id(DEQUANT_F32), w, w_stride * sizeof *w, n_rows, x, x_stride,
                     n_columns, n, out, out_stride);
}

/* ---- Conversion to types of ggml with the same values ---- */

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
        CHOSEN(type->plain->convert)(blocks, out, n_blocks, index);
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
