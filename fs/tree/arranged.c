#include "fs/tree/arranged.h"

#include "fs/tree/decoded.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/*
 * One dimension of the array, in which neighbours are closest in the tensor, is read by lines: its
 * elements for fixed indices of the others. The dimensions before it are counted together as the
 * outer index. Those after it are counted together as the number of the line: elements (outer, i,
 * line) are stored in the file as rows of n_lines elements.
 *
 * If there is one line, rows are decoded straight into the output. Otherwise, the array is read in
 * tiles, each with the elements of some lines for a range of i.
 */
struct fs_arranged {
    struct fs_arrangement of; /* without dimensions of size 1, and neighbours joined */
    struct fs_conversion conversion;
    uint64_t n_elements;
    unsigned line_dim;
    uint64_t n_lines;
    uint64_t tile_width; /* elements of a line in a tile */
    uint64_t tile_lines;
};

/* Elements of a tile: in float32, it fits the CPU's second cache. */
#define TILE_ELEMENTS 65536u
/* Elements of a line that are decoded at once: a multiple of all block sizes. */
#define PIECE_ELEMENTS 256u
/* A line of a larger stride than this is no better than the elements of the last dimension. */
#define NEAR_STRIDE 4u

static bool is_which(const struct fs_arrangement *of, unsigned dim)
{
    return of->tensors[1] && dim == of->which_dim;
}

/* Get the number of elements, and check that all lie in their tensors. */
static int check(const struct fs_arrangement *of, uint64_t *n_elements)
{
    uint64_t last = 0;

    *n_elements = 1;
    if (of->n_dims > FS_MAX_DIMS)
        return -EINVAL;
    for (unsigned i = 0; i < of->n_dims; i++) {
        if (__builtin_mul_overflow(*n_elements, of->size[i], n_elements))
            return -EOVERFLOW;
    }
    if (*n_elements == 0)
        return 0;
    for (unsigned i = 0; i < of->n_dims; i++) {
        uint64_t distance;

        if (is_which(of, i) && of->size[i] > 2)
            return -EINVAL;
        /* Repeated elements are of no use. */
        if (!is_which(of, i) && of->stride[i] == 0 && of->size[i] > 1)
            return -EINVAL;
        if (!is_which(of, i) &&
            (__builtin_mul_overflow(of->size[i] - 1, of->stride[i], &distance) ||
             __builtin_add_overflow(last, distance, &last)))
            return -EINVAL;
    }
    for (unsigned t = 0; t < 2 && of->tensors[t]; t++) {
        uint64_t end;

        if (__builtin_add_overflow(last, of->first[t], &end) || end >= of->tensors[t]->n_elements)
            return -EINVAL;
    }
    return 0;
}

/* Leave out dimensions of size 1, and join those that are also neighbours in the tensor. */
static void simplify(struct fs_arrangement *of)
{
    unsigned n_dims = 0, which_dim = FS_MAX_DIMS;

    for (unsigned i = 0; i < of->n_dims; i++) {
        const bool may_join = n_dims > 0 && n_dims - 1 != which_dim && !is_which(of, i);

        if (is_which(of, i)) {
            which_dim = n_dims;
        } else if (of->size[i] == 1) {
            continue;
        } else if (may_join && of->stride[n_dims - 1] == of->size[i] * of->stride[i]) {
            of->size[n_dims - 1] *= of->size[i];
            of->stride[n_dims - 1] = of->stride[i];
            continue;
        }
        of->size[n_dims] = of->size[i];
        of->stride[n_dims] = is_which(of, i) ? 0 : of->stride[i];
        n_dims++;
    }
    of->n_dims = n_dims;
    of->which_dim = which_dim;
    /* There must be a dimension to read lines of. */
    if (n_dims == 0 || (n_dims == 1 && which_dim == 0)) {
        of->size[n_dims] = 1;
        of->stride[n_dims] = 1;
        of->n_dims++;
    }
}

