#include "gguf/compose.h"

#include "dequant/rows.h"
#include "gguf/support/arrays.h"
#include "gguf/validate.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Consecutive bytes of the composed source. */
struct stretch {
    uint64_t end;                 /* in the source */
    struct gguf_elements of;      /* model NULL: `bytes` */
    const struct gguf_file *file; /* of the tensor */
    uint64_t skip;                /* bytes of the tensor's data before the piece */
    const uint8_t *bytes;
};

/* What the composed source reads. */
struct composed {
    struct stretch *list;
    size_t count, room;
    struct gguf_file_status status; /* never changes: the files of the origins are checked */
};

struct gguf_composition {
    struct gguf_model *model;
    struct composed *composed;
    const struct gguf_model **origins; /* in the order of their files in the new model */
    struct gguf_piece *pieces;         /* until it is placed, a tensor's file_offset is their end */
    size_t n_origins, n_pieces, origin_room, piece_room, tensor_room;
};

/* ---- the source ---- */

static uint64_t size_so_far(const struct composed *composed)
{
    return composed->count > 0 ? composed->list[composed->count - 1].end : 0;
}

static int open_composed(struct gguf_source *source, const char *path, struct gguf_report *report)
{
    (void)path;
    (void)report;
    source->size_bytes = size_so_far(source->state);
    return 0;
}

static void close_composed(struct gguf_source *source)
{
    struct composed *composed = source->state;

    free(composed->list);
    free(composed);
}

static int read_stretch(const struct stretch *stretch, uint64_t offset, size_t n_bytes, void *out)
{
    if (!stretch->of.model) {
        memcpy(out, stretch->bytes + offset, n_bytes);
        return 0;
    }
    offset += stretch->skip;
    if (gguf_elements_are_stored(&stretch->of))
        return gguf_file_read(stretch->file, stretch->of.tensor->file_offset + offset, n_bytes,
                              out);
    return gguf_elements_read(&stretch->of, offset, n_bytes, out);
}

static int read_composed(const struct gguf_source *source, uint64_t offset, size_t n_bytes,
                         void *out)
{
    const struct composed *composed = source->state;
    size_t low = 0, high = composed->count;

    if (n_bytes > source->size_bytes || offset > source->size_bytes - n_bytes)
        return -EIO;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;

        if (composed->list[middle].end > offset)
            high = middle;
        else
            low = middle + 1;
    }
    for (char *to = out; n_bytes > 0; low++) {
        const uint64_t start = low > 0 ? composed->list[low - 1].end : 0;
        const uint64_t left = composed->list[low].end - offset;
        const size_t n = left < n_bytes ? (size_t)left : n_bytes;
        const int result = read_stretch(&composed->list[low], offset - start, n, to);

        if (result < 0)
            return result;
        to += n;
        offset += n;
        n_bytes -= n;
    }
    return 0;
}

static int get_composed_status(const struct gguf_source *source, struct gguf_file_status *status)
{
    *status = ((const struct composed *)source->state)->status;
    status->size_bytes = source->size_bytes;
    return 0;
}

/* No file has these bytes as they are. */
static struct gguf_pieces find_no_pieces(const struct gguf_source *source, uint64_t offset)
{
    (void)source;
    return (struct gguf_pieces){.offset = offset, .n_files = 1};
}

static const struct gguf_source_kind composed_file = {
    .open = open_composed,
    .close = close_composed,
    .read = read_composed,
    .get_status = get_composed_status,
    .find_pieces = find_no_pieces,
};

/* ---- collecting ---- */

static int fail_memory(struct gguf_report *report)
{
    return gguf_system_error(report, -ENOMEM, GGUF_NO_PLACE);
}

static int fail_piece(const struct gguf_piece *piece, const char *why, struct gguf_report *report)
{
    return gguf_error(report, GGUF_RULE_EDIT, -EINVAL,
                      gguf_at_tensor(piece->of.tensor->name, GGUF_NO_OFFSET),
                      "its elements %" PRIu64 " to %" PRIu64 " cannot be taken: %s", piece->first,
                      piece->first + piece->n_elements, why);
}

