/*
 * Target: everything but the kernel. The input is a model file. The target opens it, makes and
 * walks its tree, and reads every file in several ways, which must agree.
 */
#include "dequant/kernels.h"
#include "fs/command/check_data.h"
#include "fs/command/tree_selection.h"
#include "fs/tree/tree.h"
#include "fs/tree/views.h"
#include "gguf/faults.h"
#include "gguf/support/safe_print.h"
#include "tests/fuzz/fuzz_check.h"
#include "tests/fuzz/fuzz_expected.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <sanitizer/asan_interface.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Bytes to read per input, and per window of a large file. */
#define BUDGET_BYTES (256u << 10)
#define WINDOW_BYTES 8192u
/* Files up to this size are read whole. */
#define WHOLE_BYTES (1u << 20)

/* ---- the model file: in memory, with its last page poisoned past the end ---- */

static int descriptor = -1;

void *__real_mmap(void *address, size_t n_bytes, int access, int flags, int file, off_t offset);
void *__wrap_mmap(void *address, size_t n_bytes, int access, int flags, int file, off_t offset);
int __real_munmap(void *address, size_t n_bytes);
int __wrap_munmap(void *address, size_t n_bytes);

/* Return the number of bytes from the end of the file to the end of its last page. */
static size_t tail_bytes(size_t n_bytes)
{
    const size_t page_bytes = (size_t)sysconf(_SC_PAGESIZE);

    return (page_bytes - n_bytes % page_bytes) % page_bytes;
}

/* The linker substitutes these for mmap() and munmap() (--wrap). */
void *__wrap_mmap(void *address, size_t n_bytes, int access, int flags, int file, off_t offset)
{
    char *data = __real_mmap(address, n_bytes, access, flags, file, offset);

    if (data != MAP_FAILED)
        ASAN_POISON_MEMORY_REGION(data + n_bytes, tail_bytes(n_bytes));
    return data;
}

int __wrap_munmap(void *address, size_t n_bytes)
{
    ASAN_UNPOISON_MEMORY_REGION((char *)address + n_bytes, tail_bytes(n_bytes));
    return __real_munmap(address, n_bytes);
}

static void write_model(const uint8_t *data, size_t size)
{
    if (descriptor < 0) {
        descriptor = memfd_create("model", MFD_CLOEXEC);
        FUZZ_CHECK(gguf_faults_catch() == 0, "no signal handler");
    }
    FUZZ_CHECK(pwrite(descriptor, data, size, 0) == (ssize_t)size &&
                   ftruncate(descriptor, (off_t)size) == 0,
               "the model file cannot be written: %s", strerror(errno));
}

/* ---- reading ---- */

struct reader {
    const struct fs_image *image;
    struct fuzz_random *random;
    uint64_t *budget;
};

/*
 * Read a slice into memory of its exact size. A slice past the end of the file is short. The caller
 * frees *memory.
 */
static const char *read_slice(const struct reader *reader, uint64_t offset, size_t length,
                              char **memory)
{
    const uint64_t size = reader->image->size_bytes;
    const uint64_t left = offset < size ? size - offset : 0;
    const size_t shift = (size_t)fuzz_random_below(reader->random, 8);
    ssize_t n;

    *memory = fuzz_alloc(shift + length);
    n = fs_image_read(reader->image, offset, length, *memory + shift);
    FUZZ_CHECK(n >= 0 && (uint64_t)n == (left < length ? left : length),
               "%zu bytes at %" PRIu64 " of a file of %" PRIu64 " bytes return %zd", length, offset,
               size, n);
    *reader->budget -= *reader->budget < length ? *reader->budget : length;
    return *memory + shift;
}

/* Check that slices of a part of a file equal that part. */
static void check_slices(const struct reader *reader, uint64_t start, size_t length,
                         const char *expected)
{
    char *memory;

    for (size_t done = 0; done < length;) {
        size_t step = 1 + 2 * (size_t)fuzz_random_below(reader->random, length / 3 + 16);

        step = step < length - done ? step : length - done;
        FUZZ_CHECK(memcmp(expected + done, read_slice(reader, start + done, step, &memory), step) ==
                       0,
                   "%zu bytes at %" PRIu64 " differ", step, start + done);
        free(memory);
        done += step;
    }
    for (int i = 0; i < 2 && length > 0; i++) {
        const size_t from = (size_t)fuzz_random_below(reader->random, length);
        const size_t n = (size_t)fuzz_random_below(reader->random, length - from + 1);

        FUZZ_CHECK(memcmp(expected + from, read_slice(reader, start + from, n, &memory), n) == 0,
                   "%zu bytes at %" PRIu64 " differ", n, start + from);
        free(memory);
    }
}

