/*
 * Joins models of llama.cpp in several files: all with more than 7 billion parameters, before magic
 * ggjt. Each part has the whole header and vocabulary, and a slice of each matrix; vectors are the
 * same in all. The number of parts follows from the width of the embeddings. Source:
 * llama_model_load() in llama.cpp of March 2023; names are in gguf/support/shard_names.h.
 */
#include "gguf/legacy/old_reading.h"
#include "gguf/parse_file.h"
#include "gguf/support/arrays.h"
#include "gguf/support/shard_names.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/*
 * The source that joins the parts of a model: it reads as the file that a converter without parts
 * would have written. No data are copied; what differs from the parts, as the dimensions of
 * tensors, is in memory.
 */

/* Consecutive bytes of the file: of parts, or of `made`. */
struct stretch {
    uint64_t end;         /* in the file */
    uint64_t offset;      /* in each part, or in `made` */
    uint64_t piece_bytes; /* taken from a part before the next one follows */
    uint32_t n_parts;     /* the first ones; 0: `made` */
};

struct joined {
    struct gguf_file parts[GGUF_MAX_PARTS];
    uint32_t n_parts;
    struct stretch *stretches;
    size_t n_stretches, room;
    struct gguf_buffer made;
};

/* ---- the joined file while it is laid out ---- */

static void free_joined(struct joined *joined)
{
    for (uint32_t i = 0; i < joined->n_parts; i++)
        gguf_file_close(&joined->parts[i]);
    gguf_buffer_free(&joined->made);
    free(joined->stretches);
    free(joined);
}

static uint64_t size_of(const struct joined *joined)
{
    return joined->n_stretches > 0 ? joined->stretches[joined->n_stretches - 1].end : 0;
}

/* Append n_bytes of each part that the stretch takes, or of `made`. Returns 0, -ENOMEM or
 * -EOVERFLOW. */
static int add(struct joined *joined, struct stretch stretch, uint64_t n_bytes)
{
    const uint64_t n_parts = stretch.n_parts > 0 ? stretch.n_parts : 1;

    if (n_bytes == 0)
        return 0;
    if (__builtin_mul_overflow(n_bytes, n_parts, &n_bytes) ||
        __builtin_add_overflow(size_of(joined), n_bytes, &stretch.end) || stretch.end > INT64_MAX)
        return -EOVERFLOW;
    if (gguf_reserve(&joined->stretches, &joined->room, joined->n_stretches + 1, sizeof stretch) <
        0)
        return -ENOMEM;
    joined->stretches[joined->n_stretches++] = stretch;
    return 0;
}

/* Append bytes of the first part. */
static int add_first(struct joined *joined, uint64_t offset, uint64_t n_bytes)
{
    return add(joined, (struct stretch){.offset = offset, .piece_bytes = n_bytes, .n_parts = 1},
               n_bytes);
}

/* ---- the source ---- */

/* Consecutive bytes of one part, or of `made`. */
struct run {
    const struct stretch *stretch;
    uint32_t part;
    uint64_t offset;  /* in the part, or in `made` */
    uint64_t n_bytes; /* up to the next part or stretch */
};

/* Find the bytes at `offset`, which lies in the file. */
static struct run find_run(const struct joined *joined, uint64_t offset)
{
    const struct stretch *stretches = joined->stretches;
    const size_t low =
        gguf_find_end(&stretches->end, joined->n_stretches, sizeof *stretches, offset);
    uint64_t at, piece, skip;
    struct run run;

    at = offset - (low > 0 ? stretches[low - 1].end : 0);
    piece = at / stretches[low].piece_bytes;
    skip = at % stretches[low].piece_bytes;
    run = (struct run){.stretch = &stretches[low],
                       .offset = stretches[low].offset + skip,
                       .n_bytes = stretches[low].piece_bytes - skip};
    if (run.stretch->n_parts > 1) {
        run.part = (uint32_t)(piece % run.stretch->n_parts);
        run.offset += piece / run.stretch->n_parts * run.stretch->piece_bytes;
    }
    return run;
}

static void close_joined(struct gguf_source *source)
{
    free_joined(source->state);
}

static void copy_out(void *argument, uint64_t at, const uint8_t *bytes, size_t n_bytes)
{
    memcpy((uint8_t *)argument + at, bytes, n_bytes);
}

