#include "gguf/validate.h"

#include "dequant/rows.h"

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
        return gguf_error(report, -EINVAL, key->file_offset,
                          "key \"general.alignment\": its type is %s, it must be uint32",
                          gguf_value_type_name(key->value.type));
    alignment = key->value.u64;
    if (alignment == 0 || (alignment & (alignment - 1)) != 0)
        return gguf_error(report, -EINVAL, key->file_offset,
                          "key \"general.alignment\": %" PRIu64 " is not a power of two",
                          alignment);
    if (alignment > GGUF_MAX_ALIGNMENT)
        return gguf_error(report, -EINVAL, key->file_offset,
                          "key \"general.alignment\": %" PRIu64 " is over %" PRIu64
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
            gguf_error(report, -EOVERFLOW, tensor->info_offset,
                       "tensor %s: dimension %" PRIu32 " is %" PRIu64
                       ", which makes over 2^63 elements",
                       gguf_quote(tensor->name).text, i, tensor->ne[i]);
            return false;
        }
    }
    tensor->n_elements = is_empty ? 0 : n_elements;
    return true;
}

int gguf_validate_size(struct gguf_tensor *tensor, struct gguf_report *report)
{
    const struct dequant_type *type = tensor->type;

    if (!count_elements(tensor, report))
        return -EOVERFLOW;
    if (!type)
        return 0;
    if (tensor->ne[0] % type->block_elements != 0)
        return gguf_error(
            report, -EINVAL, tensor->info_offset,
            "tensor %s: row length %" PRIu64 " is not a multiple of the %s block size, %" PRIu32,
            gguf_quote(tensor->name).text, tensor->ne[0], type->name, type->block_elements);
    if (tensor->ne[1] % type->interleave_rows != 0)
        return gguf_error(report, -EINVAL, tensor->info_offset,
                          "tensor %s: its matrices have %" PRIu64
                          " rows, not a multiple of the %" PRIu32 " that %s stores together",
                          gguf_quote(tensor->name).text, tensor->ne[1], type->interleave_rows,
                          type->name);
    if (tensor->n_elements > 0 &&
        dequant_rows_bytes(type, tensor->ne[0], tensor->n_elements / tensor->ne[0],
                           &tensor->size_bytes) < 0)
        return gguf_error(report, -EOVERFLOW, tensor->info_offset,
                          "tensor %s: %" PRIu64 " elements of type %s take over 2^63 bytes",
                          gguf_quote(tensor->name).text, tensor->n_elements, type->name);
    return 0;
}

static int compare_keys(const void *a, const void *b)
{
    const struct gguf_key *first = *(const struct gguf_key *const *)a;
    const struct gguf_key *second = *(const struct gguf_key *const *)b;
    const int order = gguf_string_compare(first->name, second->name);

    return order != 0 ? order : (first > second) - (first < second);
}

static int compare_tensors(const void *a, const void *b)
{
    const struct gguf_tensor *first = *(const struct gguf_tensor *const *)a;
    const struct gguf_tensor *second = *(const struct gguf_tensor *const *)b;
    const int order = gguf_string_compare(first->name, second->name);

    return order != 0 ? order : (first > second) - (first < second);
}

static int compare_to_name(const void *name, const void *tensor)
{
    return gguf_string_compare(*(const struct gguf_string *)name,
                               (*(const struct gguf_tensor *const *)tensor)->name);
}

/*
 * By the start of the data. At one offset, tensors of unknown type come last: their extent is what
 * follows.
 */
static int compare_places(const void *a, const void *b)
{
    const struct gguf_tensor *first = *(const struct gguf_tensor *const *)a;
    const struct gguf_tensor *second = *(const struct gguf_tensor *const *)b;

    if (first->file_index != second->file_index)
        return first->file_index < second->file_index ? -1 : 1;
    if (first->file_offset != second->file_offset)
        return first->file_offset < second->file_offset ? -1 : 1;
    if (!first->type != !second->type)
        return first->type ? -1 : 1;
    return (first > second) - (first < second);
}

/* Return pointers to the `count` entries of a table, sorted; NULL if out of memory. */
static const void **sorted(const void *table, uint64_t count, size_t entry_bytes,
                           int (*compare)(const void *, const void *))
{
    const void **order = calloc(count + 1, sizeof *order);

    if (!order)
        return NULL;
    for (uint64_t i = 0; i < count; i++)
        order[i] = (const char *)table + i * entry_bytes;
    qsort(order, count, sizeof *order, compare);
    return order;
}

