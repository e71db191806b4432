/* Latent attention of the runner, in both layouts of files, compared with a reference in double. */
#include "contrib/runner/engine/mixer.h"
#include "tests/unit/runner/run_numbers.h"
#include "tests/unit/runner/run_tree_files.h"

#include <criterion/criterion.h>

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    N_EMBD = 14,
    N_HEAD = 3,
    RANK = 6,
    N_ROT = 4,
    PLAIN = 5,
    DIM_V = 7,
    N_TOKENS = 21,
    Q_RANK = 9
};
enum { DIM_K = PLAIN + N_ROT };

static struct run_files files;
static struct gguf_layer_shape shape = {.n_head = N_HEAD, .n_head_kv = N_HEAD, .is_rotated = true};
static const struct run_architecture architecture = {.names = "test", .rotary = RUN_ROTARY_NORMAL};
static struct run_hparams hparams;

static void begin(void)
{
    run_files_make(&files);
    run_files_metadata(&files, "{}");
    hparams = (struct run_hparams){.architecture = &architecture,
                                   .n_layer = 1,
                                   .n_embd = N_EMBD,
                                   .n_rot = N_ROT,
                                   .norm_epsilon = 1e-5f,
                                   .latent_rank = RANK,
                                   .latent_k = DIM_K,
                                   .latent_v = DIM_V,
                                   .latent_scale = 0.4f,
                                   .layers = &shape};
}

static void end(void)
{
    run_files_remove(&files);
}

TestSuite(run_latent, .init = begin, .fini = end);

/* Write all weights except the decompression's. */
static void make_common(bool has_narrow_queries)
{
    if (has_narrow_queries) {
        run_files_random(&files, "attn_q_a.weight", N_EMBD, Q_RANK, 0, 1);
        run_files_random(&files, "attn_q_a_norm.weight", Q_RANK, 0, 0, 1);
        run_files_random(&files, "attn_q_b.weight", Q_RANK, N_HEAD * DIM_K, 0, 1);
    } else {
        run_files_random(&files, "attn_q.weight", N_EMBD, N_HEAD * DIM_K, 0, 1);
    }
    run_files_random(&files, "attn_kv_a_mqa.weight", N_EMBD, RANK + N_ROT, 0, 1);
    run_files_random(&files, "attn_kv_a_norm.weight", RANK, 0, 0, 1);
    run_files_random(&files, "attn_output.weight", N_HEAD * DIM_V, N_EMBD, 0, 1);
}

/*
 * Write the decompression weights in one of the two layouts. Returns them as the matrix kv_b, which
 * the caller frees.
 */
static const float *make_decompression(bool is_absorbed)
{
    const size_t rows = PLAIN + DIM_V;
    float *kv_b = numbers_make(&files.random, 1, N_HEAD * rows * RANK);
    float k_b[N_HEAD * RANK * PLAIN], v_b[N_HEAD * DIM_V * RANK];

    for (size_t head = 0; head < N_HEAD; head++) {
        const float *from = kv_b + head * rows * RANK;

        for (size_t r = 0; r < RANK; r++)
            for (size_t p = 0; p < PLAIN; p++)
                k_b[(head * RANK + r) * PLAIN + p] = from[p * RANK + r];
        memcpy(v_b + head * DIM_V * RANK, from + (size_t)PLAIN * RANK, DIM_V * RANK * sizeof *v_b);
    }
    if (is_absorbed) {
        run_files_floats(&files, "attn_k_b.weight", PLAIN, RANK, N_HEAD, k_b);
        run_files_floats(&files, "attn_v_b.weight", RANK, DIM_V, N_HEAD, v_b);
    } else {
        run_files_floats(&files, "attn_kv_b.weight", RANK, N_HEAD * rows, 0, kv_b);
    }
    return kv_b;
}

static void rms(double *x, size_t n, const float *weight)
{
    double squares = 0;

    for (size_t i = 0; i < n; i++)
        squares += x[i] * x[i] / (double)n;
    for (size_t i = 0; i < n; i++)
        x[i] = x[i] / sqrt(squares + (double)hparams.norm_epsilon) * (double)weight[i];
}

static void rotate(double *x, size_t position)
{
    for (size_t i = 0; i < N_ROT / 2; i++) {
        const double angle = (double)position * pow(10000, -2.0 * (double)i / N_ROT);
        const double a = x[2 * i], b = x[2 * i + 1];

        x[2 * i] = a * cos(angle) - b * sin(angle);
        x[2 * i + 1] = a * sin(angle) + b * cos(angle);
    }
}

