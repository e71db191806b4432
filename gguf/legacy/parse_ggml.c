/*
 * The containers from before GGUF: magics ggml, ggmf (version 1) and ggjt (versions 1 to 3).
 *
 *   u32 magic, u32 version (not for ggml)
 *   the hyperparameters of the family, 4 bytes each
 *   the vocabulary and the tensors, in ggjt padded to 32 bytes: gguf/legacy/old_reading.h
 *
 * The family is not stored. The parser tries each and takes the first for which the numbers are
 * plausible, the last tensor ends with the file, and no tensor is missing.
 */
#include "gguf/formats.h"
#include "gguf/legacy/families.h"
#include "gguf/legacy/old_reading.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* Far above any hyperparameter of a real model. */
#define MAX_PLAUSIBLE 0xffffffu

static const struct gguf_old_container containers[] = {
    {"lmgg", "ggml", 0, 1}, {"fmgg", "ggmf", 1, 1}, {"tjgg", "ggjt", 3, 32}};

static const struct gguf_old_container *container_of(const uint8_t *bytes, size_t n_bytes)
{
    for (size_t i = 0; i < sizeof containers / sizeof *containers; i++) {
        if (n_bytes >= 4 && memcmp(bytes, containers[i].magic, 4) == 0)
            return &containers[i];
    }
    return NULL;
}

uint64_t gguf_old_alignment(const uint8_t magic[4])
{
    return container_of(magic, 4)->alignment_bytes;
}

bool gguf_probe_ggml(const struct gguf_start *start)
{
    return container_of(start->bytes, start->n_bytes);
}

/* ---- reading ---- */

static int check_number(const struct gguf_cursor *cursor, const struct gguf_hyperparameter *what,
                        uint32_t number, uint64_t offset)
{
    uint32_t smallest = 0, largest = MAX_PLAUSIBLE;

    switch (what->role) {
    case GGUF_ROLE_FLOAT:
        if (isfinite(gguf_old_float(number)))
            return 0;
        return gguf_error(cursor->report, GGUF_RULE_HYPERPARAMETER, -EINVAL, gguf_at(offset),
                          "hyperparameter %s is not finite", what->name);
    case GGUF_ROLE_BOOL:
        largest = 1;
        break;
    case GGUF_ROLE_FILE_TYPE:
        largest = 1000 * DEQUANT_ERA + 999;
        break;
    case GGUF_ROLE_VOCABULARY:
    case GGUF_ROLE_WIDTH:
    case GGUF_ROLE_HEADS:
    case GGUF_ROLE_LAYERS:
    case GGUF_ROLE_MORE_LAYERS:
        smallest = 1;
        break;
    default:
        break;
    }
    if (number >= smallest && number <= largest)
        return 0;
    return gguf_error(cursor->report, GGUF_RULE_HYPERPARAMETER, -EINVAL, gguf_at(offset),
                      "hyperparameter %s is %" PRIu32 ", it can be %" PRIu32 " to %" PRIu32,
                      what->name, number, smallest, largest);
}

static int read_numbers(struct gguf_cursor *cursor, struct gguf_old_reading *reading)
{
    const struct gguf_hyperparameter *list = reading->family->hyperparameters;

    cursor->place = gguf_at_part("hyperparameters", 0);
    for (size_t i = 0; list[i].name; i++) {
        const uint64_t offset = cursor->offset;
        int result;

        assert(i < GGUF_MAX_HYPERPARAMETERS);
        if (gguf_cursor_u32(cursor, &reading->numbers[i]) < 0)
            return gguf_cursor_fail(cursor, list[i].name);
        result = check_number(cursor, &list[i], reading->numbers[i], offset);
        if (result < 0)
            return result;
        reading->by_role[list[i].role] = reading->numbers[i];
    }
    return 0;
}

static bool has_role(const struct gguf_family *family, enum gguf_role role)
{
    const struct gguf_hyperparameter *what = family->hyperparameters;

    while (what->name && what->role != role)
        what++;
    return what->name;
}

/* The heads must divide the width. At most a whole head is rotated; llama rotates all of it. */
static int check_together(const struct gguf_cursor *cursor, const struct gguf_old_reading *reading)
{
    const uint32_t width = reading->by_role[GGUF_ROLE_WIDTH];
    const uint32_t n_heads = reading->by_role[GGUF_ROLE_HEADS];
    const uint32_t head_width = reading->by_role[GGUF_ROLE_HEAD_WIDTH];
    const uint32_t n_rotated = reading->by_role[GGUF_ROLE_ROTATED];

    if (n_heads == 0)
        return 0;
    if (width % n_heads == 0 && n_rotated <= width / n_heads &&
        (head_width == width / n_heads || !has_role(reading->family, GGUF_ROLE_HEAD_WIDTH)))
        return 0;
    return gguf_cursor_refuse(
        cursor, GGUF_RULE_HYPERPARAMETER, -EINVAL, cursor->offset,
        "%" PRIu32 " heads with %" PRIu32 " %s each do not go with a width of %" PRIu32, n_heads,
        head_width + n_rotated, n_rotated > 0 ? "rotated elements" : "elements", width);
}