/* Append the model's files, unless they are there. Returns the index of the first. */
static int add_origin(struct gguf_composition *composition, const struct gguf_model *model,
                      uint32_t *first_file)
{
    struct gguf_model *made = composition->model;
    struct gguf_file *files;
    const struct gguf_model **origins;

    *first_file = 0;
    for (size_t i = 0; i < composition->n_origins; i++) {
        if (composition->origins[i] == model)
            return 0;
        *first_file += composition->origins[i]->n_files;
    }
    origins = gguf_grow(composition->origins, &composition->origin_room, composition->n_origins + 1,
                        sizeof *origins);
    if (!origins)
        return -ENOMEM;
    composition->origins = origins;
    /* One more for the composed source. */
    files = reallocarray(made->files, (size_t)made->n_files + model->n_files + 1, sizeof *files);
    if (!files)
        return -ENOMEM;
    made->files = files;
    memcpy(files + made->n_files, model->files, model->n_files * sizeof *files);
    origins[composition->n_origins++] = model;
    made->n_files += model->n_files;
    made->n_borrowed_files = made->n_files;
    return 0;
}

void gguf_compose_free(struct gguf_composition *composition)
{
    if (!composition)
        return;
    if (composition->composed)
        free(composition->composed->list);
    free(composition->composed);
    free(composition->origins);
    free(composition->pieces);
    if (composition->model)
        composition->model->n_owned = 0;
    gguf_close(composition->model);
    free(composition);
}

struct gguf_composition *gguf_compose_begin(const struct gguf_model *base)
{
    struct gguf_composition *composition = calloc(1, sizeof *composition);
    struct gguf_model *model = calloc(1, sizeof *model);
    uint32_t first_file;

    if (!composition || !model) {
        free(composition);
        free(model);
        return NULL;
    }
    composition->model = model;
    composition->composed = calloc(1, sizeof *composition->composed);
    *model = (struct gguf_model){.format = base->format,
                                 .big_endian = base->big_endian,
                                 .alignment_bytes = base->alignment_bytes,
                                 .has_entries_between = base->has_entries_between,
                                 .named_file = base->named_file,
                                 .gguf_remark = base->gguf_remark,
                                 .names_bytes = base->names_bytes,
                                 .n_keys = base->n_keys};
    model->keys = calloc(base->n_keys + 1, sizeof *model->keys);
    if (!composition->composed || !model->keys || add_origin(composition, base, &first_file) < 0) {
        gguf_compose_free(composition);
        return NULL;
    }
    memcpy(model->keys, base->keys, base->n_keys * sizeof *model->keys);
    return composition;
}

struct gguf_model *gguf_compose_model(struct gguf_composition *composition)
{
    return composition->model;
}

int gguf_compose_own(struct gguf_composition *composition, struct gguf_model *model)
{
    struct gguf_model *made = composition->model;
    struct gguf_model **owned = reallocarray(made->owned, made->n_owned + 1, sizeof *owned);

    if (!owned)
        return -ENOMEM;
    made->owned = owned;
    owned[made->n_owned++] = model;
    return 0;
}

int gguf_compose_tensor(struct gguf_composition *composition, const struct gguf_tensor *like,
                        struct gguf_report *report)
{
    struct gguf_model *model = composition->model;
    struct gguf_tensor *tensors, *tensor;

    if (model->n_tensors >= GGUF_MAX_TENSORS)
        return gguf_error(report, GGUF_RULE_METADATA_LIMIT, -E2BIG,
                          gguf_at_tensor(like->name, GGUF_NO_OFFSET),
                          "it is one more than %d, the limit of tensors", GGUF_MAX_TENSORS);
    tensors =
        gguf_grow(model->tensors, &composition->tensor_room, model->n_tensors + 1, sizeof *tensors);
    if (!tensors)
        return fail_memory(report);
    model->tensors = tensors;
    tensor = &tensors[model->n_tensors++];
    *tensor = (struct gguf_tensor){.name = like->name,
                                   .type_id = like->type ? like->type->id : like->type_id,
                                   .type = like->type,
                                   .n_dims = like->n_dims,
                                   .file_offset = composition->n_pieces,
                                   .info_offset = GGUF_NO_OFFSET};
    for (uint32_t i = 0; i < GGUF_MAX_DIMS; i++)
        tensor->ne[i] = i < like->n_dims ? like->ne[i] : 1;
    return 0;
}

int gguf_compose_piece(struct gguf_composition *composition, const struct gguf_piece *piece,
                       struct gguf_report *report)
{
    struct gguf_piece *pieces = gguf_grow(composition->pieces, &composition->piece_room,
                                          composition->n_pieces + 1, sizeof *pieces);

