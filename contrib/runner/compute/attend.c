#include "contrib/runner/compute/attend.h"

#include "contrib/runner/compute/team.h"
#include "dequant/kernels.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Multiplications in a piece of work. */
#define PIECE_PRODUCTS 32768

/* Half-precision rows are decoded PIECE_ROWS at a time, for up to MOST_HEADS heads. */
enum { PIECE_ROWS = 16, MOST_HEADS = 8 };

static size_t element_bytes(const struct run_cache *cache)
{
    return cache->is_f16 ? sizeof(uint16_t) : sizeof(float);
}

int run_cache_reserve(struct run_cache *cache, size_t n_rows)
{
    size_t capacity = cache->n_rows, n_bytes;
    void *larger;

    if (n_rows <= capacity)
        return 0;
    capacity = capacity + capacity / 2 > n_rows ? capacity + capacity / 2 : n_rows;
    if (__builtin_mul_overflow(capacity, cache->width * element_bytes(cache), &n_bytes))
        return -ENOMEM;
    larger = realloc(cache->rows, n_bytes ? n_bytes : 1);
    if (!larger)
        return -ENOMEM;
    cache->rows = larger;
    cache->n_rows = capacity;
    return 0;
}

void run_cache_free(struct run_cache *cache)
{
    free(cache->rows);
    cache->rows = NULL;
    cache->n_rows = 0;
}

void run_cache_store(struct run_cache *cache, size_t first, const float *rows, size_t n,
                     size_t stride)
{
    uint8_t *to = (uint8_t *)cache->rows + first * cache->width * element_bytes(cache);

    for (size_t i = 0; i < n; i++, to += cache->width * element_bytes(cache)) {
        if (cache->is_f16)
            dequant_encode(dequant_type_by_id(DEQUANT_F16), rows + i * stride, to, cache->width);
        else
            memcpy(to, rows + i * stride, cache->width * sizeof(float));
    }
}

/*
 * Return `n` floats, from element `at` on, of up to PIECE_ROWS rows from `row` on: a pointer into
 * the cache, or to `piece` after decoding them there.
 */
static const float *head_rows(const struct run_cache *cache, size_t row, size_t n_rows, size_t at,
                              size_t n, float *piece, size_t *stride)
{
    if (!cache->is_f16) {
        *stride = cache->width;
        return (const float *)cache->rows + row * cache->width + at;
    }
    for (size_t i = 0; i < n_rows; i++)
        dequant_decode(dequant_type_by_id(DEQUANT_F16),
                       (const uint16_t *)cache->rows + (row + i) * cache->width + at, piece + i * n,
                       n);
    *stride = n;
    return piece;
}

/* Return the ALiBi slope of a head, by the paper's rule for any number of heads. */
static float alibi_slope(float max_bias, uint32_t n_head, uint32_t head)
{
    uint32_t whole = 1;

    while (whole * 2 <= n_head)
        whole *= 2;
    if (head < whole)
        return powf(powf(2, -max_bias / (float)whole), (float)(head + 1));
    return powf(powf(2, -max_bias / 2 / (float)whole), (float)(2 * (head - whole) + 1));
}

static size_t first_visible(const struct run_attention *attention, size_t position)
{
    switch (attention->window_kind) {
    case RUN_WINDOW_SLIDING:
        return position >= attention->window ? position - attention->window + 1 : 0;
    case RUN_WINDOW_CHUNKED:
        return attention->window ? position / attention->window * attention->window : 0;
    case RUN_WINDOW_NONE:
        break;
    }
    return 0;
}

/* Turn scores into weights. Their sum is 1, or less with a sink. */
static void weigh(const struct run_attention *attention, uint32_t head, float *scores, size_t n)
{
    float highest = attention->sinks ? attention->sinks[head] : -INFINITY;
    const float slope =
        attention->max_alibi > 0 ? alibi_slope(attention->max_alibi, attention->n_head, head) : 0;
    double sum = 0;

    for (size_t i = 0; i < n; i++) {
        float score = scores[i] * attention->scale;

        if (attention->softcap > 0)
            score = attention->softcap * tanhf(score / attention->softcap);
        score -= slope * (float)(n - 1 - i);
        scores[i] = score;
        highest = fmaxf(highest, score);
    }
    for (size_t i = 0; i < n; i++) {
        scores[i] = expf(scores[i] - highest);
        sum += (double)scores[i];
    }
    if (attention->sinks)
        sum += exp((double)attention->sinks[head] - (double)highest);
    for (size_t i = 0; i < n; i++)
        scores[i] = (float)((double)scores[i] / sum);
}

/* The positions that a token sees: a list, or `n` from `first` on. */
struct view {
    const uint32_t *list;
    size_t first, n;
};

static struct view find_view(const struct run_attention *attention, uint32_t head, size_t token,
                             size_t position)
{
    const struct run_selection *selection = attention->selection;
    const size_t first = first_visible(attention, position);
    size_t index;

    if (!selection)
        return (struct view){NULL, first, position + 1 - first};
    index = token * selection->n_groups + head / (attention->n_head / selection->n_groups);
    return (struct view){selection->positions + index * selection->stride, 0,
                         selection->counts[index]};
}

/*
 * Return the number of consecutive positions from the i-th on, at most PIECE_ROWS. Stores the first
 * in *row.
 */
static size_t find_piece(const struct view *view, size_t i, size_t *row)
{
    const size_t left = view->n - i < PIECE_ROWS ? view->n - i : PIECE_ROWS;
    size_t n = 1;

    if (!view->list) {
        *row = view->first + i;
        return left;
    }
    *row = view->list[i];
    while (n < left && view->list[i + n] == *row + n)
        n++;
    return n;
}

