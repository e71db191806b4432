#include "contrib/runner/compute/attend.h"

#include "contrib/runner/compute/run_kernels.h"
#include "contrib/runner/compute/thread_pool.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Multiplications in a piece of work. */
#define PIECE_PRODUCTS 32768

/* Queries that use a tile's keys and values together: of up to MOST_HEADS heads of some tokens. */
enum { MOST_HEADS = 16, MOST_ROWS = 64, CACHE_LINE_BYTES = 64 };

/* A call of run_attend(). Its blocks, of some tokens and some adjacent heads, are independent. */
struct job {
    const struct run_attention *attention;
    const float *queries;
    size_t stride;
    const struct run_cache *keys, *values;
    size_t n, first;
    float *out;
    size_t n_shared;      /* adjacent heads with the same keys and positions */
    size_t n_heads;       /* of a block; fewer in the last of n_shared heads */
    size_t n_head_groups; /* of n_shared heads */
    size_t n_tokens;      /* of a block; fewer in the last */
    size_t n_blocks;
    int code;
};

/* A block at work. Rows are queries: heads of a token are adjacent. */
struct block {
    const struct job *job;
    size_t token, n_tokens;
    size_t head, n_heads, head_kv;
    size_t pitch_k, pitch_v;                   /* dim_k and dim_v rounded up to whole lanes */
    size_t begins[MOST_ROWS], ends[MOST_ROWS]; /* what each token sees of the tile */
    struct run_scoring scoring[MOST_HEADS];
    struct run_softmax softmax[MOST_ROWS];
    float *queries; /* [rows][pitch_k] */
    float *scores;  /* [rows][RUN_TILE], then weights */
    float *sums;    /* [rows][pitch_v]: weighted values */
    float *keys;    /* [pitch_k][RUN_TILE], if the cache has none in columns */
    float *values;  /* [RUN_TILE][pitch_v] */
    float *piece;   /* [RUN_LANES][pitch_k] */
};

/* Up to RUN_TILE positions: a list, or those from `first` on. */
struct tile {
    const uint32_t *list;
    size_t first;
};

static size_t position_at(const struct tile *tile, size_t i)
{
    return tile->list ? tile->list[i] : tile->first + i;
}

static size_t round_down(size_t n)
{
    return n / RUN_LANES * RUN_LANES;
}

static size_t round_up(size_t n)
{
    return round_down(n + RUN_LANES - 1);
}

static size_t at_most(size_t n, size_t limit)
{
    return n < limit ? n : limit;
}

/* Return the ALiBi slope of a head, by the paper's rule for any number of heads. */
static float alibi_slope(float max_bias, uint32_t n_head, size_t head)
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

/* Return the columns of the keys of the tile's positions `begin` to `end` - 1 and their neighbours:
 * [dim_k][RUN_TILE]. */
static struct run_matrix load_keys(const struct block *block, const struct tile *tile, size_t begin,
                                   size_t end)
{
    const struct run_cache *keys = block->job->keys;
    const size_t pitch = block->pitch_k;

    if (keys->is_transposed)
        return run_cache_tile(keys, tile->first, block->head_kv);
    for (size_t i = round_down(begin); i < end; i += RUN_LANES) {
        const size_t n = at_most(end - i, RUN_LANES);

        for (size_t r = 0; r < n; r++)
            run_cache_load(keys, position_at(tile, i + r), block->head_kv, keys->dim,
                           block->piece + r * pitch);
        memset(block->piece + n * pitch, 0, (RUN_LANES - n) * pitch * sizeof *block->piece);
        run_kernels()->transpose(block->piece, pitch, pitch, block->keys + i, RUN_TILE);
    }
    return (struct run_matrix){.data = block->keys, .stride = RUN_TILE};
}

/* Return the values of the tile's positions `begin` to `end` - 1, in the rows of their numbers. */
static struct run_matrix load_values(const struct block *block, const struct tile *tile,
                                     size_t begin, size_t end)
{
    const struct run_cache *values = block->job->values;
    const size_t dim = block->job->attention->dim_v, pitch = block->pitch_v;

    if (!tile->list && values->type != DEQUANT_Q8_0 && dim == pitch)
        return run_cache_tile(values, tile->first, block->head_kv);
    for (size_t i = begin; i < end; i++)
        run_cache_load(values, position_at(tile, i), block->head_kv, dim,
                       block->values + i * pitch);
    return (struct run_matrix){.data = block->values, .stride = pitch};
}

static struct run_matrix part_of(struct run_matrix m, size_t row, size_t column)
{
    m.data = (const char *)m.data +
             (row * m.stride + column) * (m.is_half ? sizeof(uint16_t) : sizeof(float));
    return m;
}