static int read_mel_filters(struct gguf_cursor *cursor, struct gguf_mel_filters *filters)
{
    uint64_t n_values;

    cursor->place = gguf_at_part("mel filters", 0);
    if (gguf_cursor_u32(cursor, &filters->n_mel) < 0 ||
        gguf_cursor_u32(cursor, &filters->n_fft) < 0)
        return gguf_cursor_fail(cursor, "their numbers");
    n_values = (uint64_t)filters->n_mel * filters->n_fft;
    if (n_values > gguf_cursor_left(cursor) / sizeof(float))
        return gguf_cursor_refuse(cursor, GGUF_RULE_TRUNCATED_METADATA, -ENODATA, cursor->offset,
                                  "%" PRIu32 " by %" PRIu32 " numbers are more than the %" PRIu64
                                  " bytes that are left of the file (unfinished download?)",
                                  filters->n_mel, filters->n_fft, gguf_cursor_left(cursor));
    filters->values = gguf_cursor_take(cursor, n_values * sizeof(float));
    return filters->values ? 0 : gguf_cursor_fail(cursor, "their numbers");
}

/* A limit for the allocation; the model has four. */
#define VAD_MAX_LAYERS 64

static int read_vad_layers(struct gguf_cursor *cursor, uint32_t n_layers,
                           struct gguf_vad_sizes *sizes)
{
    const uint64_t n_bytes =
        (GGUF_VAD_PER_LAYER * (uint64_t)n_layers + GGUF_VAD_N_LAST) * sizeof(uint32_t);
    const uint64_t offset = cursor->offset;
    const uint8_t *numbers;

    if (n_layers > VAD_MAX_LAYERS)
        return gguf_error(cursor->report, GGUF_RULE_HYPERPARAMETER, -EINVAL, gguf_at(offset),
                          "the encoder has %" PRIu32 " layers, the limit is %d", n_layers,
                          VAD_MAX_LAYERS);
    cursor->place = gguf_at_part("header", 0);
    numbers = gguf_cursor_take(cursor, n_bytes);
    if (!numbers)
        return gguf_cursor_fail(cursor, "the sizes of the encoder's layers and of the decoder");
    sizes->n_layers = n_layers;
    sizes->numbers = (struct gguf_cursor){.data = numbers, .size_bytes = n_bytes};
    return 0;
}

static int read_header(struct gguf_cursor *cursor, struct gguf_old_reading *reading)
{
    int result = 0;

    cursor->place = gguf_at_part("header", 0);
    if (reading->family->extra == GGUF_EXTRA_VAD &&
        gguf_cursor_string(cursor, &reading->vad.model_type) < 0)
        result = gguf_cursor_fail(cursor, "the name of the model");
    if (result == 0)
        result = read_numbers(cursor, reading);
    if (result == 0)
        result = check_together(cursor, reading);
    if (result == 0 && reading->family->extra == GGUF_EXTRA_VAD)
        result = read_vad_layers(cursor, reading->by_role[GGUF_ROLE_LAYERS], &reading->vad);
    if (result == 0 && reading->family->extra == GGUF_EXTRA_MEL_FILTERS)
        result = read_mel_filters(cursor, &reading->filters);
    return result;
}

static int read_vocabulary(struct gguf_cursor *cursor, struct gguf_old_reading *reading)
{
    const bool has_scores = reading->family->vocabulary == GGUF_VOCABULARY_SCORED &&
                            reading->container->last_version > 0;
    uint32_t n_tokens = reading->by_role[GGUF_ROLE_VOCABULARY];

    if (reading->family->vocabulary == GGUF_VOCABULARY_NONE)
        return 0;
    if (reading->family->vocabulary == GGUF_VOCABULARY_COUNTED) {
        const uint64_t offset = cursor->offset;
        const uint32_t most = n_tokens;

        cursor->place = gguf_at_part("vocabulary", 0);
        if (gguf_cursor_u32(cursor, &n_tokens) < 0)
            return gguf_cursor_fail(cursor, "the number of tokens");
        /* Whisper's files leave out tokens that are not text. */
        if (n_tokens == 0 || n_tokens > most)
            return gguf_cursor_refuse(cursor, GGUF_RULE_HYPERPARAMETER, -EINVAL, offset,
                                      "it has %" PRIu32 " tokens, it can have 1 to %" PRIu32,
                                      n_tokens, most);
    }
    return gguf_old_vocabulary_read(cursor, n_tokens, has_scores, &reading->vocabulary);
}

static uint32_t era_of(const struct gguf_old_reading *reading)
{
    const uint32_t of_container = reading->version > 0 ? reading->version - 1 : 0;
    const uint32_t of_file_type = reading->by_role[GGUF_ROLE_FILE_TYPE] / 1000;

    return of_file_type > of_container ? of_file_type : of_container;
}

/* The last type id before era 2. */
#define LAST_OLD_ID 9u

static const struct dequant_type *type_of(const void *user, uint32_t id)
{
    const struct gguf_old_reading *reading = user;

    if (reading->era < DEQUANT_ERA && id > LAST_OLD_ID)
        return NULL;
    return dequant_type_of_era(id, reading->era);
}

