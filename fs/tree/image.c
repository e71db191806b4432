#include "fs/tree/image.h"

#include "fs/tree/converted.h"
#include "fs/tree/decoded.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void fs_image_begin(struct fs_image *image, const struct gguf_model *model)
{
    *image = (struct fs_image){.model = model};
}

void fs_image_free(struct fs_image *image)
{
    for (size_t i = 0; i < image->n_owned; i++)
        free(image->owned[i]);
    free(image->owned);
    free(image->segments);
    *image = (struct fs_image){0};
}

/* Makes room for another entry of a list that grows by doubling. */
static int make_room(void **list, size_t *room, size_t used, size_t entry_bytes)
{
    const size_t more = *room ? 2 * *room : 4;
    void *grown;

    if (used < *room)
        return 0;
    grown = reallocarray(*list, more, entry_bytes);
    if (!grown)
        return -ENOMEM;
    *list = grown;
    *room = more;
    return 0;
}

static int add(struct fs_image *image, struct fs_segment segment, uint64_t length)
{
    void *segments = image->segments;
    int result;

    if (length == 0)
        return 0;
    if (__builtin_add_overflow(image->size_bytes, length, &segment.end) || segment.end > INT64_MAX)
        return -EOVERFLOW;
    result = make_room(&segments, &image->room, image->n_segments, sizeof segment);
    if (result < 0)
        return result;
    image->segments = segments;
    image->segments[image->n_segments++] = segment;
    image->size_bytes = segment.end;
    return 0;
}

int fs_image_add_literal(struct fs_image *image, const char *literal)
{
    return add(image, (struct fs_segment){.kind = FS_LITERAL, .literal = literal}, strlen(literal));
}

static int own(struct fs_image *image, char *bytes)
{
    char **owned = reallocarray(image->owned, image->n_owned + 1, sizeof *owned);

    if (!owned) {
        free(bytes);
        return -ENOMEM;
    }
    image->owned = owned;
    image->owned[image->n_owned++] = bytes;
    return 0;
}

int fs_image_add_owned(struct fs_image *image, char *bytes, size_t n_bytes)
{
    const int result = own(image, bytes);

    if (result < 0)
        return result;
    return add(image, (struct fs_segment){.kind = FS_LITERAL, .literal = bytes}, n_bytes);
}

int fs_image_add_zeros(struct fs_image *image, uint64_t n_bytes)
{
    return add(image, (struct fs_segment){.kind = FS_ZEROS}, n_bytes);
}

int fs_image_add_source(struct fs_image *image, const struct gguf_source *file, uint64_t offset,
                        uint64_t n_bytes)
{
    return add(image, (struct fs_segment){.kind = FS_SOURCE, .source = {file, offset}}, n_bytes);
}

int fs_image_add_json_string(struct fs_image *image, struct gguf_string string)
{
    struct fs_text text = {.capacity = FS_JSON_STRING_BYTES(string.length_bytes)};
    char *shrunk;

    text.data = malloc(text.capacity);
    if (!text.data)
        return -ENOMEM;
    fs_json_string(&text, string);
    shrunk = realloc(text.data, text.length);
    if (shrunk)
        text.data = shrunk;
    return fs_image_add_owned(image, text.data, text.length);
}

int fs_image_add_data(struct fs_image *image, const struct gguf_tensor *tensor)
{
    return fs_image_add_source(image, &image->model->files[tensor->file_index], tensor->file_offset,
                               tensor->size_bytes);
}

int fs_image_add_modern_data(struct fs_image *image, const struct gguf_tensor *tensor)
{
    const bool is_swapped = tensor->big_endian && dequant_has_byte_order(tensor->type);

    if (!is_swapped && tensor->type == dequant_modern(tensor->type))
        return fs_image_add_data(image, tensor);
    return add(image, (struct fs_segment){.kind = FS_CONVERTED, .tensor = tensor},
               tensor->size_bytes);
}

int fs_image_add_values(struct fs_image *image, const struct gguf_tensor *tensor)
{
    uint64_t size_bytes;

    if (__builtin_mul_overflow(tensor->n_elements, (uint64_t)sizeof(float), &size_bytes))
        return -EOVERFLOW;
    if (tensor->type->id == DEQUANT_F32 && !tensor->big_endian)
        return fs_image_add_data(image, tensor); /* they are what is stored */
    return add(image, (struct fs_segment){.kind = FS_DECODED, .tensor = tensor}, size_bytes);
}

