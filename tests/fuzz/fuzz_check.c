#include "tests/fuzz/fuzz_check.h"

#include "gguf/files.h"
#include "gguf/support/shard_names.h"

#include <cjson/cJSON.h>

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void fuzz_fail(const char *format, ...)
{
    va_list args;

    fputs("property violated: ", stderr);
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
    abort();
}

struct fuzz_random fuzz_random_seed(const uint8_t *data, size_t size)
{
    struct fuzz_random random = {0x9e3779b97f4a7c15 ^ size};

    for (size_t i = 0; i < size; i++)
        random.state = (random.state ^ data[i]) * 0x100000001b3;
    return random;
}

/* splitmix64, by Sebastiano Vigna: https://prng.di.unimi.it/splitmix64.c */
uint64_t fuzz_random_below(struct fuzz_random *random, uint64_t limit)
{
    uint64_t z = random->state += 0x9e3779b97f4a7c15;

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return (z ^ (z >> 31)) % limit;
}

void *fuzz_alloc(size_t n_bytes)
{
    void *memory = malloc(n_bytes);

    FUZZ_CHECK(memory || n_bytes == 0, "no memory for %zu bytes", n_bytes);
    return memory;
}

size_t fuzz_utf8_length(const uint8_t *bytes, size_t n_bytes)
{
    /* First byte, and the range of the second, as in the table of RFC 3629, section 4. */
    static const struct {
        uint8_t first, last, second_first, second_last;
        size_t length;
    } rows[] = {
        {0x00, 0x7f, 0x00, 0x00, 1}, {0xc2, 0xdf, 0x80, 0xbf, 2}, {0xe0, 0xe0, 0xa0, 0xbf, 3},
        {0xe1, 0xec, 0x80, 0xbf, 3}, {0xed, 0xed, 0x80, 0x9f, 3}, {0xee, 0xef, 0x80, 0xbf, 3},
        {0xf0, 0xf0, 0x90, 0xbf, 4}, {0xf1, 0xf3, 0x80, 0xbf, 4}, {0xf4, 0xf4, 0x80, 0x8f, 4},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows && n_bytes > 0; i++) {
        if (bytes[0] < rows[i].first || bytes[0] > rows[i].last)
            continue;
        if (rows[i].length > n_bytes)
            return 0;
        if (rows[i].length > 1 &&
            (bytes[1] < rows[i].second_first || bytes[1] > rows[i].second_last))
            return 0;
        for (size_t j = 2; j < rows[i].length; j++) {
            if ((bytes[j] & 0xc0) != 0x80)
                return 0;
        }
        return rows[i].length;
    }
    return 0;
}

bool fuzz_is_utf8(const char *text, size_t length)
{
    size_t done = 0, n = 1;

    for (; done < length && n > 0; done += n)
        n = fuzz_utf8_length((const uint8_t *)text + done, length - done);
    return n > 0;
}

/* cJSON accepts no lone surrogates: replace them with other escapes of the same length. */
static void hide_surrogates(char *text, size_t length)
{
    for (size_t i = 0; i + 1 < length; i++) {
        if (text[i] != '\\')
            continue;
        if (i + 4 <= length && memcmp(text + i, "\\udc", 4) == 0)
            memcpy(text + i, "\\u00", 4);
        i++;
    }
}

void fuzz_check_json(const char *text, size_t length)
{
    const char *end = NULL;
    char *copy;
    cJSON *json;

    FUZZ_CHECK(length > 0, "an empty file is not JSON");
    FUZZ_CHECK(fuzz_is_utf8(text, length), "the JSON is not UTF-8");
    for (size_t i = 0; i < length; i++) {
        const unsigned char c = (unsigned char)text[i];

        FUZZ_CHECK(c >= 0x20 || c == '\n', "control character %#x in the JSON, byte %zu", c, i);
        if (c != '\\')
            continue;
        FUZZ_CHECK(++i < length && text[i] && strchr("\"\\/bfnrtu", text[i]),
                   "bad escape in the JSON, byte %zu", i);
    }
    copy = fuzz_alloc(length);
    memcpy(copy, text, length);
    hide_surrogates(copy, length);
    json = cJSON_ParseWithLengthOpts(copy, length, &end, false);
    FUZZ_CHECK(json, "not JSON: %.*s", (int)(length < 500 ? length : 500), text);
    for (; end < copy + length; end++)
        FUZZ_CHECK(*end == '\n', "data after the JSON value, byte %zu", (size_t)(end - copy));
    cJSON_Delete(json);
    free(copy);
}

void fuzz_check_file_name(const char *name)
{
    const size_t length = strlen(name);

    FUZZ_CHECK(length > 0 && length <= 255, "the file name has %zu bytes", length);
    FUZZ_CHECK(strcmp(name, ".") != 0 && strcmp(name, "..") != 0,
               "the file name is \".\" or \"..\"");
    for (size_t i = 0; i < length; i++) {
        const unsigned char c = (unsigned char)name[i];

        FUZZ_CHECK(c >= 0x20 && c != 0x7f && c != '/', "the file name contains byte %#x", c);
    }
}

int fuzz_open_model(const char *path, struct gguf_model **model, struct gguf_report *report)
{
    struct gguf_files files = {.count = GGUF_MAX_PARTS};
    int result = 0;

    files.list = calloc(files.count, sizeof *files.list);
    FUZZ_CHECK(files.list, "no memory");
    for (uint32_t i = 0; result == 0 && i < files.count; i++) {
        const struct gguf_source *file = &files.list[i].file.source;

        result = gguf_file_open(&gguf_mapped_file, NULL, 0, path, &files.list[i].file, report);
        if (result == 0 && file->size_bytes >= 4 && memcmp(file->mapping, "GGUF", 4) == 0)
            files.count = 1; /* GGUF has no parts */
    }
    *model = NULL;
    if (result == 0)
        result = gguf_parse_files(&files, NULL, model, report);
    gguf_files_close(&files);
    return result;
}
