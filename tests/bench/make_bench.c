/*
 * Writes a model for measuring how fast tensors are read: one tensor for each type that can be
 * decoded, named after it, all with the same number of elements.
 *
 * The data are random rows, one chunk of them repeated. Blocks decode to values that are finite and
 * neither tiny nor huge, since real models have no numbers that slow a processor down.
 */
#include "tests/writer/gguf_writer.h"
#include "dequant/kernels.h"
#include "dequant/rows.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

enum {
    DEFAULT_MIB = 64,
    MOST_MIB = 1 << 20,
    ELEMENTS_PER_MIB = (1 << 20) / (int)sizeof(float), /* also the elements of a chunk */
    MOST_BLOCK_ELEMENTS = 256,
    MOST_ELEMENT_BYTES = 8,
    PIECE_BYTES = 4,
    ROW_ELEMENTS = 4096,
    CHUNK_ROWS = ELEMENTS_PER_MIB / ROW_ELEMENTS,
    ALIGNMENT_BYTES = 32, /* GGUF's default */
};

/* splitmix64: Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014. */
static uint64_t random_u64(uint64_t *state)
{
    uint64_t x = *state += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

/* Return how many of the rows that share a stored block have usual values in it. */
static uint32_t count_sane_rows(const struct dequant_type *type, const unsigned char *headers,
                                const unsigned char *block)
{
    uint32_t n_sane = 0;
    for (uint32_t row = 0; row < type->interleave_rows; row++) {
        float values[MOST_BLOCK_ELEMENTS];
        float largest = 0;
        dequant_decode_row(type, (struct dequant_row){headers, row}, block, values, 1);
        for (uint32_t i = 0; i < type->block_elements; i++)
            largest = isfinite(values[i]) ? fmaxf(largest, fabsf(values[i])) : INFINITY;
        /* The largest integers are 2^63. */
        n_sane += largest >= 0x1p-20f && largest <= 0x1p64f;
    }
    return n_sane;
}

static void fill(unsigned char *bytes, size_t n_bytes, uint64_t *random)
{
    for (size_t i = 0; i < n_bytes; i += 8) {
        const uint64_t bits = random_u64(random);
        memcpy(bytes + i, &bits, n_bytes - i < 8 ? n_bytes - i : 8);
    }
}

/*
 * Fill bytes that end with a stored block. Random bytes rarely suit all rows that share the block,
 * so pieces are replaced one by one, and put back if fewer rows have usual values then.
 */
static void fill_block(const struct dequant_type *type, const unsigned char *headers,
                       unsigned char *bytes, size_t n_bytes, uint64_t *random)
{
    const unsigned char *block = bytes + n_bytes - dequant_stride_bytes(type);
    const size_t piece_bytes = n_bytes < PIECE_BYTES ? n_bytes : PIECE_BYTES;
    uint32_t n_sane;
    fill(bytes, n_bytes, random);
    n_sane = count_sane_rows(type, headers, block);
    while (n_sane < type->interleave_rows) {
        unsigned char *piece = bytes + random_u64(random) % (n_bytes - piece_bytes + 1);
        unsigned char before[PIECE_BYTES];
        memcpy(before, piece, piece_bytes);
        fill(piece, piece_bytes, random);
        const uint32_t n_now = count_sane_rows(type, headers, block);
        if (n_now < n_sane)
            memcpy(piece, before, piece_bytes);
        else
            n_sane = n_now;
    }
}

/*
 * Fill a group of rows: headers that suit the first block, and the other blocks. They suit the
 * tail, if there is one.
 */
static void fill_group(const struct dequant_type *type, unsigned char *group,
                       const unsigned char *tail, uint64_t *random)
{
    const unsigned char *headers = type->tail_bytes > 0 ? tail : group;
    const size_t headers_bytes = (size_t)type->row_header_bytes * type->interleave_rows;
    const size_t stride_bytes = dequant_stride_bytes(type);
    unsigned char *block = group + headers_bytes;
    fill_block(type, headers, group, headers_bytes + stride_bytes, random);
    for (size_t i = 1; i < ROW_ELEMENTS / type->block_elements; i++)
        fill_block(type, headers, block += stride_bytes, stride_bytes, random);
}

/* The size of rows without the tail. */
static size_t rows_bytes(const struct dequant_type *type, uint64_t n_rows)
{
    uint64_t n_bytes = 0;
    dequant_rows_bytes(type, ROW_ELEMENTS, n_rows, &n_bytes);
    return (size_t)n_bytes - type->tail_bytes;
}

/* Write a tensor's data and padding. */
static bool write_data(FILE *file, const struct dequant_type *type, uint32_t mib)
{
    static unsigned char chunk[(size_t)ELEMENTS_PER_MIB * MOST_ELEMENT_BYTES];
    static const unsigned char zeros[ALIGNMENT_BYTES];
    const size_t n_bytes = rows_bytes(type, CHUNK_ROWS);
    unsigned char tail[DEQUANT_MAX_HEADER_BYTES] = {0};
    const float scale = 0.01F; /* at the start of a tail */
    uint64_t random = type->id;

    memcpy(tail, &scale, sizeof scale);
    for (size_t i = 0; i < n_bytes; i += rows_bytes(type, type->interleave_rows))
        fill_group(type, chunk + i, tail, &random);
    for (uint32_t i = 0; i < mib; i++) {
        if (fwrite(chunk, 1, n_bytes, file) != n_bytes)
            return false;
    }
    if (fwrite(tail, 1, type->tail_bytes, file) != type->tail_bytes)
        return false;
    const size_t over_bytes = (n_bytes * mib + type->tail_bytes) % ALIGNMENT_BYTES;
    return over_bytes == 0 || fwrite(zeros, ALIGNMENT_BYTES - over_bytes, 1, file) == 1;
}

/* Make everything before the data, which would not fit into the writer's memory. */
static int make_header(uint32_t mib, unsigned char **header, size_t *header_bytes)
{
    const uint64_t ne[2] = {ROW_ELEMENTS, (uint64_t)mib * ELEMENTS_PER_MIB / ROW_ELEMENTS};
    struct gguf_writer *w = gguf_writer_open(3, false);
    uint64_t offset = 0;

    gguf_writer_add_string(w, "general.architecture", "llama");
    gguf_writer_add_string(w, "general.name", "ggufs bench");
    for (size_t i = 0; i < dequant_type_count(); i++) {
        const struct dequant_type *type = dequant_type_at(i);
        if (!dequant_is_decodable(type))
            continue;
        gguf_writer_add_tensor(w, type->name, strlen(type->name), 2, ne, type->id, NULL, 0);
        gguf_writer_override_offset(w, offset);
        offset += (uint64_t)rows_bytes(type, CHUNK_ROWS) * mib + type->tail_bytes;
        offset = (offset + ALIGNMENT_BYTES - 1) / ALIGNMENT_BYTES * ALIGNMENT_BYTES;
    }
    return gguf_writer_finish(w, header, header_bytes);
}

static bool write_model(const char *path, uint32_t mib)
{
    unsigned char *header;
    size_t header_bytes;
    int error = make_header(mib, &header, &header_bytes);
    if (error) {
        errno = -error;
        return false;
    }
    FILE *file = fopen(path, "w");
    bool is_written = file && fwrite(header, 1, header_bytes, file) == header_bytes;
    free(header);
    for (size_t i = 0; is_written && i < dequant_type_count(); i++) {
        if (dequant_is_decodable(dequant_type_at(i)))
            is_written = write_data(file, dequant_type_at(i), mib);
    }
    if (file && fclose(file) != 0)
        is_written = false;
    return is_written;
}

int main(int argc, char **argv)
{
    unsigned long mib = DEFAULT_MIB;
    char *end = "";
    if (argc == 3)
        mib = strtoul(argv[2], &end, 10);
    if (argc < 2 || argc > 3 || argv[1][0] == '-' || *end != '\0' || mib < 1 || mib > MOST_MIB) {
        fprintf(stderr,
                "usage: make-bench OUT.gguf [MIB]\n"
                "  MIB  size of each tensor as float32, 1 to %d, default %d\n",
                MOST_MIB, DEFAULT_MIB);
        return EX_USAGE;
    }
    if (!write_model(argv[1], (uint32_t)mib)) {
        fprintf(stderr, "make-bench: %s: %s\n", argv[1], strerror(errno));
        return EX_IOERR;
    }
    return EX_OK;
}
