#include "contrib/runner/tree/weights.h"

#include "contrib/runner/tree/info_file.h"
#include "contrib/runner/tree/model_files.h"
#include "contrib/runner/tree/tensor_list.h"
#include "dequant/rows.h"
#include "gguf/support/grow.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* Tensor names that the runner looks up are safe file names, which the tree uses unchanged. */
#define PATH_BYTES 320

/* The limit of ggufs. */
#define MAX_TENSORS 262144u

struct entry {
    char *name;
    bool is_mapped;     /* a part of the model uses it */
    bool has_mapping;   /* of its own, of `raw`; else the model file is mapped */
    bool is_other_name; /* a link: the same tensor under its GGUF name */
    size_t other;       /* index of that link + 1; 0 if there is none */
    struct run_tensor tensor;
    uint64_t n_bytes;
};

struct run_weights {
    int tree_fd;
    struct entry *entries; /* sorted by name */
    size_t n_entries, capacity;
    size_t *mapped; /* indices of mapped entries, in the order of mapping */
    size_t n_mapped;
    struct run_model_files files;
};

static int compare_names(const void *a, const void *b)
{
    return strcmp(((const struct entry *)a)->name, ((const struct entry *)b)->name);
}

static int add_name(struct run_weights *weights, const char *name)
{
    struct entry *entries =
        gguf_grow(weights->entries, &weights->capacity, weights->n_entries + 1, sizeof *entries);

    if (!entries)
        return -ENOMEM;
    weights->entries = entries;
    weights->entries[weights->n_entries] = (struct entry){.name = strdup(name)};
    if (!weights->entries[weights->n_entries].name)
        return -ENOMEM;
    weights->n_entries++;
    return 0;
}

