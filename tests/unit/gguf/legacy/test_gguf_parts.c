/* Old llama models in parts: joined by columns and rows; wrong, damaged and changed parts. */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gguf/support/shard_names.h"
#include "tests/unit/gguf/old_file.h"
#include "tests/unit/gguf/shard_files.h"

TestSuite(gguf_parts, .init = model_file_begin_test);

#define MAX_PARTS 4

/* A folder with the parts of a model, and what was written there. */
struct folder {
    char path[SHARD_PATH_BYTES];
    uint32_t n_parts;
    struct model_bytes parts[MAX_PARTS];
};

static void part_path(const struct folder *folder, uint32_t part, char path[SHARD_PATH_BYTES])
{
    char suffix[12] = ""; /* ".4294967295" */

    if (part > 0)
        snprintf(suffix, sizeof suffix, ".%u", part);
    snprintf(path, SHARD_PATH_BYTES, "%.400s/model.bin%s", folder->path, suffix);
}

static void write_part(const struct folder *folder, uint32_t part)
{
    const struct model_bytes *bytes = &folder->parts[part];
    char path[SHARD_PATH_BYTES];
    FILE *file;

    part_path(folder, part, path);
    file = fopen(path, "we");
    cr_assert_not_null(file, "%s", path);
    cr_assert_eq(fwrite(bytes->data, 1, bytes->size_bytes, file), bytes->size_bytes);
    cr_assert_eq(fclose(file), 0);
}

static struct folder make(uint32_t n_parts)
{
    struct folder folder = {.path = "/tmp/ggufs-test-XXXXXX", .n_parts = n_parts};

    cr_assert_not_null(mkdtemp(folder.path));
    for (uint32_t i = 0; i < n_parts; i++) {
        folder.parts[i] = old_file_make_part(n_parts, i);
        write_part(&folder, i);
    }
    return folder;
}

static void drop(struct folder *folder)
{
    for (uint32_t i = 0; i < folder->n_parts; i++)
        free(folder->parts[i].data);
    shard_files_remove(folder->path);
}

static int open_part(const struct folder *folder, uint32_t part, struct gguf_model **model,
                     struct gguf_report *report)
{
    char path[SHARD_PATH_BYTES];

    part_path(folder, part, path);
    return gguf_open(path, model, report);
}

static const struct gguf_tensor *find(const struct gguf_model *model, const char *name)
{
    for (uint64_t i = 0; i < model->n_tensors; i++) {
        if (gguf_string_equals(model->tensors[i].name, name))
            return &model->tensors[i];
    }
    cr_assert_fail("no tensor %s", name);
    return NULL;
}

/* Return the data of a tensor in a part, which follow its name. */
static const unsigned char *data_of(const struct model_bytes *part, const char *name)
{
    const unsigned char *found = memmem(part->data, part->size_bytes, name, strlen(name));

    cr_assert_not_null(found, "%s", name);
    return found + strlen(name);
}

/* Check a tensor's shape and its data, piece by piece and in odd slices. */
static void expect_joined(const struct folder *folder, const struct gguf_model *model,
                          const char *name, uint64_t n_pieces, size_t piece_bytes, uint32_t n_parts)
{
    const struct gguf_tensor *tensor = find(model, name);
    const struct gguf_file *file = &model->files[tensor->file_index];
    const size_t n_bytes = (size_t)n_pieces * piece_bytes * n_parts;
    unsigned char *expected = malloc(n_bytes + 1), *found = malloc(n_bytes + 1), *at = expected;

    cr_assert(expected && found);
    for (uint64_t i = 0; i < n_pieces; i++) {
        for (uint32_t part = 0; part < n_parts; part++, at += piece_bytes)
            memcpy(at, data_of(&folder->parts[part], name) + i * piece_bytes, piece_bytes);
    }
    cr_assert_eq(tensor->size_bytes, n_bytes, "%s", name);
    for (size_t start = 0; start < n_bytes; start += 7) {
        for (size_t n = 0; n <= n_bytes - start; n += 13) {
            cr_assert_eq(gguf_file_read(file, tensor->file_offset + start, n, found), 0);
            cr_assert_eq(memcmp(found, expected + start, n), 0, "%s: %zu of %zu bytes", name, n,
                         start);
        }
    }
    free(expected);
    free(found);
}

