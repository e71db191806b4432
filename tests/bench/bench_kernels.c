/*
 * Measures the decoding speed of each kernel set for each type, and the encoding speed for the
 * types with an encoder, on one processor and from its cache: 128 KiB of floats per call, the size
 * of a read of a mounted file. Each row is the median of several rounds. Kernel, reference and
 * memset() take turns within a round, so the ratios hold on a busy machine.
 *
 * The best set of vectors has two targets: 12 GB/s of floats (8 for the IQ1 to IQ3 types other than
 * K types, 4 for the trellis types), and the share of memset() speed that ggml's own conversion
 * reaches, of decoders. A type with a reference alone has none. The exit status is 0 even if a
 * target is missed.
 *
 * bench-kernels [TYPE]...
 *
 * Types are named as in the type table, in any case.
 */
#include "dequant/kernels.h"
#include "dequant/rows.h"
#include "tests/unit/dequant/random_blocks.h"

#include <stdalign.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#define OUT_BYTES     (128u << 10)
#define N_FLOATS      (OUT_BYTES / sizeof(float))
#define N_ROUNDS      9
#define ROUND_SECONDS 0.002

/*
 * GB/s of ggml's conversions on one core, measured where memset() reaches 62 GB/s. Types that ggml
 * does not convert are missing.
 */
static const struct {
    const char *name;
    double speed;
} ggml[] = {
    {"F16", 2.3},   {"Q4_0", 5.4},    {"Q4_1", 5.7},   {"Q5_0", 3.2},   {"Q5_1", 2.6},
    {"Q8_0", 19.6}, {"Q2_K", 3.2},    {"Q3_K", 3.0},   {"Q4_K", 16.6},  {"Q5_K", 13.7},
    {"Q6_K", 3.0},  {"IQ2_XXS", 4.0}, {"IQ2_XS", 3.7}, {"IQ2_S", 5.5},  {"IQ3_XXS", 5.4},
    {"IQ3_S", 5.3}, {"IQ1_S", 6.6},   {"IQ1_M", 6.3},  {"IQ4_NL", 3.6}, {"IQ4_XS", 3.6},
    {"BF16", 47},   {"TQ1_0", 14.4},  {"TQ2_0", 13.5}, {"MXFP4", 3.4},  {"NVFP4", 3.2},
    {"Q1_0", 4.1},  {"Q2_0", 4.2},
};
static const double ggml_memset = 62;

static unsigned n_judged, n_good;

static uint8_t blocks[MAX_BYTES], headers[DEQUANT_MAX_HEADER_BYTES];
static alignas(64) float out[N_FLOATS]; /* or the floats to encode */

