#include "fs/command/check_data.h"

#include "dequant/rows.h"
#include "gguf/elements.h"
#include "fs/tree/data/threads.h"

#include <errno.h>
#include <inttypes.h>
#include <stdalign.h>
#include <stdbool.h>
#include <string.h>
#include <sys/param.h>

/* Elements that a thread decodes at a time; a multiple of all block lengths. */
#define CHUNK_ELEMENTS 65536u
/* Stored bytes that are decoded at once: CHUNK_ELEMENTS of most types. */
#define CHUNK_BYTES ((size_t)CHUNK_ELEMENTS * 8)

/* The findings in a chunk or a tensor. */
struct found {
    bool is_zero; /* all stored bytes are zero, row headers and tail included */
    uint64_t n_bad, first_bad, last_bad; /* blocks with NaN or infinity */
};

/* The result of a chunk, with a thread's memory for decoding it. */
struct chunk {
    struct found found;
    int result;
    alignas(FS_SLOT_ALIGNMENT) uint8_t bytes[CHUNK_BYTES]; /* as stored */
    float values[CHUNK_ELEMENTS];
};

struct work {
    const struct gguf_model *model;
    const struct gguf_tensor *tensor; /* being read */
    struct found found;               /* in it */
    struct gguf_progress *progress;
    uint64_t total_bytes, done_bytes;
};

static bool is_finite_block(const float *values, uint32_t n)
{
    /* 0 * x is NaN only if x is NaN or infinite, and a sum keeps NaN: the loop needs no branch. */
    float sum = 0;

    for (uint32_t i = 0; i < n; i++)
        sum += 0 * values[i];
    return sum == 0;
}

static bool is_zero(const uint8_t *bytes, uint64_t n)
{
    return n == 0 || (bytes[0] == 0 && memcmp(bytes, bytes + 1, n - 1) == 0);
}

/* Read and decode a span of the chunk. Returns 0 or the error of gguf_file_read(). */
static int check_span(const struct work *work, const struct dequant_span *span, struct chunk *chunk)
{
    const struct gguf_tensor *tensor = work->tensor;
    const struct gguf_file *file = &work->model->files[tensor->file_index];
    const struct dequant_type *type = tensor->type;
    struct found *found = &chunk->found;
    uint8_t headers[DEQUANT_MAX_HEADER_BYTES];
    int result = gguf_file_read(file, tensor->file_offset + span->blocks_offset, span->blocks_bytes,
                                chunk->bytes);

    if (result == 0 && span->headers_bytes > 0)
        result = gguf_file_read(file, tensor->file_offset + span->headers_offset,
                                span->headers_bytes, headers);
    if (result != 0)
        return result;
    found->is_zero = found->is_zero && is_zero(chunk->bytes, span->blocks_bytes) &&
                     is_zero(headers, span->headers_bytes);
    gguf_decode_blocks(tensor, (struct dequant_row){headers, span->row_index}, chunk->bytes,
                       chunk->values, span->n_blocks);
    for (uint64_t i = 0; i < span->n_blocks; i++) {
        const uint64_t block = span->first_element / type->block_elements + i;
        const uint8_t *bytes = chunk->bytes + i * dequant_stride_bytes(type);

        if (is_finite_block(chunk->values + i * type->block_elements, type->block_elements) &&
            !(type->has_nan_scale && type->has_nan_scale(bytes, span->row_index)))
            continue;
        if (found->n_bad++ == 0)
            found->first_bad = block;
        found->last_bad = block;
    }
    return 0;
}

static void check_chunk(void *user, uint64_t i, void *slot)
{
    const struct work *work = user;
    const struct gguf_tensor *tensor = work->tensor;
    const struct dequant_shape shape = {tensor->ne[0], tensor->n_elements};
    const uint64_t start = i * CHUNK_ELEMENTS;
    const uint64_t end = start + MIN(tensor->n_elements - start, CHUNK_ELEMENTS);
    struct chunk *chunk = slot;

    chunk->found = (struct found){.is_zero = true};
    chunk->result = 0;
    for (uint64_t first = start; chunk->result == 0 && first < end;) {
        const struct dequant_span span =
            dequant_span_of(tensor->type, shape, first, end, CHUNK_BYTES);

        chunk->result = check_span(work, &span, chunk);
        first += span.n_blocks * tensor->type->block_elements;
    }
}

static int add_chunk(void *user, uint64_t i, const void *slot)
{
    struct work *work = user;
    const struct chunk *chunk = slot;
    const struct gguf_tensor *tensor = work->tensor;
    const uint64_t n_done = MIN((i + 1) * CHUNK_ELEMENTS, tensor->n_elements);
    struct found *sum = &work->found;

    if (chunk->result < 0)
        return chunk->result;
    sum->is_zero &= chunk->found.is_zero;
    if (sum->n_bad == 0)
        sum->first_bad = chunk->found.first_bad;
    if (chunk->found.n_bad > 0)
        sum->last_bad = chunk->found.last_bad;
    sum->n_bad += chunk->found.n_bad;
    gguf_progress_draw(work->progress,
                       work->done_bytes +
                           n_done / tensor->type->block_elements * tensor->type->block_bytes,
                       work->total_bytes);
    return 0;
}

