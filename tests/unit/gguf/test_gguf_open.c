/* gguf_open(): paths, special files, and files of other formats. */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gguf/formats.h"
#include "tests/unit/gguf/model_file.h"

TestSuite(gguf_open, .init = model_file_begin_test);

Test(gguf_open, stores_path_size_and_time)
{
    char folder[] = "/tmp/ggufs-test-XXXXXX", absolute[64];
    struct gguf_report report = {0};
    struct gguf_model *model;
    static const char *const paths[] = {"model.gguf", "./model.gguf", ".//./model.gguf"};
    struct stat status;

    cr_assert_not_null(mkdtemp(folder));
    cr_assert_eq(chdir(folder), 0);
    snprintf(absolute, sizeof absolute, "%s/model.gguf", folder);
    cr_assert_eq(gguf_writer_save(gguf_writer_open(3, false), "model.gguf"), 0);
    cr_assert_eq(stat("model.gguf", &status), 0);
    for (size_t i = 0; i < COUNT(paths); i++) {
        cr_assert_eq(gguf_open(paths[i], &model, &report), 0);
        cr_expect_str_eq(model->files[0].source.path, absolute);
        cr_expect_eq(model->files[0].source.size_bytes, (uint64_t)status.st_size);
        cr_expect_eq(gguf_file_modified(&model->files[0]).tv_sec, status.st_mtim.tv_sec);
        cr_expect_eq(gguf_file_modified(&model->files[0]).tv_nsec, status.st_mtim.tv_nsec);
        gguf_close(model);
    }
    cr_assert_eq(gguf_open(absolute, &model, &report), 0);
    cr_expect_str_eq(model->files[0].source.path, absolute);
    gguf_close(model);
    unlink(absolute);
    rmdir(folder);
}

static void expect_refused(const char *path, int code, const char *says)
{
    struct gguf_report report = {0};
    struct gguf_model *model;

    cr_expect_eq(gguf_open(path, &model, &report), code, "%s", path);
    cr_expect_null(model);
    cr_expect_eq(report.n_errors, 1u);
    cr_expect_eq(report.first_error.code, code);
    cr_expect_eq(report.first_error.file_offset, GGUF_NO_OFFSET);
    cr_expect_not_null(strstr(report.first_error.message, says), "%s", report.first_error.message);
}

Test(gguf_open, special_files_are_refused)
{
    char folder[] = "/tmp/ggufs-test-XXXXXX", path[64];

    cr_assert_not_null(mkdtemp(folder));
    expect_refused(folder, -EISDIR, "directory");

    snprintf(path, sizeof path, "%s/missing", folder);
    expect_refused(path, -ENOENT, "No such file");
    snprintf(path, sizeof path, "%s/missing/model.gguf", folder);
    expect_refused(path, -ENOENT, "No such file");
    expect_refused("", -ENOENT, "No such file");

    /* The alarm ends the test if open() waits for a writer of the FIFO. */
    alarm(30);
    snprintf(path, sizeof path, "%s/fifo", folder);
    cr_assert_eq(mkfifo(path, 0600), 0);
    expect_refused(path, -EINVAL, "regular file");
    unlink(path);

    snprintf(path, sizeof path, "%s/loop", folder);
    cr_assert_eq(symlink("loop", path), 0);
    expect_refused(path, -ELOOP, "symbolic links");
    unlink(path);

    expect_refused("/dev/null", -EINVAL, "regular file");
    rmdir(folder);
}

static const char zeros[4096];
static const char tar[1024] = {'m', '.', 'g', 'g', 'u', 'f', [257] = 'u', 's', 't', 'a', 'r'};

#define TEXT(literal) (literal), sizeof(literal) - 1

static const struct {
    const char *bytes;
    size_t size_bytes;
    const char *says;
} lookalikes[] = {
    {TEXT(""), "empty file"},
    {TEXT("version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 4\n"), "git lfs pull"},
    {TEXT("<!DOCTYPE html><html>"), "web page"},
    {TEXT("<!doctype html>"), "web page"},
    {TEXT("\n \t<html lang=\"en\">"), "web page"},
    {TEXT("<HEAD>"), "web page"},
    {TEXT("<?xml version=\"1.0\"?>"), "web page"},
    {TEXT("Entry not found"), "contains only \"Entry not found\", which is text, not GGUF"},
    {TEXT("Invalid username or password."), "(wrong link, or a login is needed)"},
    {TEXT("Access to model a/b is restricted.\nLog in.\n"), "restricted.\\x0aLog"},
    {TEXT("{\"error\":\"Repository not found\"}"), "which is a server's message"},
    {TEXT("{\"metadata\":{\"total_size\":1},\"weight_map\":{}}"), "index of a checkpoint"},
    {TEXT("algg\1\0\0\0"), "LoRA adapter"},
    {TEXT("\x04\x22\x4d\x18\x64"), "unlz4"},
    {TEXT("7z\xbc\xaf\x27\x1c"), "7z x"},
    {TEXT("Rar!\x1a\7"), "unrar"},
    {TEXT("\x0f\0\0\0\0\0\0\0{\"a\":{\"dtype\":1}}"), "safetensors"},
    {TEXT("\x80\2}q\0."), "Python pickle"},
    {TEXT("\x80\5\x95"), "Python pickle"},
    {TEXT("\x80\2\x8a\nl\xfc\x9c\x46\xf9"), "PyTorch"},
    {TEXT("PK\x03\x04\x14\0\x08\0"), "ZIP"},
    {TEXT("\x1f\x8b\x08\0"), "gunzip"},
    {TEXT("\x28\xb5\x2f\xfd\x24"), "unzstd"},
    {TEXT("\xfd\x37zXZ\0"), "unxz"},
    {TEXT("BZh91AY&SY"), "bunzip2"},
    {tar, sizeof tar, "tar archive"},
    {tar, 262, "tar archive"},
    {TEXT("{\"architectures\": []}"), "JSON"},
    {zeros, sizeof zeros, "zeros"},
    {zeros, 64, "zeros"},
};

