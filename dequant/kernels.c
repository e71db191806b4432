#include "dequant/kernels.h"

#include "dequant/encoders.h"

#include <errno.h>
#include <string.h>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

static bool always(void)
{
    return true;
}

/* All decoders of the reference stand in the type table. */
static const struct dequant_kernel_set scalar = {
    .name = "scalar",
    .is_supported = always,
    .kernels = (const struct dequant_kernel[]){{0, 0, NULL}},
    .to_f16 = dequant_to_f16,
    .to_bf16 = dequant_to_bf16,
    .dot = dequant_dot_reference,
};

#if defined(__x86_64__)

extern const struct dequant_kernel_set dequant_avx2_set, dequant_avx512_set;

bool dequant_avx2_is_supported(void)
{
    unsigned a, b, c, d;

    /* The compiler's check of AVX2 asks as well whether the system saves the registers. */
    return __builtin_cpu_supports("avx2") && __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C) &&
           (c & bit_FMA);
}

bool dequant_avx512_is_supported(void)
{
    return dequant_avx2_is_supported() && __builtin_cpu_supports("avx512f") &&
           __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512vl");
}

static const struct dequant_kernel_set *const sets[] = {&scalar, &dequant_avx2_set,
                                                        &dequant_avx512_set};

#elif defined(__aarch64__)

extern const struct dequant_kernel_set dequant_neon_set;

/* Part of the architecture. */
bool dequant_neon_is_supported(void)
{
    return true;
}

static const struct dequant_kernel_set *const sets[] = {&scalar, &dequant_neon_set};

#else

static const struct dequant_kernel_set *const sets[] = {&scalar};

#endif

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

#define N_ERAS (DEQUANT_ERA + 1)
/* Above all ids in the type table. */
#define N_IDS 64

static const struct dequant_kernel_set *chosen = &scalar;
static dequant_decode_fn *chosen_decode[N_ERAS][N_IDS];

const struct dequant_kernel_set *dequant_kernel_set_at(size_t index)
{
    return index < COUNT(sets) ? sets[index] : NULL;
}

static void add_kernels(const struct dequant_kernel_set *set)
{
    for (const struct dequant_kernel *kernel = set->kernels; kernel->decode; kernel++)
        chosen_decode[kernel->era][kernel->type_id] = kernel->decode;
    chosen = set;
}

int dequant_choose_kernels(const char *name)
{
    size_t n = COUNT(sets);

    while (n > 0 && (name ? strcmp(sets[n - 1]->name, name) != 0 : !sets[n - 1]->is_supported()))
        n--;
    if (n == 0)
        return -EINVAL;
    if (!sets[n - 1]->is_supported())
        return -ENOTSUP;
    for (size_t era = 0; era < N_ERAS; era++) {
        for (size_t id = 0; id < N_IDS; id++)
            chosen_decode[era][id] = NULL;
    }
    for (size_t i = 0; i < n; i++)
        add_kernels(sets[i]);
    return 0;
}

const struct dequant_kernel_set *dequant_chosen_kernels(void)
{
    return chosen;
}

void dequant_decode(const struct dequant_type *type, const void *restrict blocks,
                    float *restrict out, size_t n_blocks)
{
    dequant_decode_fn *decode = chosen_decode[type->era][type->id];

    (decode ? decode : type->decode)(blocks, out, n_blocks);
}

void dequant_dot(const float *w, size_t w_stride, size_t n_rows, const float *x, size_t x_stride,
                 size_t n_columns, size_t n, float *out, size_t out_stride)
{
    chosen->dot(w, w_stride, n_rows, x, x_stride, n_columns, n, out, out_stride);
}
