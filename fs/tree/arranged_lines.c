#include "fs/tree/arranged_lines.h"

#include "fs/tree/decoded.h"

#include <string.h>

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

int fs_line_read(struct fs_reading *reading, const struct fs_line_element *from, uint64_t skip,
                 size_t length, char *out)
{
    const struct fs_arranged *arranged = reading->arranged;
    const struct fs_conversion *conversion = &arranged->conversion;
    const size_t number_bytes = fs_format_bytes(conversion->format);
    const uint64_t stride = arranged->of.stride[arranged->line_dim];
    const uint64_t at_once = stride < FS_PIECE_ELEMENTS ? FS_PIECE_ELEMENTS / stride : 1;
    struct line line = find_line(arranged, from->outer, from->number, from->at);
    char piece[FS_PIECE_ELEMENTS * sizeof(float)], numbers[FS_PIECE_ELEMENTS * sizeof(float)];
    const struct gguf_tensor *tensor = arranged->of.tensors[line.tensor];
    int result = 0;

    if (stride == 1)
        return fs_decoded_read_unchecked(reading->model, tensor, conversion,
                                         line.element * number_bytes + skip, length, out,
                                         &reading->end_offset[line.tensor]);
    line.element += skip / number_bytes * stride;
    skip %= number_bytes;
    while (result == 0 && length > 0) {
        const size_t n =
            (size_t)fs_least(at_once, (skip + length + number_bytes - 1) / number_bytes);
        const size_t n_read = (size_t)((n - 1) * stride + 1);
        const size_t n_bytes = (size_t)fs_least(n * number_bytes - skip, length);

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

int fs_lines_read(struct fs_reading *reading, const struct fs_line_element *from, size_t n_lines,
                  size_t n_next, size_t width, char *out)
{
    const struct fs_arranged *arranged = reading->arranged;
    const struct fs_arrangement *of = &arranged->of;
    const unsigned last = of->n_dims - 1;
    const size_t n_bytes = width * fs_format_bytes(arranged->conversion.format);
    int result = 0;

    /* Lines with the same indices but the last one lie at equal distances. */
    if (of->stride[arranged->line_dim] == 1 && last != arranged->line_dim &&
        last != of->which_dim && of->stride[last] >= width &&
        from->number % of->size[last] + n_lines <= of->size[last]) {
        const struct line line = find_line(arranged, from->outer, from->number, from->at);

        return fs_decoded_read_lines(
            reading->model, of->tensors[line.tensor], &arranged->conversion,
            &(struct fs_lines){line.element, of->stride[last], n_lines, n_next, width}, out,
            &reading->end_offset[line.tensor]);
    }
    for (size_t i = 0; result == 0 && i < n_lines; i++)
        result = fs_line_read(reading,
                              &(struct fs_line_element){from->outer, from->number + i, from->at}, 0,
                              n_bytes, out + i * n_bytes);
    return result;
}
