/* Valid sets of shards. Invalid ones: tests/unit/gguf/test_gguf_hostile_shards.c. */
#include <cjson/cJSON.h>
#include <criterion/criterion.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/unit/gguf/shard_files.h"
#include "tests/unit/fs/tree_file.h"

TestSuite(gguf_shards, .init = model_file_begin_test);

static struct gguf_model *open_good(const char *path)
{
    struct gguf_report report = {0};
    struct gguf_model *model;

    cr_assert_eq(gguf_open(path, &model, &report), 0, "%s", report.first_error.message);
    cr_expect_null(report.path);
    return model;
}

/* Check a tensor's info and data in the tree. */
static void expect_file_of(struct fs_tree *tree, const struct gguf_tensor *tensor)
{
    const struct gguf_file *file = &tree->model->files[tensor->file_index];
    char path[64];
    struct tree_file found;
    cJSON *info;

    snprintf(path, sizeof path, "tensors/%.*s/info", (int)tensor->name.length_bytes,
             tensor->name.data);
    found = tree_file_read(tree, path);
    info = tree_file_parse(&found);
    cr_expect_str_eq(cJSON_GetObjectItem(info, "file")->valuestring,
                     strrchr(file->source.path, '/') + 1);
    cr_expect_eq(cJSON_GetObjectItem(info, "offset")->valuedouble, (double)tensor->file_offset);
    cJSON_Delete(info);
    free(found.bytes);

    snprintf(path, sizeof path, "tensors/%.*s/raw", (int)tensor->name.length_bytes,
             tensor->name.data);
    found = tree_file_read(tree, path);
    cr_expect_eq(found.size_bytes, tensor->size_bytes);
    for (size_t i = 0; i < found.size_bytes; i++)
        cr_expect_eq(found.bytes[i], (char)(tensor->file_index + 1));
    free(found.bytes);
}

static void expect_whole(const char *folder, const struct gguf_model *model)
{
    static const char *const names[] = {"first.1", "second.1", "second.2",
                                        "third.1", "third.2",  "third.3"};
    static const uint32_t files[] = {0, 1, 1, 2, 2, 2};
    struct fs_tree *tree = tree_file_make_tree(model);
    char path[SHARD_PATH_BYTES];

    cr_assert_eq(model->n_files, (uint32_t)N_SHARDS);
    for (unsigned i = 0; i < N_SHARDS; i++) {
        shard_file_path(path, folder, i + 1);
        cr_expect_str_eq(model->files[i].source.path, path);
    }
    cr_expect_not_null(gguf_find_key(model, "general.name"));
    cr_expect_null(gguf_find_key(model, "own"));
    cr_expect_eq(gguf_find_key(model, "split.no")->value.u64, 0u);
    tree_file_expect(tree, "metadata/general.name.json", "\"value\"\n");
    cr_assert_eq(model->n_tensors, COUNT(names));
    for (size_t i = 0; i < COUNT(names); i++) {
        cr_expect(gguf_string_equals(model->tensors[i].name, names[i]));
        cr_expect_eq(model->tensors[i].file_index, files[i]);
        expect_file_of(tree, &model->tensors[i]);
    }
    fs_tree_free(tree);
}

Test(gguf_shards, any_shard_opens_the_set)
{
    char folder[SHARD_PATH_BYTES], path[SHARD_PATH_BYTES];

    shard_files_make(folder);
    for (size_t i = 0; i < MODEL_N_ENCODINGS; i++) {
        for (unsigned j = 1; j <= N_SHARDS; j++) {
            struct shard_file shard = shard_file_good(j);

            shard.version = model_encodings[i].version;
            shard.big_endian = model_encodings[i].big_endian;
            shard_file_write(folder, j, &shard);
        }
        for (unsigned j = 1; j <= N_SHARDS; j++) {
            struct gguf_model *model;

            shard_file_path(path, folder, j);
            model = open_good(path);
            cr_expect_str_eq(model->format, model_encodings[i].format);
            cr_expect_eq(model->named_file, j - 1);
            expect_whole(folder, model);
            gguf_close(model);
        }
    }
    shard_files_remove(folder);
}

Test(gguf_shards, relative_paths)
{
    static const char *const paths[] = {"model-00002-of-00003.gguf", "./model-00003-of-00003.gguf"};
    char folder[SHARD_PATH_BYTES];

    shard_files_make(folder);
    cr_assert_eq(chdir(folder), 0);
    for (size_t i = 0; i < COUNT(paths); i++) {
        struct gguf_model *model = open_good(paths[i]);

        expect_whole(folder, model);
        gguf_close(model);
    }
    shard_files_remove(folder);
}