/* Compute the layer as in the paper, with the decompressed keys and values of all heads. */
static void reference(const float *x, const float *kv_b, double *out)
{
    static double q[N_TOKENS][N_HEAD][DIM_K], k[N_TOKENS][N_HEAD][DIM_K];
    static double v[N_TOKENS][N_HEAD][DIM_V];
    const float *narrow = run_files_values(&files, "attn_q_a.weight");

    for (size_t t = 0; t < N_TOKENS; t++) {
        double row[N_EMBD], compressed[RANK + N_ROT], wide[N_HEAD][PLAIN + DIM_V], part[Q_RANK];

        for (size_t i = 0; i < N_EMBD; i++)
            row[i] = (double)x[t * N_EMBD + i];
        if (narrow) {
            numbers_multiply(narrow, Q_RANK, N_EMBD, row, part);
            rms(part, Q_RANK, run_files_values(&files, "attn_q_a_norm.weight"));
            numbers_multiply(run_files_values(&files, "attn_q_b.weight"), N_HEAD * DIM_K, Q_RANK,
                             part, q[t][0]);
        } else {
            numbers_multiply(run_files_values(&files, "attn_q.weight"), N_HEAD * DIM_K, N_EMBD, row,
                             q[t][0]);
        }
        numbers_multiply(run_files_values(&files, "attn_kv_a_mqa.weight"), RANK + N_ROT, N_EMBD,
                         row, compressed);
        rms(compressed, RANK, run_files_values(&files, "attn_kv_a_norm.weight"));
        rotate(compressed + RANK, t);
        numbers_multiply(kv_b, N_HEAD * (PLAIN + DIM_V), RANK, compressed, wide[0]);
        for (size_t h = 0; h < N_HEAD; h++) {
            rotate(q[t][h] + PLAIN, t);
            memcpy(k[t][h], wide[h], PLAIN * sizeof(double));
            memcpy(k[t][h] + PLAIN, compressed + RANK, N_ROT * sizeof(double));
            memcpy(v[t][h], wide[h] + PLAIN, DIM_V * sizeof(double));
        }
    }
    for (size_t t = 0; t < N_TOKENS; t++) {
        double found[N_HEAD][DIM_V] = {0};

        for (size_t h = 0; h < N_HEAD; h++) {
            double sum = 0;

            for (size_t j = 0; j <= t; j++) {
                double score = 0;

                for (size_t i = 0; i < DIM_K; i++)
                    score += q[t][h][i] * k[j][h][i];
                score = exp(score * (double)hparams.latent_scale);
                sum += score;
                for (size_t i = 0; i < DIM_V; i++)
                    found[h][i] += score * v[j][h][i];
            }
            for (size_t i = 0; i < DIM_V; i++)
                found[h][i] /= sum;
        }
        numbers_multiply(run_files_values(&files, "attn_output.weight"), N_EMBD, N_HEAD * DIM_V,
                         found[0], out + t * N_EMBD);
    }
}

/* Apply the layer to all tokens in batches of this size. */
static void apply(size_t batch, uint32_t cache_type, const float *x, float *out)
{
    const struct run_rotary_scaling scaling = {.base = 10000, .factor = 1};
    struct run_rotary rotary[2] = {{.kind = RUN_ROTARY_NORMAL, .n_rot = N_ROT, .magnitude = 1},
                                   {.kind = RUN_ROTARY_NONE}};
    void *layer = calloc(1, run_latent_mixer.n_bytes);
    struct run_part part;

    cr_assert_eq(run_rotary_make(&rotary[0], &scaling), 0);
    run_part_open(&files, &part);
    run_latent_mixer.load(&part.loader,
                          &(struct run_mixer_place){.hparams = &hparams, .cache_type = cache_type},
                          layer);
    cr_assert_eq(part.loader.code, 0, "%s", part.failure.text);
    for (size_t first = 0; first < N_TOKENS; first += batch) {
        const struct run_pass pass = {.hparams = &hparams,
                                      .scratch = &part.scratch,
                                      .rotary = rotary,
                                      .n = N_TOKENS - first < batch ? N_TOKENS - first : batch,
                                      .first = first};

        run_latent_mixer.apply(layer, &pass, x + first * N_EMBD, out + first * N_EMBD);
    }
    run_rotary_free(&rotary[0]);
    run_part_close(&part);
    free(layer);
}

