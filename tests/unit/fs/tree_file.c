#include "tests/unit/fs/tree_file.h"

#include <cjson/cJSON.h>
#include <criterion/criterion.h>

#include <stdlib.h>
#include <string.h>

struct fs_tree *tree_file_make_tree(const struct gguf_model *model)
{
    struct gguf_report report = {0};
    struct fs_tree *tree;

    cr_assert_eq(fs_tree_make(model, NULL, &tree, &report), 0, "%s", report.first_error.message);
    return tree;
}

fs_node_index tree_file_find(const struct fs_tree *tree, const char *path)
{
    fs_node_index index = FS_ROOT;
    char name[256];

    while (*path != '\0' && index != FS_NO_NODE) {
        const size_t length = strcspn(path, "/");

        cr_assert_lt(length, sizeof name);
        memcpy(name, path, length);
        name[length] = '\0';
        index = fs_nodes_find(&tree->nodes, index, name);
        path += length + (path[length] == '/');
    }
    return index;
}

struct tree_file tree_file_read_node(struct fs_tree *tree, fs_node_index index)
{
    const char *name = tree->nodes.list[index].name;
    struct tree_file file;
    uint64_t size_bytes;
    const struct fs_image *image;
    char *part;

    cr_assert_eq(fs_tree_size(tree, index, NULL, &size_bytes), 0, "%s", name);
    cr_assert_eq(fs_tree_open(tree, index, NULL, &image), 0, "%s", name);
    cr_assert_eq(image->size_bytes, size_bytes, "%s", name);
    file = (struct tree_file){malloc(size_bytes + 1), size_bytes};
    part = malloc(size_bytes + 1);
    cr_assert(file.bytes && part);
    cr_assert_eq(fs_image_read(image, 0, size_bytes + 1, file.bytes), (ssize_t)size_bytes, "%s",
                 name);
    file.bytes[size_bytes] = '\0';
    for (uint64_t offset = 0; offset < size_bytes;) {
        const size_t length = 1 + (size_t)(offset * 7 % 5003);
        const ssize_t n = fs_image_read(image, offset, length, part);

        cr_assert_gt(n, 0, "%s", name);
        cr_assert_eq(memcmp(part, file.bytes + offset, (size_t)n), 0, "%s", name);
        offset += (uint64_t)n;
    }
    free(part);
    fs_tree_close(tree, image);
    return file;
}

struct tree_file tree_file_read(struct fs_tree *tree, const char *path)
{
    const fs_node_index index = tree_file_find(tree, path);

    cr_assert_neq(index, FS_NO_NODE, "no file %s", path);
    cr_assert_eq(tree->nodes.list[index].kind, FS_FILE, "%s is not a file", path);
    return tree_file_read_node(tree, index);
}

void tree_file_expect(struct fs_tree *tree, const char *path, const char *text)
{
    struct tree_file file = tree_file_read(tree, path);

    cr_expect_eq(file.size_bytes, strlen(text), "%s", path);
    cr_expect_str_eq(file.bytes, text, "%s", path);
    free(file.bytes);
}

cJSON *tree_file_parse(const struct tree_file *file)
{
    const char *end;
    cJSON *json;

    for (char *at = file->bytes; (at = strstr(at, "\\udc")); at += 4)
        memcpy(at, "\\u00", 4);
    json = cJSON_ParseWithOpts(file->bytes, &end, true);
    cr_assert_not_null(json, "not JSON: %.200s", file->bytes);
    cr_assert_eq(end, file->bytes + file->size_bytes);
    cr_assert_eq(end[-1], '\n');
    return json;
}

void tree_file_expect_slices(struct fs_tree *tree, const char *path, size_t n_slices)
{
    const struct tree_file file = tree_file_read(tree, path);
    const struct fs_image *image;
    char *out = malloc(file.size_bytes);

    cr_assert_not_null(out);
    cr_assert_eq(fs_tree_open(tree, tree_file_find(tree, path), NULL, &image), 0);
    for (size_t i = 0; i < n_slices; i++) {
        const size_t offset = i * 2654435761u % file.size_bytes;
        const size_t length = i * 40503u % (file.size_bytes - offset) % 700;

        cr_assert_eq(fs_image_read(image, offset, length, out), (ssize_t)length);
        cr_assert_eq(memcmp(out, file.bytes + offset, length), 0, "%s, %zu bytes at %zu", path,
                     length, offset);
    }
    fs_tree_close(tree, image);
    free(out);
    free(file.bytes);
}