static int fail_memory(struct gguf_report *report)
{
    return gguf_error(report, -ENOMEM, GGUF_NO_OFFSET, "%s", strerror(ENOMEM));
}

/* Remove the marked keys. */
static void drop_keys(struct gguf_model *model, const bool *is_dropped)
{
    uint64_t n_kept = 0;

    for (uint64_t i = 0; i < model->n_keys; i++) {
        if (!is_dropped[i])
            model->keys[n_kept++] = model->keys[i];
    }
    model->n_keys = n_kept;
}

/* Some writers repeat a key with the same value, which is harmless: the first one is kept. */
static int check_key_names(struct gguf_model *model, struct gguf_report *report)
{
    const struct gguf_key **order = (const struct gguf_key **)sorted(
        model->keys, model->n_keys, sizeof *model->keys, compare_keys);
    bool *is_dropped = calloc(model->n_keys + 1, sizeof *is_dropped);

    if (!order || !is_dropped) {
        free(order);
        free(is_dropped);
        return fail_memory(report);
    }
    for (uint64_t i = 1; i < model->n_keys; i++) {
        const struct gguf_key *first = order[i - 1], *second = order[i];

        if (gguf_string_compare(first->name, second->name) != 0)
            continue;
        if (gguf_value_equals(&first->value, &second->value)) {
            gguf_note(report, second->file_offset,
                      "key %s: duplicate with the same value, first at byte %" PRIu64,
                      gguf_quote(second->name).text, first->file_offset);
            is_dropped[second - model->keys] = true;
        } else {
            gguf_error(report, -EEXIST, second->file_offset,
                       "key %s: duplicate with another value, first at byte %" PRIu64,
                       gguf_quote(second->name).text, first->file_offset);
        }
    }
    drop_keys(model, is_dropped);
    free(order);
    free(is_dropped);
    return 0;
}

static void report_twice(const struct gguf_model *model, const struct gguf_tensor *first,
                         const struct gguf_tensor *second, struct gguf_report *report)
{
    const char *path = model->files[first->file_index].path;

    report->path = gguf_path_to_report(model, second->file_index);
    if (first->file_index == second->file_index)
        gguf_error(report, -EEXIST, second->info_offset,
                   "tensor %s: duplicate name, first at byte %" PRIu64,
                   gguf_quote(second->name).text, first->info_offset);
    else
        gguf_error(report, -EEXIST, second->info_offset,
                   "tensor %s: duplicate name, first at byte %" PRIu64 " of %s",
                   gguf_quote(second->name).text, first->info_offset,
                   gguf_quote((struct gguf_string){path, strlen(path)}).text);
}

/* Different old names have different names in GGUF, but another tensor may have one already. */
static void check_gguf_name(const struct gguf_tensor *tensor, const struct gguf_tensor **order,
                            uint64_t count, struct gguf_report *report)
{
    const struct gguf_string name = tensor->gguf_name;

    if (name.length_bytes > 0 && bsearch(&name, order, count, sizeof(void *), compare_to_name))
        gguf_error(report, -EEXIST, tensor->info_offset,
                   "tensor %s: its name in GGUF files, %s, belongs to another tensor",
                   gguf_quote(tensor->name).text, gguf_quote(name).text);
}

static int check_tensor_names(const struct gguf_model *model, struct gguf_report *report)
{
    const struct gguf_tensor **order = (const struct gguf_tensor **)sorted(
        model->tensors, model->n_tensors, sizeof *model->tensors, compare_tensors);

    if (!order)
        return fail_memory(report);
    for (uint64_t i = 1; i < model->n_tensors; i++) {
        if (gguf_string_compare(order[i - 1]->name, order[i]->name) == 0)
            report_twice(model, order[i - 1], order[i], report);
    }
    report->path = NULL;
    for (uint64_t i = 0; i < model->n_tensors; i++)
        check_gguf_name(&model->tensors[i], order, model->n_tensors, report);
    free(order);
    return 0;
}

/* Return where the tensor's data end. Does not overflow once check_bounds() has passed it. */
static uint64_t end_of(const struct gguf_tensor *tensor)
{
    return tensor->file_offset + tensor->size_bytes;
}

/* Counts the tensors of a file whose data it lacks. */
struct missing {
    uint64_t n_tensors; /* of the file, with those that are complete */
    uint64_t n_short;
    uint64_t last_end; /* where the file would have to end */
};

