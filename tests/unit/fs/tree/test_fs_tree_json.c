/* metadata.json, tensors.json and the files of single keys. */
#include <criterion/criterion.h>
#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fs/tree/core/names.h"
#include "tests/unit/gguf/model_file.h"
#include "tests/unit/fs/tree_file.h"

TestSuite(fs_tree_json, .init = model_file_begin_test);

Test(fs_tree_json, an_empty_model)
{
    struct gguf_model *model = model_file_make(gguf_writer_open(3, false));
    struct fs_tree *tree = tree_file_make_tree(model);

    tree_file_expect(tree, "metadata.json", "{\n}\n");
    tree_file_expect(tree, "tensors.json", "[\n]\n");
    fs_tree_free(tree);
    gguf_close(model);
}

Test(fs_tree_json, values)
{
    for (size_t i = 0; i < MODEL_N_ENCODINGS; i++) {
        struct gguf_model *model = model_file_rich_model(i);
        struct fs_tree *tree = tree_file_make_tree(model);

        tree_file_expect(tree, "metadata/u64.json", "18446744073709551615\n");
        tree_file_expect(tree, "metadata/i64.json", "-9223372036854775808\n");
        tree_file_expect(tree, "metadata/i8.json", "-128\n");
        tree_file_expect(tree, "metadata/f32.json", "0.1\n");
        tree_file_expect(tree, "metadata/f64.json", "0.1\n");
        tree_file_expect(tree, "metadata/bool.json", "true\n");
        tree_file_expect(tree, "metadata/general.architecture.json", "\"llama\"\n");
        tree_file_expect(tree, "metadata/bools.json", "[false,true,false]\n");
        tree_file_expect(tree, "metadata/nothing.json", "[]\n");
        tree_file_expect(tree, "metadata/nested.json", "[[0,1000,2000],[\"in an array\"]]\n");
        tree_file_expect(tree, "metadata/tokens.json",
                         "[\"<s>\",\"\",\"a \\\"quoted\\\" word\",\"\xe2\x96\x81the\","
                         "\"\\udcff\\udcfe\"]\n");
        fs_tree_free(tree);
        gguf_close(model);
    }
}

/* metadata.json has one key per line, in file order, with the text of the key's own file. */
Test(fs_tree_json, metadata_json_contains_the_key_files)
{
    struct gguf_model *model = model_file_rich_model(3);
    struct fs_tree *tree = tree_file_make_tree(model);
    struct tree_file whole = tree_file_read(tree, "metadata.json");
    char *line = whole.bytes;
    cJSON *json;

    cr_assert_eq(strncmp(line, "{\n", 2), 0);
    line += 2;
    for (uint64_t i = 0; i < model->n_keys; i++) {
        char file_name[FS_NAME_BYTES], path[300];
        struct tree_file value;

        fs_name_escape(model->keys[i].name, ".json", file_name);
        snprintf(path, sizeof path, "metadata/%s", file_name);
        value = tree_file_read(tree, path);
        line = strstr(line, "\": ");
        cr_assert_not_null(line);
        line += 3;
        cr_assert_eq(strncmp(line, value.bytes, value.size_bytes - 1), 0, "%s", path);
        line += value.size_bytes - 1;
        cr_assert_eq(strncmp(line, i + 1 < model->n_keys ? ",\n\"" : "\n}\n", 3), 0, "%s", path);
        free(value.bytes);
    }
    json = tree_file_parse(&whole);
    cr_expect_eq((uint64_t)cJSON_GetArraySize(json), model->n_keys);
    cr_expect_not_null(cJSON_GetObjectItemCaseSensitive(json, "a/b %.\x01"));
    cJSON_Delete(json);
    free(whole.bytes);
    fs_tree_free(tree);
    gguf_close(model);
}

Test(fs_tree_json, tensors_json_contains_the_infos)
{
    struct gguf_model *model = model_file_rich_model(0);
    struct fs_tree *tree = tree_file_make_tree(model);
    struct tree_file whole = tree_file_read(tree, "tensors.json");
    char *line = whole.bytes + 2;
    cJSON *json, *entry;
    uint64_t i = 0;

    for (i = 0; i < model->n_tensors; i++) {
        char name[FS_NAME_BYTES], path[300];
        struct tree_file info;

        fs_name_escape(model->tensors[i].name, "", name);
        snprintf(path, sizeof path, "tensors/%s/info", name);
        info = tree_file_read(tree, path);
        cr_assert_eq(strncmp(line, info.bytes, info.size_bytes - 1), 0, "%s", path);
        line = strchr(line, '\n') + 1;
        free(info.bytes);
    }
    cr_expect_str_eq(line, "]\n");
    json = tree_file_parse(&whole);
    i = 0;
    cJSON_ArrayForEach(entry, json)
    {
        const struct gguf_tensor *tensor = &model->tensors[i++];

        cr_expect(
            gguf_string_equals(tensor->name, cJSON_GetObjectItem(entry, "name")->valuestring));
        cr_expect_eq(cJSON_GetObjectItem(entry, "offset")->valuedouble,
                     (double)tensor->file_offset);
        cr_expect_eq(cJSON_GetObjectItem(entry, "ggml_type")->valuedouble, tensor->type_id);
        cr_expect_str_eq(cJSON_GetObjectItem(entry, "file")->valuestring,
                         strrchr(model->files[0].source.path, '/') + 1);
        cr_expect_eq(fs_tree_node(tree, tree_file_find(
                                            tree, cJSON_GetObjectItem(entry, "path")->valuestring))
                         ->subject,
                     tensor);
        cr_expect_eq((uint32_t)cJSON_GetArraySize(cJSON_GetObjectItem(entry, "shape")),
                     tensor->n_dims);
    }
    cr_expect_eq(i, model->n_tensors);
    cJSON_Delete(json);
    free(whole.bytes);
    fs_tree_free(tree);
    gguf_close(model);
}