/* A row has 24 bytes, a block. */
Test(gguf_parts, are_joined_by_columns_and_rows)
{
    for (uint32_t n_parts = 2; n_parts <= 4; n_parts++) {
        struct folder folder = make(n_parts);

        for (uint32_t named = 0; named < n_parts; named++) {
            struct gguf_report report = {0};
            struct gguf_model *model;
            const struct gguf_tensor *tensor;

            cr_assert_eq(open_part(&folder, named, &model, &report), 0, "%s",
                         report.first_error.message);
            cr_expect_eq(model->n_files, 1u);
            cr_expect_not_null(strstr(model->format, "ggmf v1 llama in "), "%s", model->format);
            expect_joined(&folder, model, "tok_embeddings.weight", 1, 24, n_parts);
            expect_joined(&folder, model, "norm.weight", 1, n_parts * (size_t)24, 1);
            expect_joined(&folder, model, "output.weight", 1, 24, n_parts);
            expect_joined(&folder, model, "layers.1.attention.wk.weight", 1,
                          OLD_FILE_KV_ROWS * (size_t)24, n_parts);
            expect_joined(&folder, model, "layers.1.attention.wo.weight", 1, 24, n_parts);
            expect_joined(&folder, model, "layers.0.feed_forward.w1.weight", 1,
                          OLD_FILE_FORWARD_ROWS * (size_t)24, n_parts);
            expect_joined(&folder, model, "layers.0.feed_forward.w2.weight", OLD_FILE_FORWARD_ROWS,
                          24, n_parts);
            tensor = find(model, "layers.0.feed_forward.w2.weight");
            cr_expect_eq(tensor->ne[0], OLD_FILE_WIDTH * n_parts);
            cr_expect_eq(tensor->ne[1], OLD_FILE_FORWARD_ROWS);
            tensor = find(model, "layers.0.feed_forward.w1.weight");
            cr_expect_eq(tensor->ne[0], OLD_FILE_WIDTH);
            cr_expect_eq(tensor->ne[1], OLD_FILE_FORWARD_ROWS * n_parts);
            cr_expect_eq(gguf_find_key(model, "llama.feed_forward_length")->value.u64,
                         OLD_FILE_FORWARD_ROWS * n_parts);
            gguf_close(model);
        }
        drop(&folder);
    }
}

/* The place of a tensor's data is that in the files of the user. */
Test(gguf_parts, pieces_are_those_in_the_parts)
{
    struct folder folder = make(2);
    const char *name = "layers.0.feed_forward.w2.weight";
    const uint64_t offset = (uint64_t)(data_of(&folder.parts[0], name) - folder.parts[0].data);
    struct gguf_report report = {0};
    struct gguf_model *model;
    const struct gguf_tensor *tensor;
    struct gguf_pieces pieces;
    char path[SHARD_PATH_BYTES];

    cr_assert_eq(open_part(&folder, 1, &model, &report), 0);
    tensor = find(model, name);
    pieces = gguf_source_find_pieces(&model->files[0].source, tensor->file_offset);
    part_path(&folder, 0, path);
    cr_expect_str_eq(pieces.path, path);
    cr_expect_eq(pieces.offset, offset);
    cr_expect_eq(pieces.n_files, 2u);
    cr_expect_eq(pieces.piece_bytes, 24u);
    /* The second half of row 1 is row 1 of the second part. */
    cr_expect_eq(gguf_offset_to_report(model, 0, tensor->file_offset + 3 * 24 + 5, &report),
                 offset + 24 + 5);
    part_path(&folder, 1, path);
    cr_expect_str_eq(report.path, path);
    gguf_close(model);
    drop(&folder);
}

