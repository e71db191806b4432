/* The kernels of attention, see contrib/runner/compute/run_kernels.h. */
#include "contrib/runner/kernels/vector_math.h"
#include "dequant/small_floats.h"

#include <math.h>
#include <string.h>

/* Rows and vectors of columns whose sums stay in registers; VECTORS * FLOAT_WIDTH divides 64. One
 * row alone would wait for its sums, so the last block may have MOST_ROWS. */
enum { ROWS = 4, MOST_ROWS = 5 };
#if defined(__AVX512F__) || defined(__ARM_NEON)
enum { VECTORS = 4 };
#else
enum { VECTORS = 2 };
#endif

/* 0, 1, 2 … */
static inline int_vector indices(void)
{
#if defined(__AVX512F__)
    return (int_vector){0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
#elif defined(__AVX2__)
    return (int_vector){0, 1, 2, 3, 4, 5, 6, 7};
#else
    return (int_vector){0, 1, 2, 3};
#endif
}

/* Element `at` and those after it. */
INLINE float_vector load(struct run_matrix b, size_t at)
{
    const uint16_t *half = (const uint16_t *)b.data + at;

    if (!b.is_half)
        return float_load((const float *)b.data + at);
#if defined(__AVX512F__)
    return (float_vector)_mm512_cvtph_ps(_mm256_loadu_si256((const void *)half));
#elif defined(__AVX2__)
    return (float_vector)_mm256_cvtph_ps(_mm_loadu_si128((const void *)half));
#elif defined(__ARM_NEON)
    return (float_vector)vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(half)));
#else
    float_vector v;

    for (size_t i = 0; i < FLOAT_WIDTH; i++)
        v[i] = dequant_f16_to_f32(half[i]);
    return v;
#endif
}

INLINE struct run_matrix from_column(struct run_matrix b, size_t column)
{
    b.data = (const char *)b.data + column * (b.is_half ? sizeof(uint16_t) : sizeof(float));
    return b;
}

INLINE void prefetch(struct run_matrix b)
{
    if (b.ahead > 0)
        __builtin_prefetch((const char *)b.data + b.ahead, 0, 2);
}

/* n_rows by n_vectors sums at once; both are constants where this is inlined. */
INLINE void add_block(const float *a, size_t a_stride, size_t n_rows, struct run_matrix b, size_t n,
                      size_t n_vectors, float *out, size_t out_stride)
{
    float_vector sums[MOST_ROWS][VECTORS];

    for (size_t r = 0; r < n_rows; r++)
        for (size_t v = 0; v < n_vectors; v++)
            sums[r][v] = float_load(out + r * out_stride + v * FLOAT_WIDTH);
    for (size_t i = 0; i < n; i++) {
        const struct run_matrix row = from_column(b, i * b.stride);
        float_vector right[VECTORS];

        prefetch(row);
        for (size_t v = 0; v < n_vectors; v++)
            right[v] = load(row, v * FLOAT_WIDTH);
        for (size_t r = 0; r < n_rows; r++) {
            const float_vector left = float_all(a[r * a_stride + i]);

            for (size_t v = 0; v < n_vectors; v++)
                sums[r][v] = float_fused(left, right[v], sums[r][v]);
        }
    }
    for (size_t r = 0; r < n_rows; r++)
        for (size_t v = 0; v < n_vectors; v++)
            float_store(out + r * out_stride + v * FLOAT_WIDTH, sums[r][v]);
}

