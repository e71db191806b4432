#include "gguf/legacy/old_reading.h"

#include "gguf/models/tensor_names.h"
#include "gguf/support/arrays.h"
#include "gguf/validate.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ggml's limit in all versions. */
#define OLD_MAX_DIMS 4

_Static_assert(GGUF_MAX_DIMS == 8, "the ones in read_entry()");

static int read_start(struct gguf_cursor *cursor, struct gguf_tensor *tensor, uint32_t *name_bytes)
{
    const uint64_t offset = cursor->offset;

    if (gguf_cursor_u32(cursor, &tensor->n_dims) < 0 || gguf_cursor_u32(cursor, name_bytes) < 0 ||
        gguf_cursor_u32(cursor, &tensor->type_id) < 0)
        return gguf_cursor_fail(cursor, "its dimensions, name length and type");
    if (tensor->n_dims > OLD_MAX_DIMS)
        return gguf_cursor_refuse(cursor, GGUF_RULE_DIMENSIONS, -EINVAL, offset,
                                  "it has %" PRIu32 " dimensions, the limit is %d", tensor->n_dims,
                                  OLD_MAX_DIMS);
    if (*name_bytes > GGUF_MAX_TENSOR_NAME_BYTES)
        return gguf_cursor_refuse(cursor, GGUF_RULE_NAME_LENGTH, -EINVAL, offset + sizeof(uint32_t),
                                  "its name has %" PRIu32 " bytes, the limit is %d", *name_bytes,
                                  GGUF_MAX_TENSOR_NAME_BYTES);
    return 0;
}

static int read_entry(struct gguf_cursor *cursor, const struct gguf_old_layout *layout,
                      struct gguf_tensor *tensor)
{
    uint32_t name_bytes;
    int result;

    *tensor = (struct gguf_tensor){.info_offset = cursor->offset, .ne = {1, 1, 1, 1, 1, 1, 1, 1}};
    result = read_start(cursor, tensor, &name_bytes);
    if (result < 0)
        return result;
    for (uint32_t i = 0; i < tensor->n_dims; i++) {
        if (gguf_cursor_number(cursor, sizeof(uint32_t), &tensor->ne[i]) < 0)
            return gguf_cursor_fail(cursor, "its dimensions");
    }
    tensor->name =
        (struct gguf_string){(const char *)gguf_cursor_take(cursor, name_bytes), name_bytes};
    if (!tensor->name.data)
        return gguf_cursor_fail(cursor, "its name");
    tensor->type = layout->type_of(layout->user, tensor->type_id);
    if (!tensor->type)
        return gguf_error(cursor->report, GGUF_RULE_OLD_TYPE, -EINVAL,
                          gguf_at_tensor(tensor->name, tensor->info_offset + 2 * sizeof(uint32_t)),
                          "its type %" PRIu32 " is unknown in files of this kind, so "
                          "the end of its data cannot be found",
                          tensor->type_id);
    tensor->type_id = tensor->type->id;
    return 0;
}

/* Move the cursor past the data, which do not belong to the header. */
static int place_data(struct gguf_cursor *cursor, uint64_t alignment_bytes,
                      struct gguf_tensor *tensor)
{
    const uint64_t padding =
        (cursor->file->source.start_offset - cursor->offset) & (alignment_bytes - 1);
    int result = gguf_validate_size(tensor, cursor->report);

    if (result < 0)
        return result;
    tensor->file_offset = cursor->offset + padding;
    if (padding <= gguf_cursor_left(cursor) &&
        tensor->size_bytes <= gguf_cursor_left(cursor) - padding) {
        if (gguf_cursor_skip_data(cursor, padding + tensor->size_bytes) == 0)
            return 0;
        cursor->place = gguf_at_part("tensors", 0);
        return gguf_cursor_fail(cursor, "the next");
    }
    return gguf_error(cursor->report, GGUF_RULE_TRUNCATED_DATA, -ENODATA, gguf_tensor_place(tensor),
                      "its data are %" PRIu64 " bytes from byte %" PRIu64
                      ", but the file ends at %" PRIu64 " (unfinished download?)",
                      tensor->size_bytes, tensor->file_offset, cursor->size_bytes);
}

