#include "fs/command/check_data.h"

#include "dequant/rows.h"
#include "fs/tree/data/ordered_pipeline.h"
#include "fs/tree/data/elements.h"

#include <errno.h>
#include <inttypes.h>
#include <stdalign.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Elements that a thread decodes at a time; a multiple of all block lengths. */
#define CHUNK_ELEMENTS 65536u
/* Stored bytes that are decoded at once: CHUNK_ELEMENTS of most types. */
#define CHUNK_BYTES ((size_t)CHUNK_ELEMENTS * 8)
/* Runs reported per tensor; further ones are only counted. */
#define MAX_REPORTED_RUNS 100u

/* Blocks `first` to `last` of a tensor. */
struct run {
    uint64_t first, last;
};

/* Consecutive elements of a tensor, with a thread's memory for decoding them. */
struct chunk {
    const struct gguf_model *model;
    const struct gguf_tensor *tensor;
    uint64_t first_element;
    uint64_t n_elements;

    bool is_zero; /* all bytes of the chunk are zero, row headers and tail included */
    size_t n_runs;
    int result;
    alignas(FS_SLOT_ALIGNMENT) uint8_t bytes[CHUNK_BYTES]; /* as stored */
    float values[CHUNK_ELEMENTS];
    struct run runs[CHUNK_ELEMENTS]; /* of blocks with NaN or infinity, in order */
};