static int read_joined(const struct gguf_source *source, uint64_t offset, size_t n_bytes, void *out)
{
    const struct joined *joined = source->state;
    uint8_t *to = out;

    if (n_bytes > source->size_bytes || offset > source->size_bytes - n_bytes)
        return -EIO;
    while (n_bytes > 0) {
        const struct run run = find_run(joined, offset);
        const size_t n = run.n_bytes < n_bytes ? (size_t)run.n_bytes : n_bytes;
        int result = 0;

        if (run.stretch->n_parts == 0)
            memcpy(to, joined->made.bytes + run.offset, n);
        else
            result =
                gguf_source_lend(&joined->parts[run.part].source, run.offset, n, 1, copy_out, to);
        if (result < 0)
            return result;
        to += n;
        offset += n;
        n_bytes -= n;
    }
    return 0;
}

/*
 * The newest times of all parts. Two sizes say what happened to the parts: 0 that one has become
 * shorter, so that no byte is certain, and one too large that they are other files.
 */
static int get_joined_status(const struct gguf_source *source, struct gguf_file_status *status)
{
    const struct joined *joined = source->state;
    uint64_t size_bytes = source->size_bytes;

    for (uint32_t i = 0; i < joined->n_parts; i++) {
        const struct gguf_source *part = &joined->parts[i].source;
        struct gguf_file_status now;
        int result = part->kind->get_status(part, &now);

        if (result < 0)
            return result;
        if (now.size_bytes < part->size_bytes)
            size_bytes = 0;
        else if (gguf_file_check(&joined->parts[i], 0) == -ESTALE && size_bytes > 0)
            size_bytes = UINT64_MAX;
        if (i == 0)
            *status = now;
        if (gguf_is_later(now.modified, status->modified))
            status->modified = now.modified;
        if (gguf_is_later(now.status_changed, status->status_changed))
            status->status_changed = now.status_changed;
    }
    status->size_bytes = size_bytes;
    return 0;
}

static struct gguf_pieces find_joined_pieces(const struct gguf_source *source, uint64_t offset)
{
    const struct joined *joined = source->state;
    struct run run;

    if (offset >= source->size_bytes)
        return (struct gguf_pieces){.path = source->path, .offset = offset, .n_files = 1};
    run = find_run(joined, offset);
    return (struct gguf_pieces){.path = joined->parts[run.part].source.path,
                                .offset = run.offset,
                                .n_files = run.stretch->n_parts > 1 ? run.stretch->n_parts : 1,
                                .piece_bytes = run.stretch->piece_bytes};
}

static const struct gguf_source_kind joined_file = {
    .close = close_joined,
    .read = read_joined,
    .get_status = get_joined_status,
    .find_pieces = find_joined_pieces,
};

/* ---- how many ---- */

/* Return the number of parts of the model to which a file belongs. */
static uint32_t count_parts(const struct gguf_model *model)
{
    const struct gguf_key *width = gguf_find_key(model, "llama.embedding_length");
    uint64_t count = 1;

    if (!model->has_entries_between || !width)
        return 1;
    for (uint64_t i = 0; i < model->n_tensors; i++) {
        const struct gguf_tensor *tensor = &model->tensors[i];

        if (gguf_string_equals(tensor->name, "tok_embeddings.weight") && tensor->ne[0] > 0 &&
            width->value.u64 % tensor->ne[0] == 0)
            count = width->value.u64 / tensor->ne[0];
    }
    return count >= 1 && count <= GGUF_MAX_PARTS ? (uint32_t)count : 1;
}

/* ---- parsing the parts ---- */

/* Return the length of all before the first tensor, the same in all parts. */
static uint64_t start_bytes(const struct gguf_model *part)
{
    return part->tensors[0].info_offset - part->files[0].source.start_offset;
}

static int check_start(const struct gguf_model *part, const struct gguf_model *first,
                       struct gguf_report *report)
{
    const uint8_t *bytes = part->files[0].header.bytes, *expected = first->files[0].header.bytes;
    const uint64_t n_bytes = start_bytes(first);
    uint64_t i = 0;

    if (part->n_tensors == 0)
        return gguf_error(report, GGUF_RULE_SHARD_MISMATCH, -EINVAL, GGUF_NO_PLACE,
                          "has a vocabulary and no tensors");
    if (part->files[0].source.start_offset != first->files[0].source.start_offset)
        return gguf_error(report, GGUF_RULE_SHARD_MISMATCH, -EINVAL,
                          gguf_at(part->files[0].source.start_offset),
                          "the model begins here, and in %s at byte %" PRIu64
                          "; unpack all parts into files of their own",
                          first->files[0].source.path, first->files[0].source.start_offset);
    while (i < n_bytes && i < start_bytes(part) && bytes[i] == expected[i])
        i++;
    if (i == n_bytes && start_bytes(part) == n_bytes)
        return 0;
    return gguf_error(report, GGUF_RULE_SHARD_MISMATCH, -EINVAL,
                      gguf_at(part->files[0].source.start_offset + i),
                      "its hyperparameters or vocabulary are not those of %s: all parts must be of "
                      "one model",
                      first->files[0].source.path);
}

