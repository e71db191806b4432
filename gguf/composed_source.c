/* The beginning and the end of a composition, and the source of its data. */
#include "gguf/compose.h"

#include "dequant/rows.h"
#include "gguf/support/arrays.h"
#include "gguf/validate.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Consecutive bytes of the source. */
struct stretch {
    struct gguf_elements of; /* model NULL: `bytes` */
    const uint8_t *bytes;
    uint64_t skip; /* bytes of the data before the piece */
    uint64_t end;  /* in the source */
};

struct composed {
    size_t count;
    struct gguf_file_status status; /* never changes: the files of the origins are checked */
    struct stretch list[];
};

/* ---- the source ---- */

static uint64_t size_so_far(const struct composed *composed)
{
    return composed->count > 0 ? composed->list[composed->count - 1].end : 0;
}

static void close_composed(struct gguf_source *source)
{
    free(source->state);
}

static int read_stretch(const struct stretch *stretch, uint64_t offset, size_t n_bytes, void *out)
{
    const struct gguf_tensor *tensor = stretch->of.tensor;

    offset += stretch->skip;
    if (!stretch->of.model) {
        memcpy(out, stretch->bytes + offset, n_bytes);
        return 0;
    }
    if (gguf_elements_are_stored(&stretch->of))
        return gguf_file_read(&stretch->of.model->files[tensor->file_index],
                              tensor->file_offset + offset, n_bytes, out);
    return gguf_elements_read(&stretch->of, offset, n_bytes, out);
}

static int read_composed(const struct gguf_source *source, uint64_t offset, size_t n_bytes,
                         void *out)
{
    const struct composed *composed = source->state;
    size_t low =
        gguf_find_end(&composed->list->end, composed->count, sizeof *composed->list, offset);

    if (n_bytes > source->size_bytes || offset > source->size_bytes - n_bytes)
        return -EIO;
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
    return (struct gguf_pieces){.offset = offset, .n_files = 1};
}

static const struct gguf_source_kind composed_file = {
    .close = close_composed,
    .read = read_composed,
    .get_status = get_composed_status,
    .find_pieces = find_no_pieces,
};

/* ---- the beginning ---- */

/* Append the model's files, unless they are there. Returns the index of the first. */
static uint32_t add_origin(struct gguf_composition *made, const struct gguf_model *origin)
{
    struct gguf_model *model = made->model;
    struct gguf_file *files;
    uint32_t first_file = 0;

    for (size_t i = 0; i < made->n_origins; i++) {
        if (made->origins[i] == origin)
            return first_file;
        first_file += made->origins[i]->n_files;
    }
    /* One more for the composed source. */
    files = reallocarray(model->files, (size_t)model->n_files + origin->n_files + 1, sizeof *files);
    if (files)
        model->files = files;
    if (!files ||
        gguf_reserve(&made->origins, &made->origins_room, made->n_origins + 1, sizeof origin) < 0) {
        made->result = -ENOMEM;
        return 0;
    }
    memcpy(files + model->n_files, origin->files, origin->n_files * sizeof *files);
    made->origins[made->n_origins++] = origin;
    model->n_files += origin->n_files;
    model->n_borrowed_files = model->n_files;
    return first_file;
}

void gguf_compose_begin(struct gguf_composition *made, const struct gguf_model *base,
                        struct gguf_report *report)
{
    struct gguf_model *model = calloc(1, sizeof *model);

    *made = (struct gguf_composition){
        .base = base, .model = model, .report = report, .twins_remedy = ""};
    if (model) {
        *model = (struct gguf_model){.format = base->format,
                                     .big_endian = base->big_endian,
                                     .alignment_bytes = base->alignment_bytes,
                                     .has_entries_between = base->has_entries_between,
                                     .named_file = base->named_file,
                                     .gguf_remark = base->gguf_remark,
                                     .names_bytes = base->names_bytes,
                                     .n_keys = base->n_keys};
        model->keys = calloc(base->n_keys + 1, sizeof *model->keys);
    }
    if (!model || !model->keys) {
        made->result = -ENOMEM;
        return;
    }
    memcpy(model->keys, base->keys, base->n_keys * sizeof *model->keys);
    add_origin(made, base);
}

