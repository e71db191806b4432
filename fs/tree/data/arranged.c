#include "fs/tree/data/arranged.h"

#include "fs/tree/data/element_runs.h"
#include "fs/tree/data/transpose.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>

/*
 * The dimension with the least stride is read by fibres: its elements for fixed indices of the
 * other dimensions. The dimensions before it are counted together as the outer index, the
 * dimensions after it as the number of the fibre. Elements (outer, i, fibre) of the view form rows
 * of n_fibres elements, one of each fibre. In the transpose of a 2 × 3 tensor, a b c / d e f, the
 * fibres are a b c and d e f, and the rows a d, b e, c f.
 *
 * If there is one fibre, rows are decoded straight into the output. Otherwise, a read goes through
 * bands: all fibres for a range of i. In a band, a few fibres at a time are decoded and transposed,
 * and copied to the rows.
 */
struct fs_arranged {
    struct fs_arrangement of;        /* without dimensions of size 1, and neighbours joined */
    const struct dequant_type *type; /* of the numbers */
    uint64_t n_elements;
    unsigned fibre_dim;
    uint64_t n_fibres;
};

/* The most elements of a fibre that are decoded at once: a multiple of each block size. */
#define PIECE_ELEMENTS 512u

/* A read, and what has been read of each tensor's file. */
struct reading {
    const struct gguf_model *model;
    const struct fs_arranged *arranged;
    uint64_t end_offset[2];
};

/* An element of a fibre: number `number` of the fibres with this outer index. */
struct fibre_element {
    uint64_t outer;
    uint64_t number;
    uint64_t at;
};

/* A fibre with a larger stride is not faster to read than the elements of the last dimension. */
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
    /* There must be a dimension to read fibres of. */
    if (n_dims == 0 || (n_dims == 1 && which_dim == 0)) {
        of->size[n_dims] = 1;
        of->stride[n_dims] = 1;
        of->n_dims++;
    }
}

static unsigned choose_fibre_dim(const struct fs_arrangement *of)
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

int fs_arranged_make(const struct fs_arrangement *arrangement, const struct dequant_type *type,
                     struct fs_arranged **arranged)
{
    struct fs_arranged *made;
    uint64_t n_elements;
    const int result = check(arrangement, &n_elements);

    *arranged = NULL;
    if (result < 0)
        return result;
    if (n_elements > INT64_MAX / type->block_bytes)
        return -EOVERFLOW;
    made = calloc(1, sizeof *made);
    if (!made)
        return -ENOMEM;
    made->of = *arrangement;
    made->type = type;
    made->n_elements = n_elements;
    made->n_fibres = 1;
    *arranged = made;
    if (n_elements == 0)
        return 0;
    simplify(&made->of);
    made->fibre_dim = choose_fibre_dim(&made->of);
    for (unsigned i = made->fibre_dim + 1; i < made->of.n_dims; i++)
        made->n_fibres *= made->of.size[i];
    return 0;
}

void fs_arranged_free(struct fs_arranged *arranged)
{
    free(arranged);
}

uint64_t fs_arranged_size(const struct fs_arranged *arranged)
{
    return arranged->n_elements * arranged->type->block_bytes;
}

const struct gguf_tensor *fs_arranged_tensor(const struct fs_arranged *arranged, unsigned index)
{
    return arranged->of.tensors[index];
}

static struct gguf_elements elements_of(const struct gguf_model *model,
                                        const struct fs_arranged *arranged, unsigned tensor)
{
    const struct fs_arrangement *of = &arranged->of;

    return (struct gguf_elements){model, of->tensors[tensor], arranged->type, of->map,
                                  of->constant};
}

bool fs_arranged_is_stored(const struct fs_arranged *arranged, uint64_t *offset)
{
    const struct fs_arrangement *of = &arranged->of;
    const struct gguf_elements elements = elements_of(NULL, arranged, 0);

    if (of->n_dims != 1 || of->stride[0] != 1 || !gguf_elements_are_stored(&elements))
        return false;
    *offset = of->first[0] * arranged->type->block_bytes;
    return true;
}

/* ---- fibres ---- */

/* A fibre, or the part of it in a band: where its first element is. */
struct fibre {
    unsigned tensor;
    uint64_t element;
};