/* Check that a tensor is the same slice as in the first part. */
static bool is_same_slice(const struct gguf_tensor *tensor, const struct gguf_tensor *expected)
{
    return gguf_string_compare(tensor->name, expected->name) == 0 &&
           tensor->type == expected->type && tensor->n_dims == expected->n_dims &&
           memcmp(tensor->ne, expected->ne, sizeof tensor->ne) == 0;
}

static int check_tensors(const struct gguf_model *part, const struct gguf_model *first,
                         struct gguf_report *report)
{
    for (uint64_t i = 0; i < part->n_tensors && i < first->n_tensors; i++) {
        const struct gguf_tensor *tensor = &part->tensors[i], *expected = &first->tensors[i];

        if (!is_same_slice(tensor, expected))
            return gguf_error(report, GGUF_RULE_SHARD_MISMATCH, -EINVAL, gguf_tensor_place(tensor),
                              "in its place, %s has tensor %s; name, type and shape "
                              "must be the same in all parts",
                              first->files[0].source.path, gguf_quote(expected->name).text);
    }
    if (part->n_tensors == first->n_tensors)
        return 0;
    return gguf_error(report, GGUF_RULE_SHARD_MISMATCH, -EINVAL, GGUF_NO_PLACE,
                      "has %" PRIu64 " tensors, and %s has %" PRIu64, part->n_tensors,
                      first->files[0].source.path, first->n_tensors);
}

static int check_part(const struct gguf_parsed_files *parts, uint32_t index,
                      struct gguf_report *report)
{
    const struct gguf_model *part = parts->list[index], *named = parts->list[parts->named];
    const int result = check_start(part, named, report);

    return result < 0 ? result : check_tensors(part, named, report);
}

/* ---- joining ---- */

/* Return true if a part has some columns of a matrix, false if it has some rows. */
static bool is_split_by_columns(struct gguf_string name)
{
    return gguf_string_contains(name, "tok_embeddings") ||
           gguf_string_contains(name, "attention.wo.weight") ||
           gguf_string_contains(name, "feed_forward.w2.weight");
}

/* Add the entry of a tensor, and the padding after it; see gguf/legacy/old_reading.h. */
static int add_entry(struct joined *joined, const struct gguf_tensor *tensor, const uint64_t ne[2],
                     uint64_t alignment_bytes)
{
    static const uint8_t zeros[64];
    const uint32_t numbers[] = {tensor->n_dims, (uint32_t)tensor->name.length_bytes,
                                tensor->type_id, (uint32_t)ne[0], (uint32_t)ne[1]};
    const size_t start = joined->made.length, n_numbers = 3 + (size_t)tensor->n_dims;
    const uint64_t n_bytes = n_numbers * sizeof *numbers + tensor->name.length_bytes;
    const size_t padding = -(size_of(joined) + n_bytes) & (alignment_bytes - 1);

    assert(alignment_bytes <= sizeof zeros);
    if (gguf_buffer_add(&joined->made, numbers, n_numbers * sizeof *numbers) < 0 ||
        gguf_buffer_add(&joined->made, tensor->name.data, tensor->name.length_bytes) < 0 ||
        gguf_buffer_add(&joined->made, zeros, padding) < 0)
        return -ENOMEM;
    return add(joined, (struct stretch){.offset = start, .piece_bytes = n_bytes + padding},
               n_bytes + padding);
}

