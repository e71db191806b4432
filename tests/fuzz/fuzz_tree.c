/*
 * Target: everything but the kernel. The input is a model file. The target opens it, makes and
 * walks its tree, and reads every file in several ways, which must agree. It does so without
 * options and then, depending on the input, once more with some.
 */
#include "dequant/kernels.h"
#include "fs/command/check_data.h"
#include "fs/command/tree_selection.h"
#include "fs/tree/tree.h"
#include "gguf/faults.h"
#include "gguf/legacy/families.h"
#include "gguf/support/safe_print.h"
#include "tests/fuzz/fuzz_check.h"
#include "tests/fuzz/fuzz_expected.h"
#include "tests/fuzz/fuzz_files.h"

#include <errno.h>
#include <math.h>
#include <sanitizer/asan_interface.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

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

static const char *model_path(void)
{
    static char path[32];

    snprintf(path, sizeof path, "/proc/self/fd/%d", descriptor);
    return path;
}

/* Write the model file, with bytes before and after the model. */
static void write_model(const uint8_t *data, size_t size, size_t before, size_t after)
{
    const uint8_t other[2] = {'P', 0};

    if (descriptor < 0) {
        descriptor = memfd_create("model", MFD_CLOEXEC);
        FUZZ_CHECK(gguf_faults_catch() == 0, "no signal handler");
    }
    FUZZ_CHECK(ftruncate(descriptor, 0) == 0 &&
                   pwrite(descriptor, data, size, (off_t)before) == (ssize_t)size &&
                   pwrite(descriptor, other, before > 0, 0) == (before > 0) &&
                   ftruncate(descriptor, (off_t)(before + size + after)) == 0,
               "the model file cannot be written: %s", strerror(errno));
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

/* Make a tree with these options, which may be refused; NULL: with defaults and any export. */
static void check_tree(const struct gguf_model *model, const struct fs_tree_options *options,
                       struct fuzz_random *random)
{
    struct gguf_report report = {0};
    uint64_t budget = FUZZ_BUDGET_BYTES, n_children = 0;
    /* Half of the time the default. */
    const uint64_t choice = fuzz_random_below(random, 2ull * FS_N_EXPORTS);
    const struct fs_tree_options exported = {
        .export = choice < FS_N_EXPORTS ? (enum fs_export_choice)choice : FS_EXPORT_LOADABLE};
    struct fs_tree *tree;

    if (fs_tree_make(model, options ? options : &exported, &tree, &report) < 0) {
        FUZZ_CHECK(options, "the tree is refused: %s", report.first_error.message);
        return;
    }
    for (fs_node_index i = 0; i < tree->nodes.count; i++) {
        if (tree->nodes.list[i].kind == FS_FILE) {
            fuzz_check_file(tree, i, random, &budget);
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
    const int result = fs_check_data(model, &report, &(struct gguf_progress){0});
    bool finite = true;

    for (uint64_t i = 0; i < model->n_tensors; i++) {
        if (model->tensors[i].type && dequant_is_decodable(model->tensors[i].type))
            finite = finite && is_finite(model, &model->tensors[i]);
    }
    FUZZ_CHECK(result == (finite ? 0 : -EDOM) && (report.n_errors == 0) == finite,
               "result %d with %zu errors for values that are %s finite", result, report.n_errors,
               finite ? "all" : "not all");
}

/* ---- options ---- */

/* Open a model with options. Returns NULL if it is refused. */
static struct gguf_model *open_with(const struct gguf_open_options *options)
{
    struct gguf_report report = {.each = check_finding};
    struct gguf_model *model;
    const int result = gguf_open_with(model_path(), options, &model, &report);

    FUZZ_CHECK((result < 0) == (report.n_errors > 0) && (result < 0) == !model,
               "result %d with %zu errors", result, report.n_errors);
    return model;
}

/* A model inside a larger file is the same model. Joined parts are several files. */
static void check_range(const uint8_t *data, size_t size, const struct gguf_model *whole,
                        struct fuzz_random *random)
{
    const size_t before = 1 + fuzz_random_below(random, 200), after = fuzz_random_below(random, 99);
    const struct gguf_open_options options = {.offset = before, .size_bytes = size};
    struct gguf_model *model;

    write_model(data, size, before, after);
    model = open_with(&options);
    if (whole && whole->files[0].source.start_offset == 0 &&
        !whole->files[0].source.kind->find_pieces)
        FUZZ_CHECK(model && model->n_tensors == whole->n_tensors && model->n_keys == whole->n_keys,
                   "the model is refused or another at byte %zu of a larger file", before);
    if (model)
        check_tree(model, NULL, random);
    gguf_close(model);
}

/* `whole` is the model without options, or NULL. */
static void check_open_options(const struct gguf_model *whole, struct fuzz_random *random)
{
    const struct gguf_family *family = NULL;
    struct gguf_open_options options = {.era = (int)fuzz_random_below(random, DEQUANT_ERA + 2),
                                        .old_ik = fuzz_random_below(random, 2)};
    struct gguf_model *model;

    if (whole && whole->n_tensors > 0)
        options.types[0] = dequant_candidate_at(
            whole->tensors[fuzz_random_below(random, whole->n_tensors)].type_id,
            fuzz_random_below(random, 4));
    options.n_types = options.types[0] != NULL;
    for (size_t i = fuzz_random_below(random, 16) + 1; i > 0 && !family; i--)
        family = gguf_family_at(i - 1);
    options.family = family->name;
    model = open_with(&options);
    /* A copy of the types as stored could only be read with the same options. */
    if (model)
        check_tree(model, &(struct fs_tree_options){.export = FS_EXPORT_LOADABLE}, random);
    gguf_close(model);
}

static void check_tree_options(const struct gguf_model *model, struct fuzz_random *random)
{
    static const enum fs_dtype dtypes[] = {FS_DTYPE_STORED, FS_DTYPE_F32, FS_DTYPE_F16,
                                           FS_DTYPE_BF16};
    const struct fs_tree_options options = {
        .split.limit_bytes = fuzz_random_below(random, 2) ? 1 + fuzz_random_below(random, 1000) : 0,
        .hf_shard_bytes = 1 + fuzz_random_below(random, 1000),
        .dtype = dtypes[fuzz_random_below(random, sizeof dtypes / sizeof *dtypes)],
        .export = (enum fs_export_choice)fuzz_random_below(random, FS_N_EXPORTS)};

    check_tree(model, &options, random);
}

/* The two files that are made of one of Ollama, and that one of them. */
static void check_way_back(struct fuzz_random *random)
{
    struct gguf_model *text = open_with(&(struct gguf_open_options){.part = GGUF_TEXT_PART});
    struct gguf_model *projector =
        text ? open_with(&(struct gguf_open_options){.part = GGUF_PROJECTOR_PART}) : NULL;

    if (projector) /* the tree closes it */
        check_tree(text, &(struct fs_tree_options){.projector = projector}, random);
    gguf_close(text);
}

/* An unfinished file: only the first bytes are there. */
static void check_partial(const uint8_t *data, size_t size, struct fuzz_random *random)
{
    struct gguf_model *model;

    write_model(data, fuzz_random_below(random, size + 1), 0, 0);
    model = open_with(&(struct gguf_open_options){.partial = true});
    if (model) {
        struct gguf_report report = {.each = check_finding};

        fs_check_data(model, &report, &(struct gguf_progress){0});
    }
    gguf_close(model);
}

static void check_options(const uint8_t *data, size_t size, const struct gguf_model *model,
                          struct fuzz_random *random)
{
    switch (fuzz_random_below(random, 8)) {
    case 0:
        check_range(data, size, model, random);
        break;
    case 1:
        check_open_options(model, random);
        break;
    case 2:
        if (model)
            check_tree_options(model, random);
        break;
    case 3:
        check_partial(data, size, random);
        break;
    case 4:
        check_way_back(random);
        break;
    default:
        break; /* most inputs are not opened twice, which would be slow */
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_random random = fuzz_random_seed(data, size);
    struct gguf_report report = {.each = check_finding};
    struct gguf_model *model;
    int result;

    dequant_choose_kernels(NULL);
    write_model(data, size, 0, 0);
    result = fuzz_open_model(model_path(), &model, &report);
    FUZZ_CHECK((result < 0) == (report.n_errors > 0) && (result < 0) == !model,
               "result %d with %zu errors", result, report.n_errors);
    FUZZ_CHECK(result == 0 || result == report.first_error.code,
               "the result is %d, but the first error has code %d", result,
               report.first_error.code);
    if (result == 0)
        check_tree(model, NULL, &random);
    /* Checking the data takes a lot of memory per tensor. */
    if (result == 0 && model->n_tensors <= 4)
        check_data(model);
    check_options(data, size, model, &random);
    gguf_close(model);
    return 0;
}