static void check(bool has_narrow_queries, bool is_absorbed)
{
    float *x = numbers_make(&files.random, 1, N_TOKENS * N_EMBD), *out, *other;
    double *expected = numbers_alloc(N_TOKENS * N_EMBD, sizeof *expected);
    const float *kv_b;

    make_common(has_narrow_queries);
    kv_b = make_decompression(is_absorbed);
    out = numbers_alloc(N_TOKENS * N_EMBD, sizeof *out);
    other = numbers_alloc(N_TOKENS * N_EMBD, sizeof *other);
    reference(x, kv_b, expected);
    apply(N_TOKENS, DEQUANT_F32, x, out);
    numbers_expect_near("latent attention", out, expected, N_TOKENS * N_EMBD, 3e-6);
    apply(1, DEQUANT_F32, x, other);
    numbers_expect_same("token by token", other, out, N_TOKENS * N_EMBD);
    apply(4, DEQUANT_F32, x, other);
    numbers_expect_same("in batches", other, out, N_TOKENS * N_EMBD);
    apply(4, DEQUANT_F16, x, other);
    numbers_expect_near("with an f16 cache", other, expected, N_TOKENS * N_EMBD, 5e-3);
    free(x);
    free(out);
    free(other);
    free(expected);
    free((float *)(uintptr_t)kv_b);
}

Test(run_latent, decompressed)
{
    check(false, false);
}

Test(run_latent, decompressed_with_low_rank_queries)
{
    check(true, false);
}

Test(run_latent, absorbed)
{
    check(false, true);
}

Test(run_latent, absorbed_with_low_rank_queries)
{
    check(true, true);
}

static void expect_refused(int code, const char *pattern)
{
    void *layer = calloc(1, run_latent_mixer.n_bytes);
    struct run_part part;

    run_part_open(&files, &part);
    run_latent_mixer.load(&part.loader,
                          &(struct run_mixer_place){.hparams = &hparams, .cache_type = DEQUANT_F32},
                          layer);
    cr_expect_eq(part.loader.code, code, "%s", part.failure.text);
    cr_expect_not_null(strstr(part.failure.text, pattern), "\"%s\" does not contain \"%s\"",
                       part.failure.text, pattern);
    run_part_close(&part);
    free(layer);
}

Test(run_latent, wrong_shapes_are_refused)
{
    make_common(false);
    expect_refused(-ENOENT, "tensors/attn_k_b.weight: missing");
    run_files_random(&files, "attn_k_b.weight", PLAIN, RANK, N_HEAD, 1);
    expect_refused(-ENOENT, "tensors/attn_v_b.weight: missing");
    run_files_random(&files, "attn_v_b.weight", RANK, DIM_V, N_HEAD + 1, 1);
    expect_refused(-EINVAL, "tensors/attn_v_b.weight: shape");
    run_files_random(&files, "attn_kv_b.weight", RANK, N_HEAD * (PLAIN + DIM_V) + 1, 0, 1);
    expect_refused(-EINVAL, "tensors/attn_kv_b.weight: shape");
    run_files_random(&files, "attn_kv_a_mqa.weight", N_EMBD, RANK, 0, 1);
    expect_refused(-EINVAL, "tensors/attn_kv_a_mqa.weight: shape");
    hparams.latent_k = N_ROT;
    expect_refused(-EINVAL, "key_length_mla 4 is not above rope.dimension_count 4");
}

/* Without the key, only GLM 5.2, known by its context, has layers without indexer. */
Test(run_latent, layers_with_indexer)
{
    static const char types[] = ", \"glm-dsa.attention.indexer.types\": "
                                "[true, false, true, true, false, true, false, true]";
    static const struct {
        unsigned n_context;
        const char *types, *expected;
    } cases[] = {
        {1048575, "", "11111111"},
        {1048576, "", "11100010"},
        {1048576, types, "10110101"},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct run_failure failure;
        struct run_hparams read;
        struct run_tree tree;
        char text[1000];

        snprintf(text, sizeof text,
                 "{\"general.architecture\": \"glm-dsa\", \"glm-dsa.block_count\": 8, "
                 "\"glm-dsa.embedding_length\": 64, \"glm-dsa.attention.head_count\": 4, "
                 "\"glm-dsa.attention.indexer.key_length\": 64, \"glm-dsa.context_length\": %u%s}",
                 cases[i].n_context, cases[i].types);
        run_files_metadata(&files, text);
        run_files_complete_keys(&files, "glm-dsa");
        tree = run_files_open(&files);
        cr_assert_eq(run_hparams_read(tree.metadata, &read, &failure), 0, "%s", failure.text);
        for (size_t j = 0; j < 8; j++)
            cr_expect_eq(read.layers[j].has_indexer, cases[i].expected[j] == '1', "%zu, %zu", i, j);
        run_hparams_free(&read);
        run_tree_close(&tree);
    }
}
