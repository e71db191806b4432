#include "contrib/runner/tree/weights.h"

#include "contrib/runner/tree/json_file.h"
#include "dequant/kernels.h"
#include "dequant/rows.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* Names of tensors that are asked for are safe file names, which the tree uses as they are. */
#define PATH_BYTES 320

#define INFO_LIMIT_BYTES 65536
/* As many as ggufs shows. */
#define MAX_TENSORS 262144u

struct entry {
    char *name;
    bool is_mapped;
    struct run_tensor tensor;
    uint64_t n_bytes;
};

struct run_weights {
    int tree_fd;
    struct entry *entries; /* sorted by name */
    size_t n_entries, capacity;
    size_t *mapped; /* which entries are, in the order of mapping */
    size_t n_mapped;
};

static int compare_names(const void *a, const void *b)
{
    return strcmp(((const struct entry *)a)->name, ((const struct entry *)b)->name);
}

static int add_name(struct run_weights *weights, const char *name)
{
    if (weights->n_entries == weights->capacity) {
        size_t capacity = weights->capacity ? weights->capacity * 2 : 256;
        struct entry *larger = realloc(weights->entries, capacity * sizeof *larger);

        if (!larger)
            return -ENOMEM;
        weights->entries = larger;
        weights->capacity = capacity;
    }
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

        if (entry->is_mapped)
            munmap((void *)(uintptr_t)entry->tensor.data, entry->n_bytes);
        free(entry->name);
    }
    free(weights->mapped);
    free(weights->entries);
    free(weights);
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

static bool is_whole(const cJSON *item, double min, double max)
{
    return cJSON_IsNumber(item) && item->valuedouble >= min && item->valuedouble <= max &&
           item->valuedouble == floor(item->valuedouble);
}

static bool get_u32(const cJSON *info, const char *key, uint32_t *value)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(info, key);

    if (!is_whole(item, 0, UINT32_MAX))
        return false;
    *value = (uint32_t)item->valuedouble;
    return true;
}

static int read_type(const cJSON *info, struct run_tensor *tensor, struct run_failure *failure)
{
    uint32_t id, era = DEQUANT_ERA;

    if (!get_u32(info, "ggml_type", &id))
        return run_fail(failure, -EINVAL, "tensors/%s/info: no ggml_type", tensor->name);
    get_u32(info, "era", &era);
    tensor->type = dequant_type_of_era(id, era);
    if (!tensor->type || !dequant_is_decodable(tensor->type))
        return run_fail(failure, -ENOTSUP, "tensors/%s/info: type %u can't be decoded",
                        tensor->name, id);
    return 0;
}

static int read_shape(const cJSON *info, struct run_tensor *tensor, struct run_failure *failure)
{
    const cJSON *shape = cJSON_GetObjectItemCaseSensitive(info, "ne"), *dim;
    size_t n = 0;

    if (!cJSON_IsArray(shape) || cJSON_GetArraySize(shape) > RUN_MAX_DIMS)
        return run_fail(failure, -EINVAL, "tensors/%s/info: no ne of at most %d dimensions",
                        tensor->name, RUN_MAX_DIMS);
    for (size_t i = 0; i < RUN_MAX_DIMS; i++)
        tensor->ne[i] = 1;
    cJSON_ArrayForEach(dim, shape)
    {
        if (!is_whole(dim, 1, INT32_MAX))
            return run_fail(failure, -EINVAL, "tensors/%s/info: ne[%zu] is not from 1 to %d",
                            tensor->name, n, INT32_MAX);
        tensor->ne[n++] = (uint64_t)dim->valuedouble;
    }
    if (tensor->ne[0] % tensor->type->block_elements != 0)
        return run_fail(failure, -EINVAL,
                        "tensors/%s/info: rows of %llu elements, %s has blocks of %u", tensor->name,
                        (unsigned long long)tensor->ne[0], tensor->type->name,
                        tensor->type->block_elements);
    if (tensor->ne[1] % tensor->type->interleave_rows != 0)
        return run_fail(failure, -EINVAL,
                        "tensors/%s/info: matrices of %llu rows, %s stores %u together",
                        tensor->name, (unsigned long long)tensor->ne[1], tensor->type->name,
                        tensor->type->interleave_rows);
    return 0;
}