int gguf_old_tensors_read(struct gguf_cursor *cursor, const struct gguf_old_layout *layout,
                          struct gguf_model *model)
{
    size_t room = 0;
    char name[64];

    model->has_entries_between = true;
    while (gguf_cursor_left(cursor) > 0) {
        struct gguf_tensor *tensor;
        struct gguf_place place;
        int result;

        snprintf(name, sizeof name, "tensor %" PRIu64, model->n_tensors + 1);
        cursor->place = place = gguf_at_part(name, cursor->offset);
        if (model->before.n_tensors + model->n_tensors >= GGUF_MAX_TENSORS)
            return gguf_error(cursor->report, GGUF_RULE_METADATA_LIMIT, -E2BIG, place,
                              "there are more, the limit is %d", GGUF_MAX_TENSORS);
        if (gguf_reserve(&model->tensors, &room, (size_t)model->n_tensors + 1, sizeof *tensor) < 0)
            return gguf_system_error(cursor->report, -ENOMEM, place);
        tensor = &model->tensors[model->n_tensors];
        result = read_entry(cursor, layout, tensor);
        if (result == 0)
            result = gguf_add_name_bytes(model, tensor->name.length_bytes, place, cursor->report);
        if (result == 0)
            result = place_data(cursor, layout->alignment_bytes, tensor);
        if (result < 0)
            return result;
        model->n_tensors++;
    }
    return 0;
}

void gguf_old_tensors_drop(struct gguf_model *model)
{
    free(model->tensors);
    model->tensors = NULL;
    model->n_tensors = 0;
    model->names_bytes = 0;
    gguf_header_rewind(&model->files[0].header);
}

/* Set the name in GGUF files. Returns 0 or -ENOMEM. */
static int set_name(struct gguf_model *model, struct gguf_tensor *tensor, const char *pattern,
                    uint32_t layer)
{
    const struct gguf_name_match match = {.layer = layer, .expert = layer, .suffix = ""};
    char text[GGUF_NAME_BYTES];
    const char *name;

    gguf_tensor_name_expand(pattern, &match, text);
    if (gguf_string_equals(tensor->name, text))
        return 0;
    name = gguf_model_print(model, "%s", text);
    tensor->gguf_name = (struct gguf_string){name, strlen(text)};
    return name ? 0 : -ENOMEM;
}

static int check_complete(const struct gguf_name_rule *rules, size_t n_rules,
                          const uint64_t *counts, uint32_t n_layers, uint32_t n_more,
                          uint64_t n_tensors, struct gguf_report *report)
{
    for (size_t i = 0; i < n_rules; i++) {
        const char *mark = strpbrk(rules[i].old_name, "%#");
        const uint64_t expected = !mark ? 1 : *mark == '%' ? n_layers : n_more;

        if (!rules[i].is_optional && counts[i] < expected)
            return gguf_error(report, GGUF_RULE_TENSORS_MISSING, -ENODATA, GGUF_NO_PLACE,
                              "of tensor \"%s\" there are %" PRIu64 " instead of %" PRIu64
                              " among the %" PRIu64 " in the file (unfinished download?)",
                              rules[i].old_name, counts[i], expected, n_tensors);
    }
    return 0;
}

int gguf_old_tensors_name(struct gguf_model *model, const char *names, uint32_t n_layers,
                          uint32_t n_more, struct gguf_report *report)
{
    struct gguf_name_rule rules[GGUF_MAX_NAME_RULES];
    uint64_t counts[GGUF_MAX_NAME_RULES] = {0};
    const size_t n_rules = gguf_name_rules_read(names, rules);

    for (uint64_t i = 0; i < model->n_tensors; i++) {
        struct gguf_tensor *tensor = &model->tensors[i];
        uint32_t layer;
        size_t k = 0;

        while (k < n_rules &&
               !gguf_matches_rule(rules[k].old_name, tensor->name, n_layers, n_more, &layer))
            k++;
        if (k == n_rules)
            continue;
        counts[k]++;
        if (*rules[k].name != '\0' && set_name(model, tensor, rules[k].name, layer) < 0)
            return gguf_system_error(report, -ENOMEM, GGUF_NO_PLACE);
    }
    if (model->n_tensors == 0)
        return 0;
    return check_complete(rules, n_rules, counts, n_layers, n_more, model->n_tensors, report);
}
