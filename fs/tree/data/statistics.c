#include "fs/tree/data/statistics.h"

#include "dequant/rows.h"
#include "gguf/elements.h"
#include "fs/tree/data/statistics_kernels.h"
#include "fs/tree/data/threads.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdalign.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>

/* Elements decoded at a time: their values stay in the processor's cache for all passes. */
#define CHUNK_ELEMENTS ((size_t)16384)
/* Elements that a thread takes at a time; a multiple of all block lengths. */
#define PIECE_ELEMENTS (16 * CHUNK_ELEMENTS)
/* Counters of each bin, so that equal values in succession need not wait for each other. */
#define N_TABLES 4u

/* ---- histograms ---- */

/* Distance of neighbouring floats from 1 to 2: 2^-23. */
#define FRACTION_BITS 23

static int64_t bin_of(float value, int exponent)
{
    return (int64_t)floor(ldexp((double)value, -exponent));
}

/* Begin the histogram of values from `min` to `max`. */
static void begin_histogram(struct fs_histogram *histogram, float min, float max)
{
    const float largest = fmaxf(fabsf(min), fabsf(max));

    *histogram = (struct fs_histogram){0};
    if (largest == 0)
        histogram->exponent = -149 - FRACTION_BITS; /* finer than all others */
    else
        histogram->exponent = ilogbf(largest) - FRACTION_BITS;
    while (bin_of(max, histogram->exponent) - bin_of(min, histogram->exponent) >=
           FS_STATISTICS_BINS)
        histogram->exponent++;
    histogram->first = bin_of(min, histogram->exponent);
}

/* Add the counts of `finer`, whose bins are no wider and lie inside the range. */
static void add_counts(struct fs_histogram *histogram, const struct fs_histogram *finer)
{
    const double factor = ldexp(1, finer->exponent - histogram->exponent);

    for (unsigned i = 0; i < FS_STATISTICS_BINS; i++) {
        const int64_t bin = (int64_t)floor((double)(finer->first + i) * factor);

        if (finer->counts[i] > 0)
            histogram->counts[bin - histogram->first] += finer->counts[i];
    }
}

/* Count n values, all finite. */
static void count_values(struct fs_histogram *histogram, const float *values, unsigned n)
{
    uint32_t tables[N_TABLES][FS_STATISTICS_BINS] = {0};
    uint8_t bins[CHUNK_ELEMENTS];

    fs_statistics_kernels()->find_bins(values, n, ldexp(1, -histogram->exponent),
                                       (int)histogram->first, bins);
    for (unsigned i = 0; i < n; i++)
        tables[i % N_TABLES][bins[i]]++;
    for (unsigned i = 0; i < FS_STATISTICS_BINS; i++)
        for (unsigned t = 0; t < N_TABLES; t++)
            histogram->counts[i] += tables[t][i];
}

/* ---- statistics of two runs of values together ---- */

/*
 * Add the statistics of the values that follow. Source for mean and squares: T. F. Chan, G. H.
 * Golub and R. J. LeVeque, "Updating Formulae and a Pairwise Algorithm for Computing Sample
 * Variances".
 */
static void add(struct fs_statistics *sum, const struct fs_statistics *more)
{
    sum->n_zeros += more->n_zeros;
    sum->n_nan += more->n_nan;
    sum->n_infinite += more->n_infinite;
    sum->n_scales_at_limit += more->n_scales_at_limit;
    if (sum->first_nan == FS_NOWHERE)
        sum->first_nan = more->first_nan;
    if (sum->first_infinite == FS_NOWHERE)
        sum->first_infinite = more->first_infinite;
    if (more->n_finite > 0 && sum->n_finite > 0) {
        const struct fs_histogram before = sum->histogram;
        const double n = (double)sum->n_finite, n_more = (double)more->n_finite;
        const double distance = more->mean - sum->mean;

        sum->mean += distance * (n_more / (n + n_more));
        sum->squares += more->squares + distance * distance * (n * n_more / (n + n_more));
        sum->min = fminf(sum->min, more->min);
        sum->max = fmaxf(sum->max, more->max);
        begin_histogram(&sum->histogram, sum->min, sum->max);
        add_counts(&sum->histogram, &before);
        add_counts(&sum->histogram, &more->histogram);
    } else if (more->n_finite > 0) {
        sum->min = more->min;
        sum->max = more->max;
        sum->mean = more->mean;
        sum->squares = more->squares;
        sum->histogram = more->histogram;
    }
    sum->n_finite += more->n_finite;
}

/* ---- a chunk ---- */

/* Count NaN and infinities and move the finite values to the front. Returns their number. */
static unsigned take_out_others(float *values, unsigned n, uint64_t first_element,
                                struct fs_statistics *statistics)
{
    unsigned n_finite = 0;

