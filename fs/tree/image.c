#include "fs/tree/image.h"

#include "fs/tree/converted.h"
#include "fs/tree/decoded.h"
#include "fs/tree/encoded.h"
#include "fs/tree/importance.h"
#include "gguf/support/grow.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Texts from this size on are worth keeping: writing them again takes long. */
#define LONG_TEXT_BYTES (256u << 10)

void fs_image_begin(struct fs_image *image, const struct gguf_model *model)
{
    *image = (struct fs_image){.model = model};
}

void fs_image_free(struct fs_image *image)
{
    for (size_t i = 0; i < image->n_segments; i++) {
        if (image->segments[i].kind == FS_TEXT)
            fs_text_free(image->segments[i].text);
        else if (image->segments[i].kind == FS_ARRANGED)
            fs_arranged_free(image->segments[i].arranged);
        else if (image->segments[i].kind == FS_MADE)
            free(image->segments[i].made);
        else if (image->segments[i].kind == FS_CHECKSUMS)
            fs_checksums_free(image->segments[i].checksums);
    }
    free(image->segments);
    *image = (struct fs_image){0};
}

static int add(struct fs_image *image, struct fs_segment segment, uint64_t length)
{
    struct fs_segment *segments;

    if (length == 0)
        return 0;
    if (__builtin_add_overflow(image->size_bytes, length, &segment.end) || segment.end > INT64_MAX)
        return -EOVERFLOW;
    segments = gguf_grow(image->segments, &image->room, image->n_segments + 1, sizeof segment);
    if (!segments)
        return -ENOMEM;
    image->segments = segments;
    segments[image->n_segments++] = segment;
    image->size_bytes = segment.end;
    return 0;
}

int fs_image_add_literal(struct fs_image *image, const char *literal)
{
    return add(image, (struct fs_segment){.kind = FS_LITERAL, .literal = literal}, strlen(literal));
}

int fs_image_add_number(struct fs_image *image, uint64_t number)
{
    return add(image, (struct fs_segment){.kind = FS_NUMBER, .number = number}, sizeof number);
}

int fs_image_add_zeros(struct fs_image *image, uint64_t n_bytes)
{
    return add(image, (struct fs_segment){.kind = FS_ZEROS}, n_bytes);
}

int fs_image_add_source(struct fs_image *image, const struct gguf_source *source, uint64_t offset,
                        uint64_t n_bytes)
{
    return add(image, (struct fs_segment){.kind = FS_SOURCE_BYTES, .bytes = {source, offset}},
               n_bytes);
}

int fs_image_add_data(struct fs_image *image, const struct gguf_tensor *tensor)
{
    return fs_image_add_source(image, &image->model->files[tensor->file_index], tensor->file_offset,
                               tensor->size_bytes);
}

int fs_exported_size(const struct gguf_tensor *tensor, const struct dequant_type *type,
                     uint64_t *size_bytes)
{
    if (type == tensor->type) { /* maybe with row headers */
        *size_bytes = tensor->size_bytes;
        return 0;
    }
    if (__builtin_mul_overflow(tensor->n_elements / type->block_elements,
                               (uint64_t)type->block_bytes, size_bytes))
        return -EOVERFLOW;
    return 0;
}

int fs_image_add_exported(struct fs_image *image, const struct gguf_tensor *tensor,
                          const struct dequant_type *type)
{
    const bool is_swapped = tensor->big_endian && dequant_has_byte_order(tensor->type);
    uint64_t size_bytes;

    if (fs_exported_size(tensor, type, &size_bytes) < 0)
        return -EOVERFLOW;
    if (type == tensor->type && !is_swapped)
        return fs_image_add_data(image, tensor);
    /* F32 in place of old blocks is decoded. */
    if (type == dequant_modern(tensor->type) && (type == tensor->type || type->id != DEQUANT_F32))
        return add(image, (struct fs_segment){.kind = FS_CONVERTED, .converted = tensor},
                   size_bytes);
    for (enum fs_format format = FS_F32; format <= FS_BF16; format++) {
        if (type == fs_format_type(format))
            return fs_image_add_elements(image, tensor, format);
    }
    return add(image, (struct fs_segment){.kind = FS_ENCODED, .encoded = {tensor, type}},
               size_bytes);
}

