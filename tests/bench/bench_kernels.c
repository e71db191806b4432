/*
 * How fast each set of kernels decodes each type, on one processor and in its cache: 128 KiB of
 * floats at a time, what a read of the mounted file asks for. A row is the median of rounds that
 * take turns with memset() and with the reference, so that its ratios hold on a busy machine.
 *
 * bench-kernels [TYPE]...
 */
#include "dequant/kernels.h"
#include "tests/unit/random_blocks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define OUT_BYTES     (128u << 10)
#define N_FLOATS      (OUT_BYTES / sizeof(float))
#define N_ROUNDS      9
#define ROUND_SECONDS 0.002

static uint8_t blocks[MAX_BYTES];
static float out[N_FLOATS];

/* Of the processor, so that the other processes of the machine do not count. */
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

/* GB of floats in a second; a memset() if `decode` is NULL. */
static double speed_of(dequant_decode_fn *decode, const struct dequant_type *type)
{
    const double start = now();
    double seconds;
    size_t n = 0;

    do {
        for (int i = 0; i < 8; i++, n++) {
            if (decode)
                decode(blocks, out, N_FLOATS / type->block_elements);
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

static double median(double values[N_ROUNDS])
{
    qsort(values, N_ROUNDS, sizeof *values, compare);
    return values[N_ROUNDS / 2];
}

static void print_row(const char *set, const struct dequant_type *type, dequant_decode_fn *decode)
{
    char name[32];
    double speeds[N_ROUNDS], shares[N_ROUNDS], gains[N_ROUNDS];

    for (int i = 0; i < N_ROUNDS; i++) {
        const double reference = speed_of(type->decode, type);

        speeds[i] = speed_of(decode, type);
        shares[i] = speeds[i] / speed_of(NULL, type);
        gains[i] = speeds[i] / reference;
    }
    qsort(shares, N_ROUNDS, sizeof *shares, compare);
    snprintf(name, sizeof name, type->era == DEQUANT_ERA ? "%s" : "%s era %u", type->name,
             type->era);
    printf("%-10s %-8s %7.1f %8.0f%% (%3.0f..%3.0f) %7.1f x\n", name, set, median(speeds),
           100 * shares[N_ROUNDS / 2], 100 * shares[0], 100 * shares[N_ROUNDS - 1], median(gains));
    fflush(stdout);
}

static dequant_decode_fn *kernel_of(const struct dequant_kernel_set *set,
                                    const struct dequant_type *type)
{
    for (const struct dequant_kernel *kernel = set->kernels; kernel->decode; kernel++) {
        if (kernel->type_id == type->id && kernel->era == type->era)
            return kernel->decode;
    }
    return NULL;
}

static void measure(const struct expectation *e)
{
    const struct dequant_type *type = dequant_type_of_era(e->id, e->era);
    const struct dequant_kernel_set *set;

    if (!type->decode)
        return;
    make_blocks(e, blocks);
    print_row("scalar", type, type->decode);
    for (size_t i = 0; (set = dequant_kernel_set_at(i)) != NULL; i++) {
        dequant_decode_fn *decode = kernel_of(set, type);

        if (decode && set->is_supported())
            print_row(set->name, type, decode);
    }
}

static bool is_wanted(const char *name, int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], name) == 0)
            return true;
    }
    return argc == 1;
}

int main(int argc, char **argv)
{
    printf("%-10s %-8s %7s %20s %9s\n", "type", "kernels", "GB/s", "share of memset", "to scalar");
    for (size_t i = 0; i < n_expectations; i++) {
        if (is_wanted(expectations[i].name, argc, argv))
            measure(&expectations[i]);
    }
    return 0;
}