/* ---- wrong parts ---- */

static void missing(struct folder *folder)
{
    char path[SHARD_PATH_BYTES];

    part_path(folder, 1, path);
    cr_assert_eq(unlink(path), 0);
}

static void a_folder(struct folder *folder)
{
    char path[SHARD_PATH_BYTES];

    missing(folder);
    part_path(folder, 1, path);
    cr_assert_eq(mkdir(path, 0700), 0);
}

static void of_another_vocabulary(struct folder *folder)
{
    unsigned char *token = memmem(folder->parts[1].data, folder->parts[1].size_bytes, "</s>", 4);

    cr_assert_not_null(token);
    token[2] = 'S';
    write_part(folder, 1);
}

static void of_another_count(struct folder *folder)
{
    free(folder->parts[1].data);
    folder->parts[1] = old_file_make_part(4, 1);
    write_part(folder, 1);
}

static void of_another_version(struct folder *folder)
{
    static const char ggjt[] = "tjgg\1";

    memcpy(folder->parts[1].data, ggjt, sizeof ggjt - 1);
    write_part(folder, 1);
}

static void whole(struct folder *folder)
{
    free(folder->parts[1].data);
    folder->parts[1] = old_file_make(old_file_at(1));
    write_part(folder, 1);
}

static void with_another_type(struct folder *folder)
{
    static const char name[] = "layers.1.attention.wo.weight";
    static const unsigned char q5_1[] = {7, 0, 0, 0}; /* blocks of 24 bytes, too */
    unsigned char *at =
        memmem(folder->parts[1].data, folder->parts[1].size_bytes, name, sizeof name - 1);

    cr_assert_not_null(at);
    memcpy(at - 12, q5_1, sizeof q5_1);
    write_part(folder, 1);
}

static void with_swapped_tensors(struct folder *folder)
{
    unsigned char *first = memmem(folder->parts[1].data, folder->parts[1].size_bytes, ".wk.", 4);

    cr_assert_not_null(first);
    first[2] = 'x';
    write_part(folder, 1);
}

static void with_more_tensors(struct folder *folder)
{
    static const char tensor[] = "\1\0\0\0\1\0\0\0\0\0\0\0\1\0\0\0t\0\0\0\0";
    struct model_bytes *part = &folder->parts[1];

    part->data = realloc(part->data, part->size_bytes + sizeof tensor - 1);
    cr_assert_not_null(part->data);
    memcpy(part->data + part->size_bytes, tensor, sizeof tensor - 1);
    part->size_bytes += sizeof tensor - 1;
    write_part(folder, 1);
}

static void vocabulary_only(struct folder *folder)
{
    const struct old_file file = {.magic = "fmgg", .version = 1, .family = "llama"};

    folder->parts[1].size_bytes = old_file_tensors_offset(&file);
    write_part(folder, 1);
}

Test(gguf_parts, wrong_parts_are_refused)
{
    static const struct {
        void (*change)(struct folder *folder);
        int code;
        const char *message;
    } rows[] = {
        {missing, -ENOENT, "is missing: the model has 2 parts, and this is number 2"},
        {a_folder, -EISDIR, "is a directory"},
        {of_another_vocabulary, -EINVAL, "its hyperparameters or vocabulary are not those of"},
        {of_another_count, -EINVAL, "its hyperparameters or vocabulary are not those of"},
        {of_another_version, -ENODATA, "fits no known family"},
        {whole, -EINVAL, "its hyperparameters or vocabulary are not those of"},
        {with_another_type, -EINVAL, "\"layers.1.attention.wo.weight\": in its place"},
        {with_swapped_tensors, -ENODATA, ""},
        {with_more_tensors, -EINVAL, "has 22 tensors, and"},
        {vocabulary_only, -EINVAL, "has a vocabulary and no tensors"},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct folder folder = make(2);
        struct gguf_report report = {0};
        struct gguf_model *model;

        rows[i].change(&folder);
        cr_expect_eq(open_part(&folder, 0, &model, &report), rows[i].code, "row %zu: %s", i,
                     report.first_error.message);
        cr_expect_null(model);
        cr_expect_not_null(strstr(report.first_error.message, rows[i].message), "row %zu: %s", i,
                           report.first_error.message);
        drop(&folder);
    }
}

