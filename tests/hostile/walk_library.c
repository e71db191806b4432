/*
 * Opens files through the library and uses all that it offers: walk-library [-n ROUNDS] FILE...
 * Prints "N opened, N refused". Its exit status is 1 if memory or descriptors grew between the 10th
 * round and the last.
 *
 * walk-library -t FILE: four threads read the file's tensors while it is cut to its header; all
 * reads must succeed, or fail with EIO or ESTALE, and the last of each thread must fail.
 */
#include "fs/library/ggufs.h"

#include <dirent.h>
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MOST_BYTES  4096u
#define MOST_THINGS 300u
#define N_READERS   4
#define WARM_UP     10
#define SLACK_BYTES 4096

/*
 * mallinfo2() counts freed chunks as allocated while malloc keeps them for a thread, up to 7 of
 * each size below 1,040 bytes: 230 kB in all, which take hundreds of rounds to fill.
 */
#define WITHOUT_CACHES "glibc.malloc.tcache_count=0"

/* In builds with AddressSanitizer, whose allocator mallinfo2() does not know. */
size_t __sanitizer_get_current_allocated_bytes(void) __attribute__((weak));

static unsigned n_opened, n_refused;

static void fail(const char *path, const char *what)
{
    fprintf(stderr, "walk-library: %s: %s\n", path, what);
    exit(1);
}

static void use_key(const char *path, const struct ggufs_model *model, const struct ggufs_key *key)
{
    const uint64_t last = key->n_elements > 0 ? key->n_elements - 1 : 0;
    const uint64_t n = key->n_elements < MOST_THINGS ? key->n_elements : MOST_THINGS;
    struct ggufs_string strings[MOST_THINGS];
    char numbers[MOST_THINGS * 8];
    int result = 0;

    if (key->element_type == GGUFS_STRING) {
        result = ggufs_key_strings(model, key, 0, n, strings);
        for (uint64_t i = 0; result == 0 && i < n; i++)
            if (strings[i].length_bytes > 0)
                (void)*(volatile const char *)&strings[i].data[strings[i].length_bytes - 1];
        if (result == 0 && key->n_elements > 0)
            result = ggufs_key_strings(model, key, last, 1, strings);
    } else if (key->element_bytes > 0) {
        result = ggufs_key_numbers(model, key, key->n_elements - n, n, numbers);
    }
    if (result < 0)
        fail(path, "a key cannot be read");
}

static void use_tensor(const struct ggufs_model *model, const struct ggufs_tensor *tensor)
{
    char out[MOST_BYTES];
    const uint64_t most = MOST_BYTES / 8;
    const uint64_t n = tensor->n_elements < most ? tensor->n_elements : most;
    const size_t n_bytes =
        tensor->size_bytes < MOST_BYTES ? (size_t)tensor->size_bytes : MOST_BYTES;

    for (int format = GGUFS_F32; format <= GGUFS_STORED; format++) {
        ggufs_read(model, tensor, (enum ggufs_format)format, 0, n, out);
        ggufs_read(model, tensor, (enum ggufs_format)format, tensor->n_elements - n, n, out);
    }
    ggufs_read_stored(model, tensor, tensor->size_bytes - n_bytes, n_bytes, out);
}

static void use_node(const char *path, struct ggufs_model *model, ggufs_node node, unsigned *left)
{
    struct ggufs_node_info info;
    struct ggufs_file *file;
    uint64_t size_bytes = 0;
    char out[MOST_BYTES];
    ggufs_node child;

    if (*left == 0 || --*left == 0)
        return;
    if (ggufs_describe_node(model, node, &info) < 0)
        fail(path, "a node cannot be described");
    for (uint32_t i = 0; i < info.n_children; i++) {
        if (ggufs_child(model, node, i, &child) < 0)
            fail(path, "a child cannot be found");
        use_node(path, model, child, left);
    }
    if (info.kind == GGUFS_FILE && ggufs_node_size(model, node, &size_bytes) == 0 &&
        size_bytes < 1u << 24 && ggufs_open_file(model, node, &file) == 0) {
        ggufs_pread(file, out, sizeof out, 0);
        ggufs_pread(file, out, sizeof out, size_bytes / 2);
        ggufs_close_file(file);
    }
}

static void use_model(const char *path, struct ggufs_model *model)
{
    const struct ggufs_info *info = ggufs_get_info(model);
    unsigned left = 2 * MOST_THINGS;
    ggufs_node root;

    for (uint64_t i = 0; i < info->n_keys && i < MOST_THINGS; i++)
        use_key(path, model, ggufs_key_at(model, i));
    for (uint64_t i = 0; i < info->n_tensors && i < MOST_THINGS; i++)
        use_tensor(model, ggufs_tensor_at(model, i));
    if (ggufs_find_node(model, "", &root) == 0)
        use_node(path, model, root, &left);
}

