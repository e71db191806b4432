/* The rules for the places of tensor data in the files of a model. */
#include "gguf/validate.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

/* Return the least bytes of its data. A tensor of unknown type has some if it has elements. */
static uint64_t least_bytes(const struct gguf_tensor *tensor)
{
    return tensor->type ? tensor->size_bytes : tensor->n_elements > 0;
}

/* Return where the data end. Does not overflow once check_tensor_bounds() has passed the tensor. */
static uint64_t end_of(const struct gguf_tensor *tensor)
{
    return tensor->file_offset + tensor->size_bytes;
}

/* Counts the tensors of a file whose data it lacks. */
struct missing {
    uint64_t n_tensors; /* of the file, including complete ones */
    uint64_t n_short;
    uint64_t last_end; /* where the file would have to end */
};

static void report_missing(const struct gguf_model *model, const struct gguf_tensor *tensor,
                           uint64_t end, struct gguf_report *report)
{
    const uint64_t file_bytes = model->files[tensor->file_index].source.end_offset;

    if (!tensor->type) {
        gguf_error(report, GGUF_RULE_TRUNCATED_DATA, -ENODATA, gguf_tensor_place(tensor),
                   "its data start at byte %" PRIu64 ", but the file ends at %" PRIu64
                   " (unfinished download?)",
                   tensor->file_offset, file_bytes);
        return;
    }
    gguf_error(report, GGUF_RULE_TRUNCATED_DATA, -ENODATA, gguf_tensor_place(tensor),
               "its data are bytes %" PRIu64 " to %" PRIu64 ", but the file ends at %" PRIu64
               ": %" PRIu64 " of its %" PRIu64 " bytes are missing (unfinished download?)",
               tensor->file_offset, end, file_bytes,
               end - (tensor->file_offset > file_bytes ? tensor->file_offset : file_bytes),
               tensor->size_bytes);
}

static void note_missing(const struct gguf_source *file, const struct missing *missing,
                         struct gguf_report *report)
{
    if (missing->n_short > 0 && file->is_growing)
        gguf_note(report, GGUF_RULE_INCOMPLETE_DATA, GGUF_NO_PLACE,
                  "%" PRIu64 " of %" PRIu64 " tensors are not complete yet", missing->n_short,
                  missing->n_tensors);
    else if (missing->n_short > 0)
        gguf_note(report, GGUF_RULE_TRUNCATED_DATA, GGUF_NO_PLACE,
                  "the file should have at least %" PRIu64 " bytes and has %" PRIu64 ": %" PRIu64
                  " are missing, in %" PRIu64 " of %" PRIu64 " tensors",
                  missing->last_end, file->end_offset, missing->last_end - file->end_offset,
                  missing->n_short, missing->n_tensors);
}

static bool is_complete(const struct gguf_source *file, const struct gguf_tensor *tensor,
                        uint64_t end)
{
    return file->is_growing ? gguf_source_has(file, tensor->file_offset, least_bytes(tensor))
                            : end <= file->end_offset;
}

static void check_tensor_bounds(const struct gguf_model *model, const struct gguf_tensor *tensor,
                                struct missing *missing, struct gguf_report *report)
{
    const struct gguf_source *file = &model->files[tensor->file_index].source;
    const uint64_t n_bytes = least_bytes(tensor);
    uint64_t end;

    missing->n_tensors++;
    if (__builtin_add_overflow(tensor->file_offset, n_bytes, &end)) {
        gguf_error(report, GGUF_RULE_TENSOR_OFFSET, -EOVERFLOW, gguf_tensor_place(tensor),
                   "it starts at byte %" PRIu64 " and has %" PRIu64
                   " bytes, so it ends beyond 2^64",
                   tensor->file_offset, n_bytes);
        return;
    }
    /* A tensor without data may lie anywhere: a vocabulary-only file ends early. */
    if (n_bytes == 0 || is_complete(file, tensor, end))
        return;
    if (!file->is_growing)
        report_missing(model, tensor, end, report);
    missing->n_short++;
    missing->last_end = end > missing->last_end ? end : missing->last_end;
}

/* Tensors of one file are next to each other in the table. */
static void check_all_bounds(const struct gguf_model *model, struct gguf_report *report)
{
    struct missing missing = {0};

    for (uint64_t i = 0; i < model->n_tensors; i++) {
        const struct gguf_tensor *tensor = &model->tensors[i];
        const uint32_t file_index = tensor->file_index;

        report->path = gguf_path_to_report(model, file_index);
        check_tensor_bounds(model, tensor, &missing, report);
        if (i + 1 == model->n_tensors || model->tensors[i + 1].file_index != file_index) {
            note_missing(&model->files[file_index].source, &missing, report);
            missing = (struct missing){0};
        }
    }
    report->path = NULL;
}