/* Add a tensor of all parts. */
static int add_tensor(struct joined *joined, const struct gguf_tensor *tensor, uint32_t count,
                      uint64_t alignment_bytes, struct gguf_report *report)
{
    const bool by_columns = is_split_by_columns(tensor->name);
    const uint64_t n_rows = tensor->n_dims > 1 ? tensor->ne[1] : 1;
    uint64_t ne[2] = {tensor->ne[0], tensor->ne[1]};
    int result;

    if (tensor->n_dims > 2)
        return gguf_error(report, GGUF_RULE_DIMENSIONS, -EINVAL, gguf_tensor_place(tensor),
                          "it has %" PRIu32
                          " dimensions; models in parts have vectors and matrices only",
                          tensor->n_dims);
    if (tensor->n_dims == 2)
        ne[by_columns ? 0 : 1] *= count;
    if (ne[0] > UINT32_MAX || ne[1] > UINT32_MAX)
        return gguf_error(report, GGUF_RULE_DIMENSIONS, -EOVERFLOW, gguf_tensor_place(tensor),
                          "its %" PRIu32 " parts together have more than 2^32 %s", count,
                          by_columns ? "columns" : "rows");
    result = add_entry(joined, tensor, ne, alignment_bytes);
    if (result < 0 || tensor->size_bytes == 0)
        return result;
    if (tensor->n_dims < 2)
        return add_first(joined, tensor->file_offset, tensor->size_bytes);
    return add(joined,
               (struct stretch){.offset = tensor->file_offset,
                                .piece_bytes = tensor->size_bytes / (by_columns ? n_rows : 1),
                                .n_parts = count},
               tensor->size_bytes);
}

/* Lay out the file that joins the parts, which all have the layout of the first. */
static int lay_out(struct joined *joined, const struct gguf_model *first, uint32_t count,
                   struct gguf_report *report)
{
    const struct gguf_file *file = &first->files[0];
    const uint64_t alignment_bytes = gguf_old_alignment(file->header.bytes);
    int result = add_first(joined, file->source.start_offset, start_bytes(first));

    for (uint64_t i = 0; result == 0 && i < first->n_tensors; i++)
        result = add_tensor(joined, &first->tensors[i], count, alignment_bytes, report);
    return result;
}

/* Join parts that fit together. Their files are taken over once they are laid out. */
static int join(const struct gguf_parsed_files *parts, const struct gguf_open_options *options,
                struct gguf_model **model, struct gguf_report *report)
{
    struct gguf_open_options whole = *options;
    struct joined *joined = calloc(1, sizeof *joined);
    struct gguf_file file;
    int result = joined ? lay_out(joined, parts->list[0], parts->count, report) : -ENOMEM;

    *model = NULL;
    whole.offset = whole.size_bytes = 0; /* the place of the model in each part, and not in all */
    if (result < 0) {
        if (joined)
            free_joined(joined);
        return result;
    }
    for (; joined->n_parts < parts->count; joined->n_parts++) {
        struct gguf_file *part = &parts->list[joined->n_parts]->files[0];

        assert(!part->source.is_growing);
        joined->parts[joined->n_parts] = *part;
        *part = (struct gguf_file){0};
    }
    result = gguf_file_open(&joined_file, joined, size_of(joined), joined->parts[0].source.path,
                            &file, report);
    if (result == 0)
        result = gguf_parse_file(&file, &whole, model, report);
    if (result != 0)
        return result;
    (*model)->format =
        gguf_model_print(*model, "%s in %" PRIu32 " parts", (*model)->format, parts->count);
    if ((*model)->format)
        return 0;
    gguf_close(*model);
    *model = NULL;
    return -ENOMEM;
}

int gguf_parts_join(struct gguf_model **model, struct gguf_files *files,
                    const struct gguf_open_options *options, struct gguf_report *report)
{
    struct gguf_parsed_files parts = {
        .count = count_parts(*model), .named = files->named, .what = "parts", .check = check_part};
    struct gguf_model *joined;
    int result;

    if (parts.count == 1)
        return 0;
    if (files->count != GGUF_MAX_PARTS || files->name_count > 0 || files->named >= parts.count)
        return gguf_error(report, GGUF_RULE_SHARD_NAME, -EINVAL, GGUF_NO_PLACE,
                          "is one of %" PRIu32
                          " parts of a model, so its name must end in .bin or, "
                          "from the second part on, in .bin.1 and so on: the others are found next "
                          "to it by that name",
                          parts.count);
    if ((*model)->files[0].source.is_growing)
        return gguf_error(report, GGUF_RULE_INCOMPLETE_DATA, -EINVAL, GGUF_NO_PLACE,
                          "is one of %" PRIu32 " parts of a model, which cannot be joined while "
                          "they are being written",
                          parts.count);
    result = gguf_parse_other_files(&parts, *model, files, options, report);
    if (result == 0)
        result = join(&parts, options, &joined, report);
    gguf_close_parsed(&parts, parts.named);
    if (result != 0)
        return report->n_errors > 0 ? result : gguf_system_error(report, result, GGUF_NO_PLACE);
    gguf_close(*model);
    *model = joined;
    return 0;
}