/* All rows for n_vectors vectors of columns. */
INLINE void add_columns(const float *a, size_t a_stride, size_t n_rows, struct run_matrix b,
                        size_t n, size_t n_vectors, float *out, size_t out_stride)
{
    for (; n_rows > MOST_ROWS || n_rows == ROWS;
         n_rows -= ROWS, a += ROWS * a_stride, out += ROWS * out_stride)
        add_block(a, a_stride, ROWS, b, n, n_vectors, out, out_stride);
    if (n_rows == MOST_ROWS)
        add_block(a, a_stride, MOST_ROWS, b, n, n_vectors, out, out_stride);
    else if (n_rows == 3)
        add_block(a, a_stride, 3, b, n, n_vectors, out, out_stride);
    else if (n_rows == 2)
        add_block(a, a_stride, 2, b, n, n_vectors, out, out_stride);
    else if (n_rows == 1)
        add_block(a, a_stride, 1, b, n, n_vectors, out, out_stride);
}

/* The same for F16, converted once for all rows. */
INLINE void add_converted(const float *a, size_t a_stride, size_t n_rows, struct run_matrix b,
                          size_t n, size_t n_vectors, float *out, size_t out_stride)
{
    float floats[RUN_TILE][VECTORS * FLOAT_WIDTH];
    const struct run_matrix converted = {.data = floats, .stride = (size_t)VECTORS * FLOAT_WIDTH};

    for (size_t first = 0; first < n; first += RUN_TILE) {
        const size_t n_now = n - first < RUN_TILE ? n - first : RUN_TILE;

        for (size_t i = 0; i < n_now; i++) {
            const struct run_matrix row = from_column(b, (first + i) * b.stride);

            prefetch(row);
            for (size_t v = 0; v < n_vectors; v++)
                float_store(floats[i] + v * FLOAT_WIDTH, load(row, v * FLOAT_WIDTH));
        }
        add_columns(a + first, a_stride, n_rows, converted, n_now, n_vectors, out, out_stride);
    }
}

/* Few rows wait for memory rather than for the conversion. */
INLINE void add_any(const float *a, size_t a_stride, size_t n_rows, struct run_matrix b, size_t n,
                    size_t n_vectors, float *out, size_t out_stride)
{
    const struct run_matrix half = {b.data, b.stride, true, b.ahead};

    if (b.is_half && n_rows > MOST_ROWS)
        add_converted(a, a_stride, n_rows, half, n, n_vectors, out, out_stride);
    else if (b.is_half)
        add_columns(a, a_stride, n_rows, half, n, n_vectors, out, out_stride);
    else
        add_columns(a, a_stride, n_rows,
                    (struct run_matrix){b.data, b.stride, false, n_rows > MOST_ROWS ? 0 : b.ahead},
                    n, n_vectors, out, out_stride);
}

void RUN_KERNEL(add_products)(const float *a, size_t a_stride, size_t n_rows, struct run_matrix b,
                              size_t n, size_t n_columns, float *out, size_t out_stride)
{
    const size_t width = (size_t)VECTORS * FLOAT_WIDTH;
    size_t c = 0;

    for (; c + width <= n_columns; c += width)
        add_any(a, a_stride, n_rows, from_column(b, c), n, VECTORS, out + c, out_stride);
    for (; c < n_columns; c += FLOAT_WIDTH)
        add_any(a, a_stride, n_rows, from_column(b, c), n, 1, out + c, out_stride);
}

/* The lower, or the upper, halves of two vectors interleaved. */
#if defined(__AVX512F__)
#define ZIP_LOW(a, b)                                                                              \
    __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23)
#define ZIP_HIGH(a, b)                                                                             \
    __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31)
#elif defined(__AVX2__)
#define ZIP_LOW(a, b)  __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11)
#define ZIP_HIGH(a, b) __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15)
#else
#define ZIP_LOW(a, b)  __builtin_shufflevector(a, b, 0, 4, 1, 5)
#define ZIP_HIGH(a, b) __builtin_shufflevector(a, b, 2, 6, 3, 7)
#endif

/*
 * Transposes FLOAT_WIDTH rows of FLOAT_WIDTH columns. Interleaving row i with row
 * i + FLOAT_WIDTH / 2 rotates the bits of an element's index by one; as many rounds as the width
 * has bits exchange row and column.
 */