/*
 * Adjacent heads of a token that share keys and see the same positions, so that keys are read and
 * decoded only once.
 */
struct group {
    uint32_t head, n; /* the first head, and their number */
    const float *queries;
    struct view view;
    float *scores; /* room for `stride` positions per head */
    size_t stride;
    float *piece; /* room for PIECE_ROWS heads */
    float *out;
};

static void score_group(const struct run_attention *attention, const struct run_cache *keys,
                        const struct group *group)
{
    const size_t head_kv = group->head / (attention->n_head / attention->n_head_kv);
    const size_t dim_k = attention->dim_k, n = group->view.n;
    size_t stride, row;

    for (size_t head = 0; head < group->n; head++)
        memset(group->scores + head * group->stride, 0, n * sizeof *group->scores);
    for (size_t i = 0, n_rows; i < n; i += n_rows) {
        const float *rows;

        n_rows = find_piece(&group->view, i, &row);
        rows = head_rows(keys, row, n_rows, head_kv * dim_k, dim_k, group->piece, &stride);
        dequant_dot(rows, stride, n_rows, group->queries, dim_k, group->n, dim_k, group->scores + i,
                    group->stride);
    }
}

static void add_row(float weight, const float *restrict value, size_t n, float *restrict out)
{
#pragma omp simd
    for (size_t j = 0; j < n; j++)
        out[j] += weight * value[j];
}

static void sum_group(const struct run_attention *attention, const struct run_cache *values,
                      const struct group *group)
{
    const size_t head_kv = group->head / (attention->n_head / attention->n_head_kv);
    const size_t dim_v = attention->dim_v;
    size_t stride, row;

    memset(group->out, 0, group->n * dim_v * sizeof *group->out);
    for (size_t i = 0, n_rows; i < group->view.n; i += n_rows) {
        const float *rows;

        n_rows = find_piece(&group->view, i, &row);
        rows = head_rows(values, row, n_rows, head_kv * dim_v, dim_v, group->piece, &stride);
        for (size_t head = 0; head < group->n; head++)
            for (size_t r = 0; r < n_rows; r++)
                add_row(group->scores[head * group->stride + i + r], rows + r * stride, dim_v,
                        group->out + head * dim_v);
    }
}

static void attend_group(const struct run_attention *attention, const struct run_cache *keys,
                         const struct run_cache *values, const struct group *group)
{
    score_group(attention, keys, group);
    for (uint32_t head = 0; head < group->n; head++)
        weigh(attention, group->head + head, group->scores + head * group->stride, group->view.n);
    sum_group(attention, values, group);
}

/*
 * Return the number of heads in a group. It divides the number of heads that share keys and the
 * number that share a selection.
 */
static uint32_t group_size(const struct run_attention *attention)
{
    const uint32_t n_alike = attention->n_head / attention->n_head_kv;
    const uint32_t n_chosen =
        attention->selection ? attention->n_head / attention->selection->n_groups : n_alike;
    uint32_t size = MOST_HEADS;

    while (n_alike % size != 0 || n_chosen % size != 0)
        size--;
    return size;
}

/* The arguments of run_attend(), and memory of each thread. */
struct call {
    const struct run_attention *attention;
    const float *queries;
    size_t stride;
    const struct run_cache *keys, *values;
    size_t first, n_all; /* the position of the first token, and the number of positions */
    uint32_t size;       /* heads in a group */
    size_t n_floats;     /* of a thread's memory: `n_all` scores for each head, then a piece */
    float *memory;
    float *out;
};

/* Compute groups of heads; those of a token are adjacent. */
static void attend_groups(void *context, size_t first_group, size_t end_group, unsigned thread)
{
    const struct call *call = context;
    const struct run_attention *attention = call->attention;
    const size_t n_head = attention->n_head, n_groups = n_head / call->size;
    float *scores = call->memory + thread * call->n_floats;

    for (size_t i = first_group; i < end_group; i++) {
        const size_t token = i / n_groups, head = i % n_groups * call->size;

        attend_group(attention, call->keys, call->values,
                     &(struct group){
                         .head = (uint32_t)head,
                         .n = call->size,
                         .queries = call->queries + token * call->stride + head * attention->dim_k,
                         .view = find_view(attention, (uint32_t)head, token, call->first + token),
                         .scores = scores,
                         .stride = call->n_all,
                         .piece = scores + call->size * call->n_all,
                         .out = call->out + (token * n_head + head) * attention->dim_v,
                     });
    }
}

int run_attend(const struct run_attention *attention, const float *queries, size_t stride,
               const struct run_cache *keys, const struct run_cache *values, size_t n, size_t first,
               float *out)
{
    const size_t dim_k = attention->dim_k, dim_v = attention->dim_v, n_all = first + n;
    const uint32_t size = group_size(attention);
    struct call call = {
        .attention = attention,
        .queries = queries,
        .stride = stride,
        .keys = keys,
        .values = values,
        .first = first,
        .n_all = n_all,
        .size = size,
        .n_floats = size * n_all + PIECE_ROWS * (dim_k > dim_v ? dim_k : dim_v),
        .out = out,
    };

    call.memory = malloc(run_team_size() * call.n_floats * sizeof *call.memory);
    if (!call.memory)
        return -ENOMEM;
    run_parallel(n * (attention->n_head / size),
                 run_grain(PIECE_PRODUCTS, size * n_all * (dim_k + dim_v)), attend_groups, &call);
    free(call.memory);
    return 0;
}