/* Find the fibre with these indices, and its element `at`. */
static struct fibre find_fibre(const struct fs_arranged *arranged, uint64_t outer, uint64_t number,
                               uint64_t at)
{
    const struct fs_arrangement *of = &arranged->of;
    struct fibre fibre = {.element = at * of->stride[arranged->fibre_dim]};

    for (unsigned i = of->n_dims; i-- > 0;) {
        uint64_t *const index = i > arranged->fibre_dim ? &number : &outer;

        if (i == arranged->fibre_dim)
            continue;
        fibre.element += *index % of->size[i] * of->stride[i];
        if (i == of->which_dim)
            fibre.tensor = (unsigned)(*index % of->size[i]);
        *index /= of->size[i];
    }
    fibre.element += of->first[fibre.tensor];
    return fibre;
}

static int read_fibre(struct reading *reading, const struct fibre_element *from, uint64_t skip,
                      size_t length, char *out)
{
    const struct fs_arranged *arranged = reading->arranged;
    const size_t number_bytes = arranged->type->block_bytes;
    const uint64_t stride = arranged->of.stride[arranged->fibre_dim];
    const uint64_t at_once = stride < PIECE_ELEMENTS ? PIECE_ELEMENTS / stride : 1;
    struct fibre fibre = find_fibre(arranged, from->outer, from->number, from->at);
    char piece[PIECE_ELEMENTS * sizeof(float)], numbers[PIECE_ELEMENTS * sizeof(float)];
    const struct gguf_elements of = elements_of(reading->model, arranged, fibre.tensor);
    int result = 0;

    if (stride == 1)
        return gguf_elements_read_unchecked(&of, fibre.element * number_bytes + skip, length, out,
                                            &reading->end_offset[fibre.tensor]);
    fibre.element += skip / number_bytes * stride;
    skip %= number_bytes;
    while (result == 0 && length > 0) {
        const size_t n = (size_t)MIN(at_once, (skip + length + number_bytes - 1) / number_bytes);
        const size_t n_read = (size_t)((n - 1) * stride + 1);
        const size_t n_bytes = (size_t)MIN(n * number_bytes - skip, length);

        result =
            gguf_elements_read_unchecked(&of, fibre.element * number_bytes, n_read * number_bytes,
                                         piece, &reading->end_offset[fibre.tensor]);
        for (size_t i = 0; i < n; i++)
            memcpy(numbers + i * number_bytes, piece + i * stride * number_bytes, number_bytes);
        memcpy(out, numbers + skip, n_bytes);
        fibre.element += n * stride;
        skip = 0;
        out += n_bytes;
        length -= n_bytes;
    }
    return result;
}

static int read_fibres(struct reading *reading, const struct fibre_element *from, size_t n_fibres,
                       size_t n_next, size_t width, char *out)
{
    const struct fs_arranged *arranged = reading->arranged;
    const struct fs_arrangement *of = &arranged->of;
    const unsigned last = of->n_dims - 1;
    const size_t n_bytes = width * arranged->type->block_bytes;
    int result = 0;

    /* Lines with the same indices but the last one lie at equal distances. */
    if (of->stride[arranged->fibre_dim] == 1 && last != arranged->fibre_dim &&
        last != of->which_dim && of->stride[last] >= width &&
        from->number % of->size[last] + n_fibres <= of->size[last]) {
        const struct fibre fibre = find_fibre(arranged, from->outer, from->number, from->at);
        const struct gguf_elements elements = elements_of(reading->model, arranged, fibre.tensor);

        return fs_element_runs_read(
            &elements,
            &(struct fs_element_runs){fibre.element, of->stride[last], n_fibres, n_next, width},
            out, &reading->end_offset[fibre.tensor]);
    }
    for (size_t i = 0; result == 0 && i < n_fibres; i++)
        result =
            read_fibre(reading, &(struct fibre_element){from->outer, from->number + i, from->at}, 0,
                       n_bytes, out + i * n_bytes);
    return result;
}

/* ---- bands ---- */

struct slice {
    uint64_t offset, end;
    char *out;
};

/* Fibres that fill a line of the CPU's cache in each row. */
enum { MAX_FIBRES = 64 / sizeof(uint16_t) };

