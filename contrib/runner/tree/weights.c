#include "contrib/runner/tree/weights.h"

#include "contrib/runner/tree/model_files.h"
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

#define LIST_LIMIT_BYTES ((uint64_t)1 << 30)

/* Twice the tensors that ggufs accepts. */
enum { MAX_NAMES = 2 * GGUF_MAX_TENSORS };

/* A name of a tensor. Two of them are one tensor if it has another name in GGUF. */
struct entry {
    const char *name;
    const struct gguf_json *info; /* the tensor in tensors.json */
    const char *other;            /* the GGUF name of this tensor, or NULL */
    bool is_other_name;           /* the GGUF name, a link in the tree */
    bool is_mapped;               /* a part of the model uses it */
    bool has_mapping;             /* of its own, of `raw`; else the model file is mapped */
    struct run_tensor tensor;
    uint64_t n_bytes;
};

struct run_weights {
    int tree_fd;
    struct run_json list;  /* tensors.json, which has all texts */
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

/* Return the text of a member that is a string, or "". */
static const char *text_of(const struct gguf_json *object, const char *key)
{
    const struct gguf_json *member = gguf_json_member(object, key);

    return member && member->kind == GGUF_JSON_STRING ? member->text.data : "";
}

/* Return the number of a member; NaN for other values, and `if_missing` without it. */
static double number_of(const struct gguf_json *object, const char *key, double if_missing)
{
    const struct gguf_json *member = gguf_json_member(object, key);

    return !member ? if_missing : member->kind == GGUF_JSON_NUMBER ? member->number : NAN;
}

static bool is_whole(double number, double min, double max)
{
    return number >= min && number <= max && number == floor(number);
}

static int add_tensor(struct run_weights *weights, const struct gguf_json *info, size_t index,
                      struct run_failure *failure)
{
    const char *path = text_of(info, "path"), *slash = strrchr(path, '/');
    const char *gguf_name = text_of(info, "gguf_name");
    /* The directory's name may differ from the tensor's. */
    const char *name = slash ? slash + 1 : *path ? path : text_of(info, "name");
    const bool has_other = gguf_name[0] != '\0' && strcmp(gguf_name, name) != 0;

    if (info->kind != GGUF_JSON_OBJECT)
        return run_fail(failure, -EINVAL, "tensors.json: element %zu is not an object", index);
    if (name[0] == '\0')
        return run_fail(failure, -EINVAL, "tensors.json: tensor %zu has no name", index);
    if (weights->n_entries > MAX_NAMES - 2)
        return run_fail(failure, -EINVAL, "tensors.json: more than %d names", MAX_NAMES);
    if (gguf_reserve(&weights->entries, &weights->capacity, weights->n_entries + 2,
                     sizeof *weights->entries) < 0)
        return run_fail_memory(failure);
    weights->entries[weights->n_entries++] =
        (struct entry){.name = name, .info = info, .other = has_other ? gguf_name : NULL};
    if (has_other)
        weights->entries[weights->n_entries++] =
            (struct entry){.name = gguf_name, .info = info, .is_other_name = true};
    return 0;
}

static int read_list(struct run_weights *weights, struct run_failure *failure)
{
    size_t index = 0;
    int code =
        run_json_read(weights->tree_fd, "tensors.json", LIST_LIMIT_BYTES, &weights->list, failure);

    if (code == 0 && weights->list.values->kind != GGUF_JSON_ARRAY)
        return run_fail(failure, -EINVAL, "tensors.json: not a JSON array");
    for (const struct gguf_json *info = code == 0 ? weights->list.values->child : NULL;
         code == 0 && info; info = info->next)
        code = add_tensor(weights, info, index++, failure);
    return code;
}

static struct entry *find(const struct run_weights *weights, const char *name)
{
    const struct entry wanted = {.name = name};

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
    code = read_list(weights, failure);
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
        const struct entry *entry = &weights->entries[i];

        if (entry->has_mapping)
            munmap((void *)(uintptr_t)entry->tensor.data, entry->n_bytes);
    }
    run_model_files_close(&weights->files);
    free(weights->mapped);
    free(weights->entries);
    run_json_free(&weights->list);
    free(weights);
}

static int take_type(const struct gguf_json *info, struct run_tensor *tensor,
                     struct run_failure *failure)
{
    const double type = number_of(info, "ggml_type", NAN);
    const double era = number_of(info, "era", DEQUANT_ERA);
    const char *name = text_of(info, "type");