void gguf_compose_drop(struct gguf_composition *made)
{
    free(made->items);
    free(made->pieces);
    free(made->origins);
    gguf_close(made->model);
    *made = (struct gguf_composition){0};
}

/* ---- the end ---- */

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

static bool can_convert(const struct dequant_type *from, const struct dequant_type *to)
{
    return from == to || (dequant_is_decodable(from) &&
                          (to->id == DEQUANT_F32 || to->encode[DEQUANT_SET_scalar]));
}

/* Find the data of a piece in its whole tensor, as data of the new tensor's type. */
static int locate(const struct gguf_tensor *tensor, const struct gguf_piece *piece, uint64_t *skip,
                  uint64_t *n_bytes, struct gguf_report *report)
{
    const struct gguf_tensor *from = piece->of.model ? piece->of.tensor : tensor;
    const struct dequant_type *type = tensor->type;
    const char *why = NULL;
    uint64_t end, end_bytes;

    if (!from->type || !type)
        why = "its type is unknown";
    else if (__builtin_add_overflow(piece->first, piece->n_elements, &end) ||
             end > from->n_elements)
        why = "the tensor has fewer";
    else if (!can_convert(from->type, type))
        why = "its type cannot be converted";
    else if (count_bytes(from, type, piece->first, skip) < 0 ||
             count_bytes(from, type, end, &end_bytes) < 0)
        why = "they are no whole blocks or rows of the type";
    if (why)
        return gguf_error(report, GGUF_RULE_EDIT, -EINVAL,
                          gguf_at_tensor(from->name, GGUF_NO_OFFSET),
                          "its elements %" PRIu64 " to %" PRIu64 " cannot be taken: %s",
                          piece->first, piece->first + piece->n_elements, why);
    *n_bytes = end_bytes - *skip;
    return 0;
}

/* Place a tensor in the file of its only piece. */
static int place_stored(struct gguf_composition *made, struct gguf_tensor *tensor,
                        const struct gguf_piece *piece)
{
    const struct gguf_tensor *from = piece->of.tensor;
    const uint32_t first_file = add_origin(made, piece->of.model);
    uint64_t skip = 0, n_bytes;
    int result = made->result;

    if (result == 0 && (from->type || piece->first > 0 || piece->n_elements < from->n_elements))
        result = locate(tensor, piece, &skip, &n_bytes, made->report);
    tensor->big_endian = from->big_endian;
    tensor->file_index = first_file + from->file_index;
    tensor->file_offset = from->file_offset + skip;
    tensor->info_offset = from->info_offset;
    tensor->extent_bytes = from->extent_bytes;
    return result;
}

/* Append a piece to the source, which has room for it. */
static int place_piece(struct composed *composed, const struct gguf_tensor *tensor,
                       const struct gguf_piece *piece, struct gguf_report *report)
{
    struct stretch *stretch = &composed->list[composed->count];
    uint64_t n_bytes;
    int result;

    *stretch = (struct stretch){.of = piece->of, .bytes = piece->bytes};
    stretch->of.type = tensor->type;
    result = locate(tensor, piece, &stretch->skip, &n_bytes, report);
    if (result < 0 || n_bytes == 0)
        return result;
    if (__builtin_add_overflow(size_so_far(composed), n_bytes, &stretch->end) ||
        stretch->end > INT64_MAX)
        return gguf_error(report, GGUF_RULE_DIMENSIONS, -EOVERFLOW, gguf_tensor_place(tensor),
                          "with its data, the model has over 2^63 bytes");
    composed->count++;
    return 0;
}

