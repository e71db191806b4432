#include "gguf/files.h"

#include "gguf/support/shard_names.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int open_file(const char *path, const struct gguf_open_options *options,
                     struct gguf_file *file, struct gguf_report *report)
{
    const struct gguf_source_kind *kind = options->partial    ? &gguf_growing_file
                                          : options->unmapped ? &gguf_read_file
                                                              : &gguf_mapped_file;

    return gguf_file_open(kind, options->opener, 0, path, file, report);
}

/* Open a file that was not named. Return 0, or -ENOMEM; other errors are noted in `shard`. */
static int open_other(const struct gguf_files *files, uint32_t index,
                      const struct gguf_open_options *options, struct gguf_opened_file *shard)
{
    const char *path = files->list[files->named].file.source.path;
    struct gguf_report report = {0};

    shard->path = options->n_shards > 0   ? strdup(options->shards[index])
                  : files->name_count > 0 ? gguf_shard_path(path, index + 1)
                                          : gguf_part_path(path, index);
    if (!shard->path)
        return -ENOMEM;
    shard->error = open_file(shard->path, options, &shard->file, &report);
    if (shard->error == 0)
        return 0;
    shard->rule = report.first_error.rule;
    shard->reason = strdup(report.first_error.message);
    return shard->reason ? 0 : -ENOMEM;
}

/* Open the shards or parts that were not named. Return 0 or -ENOMEM. */
static int open_others(struct gguf_files *files, const struct gguf_open_options *options)
{
    unsigned n_bad = 0;
    int result = 0;

    for (uint32_t i = 0; result == 0 && i < files->count && n_bad < GGUF_MAX_BAD_SHARDS; i++) {
        if (i == files->named)
            continue;
        result = open_other(files, i, options, &files->list[i]);
        n_bad += files->list[i].error < 0;
    }
    return result;
}

int gguf_files_open(const char *path, const struct gguf_open_options *options,
                    struct gguf_files *files, struct gguf_report *report)
{
    struct gguf_file named;
    uint32_t number, count;
    int result = open_file(path, options, &named, report);

    *files = (struct gguf_files){.count = 1};
    if (result < 0)
        return result;
    gguf_read_shard_numbers(named.source.path, &number, &count);
    if (options->n_shards > 0) {
        number = 1;
        count = (uint32_t)options->n_shards;
    }
    files->name_number = number;
    files->name_count = count;
    if (number > 0 && number <= count && count <= GGUF_MAX_SHARDS) {
        files->count = count;
        files->named = number - 1;
    } else if (count == 0 && gguf_read_part_number(named.source.path, &number)) {
        files->count = GGUF_MAX_PARTS;
        files->named = number;
    }
    files->list = calloc(files->count, sizeof *files->list);
    if (files->list) {
        files->list[files->named].file = named;
        if (open_others(files, options) == 0)
            return 0;
        gguf_files_close(files);
    } else {
        gguf_file_close(&named);
    }
    return gguf_system_error(report, -ENOMEM, GGUF_NO_PLACE);
}

void gguf_files_close(struct gguf_files *files)
{
    for (uint32_t i = 0; files->list && i < files->count; i++) {
        gguf_file_close(&files->list[i].file);
        free(files->list[i].path);
        free(files->list[i].reason);
    }
    free(files->list);
    *files = (struct gguf_files){0};
}