/* A part whose name does not say its number cannot find the others. */
Test(gguf_parts, other_names_are_refused)
{
    struct model_bytes part = old_file_make_part(2, 0);
    struct gguf_report report = {0};
    struct gguf_model *model;

    cr_expect_eq(model_file_open(part.data, part.size_bytes, &model, &report), -EINVAL);
    cr_expect_not_null(strstr(report.first_error.message, "its name must end in .bin"), "%s",
                       report.first_error.message);
    free(part.data);
}

/* A file beside a whole model that is named like a part of it is ignored. */
Test(gguf_parts, a_whole_model_needs_none)
{
    struct folder folder = make(2);
    struct gguf_report report = {0};
    struct gguf_model *model;

    free(folder.parts[0].data);
    folder.parts[0] = old_file_make(old_file_at(1));
    write_part(&folder, 0);
    cr_assert_eq(open_part(&folder, 0, &model, &report), 0, "%s", report.first_error.message);
    cr_expect_str_eq(model->format, "ggmf v1 llama");
    gguf_close(model);
    drop(&folder);
}

/* ---- damage ---- */

static void expect_sound(int result, const struct gguf_model *model,
                         const struct gguf_report *report)
{
    cr_assert_eq(result == 0, model != NULL);
    cr_assert_eq(result == 0, report->n_errors == 0);
    for (uint64_t i = 0; model && i < model->n_tensors; i++) {
        cr_assert_leq(model->tensors[i].file_offset, model->files[0].source.size_bytes);
        cr_assert_leq(model->tensors[i].size_bytes,
                      model->files[0].source.size_bytes - model->tensors[i].file_offset);
    }
}

Test(gguf_parts, cut_at_every_length)
{
    struct folder folder = make(2);
    const size_t n_bytes = folder.parts[1].size_bytes;

    for (size_t size_bytes = 0; size_bytes < n_bytes;
         size_bytes = model_file_next_damage(size_bytes)) {
        struct gguf_report report = {0};
        struct gguf_model *model;

        folder.parts[1].size_bytes = size_bytes;
        write_part(&folder, 1);
        cr_assert_lt(open_part(&folder, 0, &model, &report), 0, "%zu bytes", size_bytes);
        expect_sound(-1, model, &report);
    }
    drop(&folder);
}

Test(gguf_parts, any_byte_changed)
{
    struct folder folder = make(2);

    /* Change both parts alike: a part's first error is the first error of a single file. */
    for (size_t at = 0; at < folder.parts[0].size_bytes; at = model_file_next_damage(at)) {
        struct gguf_report report = {0};
        struct gguf_model *model;
        int result;

        for (uint32_t part = 0; part < 2; part++) {
            folder.parts[part].data[at] ^= 0x81;
            write_part(&folder, part);
        }
        result = open_part(&folder, 0, &model, &report);
        expect_sound(result, model, &report);
        gguf_close(model);
        for (uint32_t part = 0; part < 2; part++)
            folder.parts[part].data[at] ^= 0x81;
    }
    drop(&folder);
}

/* ---- changes ---- */

static int check_first_byte(const struct gguf_model *model)
{
    const struct gguf_tensor *tensor = find(model, "output.weight");
    unsigned char byte;

    return gguf_file_read(&model->files[0], tensor->file_offset, 1, &byte);
}