    if (!pieces)
        return fail_memory(report);
    composition->pieces = pieces;
    pieces[composition->n_pieces] = *piece;
    if (piece->of.model && !piece->of.type)
        pieces[composition->n_pieces].of.type = piece->of.tensor->type;
    composition->model->tensors[composition->model->n_tensors - 1].file_offset =
        ++composition->n_pieces;
    return 0;
}

int gguf_compose_whole(struct gguf_composition *composition, const struct gguf_model *model,
                       const struct gguf_tensor *tensor, struct gguf_string name,
                       struct gguf_report *report)
{
    struct gguf_tensor like = *tensor;
    int result;

    like.name = name;
    result = gguf_compose_tensor(composition, &like, report);
    return result < 0
               ? result
               : gguf_compose_piece(composition,
                                    &(struct gguf_piece){.of = {.model = model, .tensor = tensor},
                                                         .n_elements = tensor->n_elements},
                                    report);
}

/* ---- finishing ---- */

/* Get the bytes of the first n_elements of a tensor, in data of a type. */
static int count_bytes(const struct gguf_tensor *tensor, const struct dequant_type *type,
                       uint64_t n_elements, uint64_t *n_bytes)
{
    const uint64_t row = tensor->ne[0];

    *n_bytes = 0;
    if (n_elements == 0)
        return 0;
    if (n_elements == tensor->n_elements)
        return gguf_elements_size(tensor, type, n_bytes);
    if (type != tensor->type || !dequant_has_row_layout(type)) {
        *n_bytes = n_elements / type->block_elements * type->block_bytes;
        return n_elements % type->block_elements == 0 ? 0 : -EINVAL;
    }
    if (type->rows_bytes || type->tail_bytes > 0 || n_elements % row != 0)
        return -EINVAL;
    return dequant_rows_bytes(type, row, n_elements / row, n_bytes);
}

/* Find the data of a piece among those of the whole tensor. */
static int locate(const struct gguf_piece *piece, uint64_t *skip, uint64_t *n_bytes,
                  struct gguf_report *report)
{
    const struct gguf_tensor *tensor = piece->of.tensor;
    uint64_t end, end_bytes;

    if (!tensor->type)
        return fail_piece(piece, "its type is unknown", report);
    if (__builtin_add_overflow(piece->first, piece->n_elements, &end) || end > tensor->n_elements)
        return fail_piece(piece, "the tensor has fewer", report);
    if (piece->of.type != tensor->type && !dequant_is_decodable(tensor->type))
        return fail_piece(piece, "its type cannot be decoded", report);
    if (count_bytes(tensor, piece->of.type, piece->first, skip) < 0 ||
        count_bytes(tensor, piece->of.type, end, &end_bytes) < 0)
        return fail_piece(piece, "they are no whole blocks or rows of the type", report);
    *n_bytes = end_bytes - *skip;
    return 0;
}

static int add_stretch(struct gguf_composition *composition, const struct gguf_tensor *tensor,
                       const struct gguf_piece *piece, struct gguf_report *report)
{
    struct composed *composed = composition->composed;
    struct stretch stretch = {.of = piece->of, .bytes = piece->bytes};
    const uint64_t start = size_so_far(composed);
    uint64_t n_bytes;
    struct stretch *list;
    int result = 0;

    if (piece->of.model) {
        stretch.file = &piece->of.model->files[piece->of.tensor->file_index];
        if (stretch.file->source.is_growing)
            return fail_piece(piece, "its file is not complete", report);
        result = locate(piece, &stretch.skip, &n_bytes, report);
    } else if (count_bytes(tensor, tensor->type, piece->n_elements, &n_bytes) < 0) {
        return gguf_error(report, GGUF_RULE_EDIT, -EINVAL, gguf_tensor_place(tensor),
                          "its new data are no whole blocks");
    }
    if (result < 0 || n_bytes == 0)
        return result;
    if (__builtin_add_overflow(start, n_bytes, &stretch.end) || stretch.end > INT64_MAX)
        return gguf_error(report, GGUF_RULE_DIMENSIONS, -EOVERFLOW, gguf_tensor_place(tensor),
                          "with its data, the model has over 2^63 bytes");
    list = gguf_grow(composed->list, &composed->room, composed->count + 1, sizeof *list);
    if (!list)
        return fail_memory(report);
    composed->list = list;
    list[composed->count++] = stretch;
    return 0;
}