static unsigned choose_line_dim(const struct fs_arrangement *of)
{
    const unsigned last = of->n_dims - 1;
    unsigned best = last;

    if (!is_which(of, last) && of->stride[last] <= NEAR_STRIDE)
        return last;
    for (unsigned i = 0; i < of->n_dims; i++) {
        if (!is_which(of, i) && (is_which(of, best) || of->stride[i] < of->stride[best]))
            best = i;
    }
    return best;
}

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static void choose_tiles(struct fs_arranged *arranged)
{
    const uint64_t line_elements = arranged->of.size[arranged->line_dim];
    const uint64_t few_lines = least(arranged->n_lines, TILE_ELEMENTS / PIECE_ELEMENTS);

    arranged->tile_width =
        least(line_elements, TILE_ELEMENTS / few_lines / PIECE_ELEMENTS * PIECE_ELEMENTS);
    arranged->tile_lines = least(arranged->n_lines, TILE_ELEMENTS / arranged->tile_width);
}

int fs_arranged_make(const struct fs_arrangement *arrangement, enum fs_format format,
                     struct fs_arranged **arranged)
{
    struct fs_arranged *made;
    uint64_t n_elements;
    const int result = check(arrangement, &n_elements);

    *arranged = NULL;
    if (result < 0)
        return result;
    if (n_elements > INT64_MAX / fs_format_bytes(format))
        return -EOVERFLOW;
    made = calloc(1, sizeof *made);
    if (!made)
        return -ENOMEM;
    made->of = *arrangement;
    made->conversion = (struct fs_conversion){format, arrangement->map, arrangement->constant};
    made->n_elements = n_elements;
    made->n_lines = 1;
    *arranged = made;
    if (n_elements == 0)
        return 0;
    simplify(&made->of);
    made->line_dim = choose_line_dim(&made->of);
    for (unsigned i = made->line_dim + 1; i < made->of.n_dims; i++)
        made->n_lines *= made->of.size[i];
    choose_tiles(made);
    return 0;
}

void fs_arranged_free(struct fs_arranged *arranged)
{
    free(arranged);
}

uint64_t fs_arranged_size(const struct fs_arranged *arranged)
{
    return arranged->n_elements * fs_format_bytes(arranged->conversion.format);
}

const struct gguf_tensor *fs_arranged_tensor(const struct fs_arranged *arranged, unsigned index)
{
    return arranged->of.tensors[index];
}

bool fs_arranged_is_stored(const struct fs_arranged *arranged, uint64_t *offset)
{
    const struct fs_arrangement *of = &arranged->of;

    if (of->n_dims != 1 || of->stride[0] != 1 ||
        !fs_is_stored_as(of->tensors[0], &arranged->conversion))
        return false;
    *offset = of->first[0] * fs_format_bytes(arranged->conversion.format);
    return true;
}

/* ---- reading ---- */

/* A read, and what has been read of each tensor's file. */
struct reading {
    const struct gguf_model *model;
    const struct fs_arranged *arranged;
    uint64_t end_offset[2];
};

/* A line, or the part of it in a tile: where its first element is. */
struct line {
    unsigned tensor;
    uint64_t element;
};

/* Find the line with these indices, and its element `at`. */
static struct line find_line(const struct fs_arranged *arranged, uint64_t outer, uint64_t number,
                             uint64_t at)
{
    const struct fs_arrangement *of = &arranged->of;
    struct line line = {.element = at * of->stride[arranged->line_dim]};

    for (unsigned i = of->n_dims; i-- > 0;) {
        uint64_t *const index = i > arranged->line_dim ? &number : &outer;

        if (i == arranged->line_dim)
            continue;
        line.element += *index % of->size[i] * of->stride[i];
        if (i == of->which_dim)
            line.tensor = (unsigned)(*index % of->size[i]);
        *index /= of->size[i];
    }
    line.element += of->first[line.tensor];
    return line;
}

