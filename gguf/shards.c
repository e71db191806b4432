/*
 * Models that were split into several files; gguf/files.h has their names. Source: llama.cpp's
 * gguf-split.
 *
 *   split.no              u16   number of the file, starts at 0
 *   split.count           u16   files
 *   split.tensors.count   i32   tensors in all files
 *
 * Each shard is a whole GGUF file with tensors of its own. The first shard has the model's
 * metadata. The other shards have little more than the keys above; their other keys are ignored.
 */
#include "gguf/parse_file.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* The number of a shard, from its keys or its name. */
struct shard_number {
    uint64_t no; /* starts at 0 */
    uint64_t count;
};

/* Read a key that must be a whole number of at most `limit`. Returns 1, or 0 if it is missing. */
static int read_key(const struct gguf_model *model, const char *name, uint64_t limit,
                    uint64_t *number, struct gguf_report *report)
{
    const struct gguf_key *key = gguf_find_key(model, name);

    if (!key)
        return 0;
    if (!gguf_value_is_integer(&key->value))
        return gguf_error(report, GGUF_RULE_SHARD_KEYS, -EINVAL, gguf_key_place(key),
                          "its type is %s, it must be a whole number",
                          gguf_value_type_name(key->value.type));
    if (key->value.type != GGUF_UINT64 && key->value.i64 < 0)
        return gguf_error(report, GGUF_RULE_SHARD_KEYS, -EINVAL, gguf_key_place(key),
                          "it is %" PRId64 ", which is below 0", key->value.i64);
    if (key->value.u64 > limit)
        return gguf_error(report, GGUF_RULE_SHARD_KEYS, -EINVAL, gguf_key_place(key),
                          "it is %" PRIu64 ", the limit is %" PRIu64, key->value.u64, limit);
    *number = key->value.u64;
    return 1;
}

/* Returns 1, 0 if the keys do not make the file a shard, or a negative errno. */
static int read_keys(const struct gguf_model *model, struct shard_number *number,
                     struct gguf_report *report)
{
    int result = read_key(model, "split.count", GGUF_MAX_SHARDS, &number->count, report);

    if (result <= 0 || number->count <= 1)
        return result < 0 ? result : 0;
    result = read_key(model, "split.no", GGUF_MAX_SHARDS, &number->no, report);
    if (result == 0)
        return gguf_error(report, GGUF_RULE_SHARD_KEYS, -EINVAL, GGUF_NO_PLACE,
                          "is a shard of %" PRIu64
                          " (key split.count), but key \"split.no\" is missing",
                          number->count);
    if (result > 0 && number->no >= number->count)
        return gguf_error(
            report, GGUF_RULE_SHARD_KEYS, -EINVAL, gguf_key_place(gguf_find_key(model, "split.no")),
            "it is %" PRIu64 ", but there are only %" PRIu64 " shards, counted from 0", number->no,
            number->count);
    return result;
}

static int check_numbers(const struct gguf_model *model, const struct shard_number *by_keys,
                         const struct shard_number *by_name, struct gguf_report *report)
{
    if (by_keys->no == by_name->no && by_keys->count == by_name->count)
        return 0;
    return gguf_error(report, GGUF_RULE_SHARD_NAME, -EINVAL,
                      gguf_at(gguf_find_key(model, "split.no")->file_offset),
                      "its name says that it is shard %" PRIu64 " of %" PRIu64
                      ", its keys split.no and split.count say shard %" PRIu64 " of %" PRIu64,
                      by_name->no + 1, by_name->count, by_keys->no + 1, by_keys->count);
}

/* Check that a file is the shard that its name says, and of the same format as the named one. */
static int check_shard(const struct gguf_parsed_files *shards, uint32_t index,
                       struct gguf_report *report)
{
    const struct gguf_model *shard = shards->list[index], *named = shards->list[shards->named];
    struct shard_number number = {0};
    int result;

    result = read_keys(shard, &number, report);
    if (result < 0)
        return result;
    if (result == 0)
        return gguf_error(report, GGUF_RULE_SHARD_NAME, -EINVAL, GGUF_NO_PLACE,
                          "is named as shard %" PRIu32 " of %" PRIu32
                          ", but is a model of its own: it has no key split.count above 1",
                          index + 1, shards->count);
    if (check_numbers(shard, &number, &(struct shard_number){index, shards->count}, report) < 0)
        return -EINVAL;
    if (strcmp(shard->format, named->format) != 0 || shard->big_endian != named->big_endian)
        return gguf_error(report, GGUF_RULE_SHARD_MISMATCH, -EINVAL, gguf_at(4),
                          "is %s, %s, and shard %" PRIu32 " is %s, %s", shard->format,
                          shard->big_endian ? "big-endian" : "little-endian", shards->named + 1,
                          named->format, named->big_endian ? "big-endian" : "little-endian");
    return 0;
}

