/*
 * Compares every kernel set that the CPU supports with the reference: all slots of all types,
 * various numbers of blocks, any alignment, between guard pages, with scales of every kind. It uses
 * no test framework, so it can be built for another architecture and run in an emulator.
 *
 * The last line is "N passed, M failed"; the exit status is 1 if a test failed.
 */
#include "dequant/kernels.h"
#include "dequant/rows.h"
#include "dequant/slots.h"
#include "tests/kernels/check_kernels.h"
#include "tests/kernels/fenced.h"
#include "tests/unit/dequant/random_blocks.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

static unsigned n_passed, n_failed;

void count(bool is_good, const char *set, const char *what)
{
    if (is_good) {
        n_passed++;
    } else {
        n_failed++;
        printf("FAILED: %s, %s\n", set, what);
    }
}

static uint8_t blocks[MAX_BYTES], headers[DEQUANT_MAX_HEADER_BYTES];
static float expected[ELEMENTS + 256];
static struct fenced source, target, header_source;

/* Decode a row between addresses `shift` bytes from a guard page, and compare. */
static bool gives_the_same_row(dequant_decode_fn *kernel, const struct dequant_type *type,
                               uint32_t row_index, const uint8_t *from, size_t n_blocks,
                               size_t shift, bool at_end)
{
    const size_t in_bytes = n_blocks * dequant_stride_bytes(type);
    const size_t out_bytes = n_blocks * type->block_elements * sizeof(float);
    const size_t headers_bytes = dequant_headers_bytes(type);
    uint8_t *in = at_end ? source.data + source.n_bytes - in_bytes - shift : source.data + shift;
    uint8_t *out = at_end ? target.data + target.n_bytes - out_bytes - shift / 4 * 4
                          : target.data + shift / 4 * 4;
    uint8_t *row_headers = at_end
                               ? header_source.data + header_source.n_bytes - headers_bytes - shift
                               : header_source.data + shift;
    const struct dequant_row row = {row_headers, row_index};

    memcpy(in, from, in_bytes);
    memcpy(row_headers, headers, headers_bytes);
    memset(out, 0x5a, out_bytes);
    type->decode[DEQUANT_SET_scalar](in, expected, n_blocks, row);
    kernel(in, (float *)(void *)out, n_blocks, row);
    return memcmp(out, expected, out_bytes) == 0;
}

/* Compare all rows of a group. */
static bool gives_the_same(dequant_decode_fn *kernel, const struct dequant_type *type,
                           const uint8_t *from, size_t n_blocks, size_t shift, bool at_end)
{
    bool is_good = true;

    for (uint32_t i = 0; i < type->interleave_rows; i++)
        is_good &= gives_the_same_row(kernel, type, i, from, n_blocks, shift, at_end);
    return is_good;
}

static bool check_alignments(dequant_decode_fn *kernel, const struct dequant_type *type)
{
    /* Unquantized types need more blocks to fill a vector. */
    const size_t most = type->block_elements == 1 ? 70 : 9;
    bool is_good = true;

    for (size_t n = 0; n <= most; n++) {
        for (size_t shift = 0; shift < 16; shift++) {
            is_good &= gives_the_same(kernel, type, blocks, n, shift, false);
            is_good &= gives_the_same(kernel, type, blocks, n, shift, true);
        }
    }
    return is_good;
}

/* NaNs of both kinds and signs, infinities, zeros, subnormals, the largest numbers. */
static const uint16_t odd_halves[] = {0x7e00, 0xfe00, 0x7d01, 0xfd02, 0x7fff, 0x7c00, 0xfc00,
                                      0x0000, 0x8000, 0x0001, 0x83ff, 0x7bff, 0xfbff, 0x3c00,
                                      /* the same as upper halves of floats */
                                      0x7fc0, 0xffc0, 0x7f80, 0xff80, 0xffa0, 0x007f, 0x807f};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Fill the row headers with these f16 numbers, or with floats that have them as upper halves. */
static void set_headers(const struct dequant_type *type, const uint16_t halves[2])
{
    const size_t n_bytes = dequant_headers_bytes(type);
    const size_t width_bytes = type->row_header_bytes == 2 ? 2 : 4;

    for (size_t i = 0; i < n_bytes; i += width_bytes) {
        const uint16_t half = halves[i / width_bytes % 2];
        const uint32_t bits = width_bytes == 2 ? half : (uint32_t)half << 16 | 1;

        memcpy(headers + i, &bits, width_bytes);
    }
}

