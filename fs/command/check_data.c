#include "fs/command/check_data.h"

#include "dequant/rows.h"
#include "fs/tree/decoded.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* What a thread decodes before it reports; a multiple of all block lengths. */
#define CHUNK_ELEMENTS 65536u
/* Of the stored bytes that are decoded at once: CHUNK_ELEMENTS of most types. */
#define CHUNK_BYTES ((size_t)CHUNK_ELEMENTS * 8)
/* Of each tensor; the rest is only counted. */
#define MAX_REPORTED_RUNS 100u

/* Blocks `first` to `last` of a tensor. */
struct run {
    uint64_t first, last;
};

/* A part of a tensor, and a thread's room for it. */
struct chunk {
    const struct gguf_model *model;
    const struct gguf_tensor *tensor;
    uint64_t first_element;
    uint64_t n_elements;

    uint8_t *bytes;   /* as they are stored; CHUNK_BYTES */
    bool is_zero;     /* all of these */
    float *values;    /* CHUNK_ELEMENTS */
    struct run *runs; /* of bad blocks, in order; room for all */
    size_t n_runs;
    int result;
};

static bool is_finite_block(const float *values, uint32_t n)
{
    /* 0 * x is NaN just for infinities and NaN, and a sum keeps it: no branch for every value. */
    float sum = 0;

    for (uint32_t i = 0; i < n; i++)
        sum += 0 * values[i];
    return sum == 0;
}

static bool is_zero(const uint8_t *bytes, uint64_t n)
{
    return n == 0 || (bytes[0] == 0 && memcmp(bytes, bytes + 1, n - 1) == 0);
}

