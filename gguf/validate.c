#include "gguf/validate.h"

#include "dequant/rows.h"
#include "gguf/ambiguous_types.h"
#include "gguf/models/key_lists.h"
#include "gguf/support/arrays.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

int gguf_validate_alignment(struct gguf_model *model, struct gguf_report *report)
{
    const struct gguf_key *key = gguf_find_key(model, "general.alignment");
    uint64_t alignment;

    if (!key)
        return 0;
    if (key->value.type != GGUF_UINT32)
        return gguf_error(report, GGUF_RULE_ALIGNMENT, -EINVAL, gguf_key_place(key),
                          "its type is %s, it must be uint32",
                          gguf_value_type_name(key->value.type));
    alignment = key->value.u64;
    if (alignment == 0 || (alignment & (alignment - 1)) != 0)
        return gguf_error(report, GGUF_RULE_ALIGNMENT, -EINVAL, gguf_key_place(key),
                          "%" PRIu64 " is not a power of two", alignment);
    if (alignment > GGUF_MAX_ALIGNMENT)
        return gguf_error(report, GGUF_RULE_ALIGNMENT, -EINVAL, gguf_key_place(key),
                          "%" PRIu64 " is over %" PRIu64
                          ", the largest page size of any system; writers use 32",
                          alignment, GGUF_MAX_ALIGNMENT);
    model->alignment_bytes = alignment;
    return 0;
}

/* Multiply the dimensions. Returns false after reporting an overflow. */
static bool count_elements(struct gguf_tensor *tensor, struct gguf_report *report)
{
    uint64_t n_elements = 1;
    bool is_empty = false;

    for (uint32_t i = 0; i < tensor->n_dims; i++)
        is_empty |= tensor->ne[i] == 0;
    for (uint32_t i = 0; i < tensor->n_dims && !is_empty; i++) {
        if (__builtin_mul_overflow(n_elements, tensor->ne[i], &n_elements) ||
            n_elements > INT64_MAX) {
            gguf_error(report, GGUF_RULE_DIMENSIONS, -EOVERFLOW, gguf_tensor_place(tensor),
                       "dimension %" PRIu32 " is %" PRIu64 ", which makes over 2^63 elements", i,
                       tensor->ne[i]);
            return false;
        }
    }
    tensor->n_elements = is_empty ? 0 : n_elements;
    return true;
}

/* Compute the size of a tensor whose elements are counted. */
static int compute_size(struct gguf_tensor *tensor, struct gguf_report *report)
{
    const struct dequant_type *type = tensor->type;
    int result = 0;

    if (!type)
        return 0;
    if (tensor->ne[0] % type->block_elements != 0)
        return gguf_error(report, GGUF_RULE_ROW_LENGTH, -EINVAL, gguf_tensor_place(tensor),
                          "row length %" PRIu64 " is not a multiple of the %s block size, %" PRIu32,
                          tensor->ne[0], type->name, type->block_elements);
    if (tensor->ne[1] % type->interleave_rows != 0)
        return gguf_error(report, GGUF_RULE_ROW_LENGTH, -EINVAL, gguf_tensor_place(tensor),
                          "its matrices have %" PRIu64 " rows, not a multiple of the %" PRIu32
                          " that %s stores together",
                          tensor->ne[1], type->interleave_rows, type->name);
    if (tensor->n_elements > 0)
        result = dequant_rows_bytes(type, tensor->ne[0], tensor->n_elements / tensor->ne[0],
                                    &tensor->size_bytes);
    if (result == -EINVAL)
        return gguf_error(report, GGUF_RULE_ROW_LENGTH, -EINVAL, gguf_tensor_place(tensor),
                          "row length %" PRIu64 " is too short for %s", tensor->ne[0], type->name);
    if (result < 0)
        return gguf_error(report, GGUF_RULE_DIMENSIONS, -EOVERFLOW, gguf_tensor_place(tensor),
                          "%" PRIu64 " elements of type %s take over 2^63 bytes",
                          tensor->n_elements, type->name);
    return 0;
}

int gguf_validate_size(struct gguf_tensor *tensor, struct gguf_report *report)
{
    return count_elements(tensor, report) ? compute_size(tensor, report) : -EOVERFLOW;
}

/* Some writers repeat a key with the same value, which is harmless: the first one is kept. */
static int check_key_names(struct gguf_model *model, struct gguf_report *report)
{
    const struct gguf_key **order = gguf_keys_by_name(model);
    bool *is_dropped = calloc(model->n_keys + 1, sizeof *is_dropped);
    uint64_t n_kept = 0;

    if (!order || !is_dropped) {
        free(order);
        free(is_dropped);
        return gguf_system_error(report, -ENOMEM, GGUF_NO_PLACE);
    }
    for (uint64_t i = 1; i < model->n_keys; i++) {
        const struct gguf_key *first = order[i - 1], *second = order[i];

        if (gguf_string_compare(first->name, second->name) != 0)
            continue;
        if (gguf_value_equals(&first->value, &second->value)) {
            gguf_note(report, GGUF_RULE_DUPLICATE_KEY, gguf_key_place(second),
                      "duplicate with the same value, first at byte %" PRIu64, first->file_offset);
            is_dropped[second - model->keys] = true;
        } else {
            gguf_error(report, GGUF_RULE_DUPLICATE_KEY, -EEXIST, gguf_key_place(second),
                       "duplicate with another value, first at byte %" PRIu64, first->file_offset);
        }
    }
    for (uint64_t i = 0; i < model->n_keys; i++) {
        if (!is_dropped[i])
            model->keys[n_kept++] = model->keys[i];
    }
    model->n_keys = n_kept;
    free(order);
    free(is_dropped);
    return 0;
}