static void check_window(const struct reader *reader, uint64_t start, size_t length)
{
    char *memory;
    const char *expected = read_slice(reader, start, length, &memory);

    check_slices(reader, start, length, expected);
    free(memory);
}

/* ---- model.gguf, opened again ---- */

/* Remove the line of a key from metadata.json. */
static void drop_line(char *text, uint64_t *size, const char *key)
{
    char start[64];
    const int length = snprintf(start, sizeof start, "\n\"%s\": ", key);
    char *line = memmem(text, (size_t)*size, start, (size_t)length);
    char *end = line ? memchr(line + 1, '\n', (size_t)(text + *size - line - 1)) : NULL;

    if (!end)
        return;
    memmove(line, end, (size_t)(text + *size - end));
    *size -= (uint64_t)(end - line);
}

/* Return the contents of metadata.json, or NULL if it is too large. The caller frees them. */
static char *metafuzz_data_of(const struct gguf_model *model, uint64_t *size)
{
    struct gguf_report report = {0};
    const struct fs_image *image;
    struct fs_tree *tree;
    char *text = NULL;

    FUZZ_CHECK(fs_tree_make(model, NULL, &tree, &report) == 0, "the tree is refused: %s",
               report.first_error.message);
    FUZZ_CHECK(fs_tree_open(tree, fs_nodes_find(&tree->nodes, FS_ROOT, "metadata.json"), NULL,
                            &image) == 0,
               "no metadata.json");
    *size = image->size_bytes;
    if (*size <= WHOLE_BYTES) {
        text = fuzz_alloc((size_t)*size);
        FUZZ_CHECK(fs_image_read(image, 0, (size_t)*size, text) == (ssize_t)*size, "short");
    }
    fs_tree_close(tree, image);
    fs_tree_free(tree);
    return text;
}

static void check_same_metadata(const struct fs_tree *tree, const struct gguf_model *copy)
{
    const struct gguf_model *model = tree->model;
    uint64_t size, copy_size;
    char *text, *copy_text;

    if (tree->export.n_added > 0)
        return;
    text = metafuzz_data_of(model, &size);
    copy_text = metafuzz_data_of(copy, &copy_size);
    /* Other types change the keys that describe them. */
    if ((model->has_entries_between || tree->export.is_changed) && text && copy_text) {
        drop_line(text, &size, "general.quantization_version");
        drop_line(copy_text, &copy_size, "general.quantization_version");
        drop_line(text, &size, "general.file_type");
        drop_line(copy_text, &copy_size, "general.file_type");
    }
    FUZZ_CHECK(size == copy_size && (!text || memcmp(text, copy_text, (size_t)size) == 0),
               "the metadata of model.gguf differ");
    free(text);
    free(copy_text);
}

static void check_same_tensor(const struct fs_tree *tree, const struct gguf_model *copy,
                              uint64_t index)
{
    const struct gguf_model *model = tree->model;
    const struct fs_exported exported = fs_export_tensor(model, tree->export.choice, index);
    const struct gguf_tensor *other = &copy->tensors[index];
    uint64_t n_elements = 0;

    for (uint32_t i = 0; i < exported.tensor.n_stored; i++) {
        const struct gguf_tensor *stored = &model->tensors[exported.tensor.stored[i]];

        FUZZ_CHECK(exported.type ? other->type == exported.type : other->type_id == stored->type_id,
                   "tensor %" PRIu64 " has another type in model.gguf", index);
        if (exported.type && stored->size_bytes > 0)
            FUZZ_CHECK(fuzz_is_same_data(model, stored, copy, other, n_elements),
                       "tensor %" PRIu64 " has other data in model.gguf", index);
        n_elements += stored->n_elements;
    }
    FUZZ_CHECK(gguf_string_compare(exported.tensor.name, other->name) == 0 &&
                   n_elements == other->n_elements && !other->big_endian,
               "tensor %" PRIu64 " has another name, size or byte order in model.gguf", index);
}

static void check_model_gguf(const struct fs_tree *tree, const char *bytes, size_t size)
{
    const struct gguf_model *model = tree->model;
    const int file = memfd_create("copy", MFD_CLOEXEC);
    struct gguf_report report = {0};
    struct gguf_model *copy;
    char path[32];

    FUZZ_CHECK(write(file, bytes, size) == (ssize_t)size, "model.gguf cannot be copied: %s",
               strerror(errno));
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    FUZZ_CHECK(gguf_open(path, &copy, &report) == 0, "model.gguf is refused: %s",
               report.first_error.message);
    FUZZ_CHECK(copy->is_current, "model.gguf is not current GGUF");
    FUZZ_CHECK(copy->n_tensors == fs_export_count(model),
               "model.gguf has another number of tensors");
    check_same_metadata(tree, copy);
    for (uint64_t i = 0; i < copy->n_tensors; i++)
        check_same_tensor(tree, copy, i);
    gguf_close(copy);
    close(file);
}

