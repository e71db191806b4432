#include "tests/fuzz/fuzz_files.h"

#include "fs/command/tree_selection.h"
#include "fs/tree/core/view_row.h"
#include "tests/fuzz/fuzz_expected.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Bytes per window of a large file. */
#define WINDOW_BYTES 8192u
/* Files up to this size are read whole. */
#define WHOLE_BYTES (1u << 20)

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
static char *metadata_of(const struct gguf_model *model, uint64_t *size)
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

static void check_same_metadata(const struct fs_part *part, const struct gguf_model *copy)
{
    const struct gguf_model *model = part->model;
    uint64_t size, copy_size;
    char *text, *copy_text;

    if (part->export.n_added > 0)
        return;
    text = metadata_of(model, &size);
    copy_text = metadata_of(copy, &copy_size);
    /* Other types change the keys that describe them. */
    if ((model->has_entries_between || part->export.is_changed) && text && copy_text) {
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

static void check_same_tensor(const struct fs_part *part, const struct gguf_model *copy,
                              uint64_t index)
{
    const struct gguf_tensor *stored = &part->model->tensors[index], *other = &copy->tensors[index];
    const struct dequant_type *type = fs_export_type(part->export.choice, stored);

    FUZZ_CHECK(type ? other->type == type : other->type_id == stored->type_id,
               "tensor %" PRIu64 " has another type in model.gguf", index);
    if (type && stored->size_bytes > 0)
        FUZZ_CHECK(fuzz_is_same_data(part->model, stored, copy, other, 0),
                   "tensor %" PRIu64 " has other data in model.gguf", index);
    FUZZ_CHECK(gguf_string_compare(gguf_name_of(stored), other->name) == 0 &&
                   stored->n_elements == other->n_elements && !other->big_endian,
               "tensor %" PRIu64 " has another name, size or byte order in model.gguf", index);
}

/* Several types may have the id of an exported tensor: state which one it is. */
static struct gguf_open_options stated_types(const struct fs_part *part)
{
    struct gguf_open_options options = {0};

    for (uint64_t i = 0; i < part->model->n_tensors; i++) {
        const struct dequant_type *type =
            fs_export_type(part->export.choice, &part->model->tensors[i]);
        size_t k = 0;

        while (type && k < options.n_types && options.types[k]->id != type->id)
            k++;
        if (type && k == options.n_types && dequant_candidate_at(type->id, 1))
            options.types[options.n_types++] = type;
    }
    return options;
}

static void check_model_gguf(const struct fs_tree *tree, const char *bytes, size_t size)
{
    const struct fs_part *part = &tree->facts->parts[FS_PART_MODEL];
    const struct gguf_open_options options = stated_types(part);
    const int file = memfd_create("copy", MFD_CLOEXEC);
    struct gguf_report report = {0};
    struct gguf_model *copy;
    char path[32];

    FUZZ_CHECK(write(file, bytes, size) == (ssize_t)size, "model.gguf cannot be copied: %s",
               strerror(errno));
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    FUZZ_CHECK(gguf_open_with(path, &options, &copy, &report) == 0, "model.gguf is refused: %s",
               report.first_error.message);
    FUZZ_CHECK(copy->is_current, "model.gguf is not current GGUF");
    FUZZ_CHECK(copy->n_tensors == part->model->n_tensors,
               "model.gguf has another number of tensors");
    check_same_metadata(part, copy);
    for (uint64_t i = 0; i < copy->n_tensors; i++)
        check_same_tensor(part, copy, i);
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

void fuzz_check_file(struct fs_tree *tree, fs_node_index index, struct fuzz_random *random,
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