static void report_missing(const struct gguf_model *model, const struct gguf_tensor *tensor,
                           uint64_t end, struct gguf_report *report)
{
    const uint64_t file_bytes = model->files[tensor->file_index].size_bytes;

    gguf_error(report, -ENODATA, tensor->info_offset,
               "tensor %s: its data are bytes %" PRIu64 " to %" PRIu64
               ", but the file ends at %" PRIu64 ": %" PRIu64 " of its %" PRIu64
               " bytes are missing (unfinished download? -o partial mounts what is there)",
               gguf_quote(tensor->name).text, tensor->file_offset, end, file_bytes,
               end - (tensor->file_offset > file_bytes ? tensor->file_offset : file_bytes),
               tensor->size_bytes);
}

static void note_missing(const struct gguf_source *file, const struct missing *missing,
                         struct gguf_report *report)
{
    if (missing->n_short > 0 && file->is_growing)
        gguf_note(report, GGUF_NO_OFFSET, "%" PRIu64 " of %" PRIu64 " tensors are not complete yet",
                  missing->n_short, missing->n_tensors);
    else if (missing->n_short > 0)
        gguf_note(report, GGUF_NO_OFFSET,
                  "the file should have at least %" PRIu64 " bytes and has %" PRIu64 ": %" PRIu64
                  " are missing, in %" PRIu64 " of %" PRIu64 " tensors",
                  missing->last_end, file->size_bytes, missing->last_end - file->size_bytes,
                  missing->n_short, missing->n_tensors);
}

static bool is_complete(const struct gguf_source *file, const struct gguf_tensor *tensor,
                        uint64_t end)
{
    return file->is_growing ? gguf_source_has(file, tensor->file_offset, tensor->size_bytes)
                            : end <= file->size_bytes;
}

static void check_tensor_bounds(const struct gguf_model *model, const struct gguf_tensor *tensor,
                                struct missing *missing, struct gguf_report *report)
{
    const struct gguf_source *file = &model->files[tensor->file_index];
    uint64_t end;

    missing->n_tensors++;
    if (__builtin_add_overflow(tensor->file_offset, tensor->size_bytes, &end)) {
        gguf_error(report, -EOVERFLOW, tensor->info_offset,
                   "tensor %s: it starts at byte %" PRIu64 " and has %" PRIu64
                   " bytes, so it ends beyond 2^64",
                   gguf_quote(tensor->name).text, tensor->file_offset, tensor->size_bytes);
        return;
    }
    /* A tensor without data may lie anywhere: a vocabulary-only file ends early. */
    if (tensor->size_bytes == 0 || is_complete(file, tensor, end))
        return;
    if (!file->is_growing)
        report_missing(model, tensor, end, report);
    missing->n_short++;
    missing->last_end = end > missing->last_end ? end : missing->last_end;
}

/* Tensors of one file are next to each other in the table. */
static void check_bounds(const struct gguf_model *model, struct gguf_report *report)
{
    struct missing missing = {0};

    for (uint64_t i = 0; i < model->n_tensors; i++) {
        const struct gguf_tensor *tensor = &model->tensors[i];
        const uint32_t file_index = tensor->file_index;

        report->path = gguf_path_to_report(model, file_index);
        check_tensor_bounds(model, tensor, &missing, report);
        if (i + 1 == model->n_tensors || model->tensors[i + 1].file_index != file_index) {
            note_missing(&model->files[file_index], &missing, report);
            missing = (struct missing){0};
        }
    }
    report->path = NULL;
}

/* Return the bytes from `start` to `end`, less the padding to the alignment. */
static uint64_t gap_between(const struct gguf_model *model, uint64_t start, uint64_t end)
{
    const uint64_t mask = model->alignment_bytes - 1;
    const uint64_t padding = -start & mask;

    if (model->has_entries_between)
        return 0; /* the parser has accounted for every byte */
    return end > start && end - start > padding ? end - start - padding : 0;
}

/* Return the most bytes a tensor of unknown type can have before `next`, which may be NULL. */
static uint64_t extent_of(const struct gguf_model *model, const struct gguf_tensor *tensor,
                          const struct gguf_tensor *next)
{
    uint64_t end = model->files[tensor->file_index].size_bytes;

    if (next && next->file_offset < end)
        end = next->file_offset;
    return end > tensor->file_offset ? end - tensor->file_offset : 0;
}

static void note_gap_at_end(const struct gguf_model *model, const struct gguf_tensor *last,
                            struct gguf_report *report)
{
    const uint64_t gap =
        gap_between(model, end_of(last), model->files[last->file_index].size_bytes);