INLINE void transpose_square(const float *rows, size_t stride, float *out, size_t out_stride)
{
    float_vector v[FLOAT_WIDTH];

    for (size_t r = 0; r < FLOAT_WIDTH; r++)
        v[r] = float_load(rows + r * stride);
    for (size_t round = 1; round < FLOAT_WIDTH; round *= 2) {
        float_vector next[FLOAT_WIDTH];

        for (size_t r = 0; r < FLOAT_WIDTH / 2; r++) {
            next[2 * r] = ZIP_LOW(v[r], v[r + FLOAT_WIDTH / 2]);
            next[2 * r + 1] = ZIP_HIGH(v[r], v[r + FLOAT_WIDTH / 2]);
        }
        for (size_t r = 0; r < FLOAT_WIDTH; r++)
            v[r] = next[r];
    }
    for (size_t r = 0; r < FLOAT_WIDTH; r++)
        float_store(out + r * out_stride, v[r]);
}

void RUN_KERNEL(transpose)(const float *rows, size_t stride, size_t n_columns, float *out,
                           size_t out_stride)
{
    for (size_t c = 0; c < n_columns; c += FLOAT_WIDTH)
        for (size_t r = 0; r < RUN_LANES; r += FLOAT_WIDTH)
            transpose_square(rows + r * stride + c, stride, out + c * out_stride + r, out_stride);
}

/* -1 where an index from `first` on is between begin and end, else 0. */
static inline int_vector is_between(size_t first, size_t begin, size_t end)
{
    const int_vector index = indices() + (int32_t)first;

    return (index >= (int32_t)begin) & (index < (int32_t)end);
}

static float_vector find_score(float_vector product, float_vector distance,
                               const struct run_scoring *scoring)
{
    float_vector score = product * scoring->scale;

    if (scoring->softcap > 0)
        score = scoring->softcap * vector_tanh(score / scoring->softcap);
    return score - scoring->slope * distance;
}

static float highest_of(float_vector v)
{
    float highest = v[0];

    for (size_t i = 1; i < FLOAT_WIDTH; i++)
        highest = v[i] > highest ? v[i] : highest;
    return highest;
}

float RUN_KERNEL(weigh)(float scores[RUN_TILE], size_t begin, size_t end, float distance,
                        const struct run_scoring *scoring, struct run_softmax *softmax)
{
    const size_t first = begin / RUN_LANES * RUN_LANES;
    const size_t last = (end + RUN_LANES - 1) / RUN_LANES * RUN_LANES;
    const float before = softmax->highest;
    float_vector highest = float_all(before), sums[FLOAT_PARTS] = {0};
    float lanes[RUN_LANES], factor = 1, peak;

    for (size_t i = first; i < last; i += FLOAT_WIDTH) {
        const float_vector behind =
            (distance - (float)i) - __builtin_convertvector(indices(), float_vector);
        const float_vector score =
            chosen(is_between(i, begin, end), find_score(float_load(scores + i), behind, scoring),
                   float_all(-INFINITY));

        float_store(scores + i, score);
        highest = chosen(score > highest, score, highest);
    }
    softmax->highest = highest_of(highest);
    /* Scores of minus infinity weigh nothing, though they differ by NaN; a NaN stays one. */
    peak = softmax->highest == -INFINITY ? 0 : softmax->highest;
    for (size_t i = first; i < last; i += RUN_LANES) {
        for (size_t part = 0; part < FLOAT_PARTS; part++) {
            float *at = scores + i + part * FLOAT_WIDTH;
            const float_vector weight = vector_exp(float_load(at) - peak);

            float_store(at, weight);
            sums[part] += weight;
        }
    }
    memcpy(lanes, sums, sizeof lanes);
    if (softmax->highest > before)
        factor = vector_exp(float_all(before - softmax->highest))[0];
    softmax->sum = softmax->sum * (double)factor + (double)dequant_dot_sum(lanes);
    return factor;
}