/* Write bytes `skip` to `skip + length` of the line from its first element, converted. */
static int read_line(struct reading *reading, struct line line, uint64_t skip, size_t length,
                     char *out)
{
    const struct fs_arranged *arranged = reading->arranged;
    const struct fs_conversion *conversion = &arranged->conversion;
    const size_t number_bytes = fs_format_bytes(conversion->format);
    const uint64_t stride = arranged->of.stride[arranged->line_dim];
    const uint64_t at_once = stride < PIECE_ELEMENTS ? PIECE_ELEMENTS / stride : 1;
    char piece[PIECE_ELEMENTS * sizeof(float)], numbers[PIECE_ELEMENTS * sizeof(float)];
    const struct gguf_tensor *tensor = arranged->of.tensors[line.tensor];
    int result = 0;

    if (stride == 1)
        return fs_decoded_read_unchecked(reading->model, tensor, conversion,
                                         line.element * number_bytes + skip, length, out,
                                         &reading->end_offset[line.tensor]);
    line.element += skip / number_bytes * stride;
    skip %= number_bytes;
    while (result == 0 && length > 0) {
        const size_t n = (size_t)least(at_once, (skip + length + number_bytes - 1) / number_bytes);
        const size_t n_read = (size_t)((n - 1) * stride + 1);
        const size_t n_bytes = (size_t)least(n * number_bytes - skip, length);

        result = fs_decoded_read_unchecked(reading->model, tensor, conversion,
                                           line.element * number_bytes, n_read * number_bytes,
                                           piece, &reading->end_offset[line.tensor]);
        for (size_t i = 0; i < n; i++)
            memcpy(numbers + i * number_bytes, piece + i * stride * number_bytes, number_bytes);
        memcpy(out, numbers + skip, n_bytes);
        line.element += n * stride;
        skip = 0;
        out += n_bytes;
        length -= n_bytes;
    }
    return result;
}

/* Read an array of one line per outer index. */
static int read_rows(struct reading *reading, uint64_t offset, size_t length, char *out)
{
    const struct fs_arranged *arranged = reading->arranged;
    const uint64_t row_bytes =
        arranged->of.size[arranged->line_dim] * fs_format_bytes(arranged->conversion.format);
    int result = 0;

    while (result == 0 && length > 0) {
        const uint64_t skip = offset % row_bytes;
        const size_t n = (size_t)least(row_bytes - skip, length);

        result = read_line(reading, find_line(arranged, offset / row_bytes, 0, 0), skip, n, out);
        offset += n;
        out += n;
        length -= n;
    }
    return result;
}

/* The elements (outer, first + i, first_line + line), i below `width`, line below n_lines. */
struct tile {
    uint64_t outer;
    uint64_t first;
    uint64_t first_line;
    size_t width;
    size_t n_lines;
};

/* Copy a matrix of numbers so that element (i, j) becomes (j, i). Pitches are in numbers. */
#define DEFINE_TRANSPOSE(bits)                                                                     \
    static void transpose##bits(const uint##bits##_t *from, size_t from_pitch, uint##bits##_t *to, \
                                size_t to_pitch, size_t n_rows, size_t n_columns)                  \
    {                                                                                              \
        for (size_t i = 0; i < n_columns; i++) {                                                   \
            for (size_t j = 0; j < n_rows; j++)                                                    \
                to[i * to_pitch + j] = from[j * from_pitch + i];                                   \
        }                                                                                          \
    }
DEFINE_TRANSPOSE(16)
DEFINE_TRANSPOSE(32)

/* Write the tile's elements to `out`: `width` rows of n_lines elements. */
static int read_tile(struct reading *reading, const struct tile *tile, char *out)
{
    enum { ROW_BYTES = 64, MAX_LINES = ROW_BYTES / sizeof(uint16_t) };
    const size_t number_bytes = fs_format_bytes(reading->arranged->conversion.format);
    const size_t at_once = ROW_BYTES / number_bytes;
    _Alignas(float) char piece[MAX_LINES * PIECE_ELEMENTS * sizeof(uint16_t)];

    for (size_t i = 0; i < tile->width; i += PIECE_ELEMENTS) {
        const size_t width = (size_t)least(tile->width - i, PIECE_ELEMENTS);

        for (size_t j = 0; j < tile->n_lines; j += at_once) {
            const size_t n_lines = (size_t)least(tile->n_lines - j, at_once);
            char *const to = out + (i * tile->n_lines + j) * number_bytes;

            for (size_t line = 0; line < n_lines; line++) {
                const int result = read_line(
                    reading,
                    find_line(reading->arranged, tile->outer, tile->first_line + j + line,
                              tile->first + i),
                    0, width * number_bytes, piece + line * PIECE_ELEMENTS * number_bytes);

                if (result < 0)
                    return result;
            }
            if (number_bytes == sizeof(uint16_t))
                transpose16((const uint16_t *)(const void *)piece, PIECE_ELEMENTS,
                            (uint16_t *)(void *)to, tile->n_lines, n_lines, width);
            else
                transpose32((const uint32_t *)(const void *)piece, PIECE_ELEMENTS,
                            (uint32_t *)(void *)to, tile->n_lines, n_lines, width);
        }
    }
    return 0;
}