static bool check_scales(dequant_decode_fn *kernel, const struct dequant_type *type,
                         const struct expectation *e)
{
    bool is_good = true;

    for (size_t i = 0; i < COUNT(odd_halves) * COUNT(odd_halves); i++) {
        const uint16_t halves[2] = {odd_halves[i % COUNT(odd_halves)],
                                    odd_halves[i / COUNT(odd_halves)]};

        set_scales(e, blocks, halves);
        set_headers(type, halves);
        is_good &= gives_the_same(kernel, type, blocks, 3, 1, true);
    }
    return is_good;
}

/* Check blocks of random bits, scales and headers included. */
static bool check_any_bits(dequant_decode_fn *kernel, const struct dequant_type *type)
{
    uint64_t state = type->id + 1000;
    bool is_good = true;

    for (size_t round = 0; round < 2000; round++) {
        const size_t n_blocks = type->block_elements == 1 ? 48 : 2;

        for (size_t i = 0; i < n_blocks * dequant_stride_bytes(type); i++)
            blocks[i] = (uint8_t)(next_random(&state) >> 40);
        for (size_t i = 0; i < sizeof headers; i++)
            headers[i] = (uint8_t)(next_random(&state) >> 40);
        is_good &= gives_the_same(kernel, type, blocks, n_blocks, 0, true);
    }
    return is_good;
}

/*
 * Check 64-bit integers on both sides of the 32-bit limits: the AVX2 kernel has a fast path for
 * those within.
 */
static bool check_small_integers(dequant_decode_fn *kernel, const struct dequant_type *type)
{
    uint64_t state = 27;
    bool is_good = true;

    for (size_t round = 0; round < 2000; round++) {
        for (size_t i = 0; i < 48; i++) {
            int64_t number = (int32_t)next_random(&state);

            if (next_random(&state) % 64 == 0)
                number = next_random(&state) % 2 ? (int64_t)INT32_MAX + 1 : (int64_t)INT32_MIN - 1;
            memcpy(blocks + i * sizeof number, &number, sizeof number);
        }
        is_good &= gives_the_same(kernel, type, blocks, 48, 0, true);
    }
    return is_good;
}

static void check_kernel(const char *set, const struct dequant_type *type,
                         dequant_decode_fn *kernel)
{
    const struct expectation *e = expectation_of(type);
    char what[100];

    make_blocks(e, blocks);
    make_headers(e, headers);
    snprintf(what, sizeof what, "%s, era %u: all blocks", type->name, type->era);
    count(gives_the_same(kernel, type, blocks, blocks_for(e), 0, false), set, what);
    snprintf(what, sizeof what, "%s, era %u: counts and alignments", type->name, type->era);
    count(check_alignments(kernel, type), set, what);
    snprintf(what, sizeof what, "%s, era %u: scales", type->name, type->era);
    count(check_scales(kernel, type, e), set, what);
    snprintf(what, sizeof what, "%s, era %u: any bits", type->name, type->era);
    count(check_any_bits(kernel, type), set, what);
    if (type->block_bytes == sizeof(int64_t) && strcmp(type->name, "I64") == 0)
        count(check_small_integers(kernel, type), set, "I64: small integers");
}

/* Check that the reference gives the expected values on this architecture. */
static void check_reference(void)
{
    for (size_t i = 0; i < n_expectations; i++) {
        const struct expectation *e = &expectations[i];
        const struct dequant_type *type = type_of(e);

        uint64_t hash = fnv1a(NULL, 0);

        if (!dequant_is_decodable(type))
            continue;
        make_blocks(e, blocks);
        make_headers(e, headers);
        for (uint32_t row = 0; row < type->interleave_rows; row++) {
            dequant_decode_row(type, (struct dequant_row){headers, row}, blocks, expected,
                               blocks_for(e));
            hash = fnv1a_more(hash, expected, blocks_for(e) * e->block_elements * sizeof(float));
        }
        count(hash == e->values, "reference", type->name);
    }
}

/*
 * Compare products of matrices of many shapes, which end at a guard page, with the reference's
 * products of the same numbers as floats.
 */
