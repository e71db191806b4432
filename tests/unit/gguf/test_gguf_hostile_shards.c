/*
 * Class 21 of the hostile files (tests/hostile/hostile.h), the sets of several files: a shard is
 * missing, repeated, from another set, or broken. The error must name the file that is wrong.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/unit/gguf/shard_files.h"

TestSuite(gguf_hostile_shards, .init = model_file_begin_test);

static void rewrite(const char *folder, unsigned number, struct shard_file shard)
{
    shard_file_write(folder, number, &shard);
}

static void delete (const char *folder, unsigned number)
{
    char path[SHARD_PATH_BYTES];

    shard_file_path(path, folder, number);
    cr_assert_eq(unlink(path), 0);
}

static void write_text(const char *folder, unsigned number, const char *text)
{
    char path[SHARD_PATH_BYTES];
    FILE *file;

    shard_file_path(path, folder, number);
    file = fopen(path, "we");
    cr_assert_not_null(file);
    fputs(text, file);
    fclose(file);
}

static void second_missing(const char *folder)
{
    delete (folder, 2);
}

static void others_missing(const char *folder)
{
    delete (folder, 1);
    delete (folder, 2);
}

static void dangling(const char *folder)
{
    char path[SHARD_PATH_BYTES];

    delete (folder, 2);
    shard_file_path(path, folder, 2);
    cr_assert_eq(symlink("blob", path), 0);
}

static void second_is_the_third(const char *folder)
{
    rewrite(folder, 2, shard_file_good(3));
}

static void other_count(const char *folder)
{
    struct shard_file shard = shard_file_good(2);

    shard.count = 4;
    rewrite(folder, 2, shard);
}

static void other_total(const char *folder)
{
    struct shard_file shard = shard_file_good(3);

    shard.n_total = 7;
    rewrite(folder, 3, shard);
}

static void one_tensor_more(const char *folder)
{
    struct shard_file shard = shard_file_good(3);

    shard.n_tensors = 4;
    rewrite(folder, 3, shard);
}

static void name_twice(const char *folder)
{
    struct shard_file shard = shard_file_good(3);

    shard.prefix = "second.";
    rewrite(folder, 3, shard);
}

static void other_byte_order(const char *folder)
{
    struct shard_file shard = shard_file_good(2);

    shard.big_endian = true;
    rewrite(folder, 2, shard);
}

static void other_version(const char *folder)
{
    struct shard_file shard = shard_file_good(3);

    shard.version = 2;
    rewrite(folder, 3, shard);
}

static void no_keys(const char *folder)
{
    struct shard_file shard = shard_file_good(2);

    shard.has_no_keys = true;
    rewrite(folder, 2, shard);
}

static void web_page(const char *folder)
{
    write_text(folder, 2, "<html>");
}

static void empty_file(const char *folder)
{
    write_text(folder, 3, "");
}

static void is_a_directory(const char *folder)
{
    char path[SHARD_PATH_BYTES];

    delete (folder, 2);
    shard_file_path(path, folder, 2);
    cr_assert_eq(mkdir(path, 0700), 0);
}

static void is_a_fifo(const char *folder)
{
    char path[SHARD_PATH_BYTES];

    delete (folder, 2);
    shard_file_path(path, folder, 2);
    cr_assert_eq(mkfifo(path, 0600), 0);
    alarm(30); /* ends the test if open() waits for a writer */
}

static void cut_data(const char *folder)
{
    char path[SHARD_PATH_BYTES];
    struct stat status;

    shard_file_path(path, folder, 2);
    cr_assert_eq(stat(path, &status), 0);
    cr_assert_eq(truncate(path, status.st_size - 100), 0);
}

static void cut_header(const char *folder)
{
    char path[SHARD_PATH_BYTES];

    shard_file_path(path, folder, 2);
    cr_assert_eq(truncate(path, 50), 0);
}