static bool is_json(const struct fs_node *node)
{
    const char *dot = strrchr(node->name, '.');

    return (dot && strcmp(dot, ".json") == 0) || strcmp(node->name, "info") == 0;
}

static void check_whole(const struct reader *reader, const struct fs_tree *tree,
                        const struct fs_node *node)
{
    const size_t size = (size_t)reader->image->size_bytes;
    size_t n_expected = 0;
    char *memory, *expected = fuzz_expected_of(tree->model, node, &n_expected);
    const char *whole = read_slice(reader, 0, size + 1, &memory);

    FUZZ_CHECK(n_expected <= size, "%s has %zu bytes, expected %zu", node->name, size, n_expected);
    if (n_expected > 0)
        FUZZ_CHECK(memcmp(whole + size - n_expected, expected, n_expected) == 0,
                   "%s has wrong bytes", node->name);
    if (strcmp(node->name, "model.safetensors") == 0)
        fuzz_check_safetensors(whole, size);
    if (is_json(node)) {
        fuzz_check_json(whole, size);
        FUZZ_CHECK(size > 0 && whole[size - 1] == '\n', "%s does not end in a newline", node->name);
    }
    if (strcmp(node->name, "model.gguf") == 0)
        check_model_gguf(tree, whole, size);
    if (*reader->budget > 0)
        check_slices(reader, 0, size, whole);
    free(memory);
    free(expected);
}

static void check_file(struct fs_tree *tree, fs_node_index index, struct fuzz_random *random,
                       uint64_t *budget)
{
    const struct fs_node *node = &tree->nodes.list[index];
    const struct fs_image *image;
    struct reader reader = {NULL, random, budget};
    char *memory;
    uint64_t size;
    int result = fs_tree_size(tree, index, NULL, &size);

    FUZZ_CHECK(result == 0, "cannot get the size of %s: %s", node->name, strerror(-result));
    result = fs_tree_open(tree, index, NULL, &image);
    FUZZ_CHECK(result == 0, "cannot open %s: %s", node->name, strerror(-result));
    reader.image = image;
    FUZZ_CHECK(image->size_bytes == size, "the sizes of %s before and after opening differ",
               node->name);
    if (*budget > 0 && size <= WHOLE_BYTES) {
        check_whole(&reader, tree, node);
    } else if (*budget > 0) {
        check_window(&reader, 0, WINDOW_BYTES);
        check_window(&reader, size - WINDOW_BYTES, WINDOW_BYTES);
        check_window(&reader, fuzz_random_below(random, size - WINDOW_BYTES), WINDOW_BYTES);
    }
    read_slice(&reader, size, 100, &memory);
    free(memory);
    read_slice(&reader, UINT64_MAX - fuzz_random_below(random, 100), 200, &memory);
    free(memory);
    fs_tree_close(tree, image);
}

/* ---- the tree ---- */

static void check_directory(struct fs_tree *tree, fs_node_index index)
{
    const struct fs_nodes *nodes = &tree->nodes;
    const struct fs_node *directory = &nodes->list[index];
    uint32_t n_folders = 0;
    uint64_t size;

    FUZZ_CHECK(fs_tree_size(tree, index, NULL, &size) == 0 && size == 0,
               "a directory's size is not 0");
    for (uint32_t i = 0; i < directory->n_children; i++) {
        const fs_node_index child = nodes->children[directory->first_child + i];
        const char *name = nodes->list[child].name;

        fuzz_check_file_name(name);
        FUZZ_CHECK(nodes->list[child].parent == index, "the parent of %s is wrong", name);
        FUZZ_CHECK(fs_nodes_find(nodes, index, name) == child, "look-up does not find %s", name);
        n_folders += fs_node_is_directory(&nodes->list[child]);
    }
    FUZZ_CHECK(n_folders == directory->n_folders, "the number of subdirectories is wrong");
}

static void check_link(struct fs_tree *tree, fs_node_index index)
{
    const struct fs_node *link = &tree->nodes.list[index];
    char path[FS_PATH_BYTES];
    fs_node_index target;
    uint64_t size;

    fs_node_path(tree, index, path);
    FUZZ_CHECK(fs_tree_find(tree, path, &target) == 0 &&
                   fs_node_is_directory(&tree->nodes.list[target]),
               "the target of the link %s is not a directory", link->name);
    FUZZ_CHECK(fs_tree_size(tree, index, NULL, &size) == 0 && size == strlen(link->target),
               "the size of the link %s is not the length of its target", link->name);
}

