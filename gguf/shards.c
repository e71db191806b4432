#include "gguf/shards.h"

#include "gguf/files.h"
#include "gguf/formats.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* What a file says of itself, by its keys or by its name. */
struct shard {
    uint64_t no; /* starts at 0 */
    uint64_t count;
};

/* Reads a key that must be a whole number of at most `limit`. Returns 1, 0 if there is none. */
static int read_key(const struct gguf_model *model, const char *name, uint64_t limit,
                    uint64_t *number, struct gguf_report *report)
{
    const struct gguf_key *key = gguf_find_key(model, name);

    if (!key)
        return 0;
    switch (key->value.type) {
    case GGUF_INT8:
    case GGUF_INT16:
    case GGUF_INT32:
    case GGUF_INT64:
        if (key->value.i64 < 0)
            return gguf_error(report, -EINVAL, key->file_offset,
                              "key \"%s\": it is %" PRId64 ", which is below 0", name,
                              key->value.i64);
        break;
    case GGUF_UINT8:
    case GGUF_UINT16:
    case GGUF_UINT32:
    case GGUF_UINT64:
        break;
    default:
        return gguf_error(report, -EINVAL, key->file_offset,
                          "key \"%s\": its type is %s, it must be a whole number", name,
                          gguf_value_type_name(key->value.type));
    }
    if (key->value.u64 > limit)
        return gguf_error(report, -EINVAL, key->file_offset,
                          "key \"%s\": it is %" PRIu64 ", the limit is %" PRIu64, name,
                          key->value.u64, limit);
    *number = key->value.u64;
    return 1;
}

/* Returns 1, 0 if the file does not say that it is one of several, or a negative errno. */
static int read_keys(const struct gguf_model *model, struct shard *shard,
                     struct gguf_report *report)
{
    int result = read_key(model, "split.count", GGUF_MAX_SHARDS, &shard->count, report);

    if (result <= 0 || shard->count <= 1)
        return result < 0 ? result : 0;
    result = read_key(model, "split.no", GGUF_MAX_SHARDS, &shard->no, report);
    if (result == 0)
        return gguf_error(report, -EINVAL, GGUF_NO_OFFSET,
                          "is a shard of %" PRIu64
                          " (key split.count), but key \"split.no\" is missing",
                          shard->count);
    if (result > 0 && shard->no >= shard->count)
        return gguf_error(report, -EINVAL, gguf_find_key(model, "split.no")->file_offset,
                          "key \"split.no\": it is %" PRIu64 ", but there are only %" PRIu64
                          " shards, counted from 0",
                          shard->no, shard->count);
    return result;
}

static int check_numbers(const struct gguf_model *model, const struct shard *by_keys,
                         const struct shard *by_name, struct gguf_report *report)
{
    if (by_keys->no == by_name->no && by_keys->count == by_name->count)
        return 0;
    return gguf_error(report, -EINVAL, gguf_find_key(model, "split.no")->file_offset,
                      "its name says that it is shard %" PRIu64 " of %" PRIu64
                      ", its keys split.no and split.count say shard %" PRIu64 " of %" PRIu64,
                      by_name->no + 1, by_name->count, by_keys->no + 1, by_keys->count);
}

/* A file of a model, parsed. */
struct part {
    struct gguf_model *model; /* NULL if it is not open yet */
};

/* The files of one model while they are brought together. */
struct set {
    struct part *parts;
    uint32_t count;
    uint32_t named; /* the one that the user named */
};

static const struct gguf_model *model_of(const struct set *set, uint32_t index)
{
    assert(index < set->count && set->parts[index].model);
    return set->parts[index].model;
}