int fs_image_add_text(struct fs_image *image, fs_text_writer *write, const void *subject,
                      size_t length, size_t capacity)
{
    return add(image, (struct fs_segment){.kind = FS_TEXT, .text = {write, subject, capacity}},
               length);
}

/* The file that a segment has bytes of, or NULL. */
static const struct gguf_source *source_of(const struct fs_image *image,
                                           const struct fs_segment *segment)
{
    switch (segment->kind) {
    case FS_SOURCE:
        return segment->source.file;
    case FS_CONVERTED:
    case FS_DECODED:
        return &image->model->files[segment->tensor->file_index];
    default:
        return NULL;
    }
}

int fs_image_check(const struct fs_image *image)
{
    const struct gguf_source *last = &image->model->files[0];

    if (gguf_source_check(last, 0) == -ESTALE)
        return -ESTALE;
    for (size_t i = 0; i < image->n_segments; i++) {
        const struct gguf_source *source = source_of(image, &image->segments[i]);

        if (!source || source == last)
            continue;
        last = source;
        if (gguf_source_check(source, 0) == -ESTALE)
            return -ESTALE;
    }
    return 0;
}

/* A slice of one segment. */
struct slice {
    const struct fs_image *image;
    const struct fs_segment *segment;
    uint64_t offset; /* from the start of the segment */
    size_t length;
    char *out;
};

static int read_text(const struct slice *slice, uint64_t segment_bytes)
{
    const struct fs_segment *segment = slice->segment;
    const size_t capacity = slice->segment->text.capacity;
    struct fs_text text = {malloc(capacity), 0, capacity};
    int result;

    if (!text.data)
        return -ENOMEM;
    result = segment->text.write(slice->image->model, segment->text.subject, &text);
    if (result == 0 && text.length != segment_bytes)
        result = -EIO; /* a writer that is not always the same */
    if (result == 0)
        memcpy(slice->out, text.data + slice->offset, slice->length);
    free(text.data);
    return result;
}

static int read_slice(const struct slice *slice, uint64_t segment_bytes)
{
    const struct fs_segment *segment = slice->segment;

    switch (segment->kind) {
    case FS_LITERAL:
        memcpy(slice->out, segment->literal + slice->offset, slice->length);
        return 0;
    case FS_SOURCE:
        return gguf_source_read(segment->source.file, segment->source.offset + slice->offset,
                                slice->length, slice->out);
    case FS_CONVERTED:
        return fs_converted_read(slice->image->model, segment->tensor, slice->offset, slice->length,
                                 slice->out);
    case FS_DECODED:
        return fs_decoded_read(slice->image->model, segment->tensor, slice->offset, slice->length,
                               slice->out);
    case FS_TEXT:
        return read_text(slice, segment_bytes);
    case FS_ZEROS:
        memset(slice->out, 0, slice->length);
        return 0;
    }
    return -EINVAL;
}

/* The first segment that ends behind `offset`, which lies in the image. */
static size_t segment_at(const struct fs_image *image, uint64_t offset)
{
    size_t low = 0, high = image->n_segments;

    while (low < high) {
        const size_t middle = low + (high - low) / 2;

        if (image->segments[middle].end > offset)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

ssize_t fs_image_read(const struct fs_image *image, uint64_t offset, size_t length, char *out)
{
    size_t done = 0;

    if (offset >= image->size_bytes)
        return 0;
    if (length > image->size_bytes - offset)
        length = (size_t)(image->size_bytes - offset);
    for (size_t i = segment_at(image, offset); done < length; i++) {
        const struct fs_segment *segment = &image->segments[i];
        const uint64_t start = i ? image->segments[i - 1].end : 0;
        const uint64_t left = segment->end - offset - done;
        const size_t n = left < length - done ? (size_t)left : length - done;
        const int result = read_slice(&(struct slice){.image = image,
                                                      .segment = segment,
                                                      .offset = offset + done - start,
                                                      .length = n,
                                                      .out = out + done},
                                      segment->end - start);

        if (result < 0)
            return result;
        done += n;
    }
    return (ssize_t)done;
}