static const struct row {
    const char *breaks;
    void (*change)(const char *folder);
    unsigned named; /* number of the shard that is opened */
    unsigned blamed;
    int code;
    size_t n_errors;
    const char *words[3];
} rows[] = {
    {"missing", second_missing, 1, 2, -ENOENT, 1, {"is missing", "3 shards", "number 2"}},
    {"a dangling link", dangling, 3, 2, -ENOENT, 1, {"is missing", "3 shards", "number 2"}},
    {"two missing", others_missing, 3, 1, -ENOENT, 2, {"is missing", "number 1"}},
    {"repeated", second_is_the_third, 1, 2, -EINVAL, 1, {"shard 2 of 3,", "say shard 3 of 3"}},
    {"repeated, opened", second_is_the_third, 2, 2, -EINVAL, 1, {"shard 2 of 3,", "shard 3 of 3"}},
    {"other count", other_count, 3, 2, -EINVAL, 1, {"shard 2 of 3,", "say shard 2 of 4"}},
    {"other count, opened", other_count, 2, 2, -EINVAL, 1, {"shard 2 of 3,", "say shard 2 of 4"}},
    {"other total", other_total, 1, 3, -EINVAL, 1, {"it is 7", "3 shards have 6 tensors"}},
    {"other total, opened", other_total, 3, 3, -EINVAL, 1, {"it is 7", "3 shards have 6 tensors"}},
    {"one tensor too many",
     one_tensor_more,
     2,
     1,
     -EINVAL,
     1,
     {"it is 6", "3 shards have 7 tensors"}},
    {"a name in two shards",
     name_twice,
     1,
     3,
     -EEXIST,
     2,
     {"\"second.1\"", "duplicate", "model-00002-of-"}},
    {"byte orders", other_byte_order, 1, 2, -EINVAL, 1, {"big-endian", "shard 1", "little-endian"}},
    {"byte orders, opened", other_byte_order, 2, 1, -EINVAL, 2, {"little-endian", "shard 2"}},
    {"versions", other_version, 1, 3, -EINVAL, 1, {"is GGUF v2", "shard 1 is GGUF v3"}},
    {"no keys", no_keys, 1, 2, -EINVAL, 1, {"named as shard 2 of 3", "model of its own"}},
    {"a web page", web_page, 1, 2, -EINVAL, 1, {"web page"}},
    {"an empty file", empty_file, 2, 3, -EINVAL, 1, {"empty file"}},
    {"a directory", is_a_directory, 1, 2, -EISDIR, 1, {"directory"}},
    {"a FIFO", is_a_fifo, 1, 2, -EINVAL, 1, {"not a regular file"}},
    {"missing data", cut_data, 1, 2, -ENODATA, 1, {"\"second.2\"", "unfinished download?"}},
    {"a cut header", cut_header, 1, 2, -ENODATA, 1, {"unfinished download?"}},
};

struct listener {
    size_t n_errors;
    bool has_path;
    char path[SHARD_PATH_BYTES]; /* path of the first error */
};

static void listen(void *user, const struct gguf_finding *finding)
{
    struct listener *listener = user;

    if (finding->severity != GGUF_ERROR || listener->n_errors++ > 0)
        return;
    listener->has_path = finding->path;
    if (finding->path)
        snprintf(listener->path, sizeof listener->path, "%s", finding->path);
}

static void check_row(const struct row *row)
{
    struct listener listener = {0};
    struct gguf_report report = {.each = listen, .user = &listener};
    char folder[SHARD_PATH_BYTES], path[SHARD_PATH_BYTES];
    struct gguf_model *model;

    shard_files_make(folder);
    row->change(folder);
    shard_file_path(path, folder, row->named);
    cr_expect_eq(gguf_open(path, &model, &report), row->code, "%s: %s", row->breaks,
                 report.first_error.message);
    cr_expect_null(model);
    cr_expect_null(report.path);
    cr_expect_eq(report.n_errors, row->n_errors, "%s: %zu errors", row->breaks, report.n_errors);
    cr_expect_eq(report.first_error.code, row->code);
    cr_expect_eq(listener.has_path, row->named != row->blamed, "%s", row->breaks);
    shard_file_path(path, folder, row->blamed);
    if (listener.has_path)
        cr_expect_str_eq(listener.path, path, "%s", row->breaks);
    for (size_t i = 0; i < COUNT(row->words) && row->words[i]; i++)
        cr_expect_not_null(strstr(report.first_error.message, row->words[i]), "%s: no \"%s\" in %s",
                           row->breaks, row->words[i], report.first_error.message);
    shard_files_remove(folder);
}