/* Whether a file is the shard that its name says, and one of the same model as the named one. */
static int check_part(const struct set *set, uint32_t index, struct gguf_report *report)
{
    const struct gguf_model *part = model_of(set, index), *named = model_of(set, set->named);
    struct shard shard = {0};
    int result;

    result = read_keys(part, &shard, report);
    if (result < 0)
        return result;
    if (result == 0)
        return gguf_error(report, -EINVAL, GGUF_NO_OFFSET,
                          "is named as shard %" PRIu32 " of %" PRIu32
                          ", but is a model of its own: it has no key split.count above 1",
                          index + 1, set->count);
    if (check_numbers(part, &shard, &(struct shard){index, set->count}, report) < 0)
        return -EINVAL;
    if (strcmp(part->format, named->format) != 0 || part->big_endian != named->big_endian)
        return gguf_error(report, -EINVAL, 4, "is %s, %s, and shard %" PRIu32 " is %s, %s",
                          part->format, part->big_endian ? "big-endian" : "little-endian",
                          set->named + 1, named->format,
                          named->big_endian ? "big-endian" : "little-endian");
    return 0;
}

/* Parses a shard that is not the named one. */
static int parse_part(struct set *set, uint32_t index, struct gguf_opened_file *opened,
                      const struct gguf_open_options *options, struct gguf_report *report)
{
    int result;

    report->path = opened->path;
    if (opened->error == -ENOENT)
        result =
            gguf_error(report, -ENOENT, GGUF_NO_OFFSET,
                       "is missing: the model has %" PRIu32 " shards, and this is number %" PRIu32,
                       set->count, index + 1);
    else if (opened->error < 0)
        result = gguf_error(report, opened->error, GGUF_NO_OFFSET, "%s", opened->reason);
    else
        result = gguf_parse_file(&opened->file, options, &set->parts[index].model, report);
    if (result == 0)
        result = check_part(set, index, report);
    report->path = NULL;
    return result;
}

/* Returns 0, or the first error; goes on after it to report the others. */
static int parse_parts(struct set *set, struct gguf_files *files,
                       const struct gguf_open_options *options, struct gguf_report *report)
{
    unsigned n_bad = 0;
    int first = 0;

    for (uint32_t i = 0; i < set->count && n_bad < GGUF_MAX_BAD_SHARDS; i++) {
        int result;

        if (i == set->named)
            continue;
        result = parse_part(set, i, &files->list[i], options, report);
        if (result < 0 && n_bad++ == 0)
            first = result;
    }
    return first;
}

/* Whether all files together hold what they say the model has. */
static int check_total(const struct set *set, uint64_t *total, struct gguf_report *report)
{
    *total = 0;
    for (uint32_t i = 0; i < set->count; i++) {
        const struct gguf_model *part = set->parts[i].model;

        assert(part);              /* all were opened */
        *total += part->n_tensors; /* each of at most GGUF_MAX_TENSORS */
    }
    for (uint32_t i = 0; i < set->count; i++) {
        const struct gguf_model *part = set->parts[i].model;
        uint64_t claimed = 0;
        int result;

        report->path = i == set->named ? NULL : part->files[0].path;
        result = read_key(part, "split.tensors.count", UINT64_MAX, &claimed, report);
        if (result > 0 && claimed != *total)
            result =
                gguf_error(report, -EINVAL, gguf_find_key(part, "split.tensors.count")->file_offset,
                           "key \"split.tensors.count\": it is %" PRIu64 ", but the %" PRIu32
                           " shards have %" PRIu64 " tensors (one of another model?)",
                           claimed, set->count, *total);
        report->path = NULL;
        if (result < 0)
            return result;
    }
    if (*total > GGUF_MAX_TENSORS)
        return gguf_error(report, -E2BIG, GGUF_NO_OFFSET,
                          "its shards have %" PRIu64 " tensors, the limit is %d", *total,
                          GGUF_MAX_TENSORS);
    return 0;
}