/* Turn the products of the rows of a token and the keys into weights. */
static void weigh_token(struct block *block, size_t token, size_t distance)
{
    for (size_t head = 0; head < block->n_heads; head++) {
        const size_t row = token * block->n_heads + head;
        const float factor = run_kernels()->weigh(
            block->scores + row * RUN_TILE, block->begins[token], block->ends[token],
            (float)distance, &block->scoring[head], &block->softmax[row]);

        for (size_t j = 0; factor != 1 && j < block->pitch_v; j++)
            block->sums[row * block->pitch_v + j] *= factor;
    }
}

/* Include a tile in the results of tokens `first` to `last` - 1; each of them sees some of it. */
static void attend_tile(struct block *block, const struct tile *tile, size_t first, size_t last)
{
    const struct job *job = block->job;
    const size_t n_heads = block->n_heads, row = first * n_heads;
    const size_t begin = block->begins[first], end = block->ends[last - 1];
    const size_t column = round_down(begin);
    struct run_matrix values;

    memset(block->scores + row * RUN_TILE, 0,
           (last - first) * n_heads * RUN_TILE * sizeof *block->scores);
    run_kernels()->add_products(
        block->queries + row * block->pitch_k, block->pitch_k, (last - first) * n_heads,
        part_of(load_keys(block, tile, begin, end), 0, column), job->attention->dim_k,
        round_up(end) - column, block->scores + row * RUN_TILE + column, RUN_TILE);
    for (size_t i = first; i < last; i++)
        weigh_token(block, i, job->first + block->token + i - tile->first);
    values = load_values(block, tile, begin, end);
    for (size_t i = first, next; i < last; i = next) {
        const size_t from = block->begins[i], to = block->ends[i];

        next = i + 1;
        while (next < last && block->begins[next] == from && block->ends[next] == to)
            next++;
        run_kernels()->add_products(block->scores + i * n_heads * RUN_TILE + from, RUN_TILE,
                                    (next - i) * n_heads, part_of(values, from, 0), to - from,
                                    block->pitch_v, block->sums + i * n_heads * block->pitch_v,
                                    block->pitch_v);
    }
}

/* Compute all tiles that contain positions seen by tokens of a block. */
static void attend_window(struct block *block)
{
    const struct run_attention *attention = block->job->attention;
    const size_t position = block->job->first + block->token;
    struct tile tile = {.first = first_visible(attention, position) / RUN_TILE * RUN_TILE};

    for (; tile.first < position + block->n_tokens; tile.first += RUN_TILE) {
        size_t first = block->n_tokens, last = 0;

        for (size_t i = 0; i < block->n_tokens; i++) {
            const size_t visible = first_visible(attention, position + i);
            const size_t begin = visible > tile.first ? visible - tile.first : 0;
            const size_t end =
                position + i < tile.first ? 0 : at_most(position + i + 1 - tile.first, RUN_TILE);

            if (begin >= end)
                continue;
            block->begins[i] = begin;
            block->ends[i] = end;
            first = at_most(i, first);
            last = i + 1;
        }
        if (first < last)
            attend_tile(block, &tile, first, last);
    }
}

/* The positions that are selected for the only token of a block. */
static void attend_selection(struct block *block, const struct run_selection *selection)
{
    const size_t n_alike = block->job->attention->n_head / selection->n_groups;
    const size_t index = block->token * selection->n_groups + block->head / n_alike;

    for (size_t i = 0; i < selection->counts[index]; i += RUN_TILE) {
        const struct tile tile = {.list = selection->positions + index * selection->stride + i};

        block->begins[0] = 0;
        block->ends[0] = at_most(selection->counts[index] - i, RUN_TILE);
        attend_tile(block, &tile, 0, 1);
    }
}

/* Copy the queries, and begin each softmax with the head's sink. */
static void begin_block(struct block *block)
{
    const struct job *job = block->job;
    const struct run_attention *attention = job->attention;

    for (size_t head = 0; head < block->n_heads; head++) {
        const bool has_slope = attention->max_alibi > 0 && !attention->selection;

        block->scoring[head] = (struct run_scoring){
            .scale = attention->scale,
            .softcap = attention->softcap,
            .slope = has_slope
                         ? alibi_slope(attention->max_alibi, attention->n_head, block->head + head)
                         : 0,
        };
    }
    for (size_t row = 0; row < block->n_tokens * block->n_heads; row++) {
        const size_t token = block->token + row / block->n_heads;
        const size_t head = block->head + row % block->n_heads;

        memcpy(block->queries + row * block->pitch_k,
               job->queries + token * job->stride + head * attention->dim_k,
               attention->dim_k * sizeof *block->queries);
        block->softmax[row] = attention->sinks ? (struct run_softmax){attention->sinks[head], 1}
                                               : (struct run_softmax){-INFINITY, 0};
    }
    memset(block->sums, 0, block->n_tokens * block->n_heads * block->pitch_v * sizeof *block->sums);
}