    if (!is_whole(type, 0, UINT32_MAX))
        return run_fail(failure, -EINVAL, "tensors.json: %s: no ggml_type", tensor->name);
    if (strcmp(text_of(info, "byte_order"), "big") == 0)
        return run_fail(failure, -ENOTSUP,
                        "tensors.json: %s: the tensor is big-endian, but ggufs-run needs "
                        "little-endian weights; mount the model and use model.gguf of the tree",
                        tensor->name);
    if (isnan(era))
        return run_fail(failure, -ENOTSUP,
                        "tensors.json: %s: the file does not say which layout (era) its quantized "
                        "blocks have; mount the model with -o era=N, N from 0 to 2",
                        tensor->name);
    /* Several programs gave types of their own the same id. */
    if (era == DEQUANT_ERA && name[0] != '\0')
        tensor->type = dequant_candidate_by_name((uint32_t)type, name);
    else
        tensor->type = is_whole(era, 0, UINT32_MAX)
                           ? dequant_type_of_era((uint32_t)type, (uint32_t)era)
                           : NULL;
    if (!tensor->type || !dequant_is_decodable(tensor->type))
        return run_fail(failure, -ENOTSUP, "tensors.json: %s: type %.0f cannot be decoded",
                        tensor->name, type);
    return 0;
}

static int take_shape(const struct gguf_json *info, struct run_tensor *tensor,
                      struct run_failure *failure)
{
    const struct gguf_json *ne = gguf_json_member(info, "ne");
    size_t n = 0;

    for (size_t i = 0; i < RUN_MAX_DIMS; i++)
        tensor->ne[i] = 1;
    for (const struct gguf_json *item = ne ? ne->child : NULL; item; item = item->next, n++) {
        const double number = item->kind == GGUF_JSON_NUMBER ? item->number : 0;

        if (n < RUN_MAX_DIMS && !is_whole(number, 1, INT32_MAX))
            return run_fail(failure, -EINVAL, "tensors.json: %s: ne[%zu] is not from 1 to %d",
                            tensor->name, n, INT32_MAX);
        if (n < RUN_MAX_DIMS)
            tensor->ne[n] = (uint64_t)number;
    }
    if (!ne || ne->kind != GGUF_JSON_ARRAY || n > RUN_MAX_DIMS)
        return run_fail(failure, -EINVAL, "tensors.json: %s: no ne of at most %d dimensions",
                        tensor->name, RUN_MAX_DIMS);
    if (tensor->ne[0] % tensor->type->block_elements != 0)
        return run_fail(failure, -EINVAL,
                        "tensors.json: %s: row length %llu is not a multiple of the %s block size, "
                        "%u",
                        tensor->name, (unsigned long long)tensor->ne[0], tensor->type->name,
                        tensor->type->block_elements);
    if (tensor->ne[1] % tensor->type->interleave_rows != 0)
        return run_fail(failure, -EINVAL,
                        "tensors.json: %s: %llu rows are not a multiple of the %u that %s stores "
                        "together",
                        tensor->name, (unsigned long long)tensor->ne[1],
                        tensor->type->interleave_rows, tensor->type->name);
    return 0;
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

/* Refuse to map a file whose end gave the error `code`. */
static int refuse_incomplete(const struct run_weights *weights, const char *path, int code,
                             struct run_failure *failure)
{
    size_t n_tensors = 0, n = 0;

    for (size_t i = 0; i < weights->n_entries && code == -EIO; i++) {
        char other[PATH_BYTES];
        struct stat status;
        int fd;

        if (weights->entries[i].is_other_name)
            continue;
        n_tensors++;
        snprintf(other, sizeof other, "tensors/%s/raw", weights->entries[i].name);
        fd = run_open_below(weights->tree_fd, other, O_RDONLY | O_NONBLOCK);
        if (fd < 0)
            continue; /* a tensor of unknown type has no data in the tree */
        n += fstat(fd, &status) == 0 && status.st_size > 0 &&
             read_end(fd, (uint64_t)status.st_size) == -EIO;
        close(fd);
    }
    if (code != -EIO)
        return run_fail(failure, code, "%s: %s", path, strerror(-code));
    return run_fail(failure, -EIO,
                    "%zu of %zu tensors cannot be read, among them %s: the model is still being "
                    "downloaded, or its disk has an error",
                    n, n_tensors, path);
}

static int map_file(struct run_weights *weights, const char *path, int fd, struct entry *entry,
                    struct run_failure *failure)
{
    const int code = read_end(fd, entry->n_bytes);
    void *data;