/* Return the CPU time of this thread, so that other processes do not count. */
static double now(void)
{
    struct timespec time;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static void keep_memory(void)
{
    __asm__ volatile("" : : "r"(out) : "memory");
}

/* A decoder or an encoder; neither: memset(). */
struct kernel {
    const struct dequant_type *type;
    dequant_decode_fn *decode;
    dequant_encode_fn *encode;
};

static void decode_group(const struct kernel *kernel)
{
    const struct dequant_type *type = kernel->type;
    const size_t row_elements = N_FLOATS / type->interleave_rows;

    for (uint32_t i = 0; i < type->interleave_rows; i++)
        kernel->decode(blocks, out + i * row_elements, row_elements / type->block_elements,
                       (struct dequant_row){headers, i});
}

/* Return GB/s of floats. */
static double speed_of(struct kernel kernel)
{
    const double start = now();
    double seconds;
    size_t n = 0;

    do {
        for (int i = 0; i < 8; i++, n++) {
            if (kernel.decode)
                decode_group(&kernel);
            else if (kernel.encode)
                kernel.encode(out, blocks, N_FLOATS);
            else
                memset(out, (int)n, OUT_BYTES);
            keep_memory();
        }
        seconds = now() - start;
    } while (seconds < ROUND_SECONDS);
    return (double)n * OUT_BYTES / seconds / 1e9;
}

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* Fill `out`, which memset() overwrites. */
static void make_floats(void)
{
    uint64_t state = 1;

    for (size_t i = 0; i < N_FLOATS; i++)
        out[i] = (float)(int32_t)next_random(&state) / 2147483648.0f;
}

static void sort(double values[N_ROUNDS])
{
    qsort(values, N_ROUNDS, sizeof *values, compare);
}

static double ggml_share(const struct dequant_type *type)
{
    for (size_t i = 0; i < sizeof ggml / sizeof *ggml; i++) {
        if (strcmp(ggml[i].name, type->name) == 0)
            return ggml[i].speed / ggml_memset;
    }
    return 0;
}

/* Return the target in GB/s: the trellis types compute their values, grids take many small loads.
 */
static double least_speed(const struct dequant_type *type)
{
    const size_t length = strlen(type->name);
    const bool is_trellis = length > 3 && strcmp(type->name + length - 3, "_KT") == 0;
    const bool is_low = strncmp(type->name, "IQ", 2) == 0 && strchr("123", type->name[2]);

    return is_trellis ? 4 : is_low && !strstr(type->name, "_K") ? 8 : 12;
}

static void judge(const struct kernel *kernel, double speed, double share)
{
    const double least = kernel->decode ? least_speed(kernel->type) : 12;
    const double least_share = kernel->decode ? ggml_share(kernel->type) : 0;
    const bool is_good = speed >= least && share >= least_share;

    n_judged++;
    n_good += is_good;
    printf("  >= %2.0f GB/s, %2.0f%%  %s", least, 100 * least_share, is_good ? "ok" : "BELOW");
}

static void print_row(const char *set, struct kernel kernel, struct kernel reference, bool serves)
{
    char name[32];
    double speeds[N_ROUNDS], shares[N_ROUNDS], gains[N_ROUNDS];
    const double *middle = &shares[N_ROUNDS / 2];

    for (int i = 0; i < N_ROUNDS; i++) {
        double slowest;

        if (kernel.encode)
            make_floats();
        slowest = speed_of(reference);
        speeds[i] = speed_of(kernel);
        shares[i] = speeds[i] / speed_of((struct kernel){0});
        gains[i] = speeds[i] / slowest;
    }
    sort(speeds);
    sort(shares);
    sort(gains);
    snprintf(name, sizeof name, kernel.type->era == DEQUANT_ERA ? "%s%s" : "%s%s era %u",
             kernel.encode ? "to " : "", kernel.type->name, kernel.type->era);
    printf("%-10s %-7s %6.1f (%5.1f..%5.1f) %5.0f%% (%3.0f..%3.0f) %5.1f x (%4.1f..%4.1f)", name,
           set, speeds[N_ROUNDS / 2], speeds[0], speeds[N_ROUNDS - 1], 100 * *middle,
           100 * shares[0], 100 * shares[N_ROUNDS - 1], gains[N_ROUNDS / 2], gains[0],
           gains[N_ROUNDS - 1]);
    if (serves)
        judge(&kernel, speeds[N_ROUNDS / 2], *middle);
    putchar('\n');
    fflush(stdout);
}

/* Return the decoder or the encoder of a set, or a kernel without a function. */
static struct kernel kernel_of(const struct dequant_type *type, size_t set, bool is_encoder)
{
    if (is_encoder)
        return (struct kernel){.type = type, .encode = type->encode[set]};
    return (struct kernel){.type = type, .decode = type->decode[set]};
}

static void measure_sets(const struct dequant_type *type, bool is_encoder)
{
    const struct kernel reference = kernel_of(type, DEQUANT_SET_scalar, is_encoder);
    const struct dequant_kernel_set *set;
    size_t best = 0;

    for (size_t pass = 0; pass < 2; pass++) {
        for (size_t i = 0; (set = dequant_kernel_set_at(i)) != NULL; i++) {
            const struct kernel kernel = kernel_of(type, i, is_encoder);

            if ((!kernel.decode && !kernel.encode) || !set->is_supported())
                continue;
            if (pass == 0)
                best = i;
            else
                print_row(set->name, kernel, reference, i == best && i != DEQUANT_SET_scalar);
        }
    }
}

static void measure(const struct expectation *e)
{
    const struct dequant_type *type = type_of(e);

    if (!dequant_is_decodable(type))
        return;
    make_blocks(e, blocks);
    make_headers(e, headers);
    measure_sets(type, false);
    if (type->encode[DEQUANT_SET_scalar])
        measure_sets(type, true);
}

static bool is_wanted(const char *name, int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        if (strcasecmp(argv[i], name) == 0)
            return true;
    }
    return argc == 1;
}

static bool is_type(const char *name)
{
    for (size_t i = 0; i < n_expectations; i++) {
        if (strcasecmp(name, expectations[i].name) == 0)
            return true;
    }
    return false;
}

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        if (!is_type(argv[i])) {
            fprintf(stderr, "bench-kernels: unknown type \"%s\"\n", argv[i]);
            return 1;
        }
    }
    printf("%-10s %-7s %6s (range)       %s       %s      %s\n", "type", "kernels", "GB/s",
           "of memset (range)", "to scalar (range)", "target");
    for (size_t i = 0; i < n_expectations; i++) {
        if (is_wanted(expectations[i].name, argc, argv))
            measure(&expectations[i]);
    }
    printf("%u of %u types reach their target\n", n_good, n_judged);
    return 0;
}
