/* Reading weights before they are needed. */
#include "contrib/runner/cli/read_ahead.h"
#include "tests/unit/runner/run_tree_files.h"

#include <criterion/criterion.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum { N_ELEMENTS = 5 << 20 };

/* Write a tensor of zeros, and drop its pages where the file system is on a disk. */
static void write_dropped(const struct run_files *files, const char *name)
{
    float *values = calloc(N_ELEMENTS, sizeof *values);
    char path[300];
    int fd;

    cr_assert_not_null(values);
    run_files_floats(files, name, N_ELEMENTS, 0, 0, values);
    free(values);
    snprintf(path, sizeof path, "%s/tensors/%s/raw", files->path, name);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    cr_assert(fd >= 0 && fdatasync(fd) == 0);
    posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
    close(fd);
}

static size_t count_missing_pages(const uint8_t *data, uint64_t n_bytes)
{
    const size_t n = n_bytes / (size_t)sysconf(_SC_PAGESIZE);
    unsigned char *states = calloc(n, 1);
    size_t n_missing = 0;

    cr_assert(states && mincore((void *)(uintptr_t)data, n_bytes, states) == 0);
    for (size_t i = 0; i < n; i++)
        n_missing += !(states[i] & 1);
    free(states);
    return n_missing;
}

Test(run_read_ahead, every_weight_is_read)
{
    struct run_read_ahead ahead = {0};
    struct run_failure failure;
    struct run_tensor output, layer;
    struct run_files files;
    struct run_tree tree;

    run_files_make(&files);
    run_files_metadata(&files, "{}");
    write_dropped(&files, "output.weight");
    write_dropped(&files, "blk.0.ffn_up.weight");
    tree = run_files_open(&files);
    cr_assert_eq(run_weights_get(tree.weights, "output.weight", &output, &failure), 0);
    cr_assert_eq(run_weights_get(tree.weights, "blk.0.ffn_up.weight", &layer, &failure), 0);
    cr_expect(run_read_ahead_fits(tree.weights));
    run_read_ahead_start(&ahead, tree.weights);
    run_read_ahead_finish(&ahead);
    /* The kernel may still be reading what it was asked for. The deadline ends a hang only. */
    for (int i = 0; i < 6000 && count_missing_pages(output.data, run_tensor_bytes(&output)) +
                                        count_missing_pages(layer.data, run_tensor_bytes(&layer)) >
                                    0;
         i++)
        usleep(10000);
    cr_expect_eq(count_missing_pages(output.data, run_tensor_bytes(&output)), 0u);
    cr_expect_eq(count_missing_pages(layer.data, run_tensor_bytes(&layer)), 0u);
    run_read_ahead_end(&ahead);
    run_read_ahead_start(&ahead, tree.weights); /* it is stopped before it has read anything */
    run_read_ahead_end(&ahead);
    run_tree_close(&tree);
    run_files_remove(&files);
}