/* Bytes of the array to be written. */
struct slice {
    uint64_t offset, end;
    char *out;
};

/* Copy the bytes of a tile that lie in the slice. If there are any, reads the tile to `numbers`. */
static int copy_tile(struct reading *reading, const struct tile *tile, const struct slice *slice,
                     char *numbers)
{
    const struct fs_arranged *arranged = reading->arranged;
    const size_t number_bytes = fs_format_bytes(arranged->conversion.format);
    const size_t tile_row_bytes = tile->n_lines * number_bytes;
    const uint64_t row = tile->outer * arranged->of.size[arranged->line_dim] + tile->first;
    bool is_read = false;

    for (size_t i = 0; i < tile->width; i++) {
        const uint64_t start = ((row + i) * arranged->n_lines + tile->first_line) * number_bytes;
        const uint64_t from = start > slice->offset ? start : slice->offset;
        const uint64_t to = least(start + tile_row_bytes, slice->end);

        if (from >= to)
            continue;
        if (!is_read) {
            const int result = read_tile(reading, tile, numbers);

            if (result < 0)
                return result;
            is_read = true;
        }
        memcpy(slice->out + (from - slice->offset), numbers + i * tile_row_bytes + (from - start),
               (size_t)(to - from));
    }
    return 0;
}

static int read_tiles(struct reading *reading, const struct slice *slice)
{
    const struct fs_arranged *arranged = reading->arranged;
    const uint64_t line_elements = arranged->of.size[arranged->line_dim];
    const uint64_t row_bytes = arranged->n_lines * fs_format_bytes(arranged->conversion.format);
    const uint64_t end_row = (slice->end - 1) / row_bytes + 1;
    char *numbers = malloc(TILE_ELEMENTS * sizeof(float));
    int result = numbers ? 0 : -ENOMEM;

    for (uint64_t row = slice->offset / row_bytes; result == 0 && row < end_row;) {
        struct tile tile = {.outer = row / line_elements};

        tile.first = row % line_elements / arranged->tile_width * arranged->tile_width;
        tile.width = (size_t)least(line_elements - tile.first, arranged->tile_width);
        while (result == 0 && tile.first_line < arranged->n_lines) {
            tile.n_lines = (size_t)least(arranged->n_lines - tile.first_line, arranged->tile_lines);
            result = copy_tile(reading, &tile, slice, numbers);
            tile.first_line += tile.n_lines;
        }
        row = tile.outer * line_elements + tile.first + tile.width;
    }
    free(numbers);
    return result;
}

int fs_arranged_read(const struct gguf_model *model, const struct fs_arranged *arranged,
                     uint64_t offset, size_t length, char *out)
{
    struct reading reading = {.model = model, .arranged = arranged};
    int result;

    if (length == 0)
        return 0;
    if (arranged->n_lines == 1)
        result = read_rows(&reading, offset, length, out);
    else
        result = read_tiles(&reading, &(struct slice){offset, offset + length, out});
    for (unsigned t = 0; result == 0 && t < 2; t++) {
        if (reading.end_offset[t] > 0)
            result = gguf_source_check(&model->files[arranged->of.tensors[t]->file_index],
                                       reading.end_offset[t]);
    }
    return result;
}