Test(gguf_open, other_formats_are_named)
{
    for (size_t i = 0; i < COUNT(lookalikes); i++) {
        struct gguf_report report = {0};
        struct gguf_model *model;

        cr_expect_eq(
            model_file_open(lookalikes[i].bytes, lookalikes[i].size_bytes, &model, &report),
            -EINVAL, "%s", lookalikes[i].says);
        cr_expect_null(model);
        cr_expect_eq(report.n_errors, 1u);
        cr_expect_not_null(strstr(report.first_error.message, lookalikes[i].says),
                           "no \"%s\" in: %s", lookalikes[i].says, report.first_error.message);
    }
}

/* A text longer than what is looked at, which ends within one of its characters. */
Test(gguf_open, texts_are_named)
{
    char text[GGUF_START_BYTES + 8];

    for (size_t i = 0; i < 4; i++) {
        struct gguf_report report = {0};
        struct gguf_model *model;

        memset(text, '\n', sizeof text);
        memcpy(text, "# name", 6);
        memcpy(text + GGUF_START_BYTES - i, "\xf0\x9f\x99\x82", 4);
        cr_expect_eq(model_file_open(text, sizeof text, &model, &report), -EINVAL);
        cr_expect_not_null(strstr(report.first_error.message, "is a text file"), "%zu: %s", i,
                           report.first_error.message);
        text[GGUF_START_BYTES - 5] = '\1';
        report = (struct gguf_report){0};
        cr_expect_eq(model_file_open(text, sizeof text, &model, &report), -EINVAL);
        cr_expect_not_null(strstr(report.first_error.message, "starts with 23 20 6e 61"), "%zu: %s",
                           i, report.first_error.message);
    }
}

/* The name of a packed file says whether it is a tar archive. */
Test(gguf_open, packed_archives_are_named)
{
    static const struct {
        const char *name, *says;
    } files[] = {
        {"m.tgz", "is a tar archive compressed with gzip; unpack it first (tar -xf)"},
        {"m.tar.gz", "(tar -xf)"},
        {"m.tar.zst", "(tar -xf)"},
        {"m.gguf.gz", "is compressed with gzip; unpack it first (gunzip)"},
        {"tgz", "(gunzip)"},
    };
    char folder[] = "/tmp/ggufs-unit-XXXXXX";

    cr_assert_not_null(mkdtemp(folder));
    for (size_t i = 0; i < COUNT(files); i++) {
        char path[64];
        FILE *file;

        snprintf(path, sizeof path, "%s/%s", folder, files[i].name);
        file = fopen(path, "we");
        cr_assert_not_null(file);
        fwrite("\x1f\x8b\x08\0", 4, 1, file);
        fclose(file);
        expect_refused(path, -EINVAL, files[i].says);
        unlink(path);
    }
    rmdir(folder);
}

Test(gguf_open, errors_show_the_first_bytes)
{
    static const struct {
        const char *bytes;
        size_t size_bytes;
        const char *says;
    } files[] = {
        {TEXT("G"), "starts with 47 instead"},
        {TEXT("GGU"),
         "starts with 47 47 55 instead of 47 47 55 46 (\"GGUF\") and ends there (unfin"},
        {tar, 261, "starts with 6d 2e 67 67 instead"},
        {TEXT("gguf\3\0\0\0"), "starts with 67 67 75 66 instead"},
        {TEXT("FUGG\3\0\0\0"), "starts with 46 55 47 47 instead"},
        {TEXT(" \n"), "starts with 20 0a instead"},
        {TEXT("\x80\1}q"), "starts with 80 01 7d 71 instead"},
        {zeros, 3, "starts with 00 00 00 instead"},
        {zeros, 63, "starts with 00 00 00 00 instead"},
        /* Lengths that no safetensors header has. */
        {TEXT("\xff\xff\xff\xff\xff\xff\xff\xff{}"), "starts with ff ff ff ff instead"},
        {TEXT("\1\0\0\0\0\0\0\0"), "starts with 01 00 00 00 instead"},
    };

    for (size_t i = 0; i < COUNT(files); i++) {
        struct gguf_report report = {0};
        struct gguf_model *model;

        cr_expect_eq(model_file_open(files[i].bytes, files[i].size_bytes, &model, &report),
                     -EINVAL);
        cr_expect_null(model);
        cr_expect_eq(report.first_error.file_offset, 0u);
        cr_expect_not_null(strstr(report.first_error.message, files[i].says), "no \"%s\" in: %s",
                           files[i].says, report.first_error.message);
    }
}