/* Reads and decodes a span of the chunk. Returns 0 or what gguf_source_read() does. */
static int check_span(struct chunk *chunk, const struct dequant_span *span)
{
    const struct gguf_tensor *tensor = chunk->tensor;
    const struct gguf_source *file = &chunk->model->files[tensor->file_index];
    const struct dequant_type *type = tensor->type;
    uint8_t headers[DEQUANT_MAX_HEADER_BYTES];
    int result = gguf_source_read(file, tensor->file_offset + span->blocks_offset,
                                  span->blocks_bytes, chunk->bytes);

    if (result == 0 && span->headers_bytes > 0)
        result = gguf_source_read(file, tensor->file_offset + span->headers_offset,
                                  span->headers_bytes, headers);
    if (result < 0)
        return result;
    chunk->is_zero = chunk->is_zero && is_zero(chunk->bytes, span->blocks_bytes);
    fs_decode(tensor, (struct dequant_row){headers, span->row_index}, chunk->bytes, chunk->values,
              span->n_blocks);
    for (uint64_t i = 0; i < span->n_blocks; i++) {
        const uint64_t block = span->first_element / type->block_elements + i;
        const uint8_t *bytes = chunk->bytes + i * dequant_stride_bytes(type);

        if (is_finite_block(chunk->values + i * type->block_elements, type->block_elements) &&
            !(type->has_nan_scale && type->has_nan_scale(bytes)))
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
    const uint64_t end = chunk->first_element + chunk->n_elements;
    int result = 0;

    chunk->is_zero = true;
    for (uint64_t first = chunk->first_element; result == 0 && first < end;) {
        const struct dequant_span span =
            dequant_span_of(type, chunk->tensor->ne[0], first, end, CHUNK_BYTES);

        result = check_span(chunk, &span);
        first += span.n_blocks * type->block_elements;
    }
    return result;
}

/* A row is ne[0] elements. */
static uint64_t row_of(const struct gguf_tensor *tensor, uint64_t block)
{
    return block * tensor->type->block_elements / tensor->ne[0];
}

static void report_run(struct gguf_report *report, const struct gguf_tensor *tensor,
                       const struct run *run)
{
    const uint64_t element = run->first * tensor->type->block_elements;
    const struct dequant_span span =
        dequant_span_of(tensor->type, tensor->ne[0], element, element + 1, 1);
    const uint64_t offset = tensor->file_offset + span.blocks_offset;
    const char *what = tensor->type->block_elements == 1 ? "value" : "block";

    if (run->first == run->last)
        gguf_error(report, -EDOM, offset,
                   "tensor %s: %s %" PRIu64 " (row %" PRIu64 ") is NaN or infinite as float32",
                   gguf_quote(tensor->name).text, what, run->first, row_of(tensor, run->first));
    else
        gguf_error(report, -EDOM, offset,
                   "tensor %s: %ss %" PRIu64 " to %" PRIu64 " (rows %" PRIu64 " to %" PRIu64
                   ") are NaN or infinite as float32",
                   gguf_quote(tensor->name).text, what, run->first, run->last,
                   row_of(tensor, run->first), row_of(tensor, run->last));
}

/* The run that may go on in a tensor's next chunk; none while last is below first. */
struct open_run {
    uint64_t first, last;
    uint64_t n_reported; /* runs before it */
};

static void close_run(struct gguf_report *report, const struct gguf_tensor *tensor,
                      struct open_run *open)
{
    if (open->last < open->first)
        return;
    if (open->n_reported++ < MAX_REPORTED_RUNS)
        report_run(report, tensor, &(struct run){open->first, open->last});
    open->first = 1;
    open->last = 0;
}

/* Joins the runs of consecutive chunks of a tensor. */
static void report_chunk(struct gguf_report *report, const struct chunk *chunk,
                         struct open_run *open)
{
    const bool is_last = chunk->first_element + chunk->n_elements == chunk->tensor->n_elements;

    if (chunk->result < 0)
        gguf_error(report, chunk->result, chunk->tensor->file_offset,
                   "tensor %s: its data can't be read: %s", gguf_quote(chunk->tensor->name).text,
                   strerror(-chunk->result));
    for (size_t i = 0; i < chunk->n_runs; i++) {
        const struct run run = chunk->runs[i];

        if (open->first <= open->last && open->last + 1 == run.first) {
            open->last = run.last;
            continue;
        }
        close_run(report, chunk->tensor, open);
        open->first = run.first;
        open->last = run.last;
    }
    if (is_last)
        close_run(report, chunk->tensor, open);
    if (is_last && open->n_reported > MAX_REPORTED_RUNS)
        gguf_error(report, -EDOM, chunk->tensor->file_offset,
                   "tensor %s: %" PRIu64 " more places are NaN or infinite as float32",
                   gguf_quote(chunk->tensor->name).text, open->n_reported - MAX_REPORTED_RUNS);
}

/* What is told while and after all is read. */
struct progress {
    fs_check_progress *call;
    void *user;
    uint64_t done_bytes;
    uint64_t total_bytes;
    const struct gguf_tensor *first_zero; /* without a byte that is not zero */
    uint64_t n_zero;
};

/* Bytes of the blocks of so many elements. */
static uint64_t blocks_bytes(const struct gguf_tensor *tensor, uint64_t n_elements)
{
    return n_elements / tensor->type->block_elements * tensor->type->block_bytes;
}

static int check_tensor(const struct gguf_model *model, const struct gguf_tensor *tensor,
                        struct gguf_report *report, struct progress *progress)
{
    const uint64_t n_chunks =
        tensor->n_elements / CHUNK_ELEMENTS + (tensor->n_elements % CHUNK_ELEMENTS != 0);
    const struct gguf_source *file = &model->files[tensor->file_index];
    struct open_run open = {.first = 1, .last = 0};
    bool is_out_of_memory = false, is_all_zero = true;

    if (n_chunks == 0)
        return 0;
    report->path = gguf_path_to_report(model, tensor->file_index);
    if (gguf_source_is_growing(file) &&
        !gguf_source_has(file, tensor->file_offset, tensor->size_bytes)) {
        gguf_note(report, tensor->file_offset, "tensor %s: not complete yet, so not read",
                  gguf_quote(tensor->name).text);
        report->path = NULL;
        return 0;
    }
#pragma omp parallel
    {
        struct chunk chunk = {.model = model, .tensor = tensor};

        chunk.bytes = malloc(CHUNK_BYTES);
        chunk.values = malloc(CHUNK_ELEMENTS * sizeof *chunk.values);
        chunk.runs = malloc(CHUNK_ELEMENTS * sizeof *chunk.runs);
#pragma omp for ordered schedule(dynamic)
        for (uint64_t i = 0; i < n_chunks; i++) {
            const bool has_room = chunk.bytes && chunk.values && chunk.runs;

            chunk.first_element = i * CHUNK_ELEMENTS;
            chunk.n_elements = tensor->n_elements - chunk.first_element;
            if (chunk.n_elements > CHUNK_ELEMENTS)
                chunk.n_elements = CHUNK_ELEMENTS;
            chunk.n_runs = 0;
            chunk.is_zero = false;
            chunk.result = has_room ? check_chunk(&chunk) : 0;
#pragma omp ordered
            {
                is_out_of_memory |= !has_room;
                is_all_zero &= chunk.is_zero;
                report_chunk(report, &chunk, &open);
                progress->done_bytes += blocks_bytes(tensor, chunk.n_elements);
                progress->call(progress->user, progress->done_bytes, progress->total_bytes);
            }
        }
        free(chunk.bytes);
        free(chunk.values);
        free(chunk.runs);
    }
    report->path = NULL;
    if (is_out_of_memory)
        return gguf_error(report, -ENOMEM, GGUF_NO_OFFSET, "%s", strerror(ENOMEM));
    if (is_all_zero && progress->n_zero++ == 0)
        progress->first_zero = tensor;
    return 0;
}

int fs_check_data(const struct gguf_model *model, struct gguf_report *report,
                  fs_check_progress *progress_call, void *user)
{
    struct progress progress = {.call = progress_call, .user = user};
    int result = 0;

    for (uint64_t i = 0; i < model->n_tensors; i++) {
        if (model->tensors[i].type && dequant_is_decodable(model->tensors[i].type))
            progress.total_bytes += blocks_bytes(&model->tensors[i], model->tensors[i].n_elements);
    }
    for (uint64_t i = 0; result == 0 && i < model->n_tensors; i++) {
        if (model->tensors[i].type && dequant_is_decodable(model->tensors[i].type))
            result = check_tensor(model, &model->tensors[i], report, &progress);
    }
    if (progress.n_zero > 0) {
        report->path = gguf_path_to_report(model, progress.first_zero->file_index);
        gguf_note(report, progress.first_zero->file_offset,
                  "%" PRIu64 " of %" PRIu64
                  " tensors hold nothing but zeros, the first is %s (a download that reserved its "
                  "space and did not end?)",
                  progress.n_zero, model->n_tensors, gguf_quote(progress.first_zero->name).text);
        report->path = NULL;
    }
    return report->n_errors > 0 ? report->first_error.code : result;
}
