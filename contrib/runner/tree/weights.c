#include "contrib/runner/tree/weights.h"

#include "contrib/runner/tree/model_files.h"
#include "contrib/runner/tree/open_below.h"
#include "contrib/runner/tree/tensor_list.h"
#include "dequant/rows.h"
#include "gguf/support/limits.h"
#include "gguf/support/arrays.h"
#include "gguf/support/strings.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* Tensor names that the runner looks up are safe file names, which the tree uses unchanged. */
#define PATH_BYTES 320

/* 2^53: a double holds all integers up to it. An offset beyond it counts as unknown. */
#define MAX_EXACT 9007199254740992.0

/* Twice the tensors that ggufs accepts. */
enum { MAX_NAMES = 2 * GGUF_MAX_TENSORS };

/* A name of a tensor. Two of them are one tensor if it has another name in GGUF. */
struct entry {
    char *name;
    bool is_mapped;     /* a part of the model uses it */
    bool has_mapping;   /* of its own, of `raw`; else the model file is mapped */
    bool is_other_name; /* the GGUF name, a link in the tree */
    const char *file;   /* the model file of the tensor; in weights->file_names */
    struct run_listed_tensor listed;
    const char *other; /* the GGUF name of this tensor, or NULL */
    struct run_tensor tensor;
    uint64_t n_bytes;
};

struct run_weights {
    int tree_fd;
    struct entry *entries; /* sorted by name */
    size_t n_entries, capacity;
    char **file_names; /* owned; successive tensors of one file share its name */
    size_t n_file_names, file_names_capacity;
    size_t *mapped; /* indices of mapped entries, in the order of mapping */
    size_t n_mapped;
    struct run_model_files files;
};

static int compare_names(const void *a, const void *b)
{
    return strcmp(((const struct entry *)a)->name, ((const struct entry *)b)->name);
}

/* Return the name of the model file, which the weights own, or NULL without memory. */
static const char *add_file_name(struct run_weights *weights, const char *name)
{
    const size_t n = weights->n_file_names;
    char **names;

    if (n > 0 && strcmp(weights->file_names[n - 1], name) == 0)
        return weights->file_names[n - 1];
    names = gguf_grow(weights->file_names, &weights->file_names_capacity, n + 1, sizeof *names);
    if (!names)
        return NULL;
    weights->file_names = names;
    names[n] = strdup(name);
    weights->n_file_names += names[n] != NULL;
    return names[n];
}

static struct entry *add_entry(struct run_weights *weights, const char *name,
                               const struct run_listed_tensor *listed, const char *file)
{
    struct entry *entries =
        gguf_grow(weights->entries, &weights->capacity, weights->n_entries + 1, sizeof *entries);
    struct entry *entry;

    if (!entries)
        return NULL;
    weights->entries = entries;
    entry = &entries[weights->n_entries++];
    *entry = (struct entry){
        .name = strdup(name), .file = add_file_name(weights, file), .listed = *listed};
    return entry->name && entry->file ? entry : NULL;
}

static int add_tensor(void *context, const struct run_listed_names *names,
                      const struct run_listed_tensor *listed, struct run_failure *failure)
{
    struct run_weights *weights = context;
    struct entry *entry = add_entry(weights, names->name, listed, names->file), *other;

    if (weights->n_entries > MAX_NAMES)
        return run_fail(failure, -EINVAL, "tensors.json: more than %d names", MAX_NAMES);
    if (!entry)
        return run_fail_memory(failure);
    if (names->gguf_name[0] == '\0' || strcmp(names->gguf_name, names->name) == 0)
        return 0;
    other = add_entry(weights, names->gguf_name, listed, names->file);
    if (!other)
        return run_fail_memory(failure);
    entry = other - 1; /* the list may have moved */
    other->is_other_name = true;
    entry->other = other->name;
    return 0;
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

const char *run_weights_starting(const struct run_weights *weights, const char *start)
{
    for (size_t i = 0; i < weights->n_entries; i++)
        if (gguf_text_starts_with(weights->entries[i].name, start))
            return weights->entries[i].name;
    return NULL;
}

int run_weights_open(int tree_fd, bool is_private, struct run_weights **out,
                     struct run_failure *failure)
{
    struct run_weights *weights = calloc(1, sizeof *weights);
    int code;

    *out = NULL;
    if (!weights)
        return run_fail_memory(failure);
    weights->tree_fd = tree_fd;
    if (is_private || run_is_on_own_mount(tree_fd))
        run_model_files_trust(&weights->files, tree_fd);
    code = run_tensor_list_read(tree_fd, add_tensor, weights, failure);
    if (code == 0 && weights->n_entries > 0) {
        qsort(weights->entries, weights->n_entries, sizeof *weights->entries, compare_names);
        weights->mapped = calloc(weights->n_entries, sizeof *weights->mapped);
        if (!weights->mapped)
            code = run_fail_memory(failure);
    }
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
    for (size_t i = 0; i < weights->n_file_names; i++)
        free(weights->file_names[i]);
    free(weights->file_names);
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
        fd = run_open_below(weights->tree_fd, path, O_RDONLY | O_NONBLOCK);
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
    const int fd = run_open_below(weights->tree_fd, path, O_RDONLY | O_NONBLOCK);
    struct stat status;
    int code = 0;

    if (fd == -ENOENT)
        code = run_fail(failure, fd, "%s: missing, but tensors.json lists the tensor", path);
    else if (fd < 0)
        code = run_fail(failure, fd, "%s: %s", path, run_open_below_error(fd));
    else if (fstat(fd, &status) < 0)
        code = run_fail(failure, -errno, "%s: %s", path, strerror(errno));
    else if (!S_ISREG(status.st_mode) || (uint64_t)status.st_size != n_bytes)
        code = run_fail(failure, -EINVAL, "%s: %lld bytes, tensors.json says %llu", path,
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
    int code = read_end(fd, entry->n_bytes);

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
        return run_fail(failure, -EINVAL, "tensors.json: %s: the shape is too large", tensor->name);
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
    const double offset = entry->listed.offset;
    const bool has_offset = offset >= 0 && offset <= MAX_EXACT && offset == floor(offset);
    const struct run_place place = {has_offset ? entry->file : "",
                                    has_offset ? (uint64_t)offset : 0};
    int code;

    entry->tensor.name = entry->name;
    code = run_listed_tensor_take(&entry->listed, &entry->tensor, failure);
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

bool run_weights_is_used(const struct run_weights *weights, const char *name)
{
    const struct entry *entry = find(weights, name);

    return entry && (entry->is_mapped || (entry->other && find(weights, entry->other)->is_mapped));
}

size_t run_weights_unused(const struct run_weights *weights, const char *names[], size_t n_names)
{
    size_t n = 0;

    for (size_t i = 0; i < weights->n_entries; i++) {
        const struct entry *entry = &weights->entries[i];

        if (entry->is_other_name || run_weights_is_used(weights, entry->name))
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

const struct run_tensor *run_weights_mapping(const struct run_weights *weights, size_t index)
{
    return index < weights->n_mapped ? &weights->entries[weights->mapped[index]].tensor : NULL;
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