    for (unsigned i = 0; i < n; i++) {
        if (isnan(values[i])) {
            if (statistics->n_nan++ == 0)
                statistics->first_nan = first_element + i;
        } else if (isinf(values[i])) {
            if (statistics->n_infinite++ == 0)
                statistics->first_infinite = first_element + i;
        } else {
            values[n_finite++] = values[i];
        }
    }
    return n_finite;
}

/* Compute the statistics of n values, at least one, which the function may change. */
static void measure_values(float *values, unsigned n, uint64_t first_element,
                           struct fs_statistics *statistics)
{
    const struct fs_statistics_kernels *kernels = fs_statistics_kernels();
    struct fs_range range;

    *statistics = (struct fs_statistics){.first_nan = FS_NOWHERE, .first_infinite = FS_NOWHERE};
    kernels->get_range(values, n, &range);
    if (!range.is_finite) {
        n = take_out_others(values, n, first_element, statistics);
        if (n == 0)
            return;
        kernels->get_range(values, n, &range);
    }
    statistics->n_finite = n;
    statistics->n_zeros = range.n_zeros;
    statistics->min = range.min;
    statistics->max = range.max;
    statistics->mean = kernels->sum(values, n, 0) / n;
    statistics->squares = kernels->sum_squares(values, n, statistics->mean);
    begin_histogram(&statistics->histogram, range.min, range.max);
    count_values(&statistics->histogram, values, n);
}

/* ---- scales ---- */

struct scales {
    const struct gguf_tensor *tensor;
    uint64_t n_at_limit;
};

/* Limit of the bytes per block, for types with an is_scale_at_limit. */
#define MAX_BLOCK_BYTES 256u

/* Called with all blocks at once, but perhaps twice. */
static void count_scales(void *argument, uint64_t at, const uint8_t *bytes, size_t n_bytes)
{
    struct scales *scales = argument;
    const struct dequant_type *type = scales->tensor->type;
    const bool is_swapped = scales->tensor->big_endian && dequant_has_byte_order(type);
    uint8_t block[MAX_BLOCK_BYTES];
    uint64_t n = 0;

    for (size_t i = 0; i < n_bytes; i += type->block_bytes) {
        if (is_swapped)
            dequant_swap_blocks(type, bytes + i, block, 1);
        n += type->is_scale_at_limit(type, is_swapped ? block : bytes + i);
    }
    scales->n_at_limit = n;
}

/* ---- the whole ---- */

struct slot {
    struct fs_statistics statistics; /* of a piece */
    int result;
    alignas(FS_SLOT_ALIGNMENT) float values[CHUNK_ELEMENTS];
};

struct work {
    const struct gguf_model *model;
    const struct gguf_tensor *tensor;
    const struct fs_interrupt *interrupt;
    struct fs_statistics *statistics;
};

/* Count the scales of a chunk, whose bytes decoding has just brought into the cache. */
static int measure_scales(const struct work *work, uint64_t first_element, uint64_t n_elements,
                          struct fs_statistics *statistics)
{
    const struct gguf_tensor *tensor = work->tensor;
    const struct dequant_type *type = tensor->type;
    const uint64_t n_bytes = n_elements / type->block_elements * type->block_bytes;
    struct scales scales = {.tensor = tensor};
    int result;

    if (!type->is_scale_at_limit)
        return 0;
    assert(n_bytes <= GGUF_LENT_BYTES); /* at most two bytes per element of these types */
    result = gguf_source_lend(&work->model->files[tensor->file_index].source,
                              tensor->file_offset +
                                  first_element / type->block_elements * type->block_bytes,
                              n_bytes, type->block_bytes, count_scales, &scales);
    statistics->n_scales_at_limit = scales.n_at_limit;
    return result;
}

static void measure_piece(void *user, uint64_t index, void *in)
{
    const struct work *work = user;
    struct slot *slot = in;
    const uint64_t start = index * PIECE_ELEMENTS;
    const uint64_t end = MIN(start + PIECE_ELEMENTS, work->tensor->n_elements);

    uint64_t end_offset = 0;

    slot->statistics =
        (struct fs_statistics){.first_nan = FS_NOWHERE, .first_infinite = FS_NOWHERE};
    slot->result = 0;
    for (uint64_t first = start; slot->result == 0 && first < end; first += CHUNK_ELEMENTS) {
        const uint64_t n = MIN(CHUNK_ELEMENTS, end - first);
        struct fs_statistics chunk;

        slot->result = gguf_elements_read_unchecked(
            &(struct gguf_elements){.model = work->model,
                                    .tensor = work->tensor,
                                    .type = dequant_type_by_id(DEQUANT_F32)},
            first * sizeof(float), n * sizeof(float), (char *)slot->values, &end_offset);
        if (slot->result < 0)
            return;
        measure_values(slot->values, (unsigned)n, first, &chunk);
        slot->result = measure_scales(work, first, n, &chunk);
        add(&slot->statistics, &chunk);
    }
    if (slot->result == 0)
        slot->result = gguf_file_check(&work->model->files[work->tensor->file_index], end_offset);
}