Test(gguf_hostile_shards, errors_name_the_broken_file)
{
    for (size_t i = 0; i < COUNT(rows); i++)
        check_row(&rows[i]);
}

/* Shards whose name contradicts their keys. */
Test(gguf_hostile_shards, wrong_names)
{
    static const struct {
        const char *name, *says;
    } names[] = {
        {"model.gguf", "must end in -00002-of-00003.gguf"},
        {"model-00002-of-00003.gguf.part", "must end in -00002-of-00003.gguf"},
        {"model-00002-of-00003.GGUF", "must end in -00002-of-00003.gguf"},
        {"model-2-of-3.gguf", "must end in -00002-of-00003.gguf"},
        {"model00002-of-00003.gguf", "must end in -00002-of-00003.gguf"},
        {"00002-of-00003.gguf", "must end in -00002-of-00003.gguf"},
        {"model-00002_of_00003.gguf", "must end in -00002-of-00003.gguf"},
        {"model-0000b-of-00003.gguf", "must end in -00002-of-00003.gguf"},
        {"model-00000-of-00003.gguf", "must end in -00002-of-00003.gguf"},
        {"model-00002-of-00000.gguf", "must end in -00002-of-00003.gguf"},
        {"model-00001-of-00003.gguf",
         "shard 1 of 3, its keys split.no and split.count say shard 2"},
        {"model-00004-of-00003.gguf",
         "shard 4 of 3, its keys split.no and split.count say shard 2"},
        {"model-99999-of-99999.gguf", "shard 99999 of 99999"},
        {"model-00002-of-00002.gguf", "shard 2 of 2"},
    };
    char folder[SHARD_PATH_BYTES], good[SHARD_PATH_BYTES], path[SHARD_PATH_BYTES + 64];

    shard_files_make(folder);
    shard_file_path(good, folder, 2);
    for (size_t i = 0; i < COUNT(names); i++) {
        struct gguf_report report = {0};
        struct gguf_model *model;

        snprintf(path, sizeof path, "%s/%s", folder, names[i].name);
        cr_assert_eq(rename(good, path), 0);
        cr_expect_eq(gguf_open(path, &model, &report), -EINVAL, "%s", names[i].name);
        cr_expect_eq(report.n_errors, 1u);
        cr_expect_not_null(strstr(report.first_error.message, names[i].says), "%s: %s",
                           names[i].name, report.first_error.message);
        cr_assert_eq(rename(path, good), 0);
    }
    shard_files_remove(folder);
}

/* A name may consist of the suffix alone. */
Test(gguf_hostile_shards, names_without_a_prefix_are_valid)
{
    char folder[SHARD_PATH_BYTES], path[SHARD_PATH_BYTES], bare[SHARD_PATH_BYTES + 32];
    struct gguf_report report = {0};
    struct gguf_model *model;

    shard_files_make(folder);
    for (unsigned i = 1; i <= N_SHARDS; i++) {
        shard_file_path(path, folder, i);
        snprintf(bare, sizeof bare, "%s/-%05u-of-00003.gguf", folder, i);
        cr_assert_eq(rename(path, bare), 0);
    }
    cr_expect_eq(gguf_open(bare, &model, &report), 0, "%s", report.first_error.message);
    gguf_close(model);
    shard_files_remove(folder);
}

/* The search stops after ten missing files, however many shards the keys claim. */
Test(gguf_hostile_shards, thousands_are_missing)
{
    char folder[SHARD_PATH_BYTES], good[SHARD_PATH_BYTES], path[SHARD_PATH_BYTES + 64];
    struct shard_file shard = shard_file_good(1);
    struct gguf_report report = {0};
    struct gguf_model *model;

    shard_files_make(folder);
    shard.count = UINT16_MAX;
    shard_file_write(folder, 1, &shard);
    shard_file_path(good, folder, 1);
    snprintf(path, sizeof path, "%s/model-00001-of-65535.gguf", folder);
    cr_assert_eq(rename(good, path), 0);
    cr_expect_eq(gguf_open(path, &model, &report), -ENOENT);
    cr_expect_eq(report.n_errors, 10u);
    shard_files_remove(folder);
}