/* Check that the shards have as many tensors as they say. */
static int check_total(const struct gguf_parsed_files *shards, struct gguf_report *report)
{
    const uint64_t total = shards->usage.n_tensors;

    for (uint32_t i = 0; i < shards->count; i++) {
        const struct gguf_model *shard = shards->list[i];
        uint64_t claimed = 0;
        int result;

        report->path = i == shards->named ? NULL : shard->files[0].source.path;
        result = read_key(shard, "split.tensors.count", UINT64_MAX, &claimed, report);
        if (result > 0 && claimed != total)
            result = gguf_error(report, GGUF_RULE_SHARD_MISMATCH, -EINVAL,
                                gguf_key_place(gguf_find_key(shard, "split.tensors.count")),
                                "it is %" PRIu64 ", but the %" PRIu32 " shards have %" PRIu64
                                " tensors (one of another model?)",
                                claimed, shards->count, total);
        report->path = NULL;
        if (result < 0)
            return result;
    }
    return 0;
}

static void note_ignored_keys(const struct gguf_parsed_files *shards, struct gguf_report *report)
{
    for (uint32_t i = 1; i < shards->count; i++) {
        const struct gguf_model *shard = shards->list[i];
        uint64_t n_ignored = 0;

        for (uint64_t j = 0; j < shard->n_keys; j++)
            n_ignored += !gguf_string_starts_with(shard->keys[j].name, "split.");
        if (n_ignored == 0)
            continue;
        report->path = i == shards->named ? NULL : shard->files[0].source.path;
        gguf_note(report, GGUF_RULE_SHARD_METADATA, GGUF_NO_PLACE,
                  "%" PRIu64 " of its keys are ignored: the metadata are those of the first shard",
                  n_ignored);
        report->path = NULL;
    }
}

/* Move the files and tensors of all shards to the first. */
static int join_shards(const struct gguf_parsed_files *shards, struct gguf_report *report)
{
    const uint64_t n_tensors = shards->usage.n_tensors;
    struct gguf_model *model = shards->list[0];
    struct gguf_file *files = calloc(shards->count, sizeof *files);
    struct gguf_tensor *tensors = calloc(n_tensors + 1, sizeof *tensors);
    uint64_t n = 0;

    if (!files || !tensors) {
        free(files);
        free(tensors);
        return gguf_system_error(report, -ENOMEM, GGUF_NO_PLACE);
    }
    for (uint32_t i = 0; i < shards->count; i++) {
        struct gguf_model *shard = shards->list[i];

        files[i] = shard->files[0];
        shard->n_files = 0;
        for (uint64_t j = 0; j < shard->n_tensors; j++) {
            tensors[n] = shard->tensors[j];
            tensors[n++].file_index = i;
        }
        shard->n_tensors = 0;
    }
    free(model->files);
    free(model->tensors);
    model->files = files;
    model->n_files = shards->count;
    model->named_file = shards->named;
    model->tensors = tensors;
    model->n_tensors = n_tensors;
    return 0;
}

static int join(struct gguf_model **model, struct gguf_files *files,
                const struct gguf_open_options *options, struct gguf_report *report)
{
    struct gguf_parsed_files shards = {
        .count = files->count, .named = files->named, .what = "shards", .check = check_shard};
    int result;

    result = gguf_parse_other_files(&shards, *model, files, options, report);
    if (result == 0)
        result = check_total(&shards, report);
    if (result == 0)
        note_ignored_keys(&shards, report);
    if (result == 0)
        result = join_shards(&shards, report);
    if (result == 0)
        *model = shards.list[0];
    gguf_close_parsed(&shards, result == 0 ? 0 : shards.named);
    return result;
}

int gguf_shards_join(struct gguf_model **model, struct gguf_files *files,
                     const struct gguf_open_options *options, struct gguf_report *report)
{
    struct shard_number by_keys = {0};
    int result = read_keys(*model, &by_keys, report);

    if (result < 0)
        return result;
    if (result == 0) {
        if (files->name_count > 1)
            gguf_note(report, GGUF_RULE_SHARD_NAME, GGUF_NO_PLACE,
                      "is named as a shard, but has no key split.count above 1: it is a model of "
                      "its own");
        return 0;
    }
    if (files->name_count == 0 && (*model)->files[0].source.start_offset > 0)
        return gguf_error(report, GGUF_RULE_PACKED, -EINVAL, GGUF_NO_PLACE,
                          "holds shard %" PRIu64 " of %" PRIu64
                          " (keys split.no and split.count) inside a larger file; unpack all "
                          "shards into files of their own",
                          by_keys.no + 1, by_keys.count);
    if (files->name_count == 0)
        return gguf_error(report, GGUF_RULE_SHARD_NAME, -EINVAL, GGUF_NO_PLACE,
                          "is shard %" PRIu64 " of %" PRIu64
                          " (keys split.no and split.count), so its name must end in -%05" PRIu64
                          "-of-%05" PRIu64 ".gguf: the others are found next to it by that name",
                          by_keys.no + 1, by_keys.count, by_keys.no + 1, by_keys.count);
    result =
        check_numbers(*model, &by_keys,
                      &(struct shard_number){files->name_number - 1, files->name_count}, report);
    return result == 0 ? join(model, files, options, report) : result;
}