static int list_names(struct run_weights *weights, struct run_failure *failure)
{
    int fd = openat(weights->tree_fd, "tensors", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *directory = fd < 0 ? NULL : fdopendir(fd);
    struct dirent *entry;
    int code = 0;

    if (!directory) {
        code = run_fail(failure, -errno, "tensors: %s", strerror(errno));
        if (fd >= 0)
            close(fd);
        return code;
    }
    while (code == 0 && (errno = 0, entry = readdir(directory))) {
        if (entry->d_name[0] == '.')
            continue;
        if (weights->n_entries == MAX_TENSORS)
            code = run_fail(failure, -EINVAL, "tensors: more than %u", MAX_TENSORS);
        else if (add_name(weights, entry->d_name) < 0)
            code = run_fail_memory(failure);
    }
    if (code == 0 && errno != 0)
        code = run_fail(failure, -errno, "tensors: %s", strerror(errno));
    closedir(directory);
    return code;
}

static struct entry *find(const struct run_weights *weights, const char *name)
{
    struct entry wanted = {.name = (char *)(uintptr_t)name};

    if (weights->n_entries == 0)
        return NULL;
    return bsearch(&wanted, weights->entries, weights->n_entries, sizeof wanted, compare_names);
}

bool run_weights_has(const struct run_weights *weights, const char *name)
{
    return find(weights, name) != NULL;
}

/*
 * Return true if a name is surely its own folder name. Other names may be escaped in the tree, and
 * no part of a model uses such a tensor.
 */
static bool is_plain(const char *name)
{
    for (const char *c = name; *c != '\0'; c++)
        if (*c <= ' ' || *c > '~' || *c == '/' || *c == '%')
            return false;
    return name[0] != '.' && strlen(name) <= NAME_MAX;
}

/*
 * Return the entry of a tensor of tensors.json; NULL after a failure, or if the name is not plain.
 */
static struct entry *find_listed(const struct run_weights *weights, const char *name, int *code,
                                 struct run_failure *failure)
{
    struct entry *entry = is_plain(name) ? find(weights, name) : NULL;

    if (!entry && is_plain(name))
        *code = run_fail(failure, -ENOENT, "tensors/%s: missing, but tensors.json lists it", name);
    return entry;
}

static int check_listed(void *context, const char *name, const char *gguf_name,
                        struct run_failure *failure)
{
    struct run_weights *weights = context;
    int code = 0;
    struct entry *entry = find_listed(weights, name, &code, failure);
    struct entry *other =
        code == 0 && gguf_name[0] != '\0' ? find_listed(weights, gguf_name, &code, failure) : NULL;

    if (other && other != entry) {
        other->is_other_name = true;
        if (entry)
            entry->other = (size_t)(other - weights->entries) + 1;
    }
    return code;
}

int run_weights_open(int tree_fd, struct run_weights **out, struct run_failure *failure)
{
    struct run_weights *weights = calloc(1, sizeof *weights);
    int code;

    *out = NULL;
    if (!weights)
        return run_fail_memory(failure);
    weights->tree_fd = tree_fd;
    code = list_names(weights, failure);
    if (code == 0 && weights->n_entries > 0) {
        qsort(weights->entries, weights->n_entries, sizeof *weights->entries, compare_names);
        weights->mapped = calloc(weights->n_entries, sizeof *weights->mapped);
        if (!weights->mapped)
            code = run_fail_memory(failure);
    }
    if (code == 0)
        code = run_tensor_list_read(tree_fd, check_listed, weights, failure);
    if (code < 0) {
        run_weights_close(weights);
        return code;
    }
    *out = weights;
    return 0;
}

void run_weights_close(struct run_weights *weights)
{
    if (!weights)
        return;
    for (size_t i = 0; i < weights->n_entries; i++) {
        struct entry *entry = &weights->entries[i];

        if (entry->has_mapping)
            munmap((void *)(uintptr_t)entry->tensor.data, entry->n_bytes);
        free(entry->name);
    }
    run_model_files_close(&weights->files);
    free(weights->mapped);
    free(weights->entries);
    free(weights);
}

/*
 * Read the last byte of a file. While a model is being downloaded, ggufs serves its tensors in
 * their full size, and reading missing bytes fails. Returns 0 or a negative errno.
 */
static int read_end(int fd, uint64_t n_bytes)
{
    char byte;

    return pread(fd, &byte, 1, (off_t)n_bytes - 1) < 0 ? -errno : 0;
}

static uint64_t count_incomplete(const struct run_weights *weights, uint64_t *n_tensors)
{
    uint64_t n = 0;

    *n_tensors = 0;
    for (size_t i = 0; i < weights->n_entries; i++) {
        char path[PATH_BYTES];
        struct stat status;
        int fd;

        if (weights->entries[i].is_other_name)
            continue;
        ++*n_tensors;
        snprintf(path, sizeof path, "tensors/%s/raw", weights->entries[i].name);
        fd = openat(weights->tree_fd, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
        if (fd < 0)
            continue; /* a tensor of unknown type has no data in the tree */
        n += fstat(fd, &status) == 0 && status.st_size > 0 &&
             read_end(fd, (uint64_t)status.st_size) == -EIO;
        close(fd);
    }
    return n;
}

static int refuse_incomplete(const struct run_weights *weights, const char *path, int code,
                             struct run_failure *failure)
{
    uint64_t n_tensors, n;

    if (code != -EIO)
        return run_fail(failure, code, "%s: %s", path, strerror(-code));
    n = count_incomplete(weights, &n_tensors);
    return run_fail(failure, -EIO,
                    "%llu of %llu tensors cannot be read, among them %s: the model is still being "
                    "downloaded, or its disk has an error",
                    (unsigned long long)n, (unsigned long long)n_tensors, path);
}

/* Open the file `raw` of a tensor. Return its descriptor or a negative errno. */
static int open_raw(const struct run_weights *weights, const char *path, uint64_t n_bytes,
                    struct run_failure *failure)
{
    const int fd = openat(weights->tree_fd, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct stat status;
    int code = 0;

    if (fd < 0 || fstat(fd, &status) < 0)
        code = run_fail(failure, -errno, "%s: %s", path, strerror(errno));
    else if (!S_ISREG(status.st_mode) || (uint64_t)status.st_size != n_bytes)
        code = run_fail(failure, -EINVAL, "%s: %lld bytes, its info says %llu", path,
                        (long long)status.st_size, (unsigned long long)n_bytes);
    if (code == 0)
        return fd;
    if (fd >= 0)
        close(fd);
    return code;
}

/* Map the file `raw` of a tensor. */
static int map_raw(struct run_weights *weights, const char *path, int fd, struct entry *entry,
                   struct run_failure *failure)
{
    void *data;
    const int code = read_end(fd, entry->n_bytes);

    if (code < 0)
        return refuse_incomplete(weights, path, code, failure);
    data = mmap(NULL, entry->n_bytes, PROT_READ, MAP_SHARED, fd, 0);
    if (data == MAP_FAILED)
        return run_fail(failure, -errno, "%s: can't be mapped: %s", path, strerror(errno));
    entry->tensor.data = data;
    entry->has_mapping = true;
    return 0;
}

/*
 * Find the bytes of a tensor in the model file, which is opened for its first tensor, or else map
 * `raw`.
 */
static int map_bytes(struct run_weights *weights, struct entry *entry,
                     const struct run_place *place, struct run_failure *failure)
{
    struct run_tensor *tensor = &entry->tensor;
    char path[PATH_BYTES];
    uint64_t n_rows = 1;
    int code = 0;

    for (size_t i = 1; i < RUN_MAX_DIMS; i++)
        if (__builtin_mul_overflow(n_rows, tensor->ne[i], &n_rows))
            n_rows = UINT64_MAX;
    if (dequant_rows_bytes(tensor->type, tensor->ne[0], n_rows, &entry->n_bytes) < 0)
        return run_fail(failure, -EINVAL, "tensors/%s/info: the shape is too large", tensor->name);
    tensor->stored_rows = n_rows;
    tensor->data = run_model_files_bytes(&weights->files, place, entry->n_bytes);
    if (!tensor->data) {
        int fd;

        snprintf(path, sizeof path, "tensors/%s/raw", tensor->name);
        fd = open_raw(weights, path, entry->n_bytes, failure);
        if (fd < 0)
            return fd;
        run_model_files_open(&weights->files, place, fd);
        tensor->data = run_model_files_bytes(&weights->files, place, entry->n_bytes);
        if (!tensor->data)
            code = map_raw(weights, path, fd, entry, failure);
        close(fd);
    }
    if (code < 0)
        return code;
    entry->is_mapped = true;
    weights->mapped[weights->n_mapped++] = (size_t)(entry - weights->entries);
    return 0;
}

static int read_entry(struct run_weights *weights, struct entry *entry, struct run_failure *failure)
{
    struct run_place place;
    int code;

    entry->tensor.name = entry->name;
    code = run_info_file_read(weights->tree_fd, &entry->tensor, &place, failure);
    return code < 0 ? code : map_bytes(weights, entry, &place, failure);
}

int run_weights_get(struct run_weights *weights, const char *name, struct run_tensor *out,
                    struct run_failure *failure)
{
    struct entry *entry = find(weights, name);

    if (!entry)
        return run_fail(failure, -ENOENT, "tensors/%s: missing", name);
    if (!entry->is_mapped) {
        int code = read_entry(weights, entry, failure);

        if (code < 0)
            return code;
    }
    *out = entry->tensor;
    return 0;
}

size_t run_weights_count(const struct run_weights *weights)
{
    return weights->n_entries;
}

size_t run_weights_unused(const struct run_weights *weights, const char *names[], size_t n_names)
{
    size_t n = 0;

    for (size_t i = 0; i < weights->n_entries; i++) {
        const struct entry *entry = &weights->entries[i];

        if (entry->is_mapped || entry->is_other_name ||
            (entry->other > 0 && weights->entries[entry->other - 1].is_mapped))
            continue;
        if (n < n_names)
            names[n] = entry->name;
        n++;
    }
    return n;
}

int run_weights_check(struct run_weights *weights, struct run_failure *failure)
{
    return run_model_files_check(&weights->files, failure);
}

uint64_t run_weights_mapped_bytes(const struct run_weights *weights)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < weights->n_mapped; i++)
        sum += weights->entries[weights->mapped[i]].n_bytes;
    return sum;
}

bool run_weights_mapping(const struct run_weights *weights, size_t index, const uint8_t **data,
                         uint64_t *n_bytes)
{
    if (index >= weights->n_mapped)
        return false;
    *data = weights->entries[weights->mapped[index]].tensor.data;
    *n_bytes = weights->entries[weights->mapped[index]].n_bytes;
    return true;
}

const char *run_weights_name_at(const struct run_weights *weights, const void *address)
{
    for (size_t i = 0; i < weights->n_mapped; i++) {
        const struct entry *entry = &weights->entries[weights->mapped[i]];

        if ((uintptr_t)address - (uintptr_t)entry->tensor.data < entry->n_bytes)
            return entry->name;
    }
    return NULL;
}