/* Each file is within the limit, but their sum is not. */
Test(gguf_hostile_shards, too_many_tensors)
{
    char folder[SHARD_PATH_BYTES], path[SHARD_PATH_BYTES];
    struct gguf_report report = {0};
    struct gguf_model *model;

    shard_files_make(folder);
    for (unsigned i = 1; i <= N_SHARDS; i++) {
        struct shard_file shard = shard_file_good(i);

        shard.n_tensors = GGUF_MAX_TENSORS / N_SHARDS + 1;
        shard.n_total = (int32_t)(N_SHARDS * shard.n_tensors);
        shard.byte = 0;
        shard_file_write(folder, i, &shard);
    }
    shard_file_path(path, folder, 1);
    cr_expect_eq(gguf_open(path, &model, &report), -E2BIG);
    cr_expect_not_null(
        strstr(report.first_error.message,
               "87382 tensors after 174764 in other files of the model, the limit is 262144"),
        "%s", report.first_error.message);
    shard_files_remove(folder);
}

/*
 * Write a sparse shard of 4 KiB on the disk: after its split keys, all keys, tensors and the data
 * are one hole. An entry of zeros is a key of type uint8 or a tensor without dimensions.
 */
static void write_sparse(const char *path, unsigned index, unsigned count)
{
    const uint64_t n_keys = GGUF_MAX_KEYS - 1, n_tensors = GGUF_MAX_TENSORS - 1;
    FILE *file = fopen(path, "we");
    const uint16_t numbers[] = {(uint16_t)index, (uint16_t)count};
    static const char *const names[] = {"split.no", "split.count"};
    const uint32_t version = 3, u16 = GGUF_UINT16;

    cr_assert_not_null(file);
    fwrite("GGUF", 4, 1, file);
    fwrite(&version, sizeof version, 1, file);
    fwrite(&n_tensors, sizeof n_tensors, 1, file);
    fwrite(&n_keys, sizeof n_keys, 1, file);
    for (unsigned i = 0; i < 2; i++) {
        const uint64_t length_bytes = strlen(names[i]);

        fwrite(&length_bytes, sizeof length_bytes, 1, file);
        fwrite(names[i], length_bytes, 1, file);
        fwrite(&u16, sizeof u16, 1, file);
        fwrite(&numbers[i], sizeof numbers[i], 1, file);
    }
    cr_assert_eq(ftruncate(fileno(file), (off_t)(4096 + n_keys * 13 + n_tensors * 24)), 0);
    cr_assert_eq(fclose(file), 0);
}

/* The limits count over all shards: the memory for twenty is that for one. */
Test(gguf_hostile_shards, sparse_shards_take_the_memory_of_one)
{
    enum { N_SPARSE = 20, LIMIT_KIB = 128 << 10 };
    struct gguf_report report = {0};
    struct gguf_model *model;
    struct rusage before, after;
    char folder[] = "/tmp/ggufs-sparse-XXXXXX", path[N_SPARSE][64];

    cr_assert_not_null(mkdtemp(folder));
    for (unsigned i = 0; i < N_SPARSE; i++) {
        snprintf(path[i], sizeof path[i], "%s/m-%05u-of-%05d.gguf", folder, i + 1, N_SPARSE);
        write_sparse(path[i], i, N_SPARSE);
    }
    getrusage(RUSAGE_SELF, &before);
    cr_expect_eq(gguf_open(path[0], &model, &report), -E2BIG);
    getrusage(RUSAGE_SELF, &after);
    cr_expect_not_null(
        strstr(report.first_error.message, "262143 keys after 262143 in other files of the model"),
        "%s", report.first_error.message);
#ifndef __SANITIZE_ADDRESS__
    cr_expect_lt(after.ru_maxrss - before.ru_maxrss, LIMIT_KIB, "%ld KiB",
                 after.ru_maxrss - before.ru_maxrss);
#endif
    for (unsigned i = 0; i < N_SPARSE; i++)
        unlink(path[i]);
    rmdir(folder);
}