Test(gguf_parts, changes_of_a_part_are_noticed)
{
    struct folder folder = make(2);
    struct gguf_report report = {0};
    struct gguf_model *model;
    char path[SHARD_PATH_BYTES];
    unsigned generation;

    cr_assert_eq(open_part(&folder, 0, &model, &report), 0);
    cr_expect_eq(check_first_byte(model), 0);
    generation = gguf_model_generation(model);
    /* The same bytes with new times, then other data. */
    write_part(&folder, 1);
    cr_expect_eq(check_first_byte(model), 0);
    cr_expect_gt(gguf_model_generation(model), generation);
    folder.parts[1].data[folder.parts[1].size_bytes - 1] ^= 1;
    write_part(&folder, 1);
    cr_expect_eq(check_first_byte(model), 0);
    /* A part that became shorter. */
    part_path(&folder, 1, path);
    cr_assert_eq(truncate(path, (off_t)folder.parts[1].size_bytes - 1), 0);
    cr_expect_eq(check_first_byte(model), -EIO);
    /* Another header. */
    of_another_vocabulary(&folder);
    cr_expect_eq(check_first_byte(model), -ESTALE);
    cr_expect_eq(gguf_model_check(model), -ESTALE);
    gguf_close(model);
    drop(&folder);
}

/* ---- names ---- */

Test(gguf_parts, were_changed_when_the_last_part_was)
{
    struct folder folder = make(3);

    for (uint32_t last = 0; last < folder.n_parts; last++) {
        struct gguf_report report = {0};
        struct gguf_file_status status;
        struct gguf_model *model;

        for (uint32_t i = 0; i < folder.n_parts; i++) {
            const struct timespec time = {.tv_sec = i == last ? 2000 : 1000};
            char path[SHARD_PATH_BYTES];

            part_path(&folder, i, path);
            cr_assert_eq(utimensat(AT_FDCWD, path, (struct timespec[]){time, time}, 0), 0);
        }
        cr_assert_eq(open_part(&folder, 0, &model, &report), 0);
        cr_assert_eq(model->files[0].source.kind->get_status(&model->files[0].source, &status), 0);
        cr_expect_eq(status.modified.tv_sec, 2000, "part %u", last);
        gguf_close(model);
    }
    drop(&folder);
}

Test(gguf_parts, names)
{
    static const struct {
        const char *path;
        bool is_part;
        uint32_t number;
    } rows[] = {
        {"m.bin", true, 0},    {"a/m.bin.1", true, 1},  {"m.bin.7", true, 7},
        {"m.bin.8", false, 0}, {"m.bin.0", false, 0},   {"m.bin.10", false, 0},
        {"m.gguf", false, 0},  {"m.gguf.1", false, 0},  {"m", false, 0},
        {".bin", false, 0},    {".bin.1", false, 0},    {"", false, 0},
        {"m.bin.", false, 0},  {"m.bin.1.1", false, 0},
    };
    char *path;

    for (size_t i = 0; i < COUNT(rows); i++) {
        uint32_t number;

        cr_expect_eq(gguf_read_part_number(rows[i].path, &number), rows[i].is_part, "%s",
                     rows[i].path);
        cr_expect_eq(number, rows[i].number, "%s", rows[i].path);
    }
    path = gguf_part_path("a/m.bin.3", 0);
    cr_expect_str_eq(path, "a/m.bin");
    free(path);
    path = gguf_part_path("m.bin", 2);
    cr_expect_str_eq(path, "m.bin.2");
    cr_expect(gguf_are_shards_of_one_model("m.bin", path));
    cr_expect(gguf_are_shards_of_one_model("m.bin.1", path));
    cr_expect_not(gguf_are_shards_of_one_model("m.bin.2", path));
    cr_expect_not(gguf_are_shards_of_one_model("n.bin", path));
    cr_expect_not(gguf_are_shards_of_one_model("m.gguf", path));
    free(path);
}