static bool check_dot(const struct dequant_type *type, dequant_dot_fn *dot)
{
    enum { MOST = 9, LONGEST = 70, STRIDE = LONGEST + 3 };
    static float x[MOST * STRIDE], floats[MOST * STRIDE], good[MOST * MOST];
    static uint8_t numbers[MOST * STRIDE * sizeof(float)];
    const size_t stride_bytes = STRIDE * type->block_bytes;
    bool is_good = true;

    for (size_t i = 0; i < COUNT_OF(x); i++) {
        x[i] = (float)(int)(i * 2654435761u >> 8) / 65536.0f;
        floats[i] = (float)((int)(i * 40503u % 65537u) - 32768) / 300.0f;
    }
    if (type->encode[DEQUANT_SET_scalar])
        type->encode[DEQUANT_SET_scalar](floats, numbers, COUNT_OF(floats));
    else
        memcpy(numbers, floats, sizeof floats);
    type->decode[DEQUANT_SET_scalar](numbers, floats, COUNT_OF(floats), (struct dequant_row){0});
    for (size_t n = 0; n <= LONGEST; n++) {
        for (size_t rows = 0; rows <= MOST; rows++) {
            const size_t columns = (rows * 5 + n) % (MOST + 1);
            const size_t n_bytes = rows ? (rows - 1) * stride_bytes + n * type->block_bytes : 0;
            uint8_t *w = source.data + source.n_bytes - n_bytes;
            float *out = (float *)(void *)(target.data + target.n_bytes) - columns * MOST;

            memcpy(w, numbers, n_bytes);
            for (size_t i = 0; i < columns * MOST; i++)
                good[i] = out[i] = (float)i;
            dequant_scalar_dot_f32(floats, STRIDE * sizeof *floats, rows, x, STRIDE, columns, n,
                                   good, MOST);
            dot(w, stride_bytes, rows, x, STRIDE, columns, n, out, MOST);
            is_good &= memcmp(good, out, columns * MOST * sizeof *out) == 0;
        }
    }
    return is_good;
}

/* Compare the reference with sums in double. */
static bool check_dot_reference(void)
{
    enum { N = 1001 };
    static float a[N], b[N];
    double sum = 0, magnitude = 0;
    float got = 1;

    for (size_t i = 0; i < N; i++) {
        a[i] = (float)((int)(i * 7919 % 2001) - 1000) / 37.0f;
        b[i] = (float)((int)(i * 104729 % 1999) - 999) / 41.0f;
        sum += (double)a[i] * (double)b[i];
        magnitude += fabs((double)a[i] * (double)b[i]);
    }
    dequant_scalar_dot_f32(a, N * sizeof *a, 1, b, N, 1, N, &got, 1);
    return fabs((double)got - 1 - sum) <= magnitude * 1e-6;
}

/* Check every function in the set's slots. */
static void check_set(size_t set, const char *name)
{
    for (size_t i = 0; i < dequant_row_count(); i++) {
        const struct dequant_type *type = dequant_type_at(i);
        char what[100];

        if (type->decode[set])
            check_kernel(name, type, type->decode[set]);
        snprintf(what, sizeof what, "to %s", type->name);
        if (type->encode[set])
            count(check_encoder(type, type->encode[set]), name, what);
        snprintf(what, sizeof what, "dot products of %s", type->name);
        if (type->dot[set])
            count(check_dot(type, type->dot[set]), name, what);
    }
}

int main(void)
{
    const struct dequant_kernel_set *set;

    source = make_fenced(MAX_BYTES + 16);
    target = make_fenced(sizeof expected + 64);
    header_source = make_fenced(DEQUANT_MAX_HEADER_BYTES + 16);
    check_reference();
    check_encoder_references();
    count(check_dot_reference(), "reference", "dot products");
    for (size_t i = 0; i < dequant_type_count(); i++) {
        const struct dequant_type *type = dequant_type_at(i);

        if (type->dot[DEQUANT_SET_scalar])
            count(check_dot(type, type->dot[DEQUANT_SET_scalar]), "reference", type->name);
    }
    check_run_reference();
    for (size_t i = DEQUANT_SET_scalar + 1; (set = dequant_kernel_set_at(i)) != NULL; i++) {
        if (set->is_supported()) {
            printf("%s\n", set->name);
            check_set(i, set->name);
            check_products(set->name);
            check_run_set(i, set->name);
            check_statistics_set(i, set->name);
        } else {
            printf("%s: not on this CPU\n", set->name);
        }
    }
    printf("%u passed, %u failed\n", n_passed, n_failed);
    return n_failed > 0;
}