static int finish_piece(void *user, uint64_t index, const void *in)
{
    const struct work *work = user;
    const struct slot *slot = in;

    if (slot->result < 0)
        return slot->result;
    add(work->statistics, &slot->statistics);
    return fs_is_interrupted(work->interrupt) ? -EINTR : 0;
}

int fs_statistics_compute(const struct gguf_model *model, const struct gguf_tensor *tensor,
                          const struct fs_interrupt *interrupt, struct fs_statistics *statistics)
{
    const uint64_t n_pieces =
        tensor->n_elements / PIECE_ELEMENTS + (tensor->n_elements % PIECE_ELEMENTS > 0);
    struct work work = {
        .model = model, .tensor = tensor, .interrupt = interrupt, .statistics = statistics};
    int result;

    *statistics = (struct fs_statistics){.first_nan = FS_NOWHERE, .first_infinite = FS_NOWHERE};
    if (tensor->type->is_scale_at_limit)
        statistics->n_blocks = tensor->n_elements / tensor->type->block_elements;
    result =
        fs_ordered_pipeline_run(&(struct fs_ordered_pipeline){.user = &work,
                                                              .n_items = n_pieces,
                                                              .slot_bytes = sizeof(struct slot),
                                                              .compute = measure_piece,
                                                              .finish = finish_piece});
    /* Bins of zeros alone have no natural size. */
    if (statistics->n_finite == 0 || (statistics->min == 0 && statistics->max == 0))
        statistics->histogram.exponent = 0;
    return result;
}

double fs_standard_deviation(const struct fs_statistics *statistics)
{
    if (statistics->n_finite == 0)
        return 0;
    return sqrt(statistics->squares / (double)statistics->n_finite);
}

double fs_histogram_edge(const struct fs_histogram *histogram, unsigned i)
{
    return ldexp((double)(histogram->first + i), histogram->exponent);
}

/* ---- the cache ---- */

/* The entry of tensor i is i % N_ENTRIES. */
#define N_ENTRIES 4096u

struct entry {
    const struct gguf_tensor *tensor;
    unsigned generation; /* of the model, before the statistics were computed */
    struct fs_statistics statistics;
};

struct fs_statistics_cache {
    const struct gguf_model *model;
    pthread_mutex_t lock; /* protects the entries */
    struct entry *entries[N_ENTRIES];
};

struct fs_statistics_cache *fs_statistics_cache_make(const struct gguf_model *model)
{
    struct fs_statistics_cache *cache = calloc(1, sizeof *cache);

    if (cache) {
        cache->model = model;
        pthread_mutex_init(&cache->lock, NULL);
    }
    return cache;
}

void fs_statistics_cache_free(struct fs_statistics_cache *cache)
{
    if (!cache)
        return;
    for (size_t i = 0; i < N_ENTRIES; i++)
        free(cache->entries[i]);
    pthread_mutex_destroy(&cache->lock);
    free(cache);
}

int fs_statistics_cache_get(struct fs_statistics_cache *cache, const struct gguf_tensor *tensor,
                            const struct fs_interrupt *interrupt, struct fs_statistics *statistics)
{
    const struct gguf_file *file = &cache->model->files[tensor->file_index];
    struct entry **place = &cache->entries[(size_t)(tensor - cache->model->tensors) % N_ENTRIES];
    struct entry *made;
    unsigned generation;
    bool is_kept;
    int result;

    if (file->source.is_growing)
        return fs_statistics_compute(cache->model, tensor, interrupt, statistics);
    result = gguf_file_check(file, 0);
    if (result < 0)
        return result;
    generation = gguf_model_generation(cache->model);
    pthread_mutex_lock(&cache->lock);
    is_kept = *place && (*place)->tensor == tensor && (*place)->generation == generation;
    if (is_kept)
        *statistics = (*place)->statistics;
    pthread_mutex_unlock(&cache->lock);
    if (is_kept)
        return 0;
    result = fs_statistics_compute(cache->model, tensor, interrupt, statistics);
    made = result == 0 ? malloc(sizeof *made) : NULL;
    if (!made) /* without memory, they are computed again next time */
        return result;
    *made = (struct entry){tensor, generation, *statistics};
    pthread_mutex_lock(&cache->lock);
    free(*place);
    *place = made;
    pthread_mutex_unlock(&cache->lock);
    return 0;
}
