#include "fs/tree/arranged.h"

#include "fs/tree/arranged_lines.h"
#include "fs/tree/arranged_tiles.h"
#include "fs/tree/tile_cache.h"

#include <errno.h>
#include <stdlib.h>

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
    fs_arranged_plan_tiles(made);
    return 0;
}

void fs_arranged_free(struct fs_arranged *arranged)
{
    if (arranged)
        fs_tiles_drop(arranged);
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

/* Read an array of one line per outer index. */
static int read_rows(struct fs_reading *reading, uint64_t offset, size_t length, char *out)
{
    const struct fs_arranged *arranged = reading->arranged;
    const uint64_t row_bytes =
        arranged->of.size[arranged->line_dim] * fs_format_bytes(arranged->conversion.format);
    int result = 0;

    while (result == 0 && length > 0) {
        const uint64_t skip = offset % row_bytes;
        const size_t n = (size_t)fs_least(row_bytes - skip, length);

        result = fs_line_read(reading, &(struct fs_line_element){.outer = offset / row_bytes}, skip,
                              n, out);
        offset += n;
        out += n;
        length -= n;
    }
    return result;
}

int fs_arranged_read(const struct gguf_model *model, const struct fs_arranged *arranged,
                     uint64_t offset, size_t length, char *out)
{
    struct fs_reading reading = {.model = model, .arranged = arranged};
    int result;

    if (length == 0)
        return 0;
    if (arranged->n_lines > 1)
        return fs_arranged_read_tiles(&reading, offset, length, out);
    result = read_rows(&reading, offset, length, out);
    for (unsigned t = 0; result == 0 && t < 2; t++) {
        if (reading.end_offset[t] > 0)
            result = gguf_source_check(&model->files[arranged->of.tensors[t]->file_index],
                                       reading.end_offset[t]);
    }
    return result;
}