static bool is_finite_block(const float *values, uint32_t n)
{
    /*
     * 0 * x is NaN only if x is NaN or infinite, and a sum keeps NaN, so the loop needs no branch.
     */
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
static int check_span(struct chunk *chunk, const struct dequant_span *span)
{
    const struct gguf_tensor *tensor = chunk->tensor;
    const struct gguf_file *file = &chunk->model->files[tensor->file_index];
    const struct dequant_type *type = tensor->type;
    uint8_t headers[DEQUANT_MAX_HEADER_BYTES];
    int result = gguf_file_read(file, tensor->file_offset + span->blocks_offset, span->blocks_bytes,
                                chunk->bytes);

    if (result == 0 && span->headers_bytes > 0)
        result = gguf_file_read(file, tensor->file_offset + span->headers_offset,
                                span->headers_bytes, headers);
    if (result != 0)
        return result;
    chunk->is_zero = chunk->is_zero && is_zero(chunk->bytes, span->blocks_bytes) &&
                     is_zero(headers, span->headers_bytes);
    fs_decode_blocks(tensor, (struct dequant_row){headers, span->row_index}, chunk->bytes,
                     chunk->values, span->n_blocks);
    for (uint64_t i = 0; i < span->n_blocks; i++) {
        const uint64_t block = span->first_element / type->block_elements + i;
        const uint8_t *bytes = chunk->bytes + i * dequant_stride_bytes(type);

        if (is_finite_block(chunk->values + i * type->block_elements, type->block_elements) &&
            !(type->has_nan_scale && type->has_nan_scale(bytes, span->row_index)))
            continue;
        if (chunk->n_runs > 0 && chunk->runs[chunk->n_runs - 1].last + 1 == block)
            chunk->runs[chunk->n_runs - 1].last = block;
        else
            chunk->runs[chunk->n_runs++] = (struct run){block, block};
    }
    return 0;
}

static int check_chunk(struct chunk *chunk)
{
    const struct dequant_type *type = chunk->tensor->type;
    const struct dequant_shape shape = {chunk->tensor->ne[0], chunk->tensor->n_elements};
    const uint64_t end = chunk->first_element + chunk->n_elements;
    int result = 0;

    chunk->is_zero = true;
    for (uint64_t first = chunk->first_element; result == 0 && first < end;) {
        const struct dequant_span span = dequant_span_of(type, shape, first, end, CHUNK_BYTES);

        result = check_span(chunk, &span);
        first += span.n_blocks * type->block_elements;
    }
    return result;
}

/* Return the row of a block's first element; a row is ne[0] elements. */
static uint64_t row_of(const struct gguf_tensor *tensor, uint64_t block)
{
    return block * tensor->type->block_elements / tensor->ne[0];
}

/* Prepare a finding about a tensor's data at `offset` from their start, and return where they lie.
 */
static uint64_t offset_at(struct gguf_report *report, const struct chunk *chunk, uint64_t offset)
{
    const struct gguf_tensor *tensor = chunk->tensor;

    return gguf_offset_to_report(chunk->model, tensor->file_index, tensor->file_offset + offset,
                                 report);
}

static void report_run(struct gguf_report *report, const struct chunk *chunk, const struct run *run)
{
    const struct gguf_tensor *tensor = chunk->tensor;
    const uint64_t element = run->first * tensor->type->block_elements;
    const struct dequant_shape shape = {tensor->ne[0], tensor->n_elements};
    const struct dequant_span span = dequant_span_of(tensor->type, shape, element, element + 1, 1);
    const uint64_t offset = offset_at(report, chunk, span.blocks_offset);
    const char *what = tensor->type->block_elements == 1 ? "value" : "block";
    const uint64_t first_row = row_of(tensor, run->first), last_row = row_of(tensor, run->last);
    char rows[60];

    if (first_row == last_row)
        snprintf(rows, sizeof rows, "row %" PRIu64, first_row);
    else
        snprintf(rows, sizeof rows, "rows %" PRIu64 " to %" PRIu64, first_row, last_row);
    if (run->first == run->last)
        gguf_error(report, GGUF_RULE_NOT_FINITE, -EDOM, gguf_at_tensor(tensor->name, offset),
                   "%s %" PRIu64 " (%s) is NaN or infinite as float32", what, run->first, rows);
    else
        gguf_error(report, GGUF_RULE_NOT_FINITE, -EDOM, gguf_at_tensor(tensor->name, offset),
                   "%ss %" PRIu64 " to %" PRIu64 " (%s) are NaN or infinite as float32", what,
                   run->first, run->last, rows);
}

/*
 * The last run seen, which may continue in the tensor's next chunk. It is empty if last is below
 * first.
 */
struct open_run {
    uint64_t first, last;
    uint64_t n_reported; /* runs before it */
};

static void close_run(struct gguf_report *report, const struct chunk *chunk, struct open_run *open)
{
    if (open->last < open->first)
        return;
    if (open->n_reported++ < MAX_REPORTED_RUNS)
        report_run(report, chunk, &(struct run){open->first, open->last});
    open->first = 1;
    open->last = 0;
}

/* Join the runs of consecutive chunks of a tensor. */
static void report_chunk(struct gguf_report *report, const struct chunk *chunk,
                         struct open_run *open)
{
    const bool is_last = chunk->first_element + chunk->n_elements == chunk->tensor->n_elements;

    if (chunk->result < 0)
        gguf_error(report, GGUF_RULE_READ, chunk->result,
                   gguf_at_tensor(chunk->tensor->name, offset_at(report, chunk, 0)),
                   "its data cannot be read: %s", strerror(-chunk->result));
    for (size_t i = 0; i < chunk->n_runs; i++) {
        const struct run run = chunk->runs[i];

        if (open->first <= open->last && open->last + 1 == run.first) {
            open->last = run.last;
            continue;
        }
        close_run(report, chunk, open);
        open->first = run.first;
        open->last = run.last;
    }
    if (is_last)
        close_run(report, chunk, open);
    if (is_last && open->n_reported > MAX_REPORTED_RUNS)
        gguf_error(report, GGUF_RULE_NOT_FINITE, -EDOM,
                   gguf_at_tensor(chunk->tensor->name, offset_at(report, chunk, 0)),
                   "%" PRIu64 " more places are NaN or infinite as float32",
                   open->n_reported - MAX_REPORTED_RUNS);
}

/* Return the bytes of the blocks of `n_elements` elements. */
static uint64_t blocks_bytes(const struct gguf_tensor *tensor, uint64_t n_elements)
{
    return n_elements / tensor->type->block_elements * tensor->type->block_bytes;
}

/* A tensor with data to check. */
struct item {
    const struct gguf_tensor *tensor;
    /*
     * index among the chunks of all tensors; an incomplete tensor has one chunk, which is not
     * read
     */
    uint64_t first_chunk;
    bool is_incomplete;
};

struct work {
    const struct gguf_model *model;
    struct gguf_report *report;
    fs_check_progress *progress;
    void *user;

    struct item *items; /* in the order of the model; owned */
    size_t n_items;
    uint64_t n_chunks;
    uint64_t total_bytes, done_bytes;

    /* State of the tensor whose chunks are being reported. */
    struct open_run open;
    bool is_all_zero;

    const struct gguf_tensor *first_zero; /* the first tensor that holds only zeros */
    uint64_t n_zero;
};

/* Returns 0 or -ENOMEM. */
static int plan(struct work *work)
{
    const struct gguf_model *model = work->model;

    work->items = calloc(model->n_tensors + 1, sizeof *work->items);
    if (!work->items)
        return -ENOMEM;
    for (uint64_t i = 0; i < model->n_tensors; i++) {
        const struct gguf_tensor *tensor = &model->tensors[i];
        const struct gguf_file *file = &model->files[tensor->file_index];
        struct item *item = &work->items[work->n_items];

        if (!tensor->type || !dequant_is_decodable(tensor->type) || tensor->n_elements == 0)
            continue;
        *item = (struct item){.tensor = tensor, .first_chunk = work->n_chunks};
        item->is_incomplete =
            file->source.is_growing &&
            !gguf_source_has(&file->source, tensor->file_offset, tensor->size_bytes);
        work->n_items++;
        work->n_chunks += item->is_incomplete ? 1 : (tensor->n_elements - 1) / CHUNK_ELEMENTS + 1;
        if (!item->is_incomplete)
            work->total_bytes += blocks_bytes(tensor, tensor->n_elements);
    }
    return 0;
}

/* Return the item that chunk number `chunk` belongs to. */
static const struct item *find_item(const struct work *work, uint64_t chunk)
{
    size_t low = 0, high = work->n_items;

    while (high - low > 1) {
        const size_t middle = low + (high - low) / 2;

        if (work->items[middle].first_chunk <= chunk)
            low = middle;
        else
            high = middle;
    }
    return &work->items[low];
}

static void read_item(void *user, uint64_t i, void *slot)
{
    const struct work *work = user;
    const struct item *item = find_item(work, i);
    const struct gguf_tensor *tensor = item->tensor;
    const uint64_t left = tensor->n_elements - (i - item->first_chunk) * CHUNK_ELEMENTS;
    struct chunk *chunk = slot;

    chunk->model = work->model;
    chunk->tensor = tensor;
    chunk->first_element = tensor->n_elements - left;
    chunk->n_elements = left < CHUNK_ELEMENTS ? left : CHUNK_ELEMENTS;
    chunk->n_runs = 0;
    chunk->is_zero = false;
    chunk->result = item->is_incomplete ? 0 : check_chunk(chunk);
}

static int report_item(void *user, uint64_t i, const void *slot)
{
    struct work *work = user;
    const struct item *item = find_item(work, i);
    const struct gguf_tensor *tensor = item->tensor;
    const struct chunk *chunk = slot;

    work->report->path = gguf_path_to_report(work->model, tensor->file_index);
    if (item->is_incomplete) {
        gguf_note(work->report, GGUF_RULE_INCOMPLETE_DATA,
                  gguf_at_tensor(tensor->name, tensor->file_offset),
                  "not complete yet, so not read");
        return 0;
    }
    if (chunk->first_element == 0) {
        work->open = (struct open_run){.first = 1, .last = 0};
        work->is_all_zero = true;
    }
    work->is_all_zero &= chunk->is_zero;
    report_chunk(work->report, chunk, &work->open);
    if (chunk->first_element + chunk->n_elements == tensor->n_elements && work->is_all_zero &&
        work->n_zero++ == 0)
        work->first_zero = tensor;
    work->done_bytes += blocks_bytes(tensor, chunk->n_elements);
    work->progress(work->user, work->done_bytes, work->total_bytes);
    return 0;
}

static void report_zeros(const struct work *work)
{
    if (work->n_zero == 0)
        return;
    work->report->path = gguf_path_to_report(work->model, work->first_zero->file_index);
    gguf_warning(work->report, GGUF_RULE_ZEROS, gguf_at(work->first_zero->file_offset),
                 "%" PRIu64 " of %" PRIu64
                 " tensors hold only zeros, the first is %s (unfinished download?)",
                 work->n_zero, work->model->n_tensors, gguf_quote(work->first_zero->name).text);
    work->report->path = NULL;
}

int fs_check_data(const struct gguf_model *model, struct gguf_report *report,
                  fs_check_progress *progress, void *user)
{
    struct work work = {.model = model, .report = report, .progress = progress, .user = user};
    int result = plan(&work);

    if (result == 0)
        result = fs_ordered_pipeline_run(
            &(struct fs_ordered_pipeline){.user = &work,
                                          .n_items = work.n_chunks,
                                          .slot_bytes = sizeof(struct chunk),
                                          .compute = read_item,
                                          .finish = report_item});
    report->path = NULL;
    if (result < 0)
        gguf_system_error(report, result, GGUF_NO_PLACE);
    report_zeros(&work);
    free(work.items);
    return report->n_errors > 0 ? report->first_error.code : 0;
}