/* A token that sees nothing gets zeros. */
static void end_block(const struct block *block)
{
    const size_t dim = block->job->attention->dim_v, n_head = block->job->attention->n_head;

    for (size_t row = 0; row < block->n_tokens * block->n_heads; row++) {
        const size_t token = block->token + row / block->n_heads;
        const size_t head = block->head + row % block->n_heads;
        const double sum = block->softmax[row].sum;
        const float factor = sum == 0 ? 0 : (float)(1 / sum);
        float *out = block->job->out + (token * n_head + head) * dim;

        for (size_t j = 0; j < dim; j++)
            out[j] = block->sums[row * block->pitch_v + j] * factor;
    }
}

/* Point the block's arrays into one allocation. Returns 0 or -ENOMEM. */
static int alloc_block(struct block *block)
{
    const size_t rows = block->n_tokens * block->n_heads;
    const struct {
        float **array;
        size_t n;
    } arrays[] = {
        {&block->queries, rows * block->pitch_k},    {&block->scores, rows * RUN_TILE},
        {&block->sums, rows * block->pitch_v},       {&block->keys, block->pitch_k * RUN_TILE},
        {&block->values, RUN_TILE * block->pitch_v}, {&block->piece, RUN_LANES * block->pitch_k},
    };
    size_t n = 0;
    float *all;

    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++)
        n += arrays[i].n;
    all = aligned_alloc(CACHE_LINE_BYTES, n * sizeof *all);
    if (!all)
        return -ENOMEM;
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++) {
        *arrays[i].array = all;
        all += arrays[i].n;
    }
    return 0;
}

static void attend_block(void *context, size_t index)
{
    struct job *job = context;
    const struct run_attention *attention = job->attention;
    const size_t n_groups = attention->n_head / job->n_shared * job->n_head_groups;
    const size_t group = index % n_groups, in_group = group % job->n_head_groups * job->n_heads;
    const size_t head = group / job->n_head_groups * job->n_shared + in_group;
    struct block block = {
        .job = job,
        .token = index / n_groups * job->n_tokens,
        .head = head,
        .n_heads = at_most(job->n_shared - in_group, job->n_heads),
        .head_kv = head / (attention->n_head / attention->n_head_kv),
        .pitch_k = round_up(attention->dim_k),
        .pitch_v = round_up(attention->dim_v),
    };

    block.n_tokens = at_most(job->n - block.token, job->n_tokens);
    if (alloc_block(&block) < 0) {
        __atomic_store_n(&job->code, -ENOMEM, __ATOMIC_RELAXED);
        return;
    }
    begin_block(&block);
    if (attention->selection)
        attend_selection(&block, attention->selection);
    else
        attend_window(&block);
    end_block(&block);
    free(block.queries);
}

static size_t common_divisor(size_t a, size_t b)
{
    return b == 0 ? a : common_divisor(b, a % b);
}

int run_attend(const struct run_attention *attention, const float *queries, size_t stride,
               const struct run_cache *keys, const struct run_cache *values, size_t n, size_t first,
               float *out)
{
    const struct run_selection *selection = attention->selection;
    const size_t n_head = attention->n_head, n_alike = n_head / attention->n_head_kv;
    struct job job = {
        .attention = attention,
        .queries = queries,
        .stride = stride,
        .keys = keys,
        .values = values,
        .n = n,
        .first = first,
        .out = out,
        .n_shared = selection ? common_divisor(n_alike, n_head / selection->n_groups) : n_alike,
    };

    job.n_head_groups = (job.n_shared + MOST_HEADS - 1) / MOST_HEADS;
    job.n_heads = (job.n_shared + job.n_head_groups - 1) / job.n_head_groups;
    job.n_tokens = selection ? 1 : MOST_ROWS / job.n_heads;
    job.n_blocks =
        (n + job.n_tokens - 1) / job.n_tokens * (n_head / job.n_shared) * job.n_head_groups;
    run_parallel_for_each(job.n_blocks,
                          run_grain(PIECE_PRODUCTS, job.n_tokens * job.n_heads * (first + n) *
                                                        (attention->dim_k + attention->dim_v)),
                          attend_block, &job);
    return job.code;
}