static void note_ignored_keys(const struct set *set, struct gguf_report *report)
{
    for (uint32_t i = 1; i < set->count; i++) {
        const struct gguf_model *part = set->parts[i].model;
        uint64_t n_ignored = 0;

        for (uint64_t j = 0; j < part->n_keys; j++)
            n_ignored += part->keys[j].name.length_bytes < 6 ||
                         memcmp(part->keys[j].name.data, "split.", 6) != 0;
        if (n_ignored == 0)
            continue;
        report->path = i == set->named ? NULL : part->files[0].path;
        gguf_note(report, GGUF_NO_OFFSET,
                  "%" PRIu64 " of its keys are ignored: the metadata are those of the first shard",
                  n_ignored);
        report->path = NULL;
    }
}

/* Moves files and tensors of all parts to the first, and closes the others. */
static int join_parts(const struct set *set, uint64_t n_tensors, struct gguf_report *report)
{
    struct gguf_model *model = set->parts[0].model;
    struct gguf_file *files = calloc(set->count, sizeof *files);
    struct gguf_tensor *tensors = calloc(n_tensors + 1, sizeof *tensors);
    uint64_t n = 0;

    if (!files || !tensors) {
        free(files);
        free(tensors);
        return gguf_error(report, -ENOMEM, GGUF_NO_OFFSET, "%s", strerror(ENOMEM));
    }
    for (uint32_t i = 0; i < set->count; i++) {
        struct gguf_model *part = set->parts[i].model;

        files[i] = part->files[0];
        part->n_files = 0;
        for (uint64_t j = 0; j < part->n_tensors; j++) {
            tensors[n] = part->tensors[j];
            tensors[n++].file_index = i;
        }
        part->n_tensors = 0;
        if (i > 0)
            gguf_close(part);
    }
    free(model->files);
    free(model->tensors);
    model->files = files;
    model->n_files = set->count;
    model->named_file = set->named;
    model->tensors = tensors;
    model->n_tensors = n_tensors;
    return 0;
}

static int join(struct gguf_model **model, struct gguf_files *files,
                const struct gguf_open_options *options, struct gguf_report *report)
{
    struct set set = {.count = files->count, .named = files->named};
    uint64_t n_tensors = 0;
    int result;

    set.parts = calloc(set.count, sizeof *set.parts);
    if (!set.parts)
        return gguf_error(report, -ENOMEM, GGUF_NO_OFFSET, "%s", strerror(ENOMEM));
    set.parts[set.named].model = *model;
    result = parse_parts(&set, files, options, report);
    if (result == 0)
        result = check_total(&set, &n_tensors, report);
    if (result == 0)
        note_ignored_keys(&set, report);
    if (result == 0)
        result = join_parts(&set, n_tensors, report);
    if (result == 0)
        *model = set.parts[0].model;
    for (uint32_t i = 0; result < 0 && i < set.count; i++) {
        if (i != set.named)
            gguf_close(set.parts[i].model);
    }
    free(set.parts);
    return result;
}

int gguf_shards_join(struct gguf_model **model, struct gguf_files *files,
                     const struct gguf_open_options *options, struct gguf_report *report)
{
    struct shard by_keys = {0};
    int result = read_keys(*model, &by_keys, report);

    if (result < 0)
        return result;
    if (result == 0) {
        if (files->name_count > 1)
            gguf_note(report, GGUF_NO_OFFSET,
                      "is named as a shard, but has no key split.count above 1: it is a model of "
                      "its own");
        return 0;
    }
    if (files->name_count == 0)
        return gguf_error(report, -EINVAL, GGUF_NO_OFFSET,
                          "is shard %" PRIu64 " of %" PRIu64
                          " (keys split.no and split.count), so its name must end in -%05" PRIu64
                          "-of-%05" PRIu64 ".gguf: the others are found next to it by that name",
                          by_keys.no + 1, by_keys.count, by_keys.no + 1, by_keys.count);
    result = check_numbers(*model, &by_keys,
                           &(struct shard){files->name_number - 1, files->name_count}, report);
    return result == 0 ? join(model, files, options, report) : result;
}