static void report_twice(const struct gguf_model *model, const char *remedy,
                         const struct gguf_tensor *first, const struct gguf_tensor *second,
                         struct gguf_report *report)
{
    const char *path = model->files[first->file_index].source.path;

    report->path = gguf_path_to_report(model, second->file_index);
    if (remedy)
        gguf_error(report, GGUF_RULE_COMPOSITION, -EEXIST,
                   gguf_at_tensor(second->name, GGUF_NO_OFFSET),
                   "two tensors would have this name%s", remedy);
    else if (first->file_index == second->file_index)
        gguf_error(report, GGUF_RULE_DUPLICATE_TENSOR, -EEXIST, gguf_tensor_place(second),
                   "duplicate name, first at byte %" PRIu64, first->info_offset);
    else
        gguf_error(report, GGUF_RULE_DUPLICATE_TENSOR, -EEXIST, gguf_tensor_place(second),
                   "duplicate name, first at byte %" PRIu64 " of %s", first->info_offset,
                   gguf_quote(gguf_string_of(path)).text);
}

/* Different old names have different names in GGUF, but another tensor may have one already. */
static void check_gguf_name(const struct gguf_tensor *tensor, const struct gguf_tensor **order,
                            uint64_t count, struct gguf_report *report)
{
    const struct gguf_string name = tensor->gguf_name;

    if (name.length_bytes > 0 && gguf_find_tensor(order, count, name))
        gguf_error(report, GGUF_RULE_DUPLICATE_TENSOR, -EEXIST, gguf_tensor_place(tensor),
                   "its name in GGUF files, %s, belongs to another tensor", gguf_quote(name).text);
}

static int check_tensor_names(const struct gguf_model *model, const char *remedy,
                              struct gguf_report *report)
{
    const struct gguf_tensor **order = gguf_tensors_by_name(model);

    if (!order)
        return gguf_system_error(report, -ENOMEM, GGUF_NO_PLACE);
    for (uint64_t i = 1; i < model->n_tensors; i++) {
        if (gguf_string_compare(order[i - 1]->name, order[i]->name) == 0)
            report_twice(model, remedy, order[i - 1], order[i], report);
    }
    report->path = NULL;
    for (uint64_t i = 0; i < model->n_tensors; i++)
        check_gguf_name(&model->tensors[i], order, model->n_tensors, report);
    free(order);
    return 0;
}

static int compute_sizes(struct gguf_model *model, const struct gguf_open_options *options,
                         struct gguf_report *report)
{
    int result;

    for (uint64_t i = 0; i < model->n_tensors; i++) {
        report->path = gguf_path_to_report(model, model->tensors[i].file_index);
        count_elements(&model->tensors[i], report);
    }
    report->path = NULL;
    result = gguf_resolve_types(model, options, report);
    for (uint64_t i = 0; i < model->n_tensors; i++) {
        report->path = gguf_path_to_report(model, model->tensors[i].file_index);
        compute_size(&model->tensors[i], report);
    }
    report->path = NULL;
    return result;
}

static void warn_of_unknown_types(const struct gguf_model *model, struct gguf_report *report)
{
    const struct gguf_tensor *first = NULL;
    uint64_t n_unknown = 0;

    for (uint64_t i = 0; i < model->n_tensors; i++) {
        if (!model->tensors[i].type && n_unknown++ == 0)
            first = &model->tensors[i];
    }
    if (!first)
        return;
    report->path = gguf_path_to_report(model, first->file_index);
    gguf_warning(report, GGUF_RULE_UNKNOWN_TYPE, gguf_tensor_place(first),
                 "its type %" PRIu32 " is unknown; %" PRIu64 " of %" PRIu64
                 " tensors are of unknown types",
                 first->type_id, n_unknown, model->n_tensors);
    report->path = NULL;
}

static void warn_of_rotation(const struct gguf_model *model, struct gguf_report *report)
{
    const struct gguf_key *key = gguf_find_key_group(model, GGUF_ROTATION_KEYS);

    if (!key)
        return;
    report->path = gguf_path_to_report(model, 0);
    gguf_warning(report, GGUF_RULE_ROTATED_WEIGHTS, gguf_key_place(key),
                 "the weights are stored rotated; f32 and model.gguf have them as they are stored");
    report->path = NULL;
}

int gguf_validate_names(struct gguf_model *model, const char *remedy, struct gguf_report *report)
{
    int result;

    report->path = gguf_path_to_report(model, 0); /* all keys are in the first file */
    result = check_key_names(model, report);
    report->path = NULL;
    if (result == 0)
        result = check_tensor_names(model, remedy, report);
    return result < 0 || report->n_errors == 0 ? result : report->first_error.code;
}

int gguf_finish_model(struct gguf_model *model, const struct gguf_open_options *options,
                      struct gguf_report *report)
{
    int result = gguf_validate_names(model, NULL, report);

    if (result != -ENOMEM)
        result = compute_sizes(model, options, report);
    if (result < 0)
        return result;

    warn_of_unknown_types(model, report);
    warn_of_rotation(model, report);
    result = gguf_check_bounds(model, report);
    return report->n_errors > 0 ? report->first_error.code : result;
}
