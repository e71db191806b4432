#include "fs/tree/core/image.h"

#include "gguf/support/arrays.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void fs_image_begin(struct fs_image *image, const struct gguf_model *model)
{
    *image = (struct fs_image){.model = model};
}

static void free_segment(struct fs_segment *segment)
{
    if (segment->ops->free)
        segment->ops->free(segment);
}

void fs_image_free(struct fs_image *image)
{
    for (size_t i = 0; i < image->n_segments; i++)
        free_segment(&image->segments[i]);
    free(image->segments);
    *image = (struct fs_image){0};
}

int fs_image_add(struct fs_image *image, struct fs_segment segment, uint64_t n_bytes)
{
    int result = 0;

    if (__builtin_add_overflow(image->size_bytes, n_bytes, &segment.end) || segment.end > INT64_MAX)
        result = -EOVERFLOW;
    if (result == 0 && n_bytes > 0)
        result =
            gguf_reserve(&image->segments, &image->room, image->n_segments + 1, sizeof segment);
    if (result < 0 || n_bytes == 0) {
        free_segment(&segment);
        return result;
    }
    image->segments[image->n_segments++] = segment;
    image->size_bytes = segment.end;
    return 0;
}

/* ---- segments of bytes ---- */

static int read_zeros(const struct fs_image *image, const struct fs_segment *segment,
                      uint64_t offset, size_t length, const struct fs_interrupt *interrupt,
                      char *out)
{
    (void)image, (void)segment, (void)offset, (void)interrupt;
    memset(out, 0, length);
    return 0;
}

int fs_image_add_zeros(struct fs_image *image, uint64_t n_bytes)
{
    static const struct fs_segment_ops ops = {.read = read_zeros};

    return fs_image_add(image, (struct fs_segment){.ops = &ops}, n_bytes);
}

static int read_source(const struct fs_image *image, const struct fs_segment *segment,
                       uint64_t offset, size_t length, const struct fs_interrupt *interrupt,
                       char *out)
{
    (void)image, (void)interrupt;
    return gguf_file_read(segment->of, segment->offset + offset, length, out);
}

static const struct gguf_file *source_itself(const struct fs_image *image,
                                             const struct fs_segment *segment, unsigned index)
{
    return index == 0 ? segment->of : NULL;
}

static const struct fs_segment_ops source_ops = {.read = read_source, .source = source_itself};

int fs_image_add_source(struct fs_image *image, const struct gguf_file *source, uint64_t offset,
                        uint64_t n_bytes)
{
    return fs_image_add(
        image, (struct fs_segment){.ops = &source_ops, .of = source, .offset = offset}, n_bytes);
}

static int read_made(const struct fs_image *image, const struct fs_segment *segment,
                     uint64_t offset, size_t length, const struct fs_interrupt *interrupt,
                     char *out)
{
    (void)image, (void)interrupt;
    memcpy(out, (const char *)segment->of + offset, length);
    return 0;
}

static void free_made(struct fs_segment *segment)
{
    free((void *)(uintptr_t)segment->of);
}

int fs_image_add_made(struct fs_image *image, char *bytes, uint64_t n_bytes)
{
    static const struct fs_segment_ops ops = {.read = read_made, .free = free_made};

    return fs_image_add(image, (struct fs_segment){.ops = &ops, .of = bytes}, n_bytes);
}

/* ---- what an image is ---- */

bool fs_image_is_slow(const struct fs_image *image)
{
    return image->n_segments == 1 && image->segments[0].ops->is_slow;
}

static bool is_growing(const struct gguf_model *model)
{
    for (uint32_t i = 0; i < model->n_files; i++) {
        if (model->files[i].source.is_growing)
            return true;
    }
    return false;
}

bool fs_image_is_worth_keeping(const struct fs_image *image)
{
    return fs_image_is_slow(image) && !is_growing(image->model);
}

bool fs_image_is_of_source(const struct fs_image *image, const struct gguf_file **source,
                           uint64_t *offset)
{
    if (image->n_segments != 1 || image->segments[0].ops != &source_ops)
        return false;
    *source = image->segments[0].of;
    *offset = image->segments[0].offset;
    return true;
}

int fs_image_check(const struct fs_image *image)
{
    const struct gguf_file *last = image->model->files, *source;

    if (image->model->n_files > 0 && gguf_file_check(last, 0) == -ESTALE)
        return -ESTALE;
    for (size_t i = 0; i < image->n_segments; i++) {
        const struct fs_segment *segment = &image->segments[i];

        for (unsigned j = 0; segment->ops->source; j++) {
            source = segment->ops->source(image, segment, j);
            if (!source)
                break;
            if (source != last && gguf_file_check(source, 0) == -ESTALE)
                return -ESTALE;
            last = source;
        }
    }
    return 0;
}

/* ---- reading ---- */

/* Return the first segment that ends after `offset`, which lies in the image. */
static size_t segment_at(const struct fs_image *image, uint64_t offset)
{
    return gguf_find_end(&image->segments->end, image->n_segments, sizeof *image->segments, offset);
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
        const int result =
            segment->ops->read(image, segment, offset + done - start, n, interrupt, out + done);

        if (result < 0)
            return result;
        done += n;
    }
    return (ssize_t)done;
}
