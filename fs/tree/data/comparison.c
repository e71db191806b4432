#include "fs/tree/data/comparison.h"

#include "gguf/elements.h"
#include "fs/tree/data/threads.h"

#include <errno.h>
#include <math.h>
#include <stdalign.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/param.h>

/* Elements decoded at a time: both tensors' stay in the processor's cache. */
#define CHUNK_ELEMENTS ((size_t)8192)
/* Elements that a thread takes at a time; a multiple of all block lengths. */
#define PIECE_ELEMENTS (32 * CHUNK_ELEMENTS)

struct slot {
    struct fs_comparison comparison;
    int result;
    unsigned failed;
    alignas(FS_SLOT_ALIGNMENT) float values[2 * CHUNK_ELEMENTS]; /* of a chunk of both tensors */
};

struct work {
    const struct fs_tensor_of *pair;
    struct fs_comparison *comparison;
    unsigned failed;
};

/* Count pairs that are not finite, and make them 0. */
static void take_out_others(float *a, float *b, size_t n, struct fs_comparison *comparison)
{
    for (size_t i = 0; i < n; i++) {
        if (isfinite(a[i]) && isfinite(b[i]))
            continue;
        comparison->n_not_finite++;
        comparison->n_only_in_one += a[i] != b[i] && !(isnan(a[i]) && isnan(b[i]));
        a[i] = b[i] = 0;
    }
}

static void compare_values(float *a, float *b, uint64_t first, size_t n,
                           struct fs_comparison *comparison)
{
    const struct fs_statistics_kernels *kernels = fs_statistics_kernels();
    struct fs_range ranges[2];

    *comparison = (struct fs_comparison){0};
    kernels->get_range(a, n, &ranges[0]);
    kernels->get_range(b, n, &ranges[1]);
    if (!ranges[0].is_finite || !ranges[1].is_finite)
        take_out_others(a, b, n, comparison);
    kernels->compare(a, b, n, &comparison->products);
    for (size_t i = 0; comparison->products.largest > 0 && i < n; i++)
        if (fabs((double)b[i] - (double)a[i]) == comparison->products.largest) {
            comparison->largest_at = first + i;
            break;
        }
}

void fs_comparison_add(struct fs_comparison *sum, const struct fs_comparison *more)
{
    sum->products.aa += more->products.aa;
    sum->products.bb += more->products.bb;
    sum->products.ab += more->products.ab;
    sum->products.dd += more->products.dd;
    if (more->products.largest > sum->products.largest) {
        sum->products.largest = more->products.largest;
        sum->largest_at = more->largest_at;
    }
    sum->n_not_finite += more->n_not_finite;
    sum->n_only_in_one += more->n_only_in_one;
}

static void compare_piece(void *user, uint64_t index, void *in)
{
    const struct work *work = user;
    struct slot *slot = in;
    const uint64_t start = index * PIECE_ELEMENTS;
    const uint64_t end = MIN(start + PIECE_ELEMENTS, work->pair[0].tensor->n_elements);
    uint64_t end_offsets[2] = {0};

    slot->comparison = (struct fs_comparison){0};
    slot->result = 0;
    for (uint64_t first = start; first < end; first += CHUNK_ELEMENTS) {
        const uint64_t n = MIN(CHUNK_ELEMENTS, end - first);
        struct fs_comparison chunk;

        for (slot->failed = 0; slot->failed < 2; slot->failed++) {
            slot->result = gguf_elements_read_unchecked(
                &(struct gguf_elements){.model = work->pair[slot->failed].model,
                                        .tensor = work->pair[slot->failed].tensor,
                                        .type = dequant_type_by_id(DEQUANT_F32)},
                first * sizeof(float), n * sizeof(float),
                (char *)(slot->values + slot->failed * CHUNK_ELEMENTS), &end_offsets[slot->failed]);
            if (slot->result < 0)
                return;
        }
        compare_values(slot->values, slot->values + CHUNK_ELEMENTS, first, n, &chunk);
        fs_comparison_add(&slot->comparison, &chunk);
    }
    for (slot->failed = 0; slot->failed < 2; slot->failed++) {
        const struct fs_tensor_of *of = &work->pair[slot->failed];

        slot->result =
            gguf_file_check(&of->model->files[of->tensor->file_index], end_offsets[slot->failed]);
        if (slot->result < 0)
            return;
    }
}

static int finish_piece(void *user, uint64_t index, const void *in)
{
    struct work *work = user;
    const struct slot *slot = in;

    if (slot->result < 0)
        work->failed = slot->failed;
    else
        fs_comparison_add(work->comparison, &slot->comparison);
    return slot->result;
}

int fs_compare_tensors(const struct fs_tensor_of pair[2], struct fs_comparison *comparison,
                       unsigned *failed)
{
    const uint64_t n_elements = pair[0].tensor->n_elements;
    const uint64_t n_pieces = n_elements / PIECE_ELEMENTS + (n_elements % PIECE_ELEMENTS > 0);
    struct work work = {.pair = pair, .comparison = comparison};
    int result;

    *comparison = (struct fs_comparison){0};
    result =
        fs_ordered_pipeline_run(&(struct fs_ordered_pipeline){.user = &work,
                                                              .n_items = n_pieces,
                                                              .slot_bytes = sizeof(struct slot),
                                                              .compute = compare_piece,
                                                              .finish = finish_piece});
    *failed = work.failed;
    return result;
}

double fs_comparison_nmse(const struct fs_comparison *comparison)
{
    const struct fs_products *products = &comparison->products;

    if (products->dd == 0)
        return 0;
    return products->dd / products->aa;
}

double fs_comparison_cosine(const struct fs_comparison *comparison)
{
    const struct fs_products *products = &comparison->products;

    if (products->aa == 0 && products->bb == 0)
        return 1;
    if (products->aa == 0 || products->bb == 0)
        return 0;
    return products->ab / (sqrt(products->aa) * sqrt(products->bb));
}