/* Add the tensor of an item to the model, and check that its pieces have as many elements. */
static int place(struct gguf_composition *made, const struct gguf_item *item,
                 struct composed *composed)
{
    const struct gguf_piece *pieces = &made->pieces[item->first_piece];
    const size_t n_pieces = item->end_piece - item->first_piece;
    struct gguf_tensor *tensor = &made->model->tensors[made->model->n_tensors++];
    uint64_t n_elements = 0;
    int result;

    *tensor =
        (struct gguf_tensor){.name = item->like.name,
                             .type_id = item->like.type ? item->like.type->id : item->like.type_id,
                             .type = item->like.type,
                             .n_dims = item->like.n_dims,
                             .info_offset = GGUF_NO_OFFSET};
    for (uint32_t i = 0; i < GGUF_MAX_DIMS; i++)
        tensor->ne[i] = i < tensor->n_dims ? item->like.ne[i] : 1;
    result = gguf_validate_size(tensor, made->report);
    for (size_t i = 0; i < n_pieces; i++) {
        if (__builtin_add_overflow(n_elements, pieces[i].n_elements, &n_elements))
            n_elements = UINT64_MAX;
    }
    if (result == 0 && n_elements != tensor->n_elements)
        result = gguf_error(made->report, GGUF_RULE_EDIT, -EINVAL, gguf_tensor_place(tensor),
                            "it has %" PRIu64 " elements, its parts have %" PRIu64,
                            tensor->n_elements, n_elements);
    if (result == 0 && n_pieces == 1 && pieces->of.model &&
        pieces->of.tensor->type == tensor->type && pieces->of.map == GGUF_MAP_NONE)
        return place_stored(made, tensor, pieces);
    tensor->file_index = UINT32_MAX; /* of the composed source, which comes last */
    tensor->file_offset = size_so_far(composed);
    for (size_t i = 0; result == 0 && i < n_pieces; i++)
        result = place_piece(composed, tensor, &pieces[i], made->report);
    return result;
}

/* Open the composed source, if a tensor lies in it, as the last file; else free it. */
static int open_source(struct gguf_model *model, struct composed *composed,
                       struct gguf_report *report)
{
    const struct gguf_source *first = &model->files[0].source;
    bool is_used = false;
    int result;

    for (uint64_t i = 0; i < model->n_tensors; i++) {
        if (model->tensors[i].file_index == UINT32_MAX) {
            model->tensors[i].file_index = model->n_files;
            is_used = true;
        }
    }
    if (!is_used) {
        free(composed);
        return 0;
    }
    result = first->kind->get_status(first, &composed->status);
    if (result < 0) {
        free(composed);
        return gguf_system_error(report, result, GGUF_NO_PLACE);
    }
    result = gguf_file_open(&composed_file, composed, size_so_far(composed), first->path,
                            &model->files[model->n_files], report);
    model->n_files += result == 0;
    return result;
}

int gguf_compose_end(struct gguf_composition *made, struct gguf_model **model)
{
    struct gguf_report *report = made->report;
    struct composed *composed = malloc(sizeof *composed + made->n_pieces * sizeof *composed->list);
    int result = made->result;

    *model = NULL;
    if (result == 0)
        made->model->tensors = calloc(made->n_items + 1, sizeof *made->model->tensors);
    if (!composed || (result == 0 && !made->model->tensors))
        result = -ENOMEM;
    if (composed)
        composed->count = 0;
    for (size_t i = 0; result == 0 && i < made->n_items; i++) {
        if (!made->items[i].is_dropped)
            result = place(made, &made->items[i], composed);
    }
    if (result == 0)
        result = open_source(made->model, composed, report);
    else
        free(composed);
    if (result == 0)
        result = gguf_validate_names(made->model, made->twins_remedy, report);
    if (result == 0) {
        *model = made->model;
        made->model = NULL;
    } else if (report->n_errors == 0) {
        gguf_system_error(report, result, GGUF_NO_PLACE);
    }
    gguf_compose_drop(made);
    return result;
}