static int map_bytes(struct run_weights *weights, struct entry *entry, struct run_failure *failure)
{
    struct run_tensor *tensor = &entry->tensor;
    char path[PATH_BYTES];
    struct stat status;
    uint64_t n_rows = 1, n_bytes;
    void *data;
    int fd;

    for (size_t i = 1; i < RUN_MAX_DIMS; i++)
        if (__builtin_mul_overflow(n_rows, tensor->ne[i], &n_rows))
            n_rows = UINT64_MAX;
    if (dequant_rows_bytes(tensor->type, tensor->ne[0], n_rows, &n_bytes) < 0)
        return run_fail(failure, -EINVAL, "tensors/%s/info: the shape is too large", tensor->name);
    snprintf(path, sizeof path, "tensors/%s/raw", tensor->name);
    fd = openat(weights->tree_fd, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0 || fstat(fd, &status) < 0) {
        int code = run_fail(failure, -errno, "%s: %s", path, strerror(errno));

        if (fd >= 0)
            close(fd);
        return code;
    }
    if (!S_ISREG(status.st_mode) || (uint64_t)status.st_size != n_bytes) {
        close(fd);
        return run_fail(failure, -EINVAL, "%s: %lld bytes, its info says %llu", path,
                        (long long)status.st_size, (unsigned long long)n_bytes);
    }
    data = mmap(NULL, n_bytes, PROT_READ, MAP_SHARED, fd, 0);
    if (data == MAP_FAILED) {
        int code = run_fail(failure, -errno, "%s: can't be mapped: %s", path, strerror(errno));

        close(fd);
        return code;
    }
    close(fd);
    tensor->data = data;
    entry->n_bytes = n_bytes;
    entry->is_mapped = true;
    weights->mapped[weights->n_mapped++] = (size_t)(entry - weights->entries);
    return 0;
}

static int read_entry(struct run_weights *weights, struct entry *entry, struct run_failure *failure)
{
    char path[PATH_BYTES];
    cJSON *info;
    int code;

    entry->tensor.name = entry->name;
    snprintf(path, sizeof path, "tensors/%s/info", entry->name);
    code = run_json_read(weights->tree_fd, path, INFO_LIMIT_BYTES, &info, failure);
    if (code < 0)
        return code;
    code = read_type(info, &entry->tensor, failure);
    if (code == 0)
        code = read_shape(info, &entry->tensor, failure);
    cJSON_Delete(info);
    return code < 0 ? code : map_bytes(weights, entry, failure);
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

uint64_t run_tensor_rows(const struct run_tensor *tensor)
{
    return tensor->ne[1] * tensor->ne[2] * tensor->ne[3];
}

/* Where rows are stored in groups, the data begin with that of the first row. */
struct run_tensor run_tensor_slice(const struct run_tensor *tensor, uint64_t first, uint64_t n)
{
    const uint64_t row = tensor->first_row + first, group_rows = tensor->type->interleave_rows;
    struct run_tensor slice = *tensor;
    uint64_t skipped_bytes = 0;

    slice.first_row = (uint32_t)(row % group_rows);
    dequant_rows_bytes(tensor->type, tensor->ne[0], row - slice.first_row, &skipped_bytes);
    slice.data += skipped_bytes;
    slice.ne[1] = n;
    slice.ne[2] = slice.ne[3] = 1;
    return slice;
}

void run_tensor_decode(const struct run_tensor *tensor, uint64_t row, uint64_t first, uint64_t n,
                       float *out)
{
    dequant_decode_elements(tensor->type, tensor->ne[0], tensor->data,
                            (tensor->first_row + row) * tensor->ne[0] + first, n, out);
}

void run_tensor_decode_row(const struct run_tensor *tensor, uint64_t row, float *out)
{
    run_tensor_decode(tensor, row, 0, tensor->ne[0], out);
}