/* Return the row of a block's first element; a row is ne[0] elements. */
static uint64_t row_of(const struct gguf_tensor *tensor, uint64_t block)
{
    return block * tensor->type->block_elements / tensor->ne[0];
}

/* Return the place of the tensor's data at `offset` from their start, for a finding. */
static struct gguf_place place_at(struct gguf_report *report, const struct work *work,
                                  uint64_t offset)
{
    const struct gguf_tensor *tensor = work->tensor;

    return gguf_at_tensor(tensor->name,
                          gguf_offset_to_report(work->model, tensor->file_index,
                                                tensor->file_offset + offset, report));
}

static void report_bad(struct gguf_report *report, const struct work *work)
{
    const struct gguf_tensor *tensor = work->tensor;
    const struct found *found = &work->found;
    const uint64_t block_elements = tensor->type->block_elements;
    const uint64_t element = found->first_bad * block_elements;
    const struct dequant_shape shape = {tensor->ne[0], tensor->n_elements};
    const struct dequant_span span = dequant_span_of(tensor->type, shape, element, element + 1, 1);
    const struct gguf_place place = place_at(report, work, span.blocks_offset);
    const char *what = block_elements == 1 ? "value" : "block";

    if (found->n_bad == 1)
        gguf_error(report, GGUF_RULE_NOT_FINITE, -EDOM, place,
                   "%s %" PRIu64 " (row %" PRIu64 ") is NaN or infinite as float32", what,
                   found->first_bad, row_of(tensor, found->first_bad));
    else
        gguf_error(report, GGUF_RULE_NOT_FINITE, -EDOM, place,
                   "%" PRIu64 " of %" PRIu64 " %ss are NaN or infinite as float32, from %s %" PRIu64
                   " (row %" PRIu64 ") to %" PRIu64 " (row %" PRIu64 ")",
                   found->n_bad, tensor->n_elements / block_elements, what, what, found->first_bad,
                   row_of(tensor, found->first_bad), found->last_bad,
                   row_of(tensor, found->last_bad));
}

static bool is_checkable(const struct gguf_tensor *tensor)
{
    return tensor->type && dequant_is_decodable(tensor->type) && tensor->n_elements > 0;
}

static void check_tensor(struct work *work, struct gguf_report *report)
{
    const struct gguf_tensor *tensor = work->tensor;
    const struct gguf_source *source = &work->model->files[tensor->file_index].source;
    int result;

    work->found = (struct found){.is_zero = true};
    report->path = gguf_path_to_report(work->model, tensor->file_index);
    if (source->is_growing && !gguf_source_has(source, tensor->file_offset, tensor->size_bytes)) {
        work->found.is_zero = false;
        gguf_note(report, GGUF_RULE_INCOMPLETE_DATA,
                  gguf_at_tensor(tensor->name, tensor->file_offset),
                  "not complete yet, so not read");
        return;
    }
    result = fs_ordered_pipeline_run(
        &(struct fs_ordered_pipeline){.user = work,
                                      .n_items = (tensor->n_elements - 1) / CHUNK_ELEMENTS + 1,
                                      .slot_bytes = sizeof(struct chunk),
                                      .compute = check_chunk,
                                      .finish = add_chunk});
    if (work->found.n_bad > 0)
        report_bad(report, work);
    if (result == 0)
        return;
    work->found.is_zero = false;
    gguf_error(report, GGUF_RULE_READ, result, place_at(report, work, 0),
               "its data cannot be read: %s", strerror(-result));
}

int fs_check_data(const struct gguf_model *model, struct gguf_report *report,
                  struct gguf_progress *progress)
{
    struct work work = {.model = model, .progress = progress};
    const struct gguf_tensor *first_zero = NULL;
    uint64_t n_zero = 0;

    for (uint64_t i = 0; i < model->n_tensors; i++) {
        if (is_checkable(&model->tensors[i]))
            work.total_bytes += model->tensors[i].size_bytes;
    }
    for (uint64_t i = 0; i < model->n_tensors; i++) {
        work.tensor = &model->tensors[i];
        if (!is_checkable(work.tensor))
            continue;
        check_tensor(&work, report);
        work.done_bytes += work.tensor->size_bytes;
        if (work.found.is_zero && n_zero++ == 0)
            first_zero = work.tensor;
    }
    if (first_zero) {
        report->path = gguf_path_to_report(model, first_zero->file_index);
        gguf_warning(report, GGUF_RULE_ZEROS, gguf_at(first_zero->file_offset),
                     "%" PRIu64 " of %" PRIu64
                     " tensors hold only zeros, the first is %s (unfinished download?)",
                     n_zero, model->n_tensors, gguf_quote(first_zero->name).text);
    }
    report->path = NULL;
    return report->n_errors > 0 ? report->first_error.code : 0;
}