/* Return the bytes from a tensor's data to `end`, less the padding to the alignment. */
static uint64_t gap_after(const struct gguf_model *model, const struct gguf_tensor *tensor,
                          uint64_t end)
{
    const uint64_t start = end_of(tensor), mask = model->alignment_bytes - 1;
    const uint64_t padding = (model->files[tensor->file_index].source.start_offset - start) & mask;

    if (model->has_entries_between)
        return 0; /* the parser has accounted for every byte */
    return end > start && end - start > padding ? end - start - padding : 0;
}

static void note_gap_at_end(const struct gguf_model *model, const struct gguf_tensor *last,
                            struct gguf_report *report)
{
    const uint64_t gap =
        gap_after(model, last, gguf_source_end(&model->files[last->file_index].source));

    if (gap > 0)
        gguf_note(report, GGUF_RULE_UNUSED_BYTES, gguf_at(end_of(last)),
                  "%" PRIu64 " bytes after the last tensor, %s, belong to no tensor", gap,
                  gguf_quote(last->name).text);
}

/* Check the bytes between the tensor that ends furthest so far and the next one with data. */
static void check_between(const struct gguf_model *model, const struct gguf_tensor *furthest,
                          const struct gguf_tensor *tensor, bool is_end_known,
                          struct gguf_report *report)
{
    const uint64_t gap = gap_after(model, furthest, tensor->file_offset);

    if (end_of(furthest) > tensor->file_offset)
        gguf_error(report, GGUF_RULE_OVERLAP, -EINVAL, gguf_tensor_place(tensor),
                   "its data at byte %" PRIu64 " overlap those of tensor %s, bytes %" PRIu64
                   " to %" PRIu64,
                   tensor->file_offset, gguf_quote(furthest->name).text, furthest->file_offset,
                   end_of(furthest));
    else if (gap > 0 && is_end_known)
        gguf_note(report, GGUF_RULE_UNUSED_BYTES, gguf_at(end_of(furthest)),
                  "%" PRIu64 " bytes between tensors %s and %s belong to no tensor", gap,
                  gguf_quote(furthest->name).text, gguf_quote(tensor->name).text);
}

/*
 * Set the extents of tensors of unknown type, among the `n` tensors of one file in the order of
 * their data: up to the next tensor that has data, or to the end of the file. A growing file has no
 * end yet.
 */
static void set_extents(const struct gguf_model *model, const struct gguf_tensor *const *order,
                        uint64_t n, struct gguf_report *report)
{
    const struct gguf_source *file = &model->files[order[0]->file_index].source;
    const struct gguf_tensor *next = NULL;

    for (uint64_t i = n; i-- > 0;) {
        struct gguf_tensor *tensor = &model->tensors[order[i] - model->tensors];

        if (tensor->n_elements == 0)
            continue;
        if (!tensor->type && (next || !file->is_growing))
            tensor->extent_bytes =
                (next ? next->file_offset : file->end_offset) - tensor->file_offset;
        if (!tensor->type && next && tensor->extent_bytes == 0)
            gguf_error(report, GGUF_RULE_OVERLAP, -EINVAL, gguf_tensor_place(next),
                       "its data at byte %" PRIu64 " start where those of tensor %s do",
                       next->file_offset, gguf_quote(tensor->name).text);
        next = tensor;
    }
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
        if (!tensor->type && tensor->n_elements > 0 && furthest)
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
 * are reported.
 */
static int check_overlaps(const struct gguf_model *model, struct gguf_report *report)
{
    const struct gguf_tensor **order = gguf_tensors_by_offset(model);
    uint64_t end;

    if (!order)
        return gguf_system_error(report, -ENOMEM, GGUF_NO_PLACE);
    for (uint64_t start = 0; start < model->n_tensors; start = end) {
        const uint32_t file_index = order[start]->file_index;

        for (end = start + 1; end < model->n_tensors; end++) {
            if (order[end]->file_index != file_index)
                break;
        }
        report->path = gguf_path_to_report(model, file_index);
        set_extents(model, order + start, end - start, report);
        check_file_overlaps(model, order + start, end - start, report);
    }
    report->path = NULL;
    free(order);
    return 0;
}

int gguf_check_bounds(struct gguf_model *model, struct gguf_report *report)
{
    check_all_bounds(model, report);
    return report->n_errors == 0 ? check_overlaps(model, report) : 0;
}
