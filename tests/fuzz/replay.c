/*
 * Runs a fuzz target without a fuzzer on all files given, or all files of folders given, and on
 * prefixes of each. The last line is "N inputs".
 */
#include "tests/fuzz/fuzz_check.h"

#include <errno.h>
#include <fts.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sysexits.h>

/* Files up to this size are cut at every length, larger ones at some. */
#define SMALL_BYTES 4096
#define SOME_CUTS   64

/* Registers a callback for findings; only exists in builds with a sanitizer. */
void __sanitizer_set_death_callback(void (*callback)(void)) __attribute__((weak));

static char running[4096];
static unsigned long n_inputs;

static void print_input(void)
{
    fprintf(stderr, "the input was %s\n", running);
}

static void on_abort(int signal_number)
{
    print_input();
}

static void run(const char *path, const uint8_t *bytes, size_t n_bytes)
{
    uint8_t *copy = fuzz_alloc(n_bytes); /* exact size, for the sanitizer */

    snprintf(running, sizeof running, "%s, the first %zu bytes", path, n_bytes);
    if (n_bytes > 0)
        memcpy(copy, bytes, n_bytes);
    LLVMFuzzerTestOneInput(copy, n_bytes);
    free(copy);
    n_inputs++;
}

static int run_file(const char *path, size_t n_bytes)
{
    uint8_t *bytes = fuzz_alloc(n_bytes);
    FILE *file = fopen(path, "rb");
    size_t step = n_bytes < SMALL_BYTES ? 1 : n_bytes / SOME_CUTS;

    if (!file || fread(bytes, 1, n_bytes, file) != n_bytes) {
        fprintf(stderr, "replay: %s: %s\n", path, strerror(errno));
        return EX_NOINPUT;
    }
    fclose(file);
    run(path, bytes, n_bytes);
    for (size_t cut = 0; cut < n_bytes; cut += step)
        run(path, bytes, cut);
    free(bytes);
    return EX_OK;
}

static int compare(const FTSENT **a, const FTSENT **b)
{
    return strcmp((*a)->fts_name, (*b)->fts_name);
}

int main(int argc, char **argv)
{
    FTS *folders;
    FTSENT *entry;
    int status = EX_OK;

    if (argc < 2) {
        fprintf(stderr, "usage: %s FOLDER|FILE...\n", argv[0]);
        return EX_USAGE;
    }
    signal(SIGABRT, on_abort);
    if (__sanitizer_set_death_callback)
        __sanitizer_set_death_callback(print_input);
    folders = fts_open(argv + 1, FTS_PHYSICAL | FTS_NOCHDIR, compare);
    while (folders && status == EX_OK && (entry = fts_read(folders))) {
        if (entry->fts_info == FTS_F) {
            status = run_file(entry->fts_path, (size_t)entry->fts_statp->st_size);
        } else if (entry->fts_info != FTS_D && entry->fts_info != FTS_DP) {
            fprintf(stderr, "replay: %s: cannot be read\n", entry->fts_path);
            status = EX_NOINPUT;
        }
    }
    if (folders)
        fts_close(folders);
    printf("%lu inputs\n", n_inputs);
    return n_inputs > 0 ? status : EX_NOINPUT;
}