    if (gap > 0)
        gguf_note(report, end_of(last),
                  "%" PRIu64 " bytes after the last tensor, %s, belong to no tensor", gap,
                  gguf_quote(last->name).text);
}

/* Check the bytes between the tensor that ends furthest so far and the next one with data. */
static void check_between(const struct gguf_model *model, const struct gguf_tensor *furthest,
                          const struct gguf_tensor *tensor, bool is_end_known,
                          struct gguf_report *report)
{
    const uint64_t gap = gap_between(model, end_of(furthest), tensor->file_offset);

    if (end_of(furthest) > tensor->file_offset)
        gguf_error(report, -EINVAL, tensor->info_offset,
                   "tensor %s: its data at byte %" PRIu64
                   " overlap those of tensor %s, bytes %" PRIu64 " to %" PRIu64,
                   gguf_quote(tensor->name).text, tensor->file_offset,
                   gguf_quote(furthest->name).text, furthest->file_offset, end_of(furthest));
    else if (gap > 0 && is_end_known)
        gguf_note(report, end_of(furthest),
                  "%" PRIu64 " bytes between tensors %s and %s belong to no tensor", gap,
                  gguf_quote(furthest->name).text, gguf_quote(tensor->name).text);
}

/* Check `n` tensors of one file, in the order of their data. */
static void check_file_overlaps(const struct gguf_model *model,
                                const struct gguf_tensor *const *order, uint64_t n,
                                struct gguf_report *report)
{
    const struct gguf_tensor *furthest = NULL;
    bool is_end_known = true;

    for (uint64_t i = 0; i < n; i++) {
        const struct gguf_tensor *tensor = order[i];

        is_end_known = is_end_known && tensor->type;
        if (!tensor->type)
            model->tensors[tensor - model->tensors].extent_bytes =
                extent_of(model, tensor, i + 1 < n ? order[i + 1] : NULL);
        if (!tensor->type && tensor->n_elements > 0 && furthest &&
            dequant_is_decodable(furthest->type))
            check_between(model, furthest, tensor, is_end_known, report);
        if (tensor->size_bytes == 0)
            continue;
        if (furthest)
            check_between(model, furthest, tensor, is_end_known, report);
        if (!furthest || end_of(tensor) > end_of(furthest))
            furthest = tensor;
    }
    if (furthest && is_end_known)
        note_gap_at_end(model, furthest, report);
}

/*
 * Bounds must be checked before. After a tensor of unknown type, which has no known end, no gaps
 * are reported. A tensor of a type that ggml removed may be shorter than its type says, because
 * ik_llama.cpp uses the id of one for another type; it is compared only with tensors of known type.
 */
static int check_overlaps(const struct gguf_model *model, struct gguf_report *report)
{
    const struct gguf_tensor **order = (const struct gguf_tensor **)sorted(
        model->tensors, model->n_tensors, sizeof *model->tensors, compare_places);
    uint64_t end;

    if (!order)
        return fail_memory(report);
    for (uint64_t start = 0; start < model->n_tensors; start = end) {
        const uint32_t file_index = order[start]->file_index;

        for (end = start + 1; end < model->n_tensors; end++) {
            if (order[end]->file_index != file_index)
                break;
        }
        report->path = gguf_path_to_report(model, file_index);
        check_file_overlaps(model, order + start, end - start, report);
    }
    report->path = NULL;
    free(order);
    return 0;
}

static void compute_sizes(struct gguf_model *model, struct gguf_report *report)
{
    for (uint64_t i = 0; i < model->n_tensors; i++) {
        report->path = gguf_path_to_report(model, model->tensors[i].file_index);
        gguf_validate_size(&model->tensors[i], report);
    }
    report->path = NULL;
}

/* Keys are those of the first file. */
static int check_keys(struct gguf_model *model, struct gguf_report *report)
{
    int result;

    report->path = gguf_path_to_report(model, 0);
    result = check_key_names(model, report);
    report->path = NULL;
    return result;
}

int gguf_validate(struct gguf_model *model, struct gguf_report *report)
{
    int result = check_keys(model, report);

    if (result == 0)
        result = check_tensor_names(model, report);
    if (result < 0)
        return result;

    compute_sizes(model, report);
    check_bounds(model, report);
    if (report->n_errors == 0)
        result = check_overlaps(model, report);
    return report->n_errors > 0 ? report->first_error.code : result;
}
