#include "gguf/files.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* End of a shard's name. All shards of a model have names of the same length. */
#define ENDING       "-00001-of-00003.gguf"
#define ENDING_BYTES (sizeof ENDING - 1)
#define DIGITS       ((size_t)5)

/* Read the five digits of a number that starts at 1. */
static bool read_digits(const char *digits, uint32_t *number)
{
    *number = 0;
    for (size_t i = 0; i < DIGITS; i++) {
        if (digits[i] < '0' || digits[i] > '9')
            return false;
        *number = 10 * *number + (uint32_t)(digits[i] - '0');
    }
    return *number > 0;
}

/*
 * Read number and count from a path that ends as a shard's does, and set *digits to the place of
 * the number in it. Return false if it ends otherwise.
 */
static bool read_name(const char *path, uint32_t *number, uint32_t *count, size_t *digits)
{
    const size_t length = strlen(path);
    const char *ending = path + length - ENDING_BYTES;

    if (length < ENDING_BYTES || ending[0] != '-' || !read_digits(ending + 1, number) ||
        strncmp(ending + 1 + DIGITS, "-of-", 4) != 0 ||
        !read_digits(ending + 1 + DIGITS + 4, count) ||
        strcmp(ending + 1 + 2 * DIGITS + 4, ".gguf") != 0)
        return false;
    *digits = length - ENDING_BYTES + 1;
    return true;
}

static int out_of_memory(struct gguf_report *report)
{
    return gguf_error(report, -ENOMEM, GGUF_NO_OFFSET, "%s", strerror(ENOMEM));
}

/* Open a shard that was not named. Return 0, or -ENOMEM; other errors are noted in `shard`. */
static int open_shard(const char *path, size_t digits, uint32_t number,
                      const struct gguf_open_options *options, struct gguf_opened_file *shard)
{
    struct gguf_report report = {0};
    char text[DIGITS + 1];

    shard->path = strdup(path);
    if (!shard->path)
        return -ENOMEM;
    snprintf(text, sizeof text, "%05" PRIu16, (uint16_t)number);
    memcpy(shard->path + digits, text, DIGITS);
    shard->error =
        gguf_source_open(shard->path, options && options->partial, &shard->file, &report);
    if (shard->error == 0)
        return 0;
    shard->reason = strdup(report.first_error.message);
    return shard->reason ? 0 : -ENOMEM;
}

/* Open the shards that were not named. Return 0 or -ENOMEM. */
static int open_shards(struct gguf_files *files, size_t digits,
                       const struct gguf_open_options *options)
{
    const char *path = files->list[files->named].file.path;
    unsigned n_bad = 0;
    int result = 0;

    for (uint32_t i = 0; result == 0 && i < files->count && n_bad < GGUF_MAX_BAD_SHARDS; i++) {
        if (i == files->named)
            continue;
        result = open_shard(path, digits, i + 1, options, &files->list[i]);
        n_bad += files->list[i].error < 0;
    }
    return result;
}

int gguf_files_open(const char *path, const struct gguf_open_options *options,
                    struct gguf_files *files, struct gguf_report *report)
{
    struct gguf_source named;
    uint32_t number = 0, count = 0;
    size_t digits = 0;
    int result = gguf_source_open(path, options && options->partial, &named, report);

    *files = (struct gguf_files){.count = 1};
    if (result < 0)
        return result;
    if (read_name(named.path, &number, &count, &digits)) {
        files->name_number = number;
        files->name_count = count;
    }
    if (number > 0 && number <= count && count <= GGUF_MAX_SHARDS) {
        files->count = count;
        files->named = number - 1;
    }
    files->list = calloc(files->count, sizeof *files->list);
    if (!files->list) {
        gguf_source_close(&named);
        return out_of_memory(report);
    }
    files->list[files->named].file = named;
    if (open_shards(files, digits, options) < 0) {
        gguf_files_close(files);
        return out_of_memory(report);
    }
    return 0;
}

void gguf_files_close(struct gguf_files *files)
{
    for (uint32_t i = 0; files->list && i < files->count; i++) {
        gguf_source_close(&files->list[i].file);
        free(files->list[i].path);
        free(files->list[i].reason);
    }
    free(files->list);
    *files = (struct gguf_files){0};
}