int fs_elements_size(const struct gguf_tensor *tensor, enum fs_format format, uint64_t *size_bytes)
{
    if (__builtin_mul_overflow(tensor->n_elements, (uint64_t)fs_format_bytes(format), size_bytes))
        return -EOVERFLOW;
    return 0;
}

int fs_image_add_elements(struct fs_image *image, const struct gguf_tensor *tensor,
                          enum fs_format format)
{
    uint64_t size_bytes;

    if (fs_elements_size(tensor, format, &size_bytes) < 0)
        return -EOVERFLOW;
    if (fs_is_stored_as(tensor, &(struct fs_conversion){.format = format}))
        return fs_image_add_data(image, tensor);
    return add(image, (struct fs_segment){.kind = FS_ELEMENTS, .elements = {tensor, format}},
               size_bytes);
}

int fs_image_add_arranged(struct fs_image *image, const struct fs_arrangement *arrangement,
                          enum fs_format format)
{
    struct fs_arranged *arranged;
    uint64_t size_bytes, offset;
    int result = fs_arranged_make(arrangement, format, &arranged);

    if (result < 0)
        return result;
    size_bytes = fs_arranged_size(arranged);
    if (fs_arranged_is_stored(arranged, &offset)) {
        const struct gguf_tensor *tensor = arrangement->tensors[0];

        fs_arranged_free(arranged);
        return fs_image_add_source(image, &image->model->files[tensor->file_index],
                                   tensor->file_offset + offset, size_bytes);
    }
    result = add(image, (struct fs_segment){.kind = FS_ARRANGED, .arranged = arranged}, size_bytes);
    if (result < 0 || size_bytes == 0)
        fs_arranged_free(arranged);
    return result;
}

int fs_image_add_importance(struct fs_image *image, const struct gguf_tensor *sums,
                            const struct gguf_tensor *counts)
{
    uint64_t size_bytes;

    if (fs_elements_size(sums, FS_F32, &size_bytes) < 0)
        return -EOVERFLOW;
    return add(image, (struct fs_segment){.kind = FS_IMPORTANCE, .importance = {sums, counts}},
               size_bytes);
}

int fs_image_add_text(struct fs_image *image, fs_text_writer *write, const struct fs_tree *tree,
                      const void *subject, const struct fs_interrupt *interrupt)
{
    struct fs_text *text;
    int result = fs_text_make(write, tree, subject, interrupt, &text);

    if (result < 0)
        return result;
    result = add(image, (struct fs_segment){.kind = FS_TEXT, .text = text}, fs_text_size(text));
    if (result < 0 || fs_text_size(text) == 0)
        fs_text_free(text);
    return result;
}

int fs_image_add_made(struct fs_image *image, char *bytes, uint64_t n_bytes)
{
    const int result = add(image, (struct fs_segment){.kind = FS_MADE, .made = bytes}, n_bytes);

    if (result < 0 || n_bytes == 0)
        free(bytes);
    return result;
}

int fs_image_add_checksums(struct fs_image *image, struct fs_checksums *checksums)
{
    const uint64_t n_bytes = fs_checksums_length(checksums);
    const int result =
        add(image, (struct fs_segment){.kind = FS_CHECKSUMS, .checksums = checksums}, n_bytes);

    if (result < 0 || n_bytes == 0)
        fs_checksums_free(checksums);
    return result;
}

bool fs_image_is_slow(const struct fs_image *image)
{
    return image->n_segments == 1 && image->segments[0].kind == FS_CHECKSUMS;
}

static bool is_growing(const struct gguf_model *model)
{
    for (uint32_t i = 0; i < model->n_files; i++) {
        if (model->files[i].is_growing)
            return true;
    }
    return false;
}

bool fs_image_is_worth_keeping(const struct fs_image *image)
{
    uint64_t text_bytes = 0, memory_bytes = image->room * sizeof *image->segments;

    if (fs_image_is_slow(image))
        return !is_growing(image->model);
    for (size_t i = 0; i < image->n_segments; i++) {
        if (image->segments[i].kind != FS_TEXT)
            continue;
        text_bytes += fs_text_size(image->segments[i].text);
        memory_bytes += fs_text_memory(image->segments[i].text);
    }
    return text_bytes >= LONG_TEXT_BYTES && memory_bytes <= text_bytes / 100;
}