    if (code < 0)
        return refuse_incomplete(weights, path, code, failure);
    data = mmap(NULL, entry->n_bytes, PROT_READ, MAP_SHARED, fd, 0);
    if (data == MAP_FAILED)
        return run_fail(failure, -errno, "%s: can't be mapped: %s", path, strerror(errno));
    entry->tensor.data = data;
    entry->has_mapping = true;
    return 0;
}

/* Open the file `raw` of a tensor, and with it the model file, or else map `raw`. */
static int map_raw(struct run_weights *weights, struct entry *entry, const struct run_place *place,
                   struct run_failure *failure)
{
    char path[PATH_BYTES];
    struct stat status;
    int fd, code = 0;

    snprintf(path, sizeof path, "tensors/%s/raw", entry->name);
    fd = run_open_below(weights->tree_fd, path, O_RDONLY | O_NONBLOCK);
    if (fd < 0)
        return run_fail(failure, fd, "%s: %s", path,
                        fd == -ENOENT ? "missing, but tensors.json lists the tensor"
                                      : run_open_below_error(fd));
    if (fstat(fd, &status) < 0)
        code = run_fail(failure, -errno, "%s: %s", path, strerror(errno));
    else if (!S_ISREG(status.st_mode) || (uint64_t)status.st_size != entry->n_bytes)
        code = run_fail(failure, -EINVAL, "%s: %lld bytes, tensors.json says %llu", path,
                        (long long)status.st_size, (unsigned long long)entry->n_bytes);
    if (code == 0) {
        run_model_files_open(&weights->files, place, fd);
        entry->tensor.data = run_model_files_bytes(&weights->files, place, entry->n_bytes);
        if (!entry->tensor.data)
            code = map_file(weights, path, fd, entry, failure);
    }
    close(fd);
    return code;
}

/* Find the bytes of a tensor in its model file, which is opened for its first tensor, or `raw`. */
static int map_bytes(struct run_weights *weights, struct entry *entry,
                     const struct run_place *place, struct run_failure *failure)
{
    struct run_tensor *tensor = &entry->tensor;
    uint64_t n_rows = 1;
    int code = 0;

    for (size_t i = 1; i < RUN_MAX_DIMS; i++)
        if (__builtin_mul_overflow(n_rows, tensor->ne[i], &n_rows))
            n_rows = UINT64_MAX;
    if (dequant_rows_bytes(tensor->type, tensor->ne[0], n_rows, &entry->n_bytes) < 0)
        return run_fail(failure, -EINVAL, "tensors.json: %s: the shape is too large", tensor->name);
    tensor->stored_rows = n_rows;
    tensor->data = run_model_files_bytes(&weights->files, place, entry->n_bytes);
    if (!tensor->data)
        code = map_raw(weights, entry, place, failure);
    if (code < 0)
        return code;
    entry->is_mapped = true;
    weights->mapped[weights->n_mapped++] = (size_t)(entry - weights->entries);
    return 0;
}

static int read_entry(struct run_weights *weights, struct entry *entry, struct run_failure *failure)
{
    const double offset = number_of(entry->info, "offset", NAN);
    const bool has_offset = is_whole(offset, 0, MAX_EXACT);
    const struct run_place place = {has_offset ? text_of(entry->info, "file") : "",
                                    has_offset ? (uint64_t)offset : 0};
    int code;

    entry->tensor.name = entry->name;
    code = take_type(entry->info, &entry->tensor, failure);
    if (code == 0)
        code = take_shape(entry->info, &entry->tensor, failure);
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

const char *run_weights_name(const struct run_weights *weights, size_t index)
{
    const struct entry *entry = &weights->entries[index];

    return index >= weights->n_entries ? NULL : entry->other ? entry->other : entry->name;
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

void run_tree_close(struct run_tree *tree)
{
    run_weights_close(tree->weights);
    run_metadata_close(tree->metadata);
    if (tree->fd >= 0)
        close(tree->fd);
    *tree = (struct run_tree){.fd = -1};
}