static void check_tree(const struct gguf_model *model, struct fuzz_random *random)
{
    struct gguf_report report = {0};
    uint64_t budget = BUDGET_BYTES, n_children = 0;
    /* Half of the time the default. */
    const uint64_t choice = fuzz_random_below(random, 2ull * FS_N_EXPORTS);
    const struct fs_tree_options options = {
        .export = choice < FS_N_EXPORTS ? (enum fs_export_choice)choice : FS_EXPORT_LOADABLE};
    struct fs_tree *tree;

    FUZZ_CHECK(fs_tree_make(model, &options, &tree, &report) == 0, "the tree is refused: %s",
               report.first_error.message);
    for (fs_node_index i = 0; i < tree->nodes.count; i++) {
        if (tree->nodes.list[i].kind == FS_FILE) {
            check_file(tree, i, random, &budget);
        } else if (tree->nodes.list[i].kind == FS_LINK) {
            check_link(tree, i);
        } else {
            check_directory(tree, i);
            n_children += tree->nodes.list[i].n_children;
        }
    }
    FUZZ_CHECK(n_children == tree->nodes.count - 1, "some node is in no directory");
    fs_tree_free(tree);
}

static void check_finding(void *user, const struct gguf_finding *finding)
{
    size_t length = strnlen(finding->message, sizeof finding->message);

    (void)user;
    FUZZ_CHECK(length > 0 && length < sizeof finding->message, "the message has %zu bytes", length);
    for (size_t i = 0, n; i < length; i += n) {
        n = gguf_printable_length(finding->message + i, length - i);
        FUZZ_CHECK(n > 0, "the message is not printable: %s", finding->message);
    }
    FUZZ_CHECK((finding->severity == GGUF_ERROR) == (finding->code < 0),
               "code %d does not match the severity: %s", finding->code, finding->message);
    FUZZ_CHECK(finding->rule < GGUF_N_RULES, "rule %d is unknown", (int)finding->rule);
    FUZZ_CHECK((finding->name.data != NULL) <=
                   (finding->thing == GGUF_A_KEY || finding->thing == GGUF_A_TENSOR),
               "a finding about neither a key nor a tensor has a name: %s", finding->message);
}

/* ---- ggufs --check --data ---- */

static void no_progress(void *user, uint64_t done_bytes, uint64_t total_bytes)
{
    (void)user;
    FUZZ_CHECK(done_bytes <= total_bytes, "the progress exceeds the total");
}

/* Return true if a scale is NaN although the values are finite, because ggml decodes it so. */
static bool has_nan_scale(const struct gguf_model *model, const struct gguf_tensor *tensor)
{
    char *data = fuzz_data_of(model, tensor);
    bool is_nan = false;

    for (uint64_t i = 0; i < tensor->size_bytes; i += dequant_stride_bytes(tensor->type)) {
        for (uint32_t row = 0; row < tensor->type->interleave_rows; row++)
            is_nan = is_nan || tensor->type->has_nan_scale(data + i, row);
    }
    free(data);
    return is_nan;
}

static bool is_finite(const struct gguf_model *model, const struct gguf_tensor *tensor)
{
    char *values = fuzz_values_of(model, tensor);
    bool finite = true;
    float value;

    for (uint64_t i = 0; finite && i < tensor->n_elements; i++) {
        memcpy(&value, values + i * sizeof value, sizeof value);
        finite = isfinite(value);
    }
    free(values);
    if (tensor->type->has_nan_scale)
        finite = finite && !has_nan_scale(model, tensor);
    return finite;
}

static void check_data(const struct gguf_model *model)
{
    struct gguf_report report = {.each = check_finding};
    const int result = fs_check_data(model, &report, no_progress, NULL);
    bool finite = true;

    for (uint64_t i = 0; i < model->n_tensors; i++) {
        if (model->tensors[i].type && dequant_is_decodable(model->tensors[i].type))
            finite = finite && is_finite(model, &model->tensors[i]);
    }
    FUZZ_CHECK(result == (finite ? 0 : -EDOM) && (report.n_errors == 0) == finite,
               "result %d with %zu errors for values that are %s finite", result, report.n_errors,
               finite ? "all" : "not all");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_random random = fuzz_random_seed(data, size);
    struct gguf_report report = {.each = check_finding};
    struct gguf_model *model;
    char path[32];
    int result;

    dequant_choose_kernels(NULL);
    write_model(data, size);
    snprintf(path, sizeof path, "/proc/self/fd/%d", descriptor);
    result = gguf_open(path, &model, &report);
    FUZZ_CHECK((result < 0) == (report.n_errors > 0) && (result < 0) == !model,
               "result %d with %zu errors", result, report.n_errors);
    FUZZ_CHECK(result == 0 || result == report.first_error.code,
               "the result is %d, but the first error has code %d", result,
               report.first_error.code);
    if (result == 0)
        check_tree(model, &random);
    /* Checking the data takes a lot of memory per tensor. */
    if (result == 0 && model->n_tensors <= 4)
        check_data(model);
    gguf_close(model);
    return 0;
}