static void count(void *user, const struct ggufs_finding *finding)
{
    *(size_t *)user += finding->severity == GGUFS_ERROR && strlen(finding->message) > 0;
}

static void open_one(const char *path)
{
    struct ggufs_model *model;
    struct ggufs_error error;
    size_t n_errors = 0;
    const int checked = ggufs_check(path, NULL, count, &n_errors);

    if ((checked < 0) != (n_errors > 0))
        fail(path, "the check gives no reason");
    if (ggufs_open(path, NULL, &model, &error) == 0) {
        n_opened++;
        use_model(path, model);
        ggufs_close(model);
    } else {
        n_refused++;
        if (error.code >= 0 || *error.message == '\0' || model || checked == 0)
            fail(path, "the error gives no reason");
    }
}

static size_t count_descriptors(void)
{
    DIR *folder = opendir("/proc/self/fd");
    size_t n = 0;

    while (folder && readdir(folder))
        n++;
    if (folder)
        closedir(folder);
    return n;
}

static size_t allocated_bytes(void)
{
    if (__sanitizer_get_current_allocated_bytes)
        return __sanitizer_get_current_allocated_bytes();
    return mallinfo2().uordblks;
}

static int walk(int n_rounds, char **paths)
{
    size_t bytes = 0, descriptors = 0;

    for (int round = 0; round < n_rounds; round++) {
        if (round == WARM_UP) {
            bytes = allocated_bytes();
            descriptors = count_descriptors();
        }
        n_opened = n_refused = 0;
        for (char **path = paths; *path; path++)
            open_one(*path);
    }
    if (n_rounds <= WARM_UP ||
        (allocated_bytes() <= bytes + SLACK_BYTES && count_descriptors() == descriptors)) {
        printf("%u opened, %u refused\n", n_opened, n_refused);
        return 0;
    }
    fprintf(stderr, "walk-library: grew from %zu to %zu bytes, from %zu to %zu descriptors\n",
            bytes, allocated_bytes(), descriptors, count_descriptors());
    return 1;
}

/* ---- a file that is cut ---- */

static struct ggufs_model *cut_model;
static atomic_int n_good_reads;

static void *read_until_error(void *user)
{
    const uint64_t n_tensors = ggufs_get_info(cut_model)->n_tensors;
    int result = 0;

    for (uint64_t i = 0; result == 0; i = (i + 1) % n_tensors) {
        const struct ggufs_tensor *tensor = ggufs_tensor_at(cut_model, i);
        float *out = malloc((size_t)tensor->n_elements * sizeof *out + 1);

        result = ggufs_read(cut_model, tensor, GGUFS_F32, 0, tensor->n_elements, out);
        free(out);
        atomic_fetch_add(&n_good_reads, result == 0);
    }
    return (void *)(intptr_t)result;
}

static int read_and_cut(const char *path, const char *options)
{
    pthread_t readers[N_READERS];
    int status = 0;

    if (options && ggufs_catch_faults() < 0)
        fail(path, "the handler cannot be installed");
    if (ggufs_open(path, options, &cut_model, NULL) < 0)
        fail(path, "cannot be opened");
    for (int i = 0; i < N_READERS; i++)
        if (pthread_create(&readers[i], NULL, read_until_error, NULL) != 0)
            fail(path, "no thread");
    while (atomic_load(&n_good_reads) < 20 * N_READERS)
        usleep(100);
    if (truncate(path, (off_t)ggufs_tensor_at(cut_model, 0)->file_offset) < 0)
        fail(path, strerror(errno));
    for (int i = 0; i < N_READERS; i++) {
        void *result;

        pthread_join(readers[i], &result);
        if ((intptr_t)result != -EIO && (intptr_t)result != -ESTALE)
            status = 1;
    }
    ggufs_close(cut_model);
    printf("%d readers failed as they should\n", status ? 0 : N_READERS);
    return status;
}

int main(int argc, char **argv)
{
    if (argc >= 3 && strcmp(argv[1], "-t") == 0)
        return read_and_cut(argv[2], argv[3]);
    if (argc >= 3 && strcmp(argv[1], "-n") == 0) {
        if (!getenv("GLIBC_TUNABLES")) {
            setenv("GLIBC_TUNABLES", WITHOUT_CACHES, 1);
            execv("/proc/self/exe", argv);
        }
        return walk(atoi(argv[2]), argv + 3);
    }
    return walk(1, argv + 1);
}