/* Read the file as one family. On failure the model has no tensors. */
static int read_as(const struct gguf_family *family, struct gguf_cursor cursor,
                   struct gguf_model *model, struct gguf_old_reading *reading)
{
    const struct gguf_old_layout layout = {reading->container->alignment_bytes, type_of, reading};
    int result;

    *reading = (struct gguf_old_reading){
        .container = reading->container, .family = family, .version = reading->version};
    result = read_header(&cursor, reading);
    if (result == 0)
        result = read_vocabulary(&cursor, reading);
    reading->era = era_of(reading);
    if (result == 0)
        result = gguf_old_tensors_read(&cursor, &layout, model);
    if (result == 0 && model->n_tensors == 0 && !family->has_vocabulary_files &&
        gguf_cursor_skip(&cursor, 1) < 0) {
        cursor.place = gguf_at_part("tensors", 0);
        result = gguf_cursor_fail(&cursor, "the first");
    }
    if (result == 0)
        result = gguf_old_tensors_name(model, family->names, reading->by_role[GGUF_ROLE_LAYERS],
                                       reading->by_role[GGUF_ROLE_MORE_LAYERS], cursor.report);
    if (result < 0)
        gguf_old_tensors_drop(model);
    return result;
}

/* ---- the family ---- */

/* Try all families. If none fits, report why the one that was read furthest does not. */
static int find_family(struct gguf_cursor cursor, struct gguf_model *model,
                       struct gguf_old_reading *reading)
{
    const struct gguf_family *family, *best = NULL;
    struct gguf_report *report = cursor.report;
    struct gguf_finding furthest;

    for (size_t i = 0; (family = gguf_family_at(i)); i++) {
        struct gguf_report trial = {0};
        int result;

        if (family->is_twin)
            continue;
        cursor.report = &trial;
        result = read_as(family, cursor, model, reading);
        if (result == 0)
            return 0;
        if (result == -ENOMEM || result == -EIO)
            return gguf_error(report, trial.first_error.rule, result,
                              gguf_at(trial.first_error.file_offset), "%s",
                              trial.first_error.message);
        if (!best || trial.first_error.file_offset > furthest.file_offset) {
            best = family;
            furthest = trial.first_error;
        }
    }
    return gguf_error(report, GGUF_RULE_FAMILY, furthest.code, gguf_at(furthest.file_offset),
                      "fits no known family of old ggml models, best %s: %.500s", best->name,
                      furthest.message);
}

/* ---- the whole ---- */

static int read_version(struct gguf_cursor *cursor, struct gguf_old_reading *reading)
{
    const struct gguf_old_container *container = reading->container;

    cursor->place = gguf_at_part("header", 0);
    if (container->last_version == 0)
        return 0;
    if (gguf_cursor_u32(cursor, &reading->version) < 0)
        return gguf_cursor_fail(cursor, "the version");
    if (reading->version >= 1 && reading->version <= container->last_version)
        return 0;
    return gguf_error(cursor->report, GGUF_RULE_VERSION, -EINVAL, gguf_at(4),
                      "%s version %" PRIu32 " is unknown (known are 1 to %u)", container->name,
                      reading->version, container->last_version);
}

int gguf_parse_ggml(struct gguf_model *model, const struct gguf_open_options *options,
                    struct gguf_report *report)
{
    const struct gguf_family *family =
        options->family ? gguf_family_by_name(options->family) : NULL;
    struct gguf_old_reading reading = {0};
    struct gguf_cursor cursor =
        gguf_cursor_begin(&model->files[0], (struct gguf_encoding){.length_bytes = 4}, report);
    int result;

    if (options->family && !family)
        return gguf_error(report, GGUF_RULE_FAMILY, -EINVAL, GGUF_NO_PLACE, "family %s is unknown",
                          gguf_quote(gguf_string_of(options->family)).text);
    reading.container = container_of(gguf_cursor_take(&cursor, 4), 4);
    assert(reading.container); /* the probe has matched the same bytes */
    result = read_version(&cursor, &reading);
    if (result == 0)
        result = family ? read_as(family, cursor, model, &reading)
                        : find_family(cursor, model, &reading);
    if (result < 0)
        return result;
    model->gguf_remark = reading.family->gguf_remark;
    gguf_header_finish(&model->files[0].header, gguf_source_end(&model->files[0].source));
    if (reading.version > 0)
        model->format = gguf_model_print(model, "%s v%" PRIu32 " %s", reading.container->name,
                                         reading.version, reading.family->name);
    else
        model->format =
            gguf_model_print(model, "%s %s", reading.container->name, reading.family->name);
    result = model->format ? gguf_old_keys_add(model, &reading) : -ENOMEM;
    if (result < 0)
        return gguf_system_error(report, result, GGUF_NO_PLACE);
    if (reading.family->vocabulary == GGUF_VOCABULARY_NONE)
        return 0;
    return gguf_old_vocabulary_add_keys(model, reading.family->tokenizer, &reading.vocabulary,
                                        report);
}