/* Return one of the at most two files whose bytes a segment holds, or NULL. */
static const struct gguf_source *source_of(const struct fs_image *image,
                                           const struct fs_segment *segment, unsigned index)
{
    const struct gguf_tensor *tensor = NULL;

    if (segment->kind == FS_ARRANGED)
        tensor = fs_arranged_tensor(segment->arranged, index);
    else if (segment->kind == FS_IMPORTANCE)
        tensor = index == 0 ? segment->importance.sums : segment->importance.counts;
    else if (index > 0)
        return NULL;
    else if (segment->kind == FS_SOURCE_BYTES)
        return segment->bytes.source;
    else if (segment->kind == FS_CONVERTED)
        tensor = segment->converted;
    else if (segment->kind == FS_ELEMENTS)
        tensor = segment->elements.tensor;
    else if (segment->kind == FS_ENCODED)
        tensor = segment->encoded.tensor;
    return tensor ? &image->model->files[tensor->file_index] : NULL;
}

int fs_image_check(const struct fs_image *image)
{
    const struct gguf_source *last = &image->model->files[0];

    if (gguf_source_check(last, 0) == -ESTALE)
        return -ESTALE;
    for (size_t i = 0; i < 2 * image->n_segments; i++) {
        const struct gguf_source *source =
            source_of(image, &image->segments[i / 2], (unsigned)(i % 2));

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
    const struct fs_interrupt *interrupt;
    char *out;
};

static int read_slice(const struct slice *slice)
{
    const struct fs_segment *segment = slice->segment;

    switch (segment->kind) {
    case FS_LITERAL:
        memcpy(slice->out, segment->literal + slice->offset, slice->length);
        return 0;
    case FS_NUMBER:
        memcpy(slice->out, (const char *)&segment->number + slice->offset, slice->length);
        return 0;
    case FS_SOURCE_BYTES:
        return gguf_source_read(segment->bytes.source, segment->bytes.offset + slice->offset,
                                slice->length, slice->out);
    case FS_CONVERTED:
        return fs_converted_read(slice->image->model, segment->converted, slice->offset,
                                 slice->length, slice->out);
    case FS_ELEMENTS:
        return fs_decoded_read(slice->image->model, segment->elements.tensor,
                               &(struct fs_conversion){.format = segment->elements.format},
                               slice->offset, slice->length, slice->out);
    case FS_ENCODED:
        return fs_encoded_read(slice->image->model, segment->encoded.tensor, segment->encoded.type,
                               slice->offset, slice->length, slice->out);
    case FS_ARRANGED:
        return fs_arranged_read(slice->image->model, segment->arranged, slice->offset,
                                slice->length, slice->out);
    case FS_IMPORTANCE:
        return fs_importance_read(slice->image->model, segment->importance.sums,
                                  segment->importance.counts, slice->offset, slice->length,
                                  slice->out);
    case FS_TEXT:
        return fs_text_read(segment->text, slice->offset, slice->length, slice->out);
    case FS_MADE:
        memcpy(slice->out, segment->made + slice->offset, slice->length);
        return 0;
    case FS_CHECKSUMS:
        return fs_checksums_read(segment->checksums, slice->offset, slice->length, slice->interrupt,
                                 slice->out);
    case FS_ZEROS:
        memset(slice->out, 0, slice->length);
        return 0;
    }
    return -EINVAL;
}

bool fs_image_is_of_source(const struct fs_image *image, const struct gguf_source **source,
                           uint64_t *offset)
{
    if (image->n_segments != 1 || image->segments[0].kind != FS_SOURCE_BYTES)
        return false;
    *source = image->segments[0].bytes.source;
    *offset = image->segments[0].bytes.offset;
    return true;
}

/* Return the first segment that ends after `offset`, which lies in the image. */
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

ssize_t fs_image_read_interruptible(const struct fs_image *image, uint64_t offset, size_t length,
                                    const struct fs_interrupt *interrupt, char *out)
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
                                                      .interrupt = interrupt,
                                                      .out = out + done});

        if (result < 0)
            return result;
        done += n;
    }
    return (ssize_t)done;
}