/*
 * Write what lies in the slice of rows `first` to `first` + width: fibres are read side by side and
 * turned into rows.
 */
static int read_band(struct reading *reading, uint64_t outer, uint64_t first, size_t width,
                     struct slice slice)
{
    const struct fs_arranged *arranged = reading->arranged;
    const size_t number_bytes = arranged->type->block_bytes;
    const size_t at_once = 64 / number_bytes;
    const uint64_t fibre_elements = arranged->of.size[arranged->fibre_dim];
    _Alignas(float) char fibres[sizeof(uint16_t) * MAX_FIBRES * PIECE_ELEMENTS];
    _Alignas(float) char rows[sizeof(uint16_t) * MAX_FIBRES * PIECE_ELEMENTS];
    int result = 0;

    for (uint64_t j = 0; result == 0 && j < arranged->n_fibres; j += at_once) {
        const size_t n_fibres = (size_t)MIN(arranged->n_fibres - j, at_once);

        result = read_fibres(reading, &(struct fibre_element){outer, j, first}, n_fibres,
                             (size_t)(arranged->n_fibres - j - n_fibres), width, fibres);
        if (result < 0)
            break;
        (number_bytes == sizeof(uint16_t) ? fs_transpose16 : fs_transpose32)(
            fibres, width * number_bytes, rows, at_once * number_bytes, n_fibres, width);
        for (size_t i = 0; i < width; i++) {
            const uint64_t row = outer * fibre_elements + first + i;
            const uint64_t at = (row * arranged->n_fibres + j) * number_bytes;
            const uint64_t from = at > slice.offset ? at : slice.offset;
            const uint64_t to = MIN(at + n_fibres * number_bytes, slice.end);

            if (from < to)
                memcpy(slice.out + (from - slice.offset),
                       rows + i * at_once * number_bytes + (from - at), (size_t)(to - from));
        }
    }
    return result;
}

static int read_bands(struct reading *reading, uint64_t offset, size_t length, char *out)
{
    const struct fs_arranged *arranged = reading->arranged;
    const uint64_t row_bytes = arranged->n_fibres * arranged->type->block_bytes;
    const uint64_t fibre_elements = arranged->of.size[arranged->fibre_dim];
    const uint64_t end = (offset + length - 1) / row_bytes + 1;
    const uint64_t block = arranged->of.tensors[0]->type->block_elements;
    int result = 0;

    for (uint64_t row = offset / row_bytes, width; result == 0 && row < end; row += width) {
        const uint64_t outer = row / fibre_elements, first = row % fibre_elements;

        /* The next band begins with a block, so that none is decoded twice. */
        width = MIN(PIECE_ELEMENTS - first % block, fibre_elements - first);
        width = MIN(width, end - row);
        result = read_band(reading, outer, first, (size_t)width,
                           (struct slice){offset, offset + length, out});
    }
    return result;
}

/* ---- reading ---- */

/* Read an array of one fibre per outer index. */
static int read_rows(struct reading *reading, uint64_t offset, size_t length, char *out)
{
    const struct fs_arranged *arranged = reading->arranged;
    const uint64_t row_bytes = arranged->of.size[arranged->fibre_dim] * arranged->type->block_bytes;
    int result = 0;

    while (result == 0 && length > 0) {
        const uint64_t skip = offset % row_bytes;
        const size_t n = (size_t)MIN(row_bytes - skip, length);

        result =
            read_fibre(reading, &(struct fibre_element){.outer = offset / row_bytes}, skip, n, out);
        offset += n;
        out += n;
        length -= n;
    }
    return result;
}

int fs_arranged_read(const struct gguf_model *model, const struct fs_arranged *arranged,
                     uint64_t offset, size_t length, char *out)
{
    struct reading reading = {.model = model, .arranged = arranged};
    int result;

    if (length == 0)
        return 0;
    result = (arranged->n_fibres > 1 ? read_bands : read_rows)(&reading, offset, length, out);
    for (unsigned t = 0; result == 0 && t < 2; t++) {
        if (reading.end_offset[t] > 0)
            result = gguf_file_check(&model->files[arranged->of.tensors[t]->file_index],
                                     reading.end_offset[t]);
    }
    return result;
}