/* Place a tensor in the file of its only piece. Returns 1, or 0 if it needs the source. */
static int place_stored(struct gguf_composition *composition, struct gguf_tensor *tensor,
                        const struct gguf_piece *piece, struct gguf_report *report)
{
    const struct gguf_tensor *from = piece->of.tensor;
    uint64_t skip = 0, n_bytes;
    uint32_t first_file;

    if (!piece->of.model || piece->of.type != from->type || piece->of.map != GGUF_MAP_NONE)
        return 0;
    if (add_origin(composition, piece->of.model, &first_file) < 0)
        return fail_memory(report);
    if ((from->type || piece->first > 0 || piece->n_elements < from->n_elements) &&
        locate(piece, &skip, &n_bytes, report) < 0)
        return -EINVAL;
    tensor->big_endian = from->big_endian;
    tensor->file_index = first_file + from->file_index;
    tensor->file_offset = from->file_offset + skip;
    tensor->info_offset = from->info_offset;
    tensor->extent_bytes = from->extent_bytes;
    return 1;
}

/* Place a tensor with its pieces from `first` on, and check that they have as many elements. */
static int place(struct gguf_composition *composition, struct gguf_tensor *tensor, size_t first,
                 struct gguf_report *report)
{
    const size_t end = (size_t)tensor->file_offset;
    const struct gguf_piece *pieces = composition->pieces;
    uint64_t n_elements = 0;
    int result = gguf_validate_size(tensor, report);

    for (size_t i = first; result == 0 && i < end; i++) {
        const bool is_typed = !pieces[i].of.model || pieces[i].of.type == tensor->type;

        if (!is_typed || __builtin_add_overflow(n_elements, pieces[i].n_elements, &n_elements))
            result = -EINVAL;
    }
    if (result == 0 && n_elements != tensor->n_elements)
        result = -EINVAL;
    if (result == -EINVAL && report->n_errors == 0)
        return gguf_error(
            report, GGUF_RULE_EDIT, -EINVAL, gguf_tensor_place(tensor),
            "it has %" PRIu64 " elements of type %s, its parts have %" PRIu64 " or another type",
            tensor->n_elements, tensor->type ? tensor->type->name : "unknown", n_elements);
    if (result == 0 && end - first == 1)
        result = place_stored(composition, tensor, &pieces[first], report);
    if (result != 0)
        return result < 0 ? result : 0;
    tensor->file_index = UINT32_MAX; /* of the composed source, which comes last */
    tensor->file_offset = size_so_far(composition->composed);
    for (size_t i = first; result == 0 && i < end; i++)
        result = add_stretch(composition, tensor, &pieces[i], report);
    return result;
}

/* Open the composed source, if a tensor lies in it, as the last file. */
static int open_source(struct gguf_composition *composition, struct gguf_report *report)
{
    struct gguf_model *model = composition->model;
    const struct gguf_source *first = &model->files[0].source;
    bool is_used = false;
    int result = 0;

    for (uint64_t i = 0; i < model->n_tensors; i++) {
        if (model->tensors[i].file_index == UINT32_MAX) {
            model->tensors[i].file_index = model->n_files;
            is_used = true;
        }
    }
    if (!is_used)
        return 0;
    result = first->kind->get_status(first, &composition->composed->status);
    if (result < 0)
        return gguf_system_error(report, result, GGUF_NO_PLACE);
    result = gguf_file_open_as(&composed_file, composition->composed, first->path,
                               &model->files[model->n_files], report);
    composition->composed = NULL;
    model->n_files += result == 0;
    return result;
}

int gguf_compose_finish(struct gguf_composition *composition, struct gguf_model **model,
                        struct gguf_report *report)
{
    size_t first = 0; /* piece of a tensor */
    int result = 0;

    *model = NULL;
    for (uint64_t i = 0; result == 0 && i < composition->model->n_tensors; i++) {
        struct gguf_tensor *tensor = &composition->model->tensors[i];
        const size_t end = (size_t)tensor->file_offset;

        result = place(composition, tensor, first, report);
        first = end;
    }
    if (result == 0)
        result = open_source(composition, report);
    if (result == 0)
        result = gguf_validate_names(composition->model, report);
    if (result == 0) {
        *model = composition->model;
        composition->model = NULL;
    }
    gguf_compose_free(composition);
    return result;
}
