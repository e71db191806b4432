#include "fs/tree/data/element_runs.h"

#include "dequant/kernels.h"
#include "dequant/rows.h"

#include <string.h>

/* Elements decoded at once. */
#define ROOM_ELEMENTS 1024u

/* The blocks of runs, lent by the file as one range of bytes. */
struct block_runs {
    const struct gguf_elements *of;
    const struct fs_element_runs *runs;
    size_t skip;       /* elements of the first block before a run */
    size_t n_elements; /* of its blocks */
    size_t run_bytes;
    size_t pitch_bytes;
    size_t extent_bytes; /* from the start of the first run to the end of the last one */
    char *out;
    bool is_complete; /* all was lent at once and written */
};

/* Distance to prefetch, in runs: they lie too far apart for the CPU's own prefetching. */
#define RUNS_AHEAD 32u

static void load_ahead(const uint8_t *bytes, size_t n_bytes)
{
    for (size_t i = 0; i < n_bytes; i += 64)
        __builtin_prefetch(bytes + i, 0, 2);
}

static void decode_runs(void *argument, uint64_t at, const uint8_t *bytes, size_t n_bytes)
{
    struct block_runs *reading = argument;
    const struct gguf_elements *of = reading->of;
    const struct fs_element_runs *runs = reading->runs;
    const size_t n_blocks = reading->n_elements / of->tensor->type->block_elements;
    const size_t out_bytes = runs->width * of->type->block_bytes;
    const bool is_stored = gguf_elements_are_stored(of);
    /* Runs that are decoded together, because they are short. */
    const size_t at_once = (ROOM_ELEMENTS - reading->n_elements) / runs->width + 1;
    float bounce[ROOM_ELEMENTS], *values;
    char *out = reading->out;
    size_t n_decoded = 0;

    reading->is_complete = n_bytes == reading->extent_bytes;
    for (size_t i = 0; reading->is_complete && i < runs->n_runs; i++) {
        const uint8_t *run = bytes + i * reading->pitch_bytes;

        if (i + RUNS_AHEAD < runs->n_runs + runs->n_next)
            load_ahead(run + RUNS_AHEAD * reading->pitch_bytes, reading->run_bytes);
        if (is_stored) {
            memcpy(out + i * out_bytes, run, out_bytes);
            continue;
        }
        values = bounce + n_decoded++ * runs->width;
        gguf_decode_blocks(of->tensor, (struct dequant_row){0}, run, values, n_blocks);
        if (reading->skip > 0)
            memmove(values, values + reading->skip, runs->width * sizeof *values);
        if (n_decoded == at_once || i == runs->n_runs - 1) {
            gguf_encode_values(of, bounce, out, n_decoded * runs->width);
            out += n_decoded * out_bytes;
            n_decoded = 0;
        }
    }
}

/* Return true if the runs could be read together. */
static bool read_block_runs(const struct gguf_elements *of, const struct fs_element_runs *runs,
                            char *out, uint64_t *end_offset)
{
    const struct gguf_source *file = &of->model->files[of->tensor->file_index].source;
    const struct dequant_type *type = of->tensor->type;
    const uint64_t mask = type->block_elements - 1;
    const int block_bits = __builtin_ctz(type->block_elements);
    const size_t skip = (size_t)(runs->first & mask);
    struct block_runs reading = {.of = of,
                                 .runs = runs,
                                 .skip = skip,
                                 .n_elements = (skip + runs->width + mask) & ~mask,
                                 .out = out};
    uint64_t start;

    if (!file->mapping || dequant_has_row_layout(type) || reading.n_elements > ROOM_ELEMENTS ||
        (runs->pitch & mask) != 0)
        return false;
    reading.run_bytes = (reading.n_elements >> block_bits) * type->block_bytes;
    reading.pitch_bytes = (size_t)(runs->pitch >> block_bits) * type->block_bytes;
    reading.extent_bytes = (runs->n_runs - 1) * reading.pitch_bytes + reading.run_bytes;
    start = of->tensor->file_offset + (runs->first >> block_bits) * type->block_bytes;
    if (gguf_source_lend(file, start, reading.extent_bytes, 1, decode_runs, &reading) < 0 ||
        !reading.is_complete)
        return false;
    if (start + reading.extent_bytes > *end_offset)
        *end_offset = start + reading.extent_bytes;
    return true;
}

int fs_element_runs_read(const struct gguf_elements *of, const struct fs_element_runs *runs,
                         char *out, uint64_t *end_offset)
{
    const size_t number_bytes = of->type->block_bytes;
    const size_t n_bytes = runs->width * number_bytes;
    int result = 0;

    if (read_block_runs(of, runs, out, end_offset))
        return 0;
    for (size_t i = 0; result == 0 && i < runs->n_runs; i++)
        result = gguf_elements_read_unchecked(of, (runs->first + i * runs->pitch) * number_bytes,
                                              n_bytes, out + i * n_bytes, end_offset);
    return result;
}