/* In the cache of huggingface_hub, shards are symbolic links to files with other names. */
Test(gguf_shards, symbolic_links)
{
    char folder[SHARD_PATH_BYTES], path[SHARD_PATH_BYTES], blob[SHARD_PATH_BYTES + 16];
    struct gguf_model *model;

    shard_files_make(folder);
    for (unsigned i = 1; i <= N_SHARDS; i++) {
        shard_file_path(path, folder, i);
        snprintf(blob, sizeof blob, "%s/blob%u", folder, i);
        cr_assert_eq(rename(path, blob), 0);
        cr_assert_eq(symlink(strrchr(blob, '/') + 1, path), 0);
    }
    model = open_good(path);
    expect_whole(folder, model);
    gguf_close(model);
    shard_files_remove(folder);
}

Test(gguf_shards, first_shard_without_tensors)
{
    char folder[SHARD_PATH_BYTES], path[SHARD_PATH_BYTES];
    struct gguf_model *model;

    shard_files_make(folder);
    for (unsigned i = 1; i <= N_SHARDS; i++) {
        struct shard_file shard = shard_file_good(i);

        shard.n_total = 5;
        shard.n_tensors = i == 1 ? 0 : i;
        shard_file_write(folder, i, &shard);
    }
    shard_file_path(path, folder, 1);
    model = open_good(path);
    cr_expect_eq(model->n_tensors, 5u);
    cr_expect_eq(model->tensors[0].file_index, 1u);
    gguf_close(model);
    shard_files_remove(folder);
}

static void count_notes(void *user, const struct gguf_finding *finding)
{
    struct model_notes *notes = user;

    cr_expect_eq(finding->severity, GGUF_NOTE, "%s", finding->message);
    notes->last = *finding;
    notes->count++;
}

static size_t count_descriptors(void)
{
    DIR *folder = opendir("/proc/self/fd");
    size_t n = 0;

    cr_assert_not_null(folder);
    while (readdir(folder))
        n++;
    closedir(folder);
    return n;
}

/*
 * A file with the name of a shard is a whole model if it has no keys split.* or split.count is at
 * most 1.
 */
Test(gguf_shards, a_name_alone_makes_no_shard)
{
    static const struct {
        bool has_no_keys;
        uint16_t no, count;
    } alone[] = {{true, 0, 0}, {false, 0, 1}, {false, 0, 0}, {false, 5, 1}};
    char folder[SHARD_PATH_BYTES], path[SHARD_PATH_BYTES];

    shard_files_make(folder);
    shard_file_path(path, folder, 2);
    for (size_t i = 0; i < COUNT(alone); i++) {
        struct shard_file shard = shard_file_good(2);
        struct model_notes notes = {0};
        struct gguf_report report = {.each = count_notes, .user = &notes};
        struct gguf_model *model;
        size_t n_descriptors;

        shard.has_no_keys = alone[i].has_no_keys;
        shard.no = alone[i].no;
        shard.count = alone[i].count;
        shard_file_write(folder, 2, &shard);
        n_descriptors = count_descriptors();
        cr_assert_eq(gguf_open(path, &model, &report), 0, "%s", report.first_error.message);
        /* The files of the other numbers are closed. */
        cr_expect_eq(count_descriptors(), n_descriptors + 1);
        cr_expect_eq(model->n_files, 1u);
        cr_expect_eq(model->n_tensors, 2u);
        cr_expect_eq(notes.count, 1u);
        cr_expect_not_null(strstr(notes.last.message, "a model of its own"));
        gguf_close(model);
    }
    shard_files_remove(folder);
}

Test(gguf_shards, notes_name_their_file)
{
    char folder[SHARD_PATH_BYTES], path[SHARD_PATH_BYTES];
    struct model_notes notes = {0};
    struct gguf_report report = {.each = count_notes, .user = &notes};
    struct gguf_model *model;

    shard_files_make(folder);
    shard_file_path(path, folder, 3);
    cr_assert_eq(gguf_open(path, &model, &report), 0);
    cr_expect_eq(notes.count, 2u); /* the key "own" in shards 2 and 3 */
    cr_expect_not_null(strstr(notes.last.message, "1 of its keys are ignored"));
    cr_expect_null(notes.last.path);
    gguf_close(model);

    shard_file_path(path, folder, 1);
    cr_assert_eq(gguf_open(path, &model, &report), 0);
    cr_expect_str_eq(notes.last.path, model->files[2].source.path);
    gguf_close(model);
    shard_files_remove(folder);
}
