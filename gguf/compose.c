#include "gguf/compose.h"

#include "gguf/support/arrays.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

/* ---- items ---- */

struct gguf_string gguf_compose_name(struct gguf_composition *made, const char *format, ...)
{
    struct gguf_string name = {0};
    va_list arguments;

    va_start(arguments, format);
    name.data = gguf_model_vprint(made->model, format, arguments);
    va_end(arguments);
    if (name.data)
        name.length_bytes = strlen(name.data);
    else if (made->result == 0)
        made->result = -ENOMEM;
    if (name.length_bytes > GGUF_MAX_LOADED_NAME_BYTES)
        gguf_compose_fail(made, gguf_at_tensor(name, GGUF_NO_OFFSET),
                          "the name has %" PRIu64 " bytes; llama.cpp takes at most %d",
                          name.length_bytes, GGUF_MAX_LOADED_NAME_BYTES);
    made->is_changed = true;
    return name;
}

struct gguf_item gguf_begin_item(const struct gguf_composition *made,
                                 const struct gguf_tensor *like, struct gguf_string name)
{
    struct gguf_item item = {*like, false, made->n_pieces, made->n_pieces};

    item.like.name = name;
    item.like.gguf_name = (struct gguf_string){0};
    return item;
}

const struct gguf_elements *gguf_origin_of(const struct gguf_composition *made,
                                           const struct gguf_item *item)
{
    return item->end_piece > item->first_piece && made->pieces[item->first_piece].of.model
               ? &made->pieces[item->first_piece].of
               : NULL;
}

void gguf_append_piece(struct gguf_composition *made, struct gguf_item *item,
                       const struct gguf_piece *piece)
{
    struct gguf_piece *last =
        item->end_piece > item->first_piece ? &made->pieces[item->end_piece - 1] : NULL;

    if (made->result < 0)
        return;
    if (last && piece->of.tensor && last->of.tensor == piece->of.tensor &&
        last->first + last->n_elements == piece->first) {
        last->n_elements += piece->n_elements;
        return;
    }
    if (made->n_pieces == GGUF_MAX_PIECES) {
        gguf_compose_fail(made, gguf_place_of(item), "the model has over %zu pieces of tensors",
                          GGUF_MAX_PIECES);
        return;
    }
    made->result =
        gguf_reserve(&made->pieces, &made->pieces_room, made->n_pieces + 1, sizeof *piece);
    if (made->result < 0)
        return;
    made->pieces[made->n_pieces++] = *piece;
    item->end_piece = made->n_pieces;
}

struct gguf_item gguf_whole_item(struct gguf_composition *made, const struct gguf_model *model,
                                 const struct gguf_tensor *tensor, struct gguf_string name)
{
    struct gguf_item item = gguf_begin_item(made, tensor, name);

    gguf_append_piece(made, &item,
                      &(struct gguf_piece){.of = {.model = model, .tensor = tensor},
                                           .n_elements = tensor->n_elements});
    return item;
}

void gguf_insert_item(struct gguf_composition *made, size_t index, struct gguf_item item)
{
    struct gguf_item *items;

    if (made->result < 0)
        return;
    if (made->n_items == GGUF_MAX_TENSORS) {
        made->result =
            gguf_error(made->report, GGUF_RULE_METADATA_LIMIT, -E2BIG, gguf_place_of(&item),
                       "it is one more than %d, the limit of tensors", GGUF_MAX_TENSORS);
        return;
    }
    made->result = gguf_reserve(&made->items, &made->items_room, made->n_items + 1, sizeof item);
    if (made->result < 0)
        return;
    items = made->items;
    memmove(&items[index + 1], &items[index], (made->n_items++ - index) * sizeof *items);
    items[index] = item;
}

void gguf_append_items(struct gguf_composition *made, const struct gguf_model *model)
{
    for (uint64_t i = 0; made->result == 0 && i < model->n_tensors; i++)
        gguf_insert_item(
            made, made->n_items,
            gguf_whole_item(made, model, &model->tensors[i], gguf_name_of(&model->tensors[i])));
}

void gguf_remove_dropped(struct gguf_composition *made)
{
    size_t n_left = 0;

    for (size_t i = 0; i < made->n_items; i++) {
        if (!made->items[i].is_dropped)
            made->items[n_left++] = made->items[i];
    }
    made->is_changed |= n_left < made->n_items;
    made->n_items = n_left;
}

size_t gguf_find_item(const struct gguf_composition *made, struct gguf_string name)
{
    size_t i = 0;

    while (i < made->n_items &&
           (made->items[i].is_dropped || gguf_string_compare(made->items[i].like.name, name) != 0))
        i++;
    return i;
}

/* ---- rows ---- */

static uint64_t product(const struct gguf_tensor *like, uint32_t first, uint32_t end)
{
    uint64_t n = 1;

    for (uint32_t i = first; i < end; i++)
        n *= like->ne[i];
    return n;
}

struct gguf_item gguf_begin_rows(const struct gguf_composition *made, const struct gguf_item *from,
                                 uint32_t axis, struct gguf_string name)
{
    struct gguf_item item = gguf_begin_item(made, &from->like, name);

    item.like.ne[axis] = item.like.n_elements = item.like.size_bytes = 0;
    if (item.like.n_dims <= axis)
        item.like.n_dims = axis + 1;
    return item;
}

uint64_t gguf_count_runs(const struct gguf_item *item, uint32_t axis)
{
    return item->like.n_elements > 0 ? product(&item->like, axis + 1, GGUF_MAX_DIMS) : 0;
}

void gguf_append_rows(struct gguf_composition *made, struct gguf_item *item,
                      const struct gguf_item *from, uint32_t axis, uint64_t run, uint64_t first,
                      uint64_t n_rows)
{
    const uint64_t width = product(&from->like, 0, axis);
    uint64_t skip = (run * from->like.ne[axis] + first) * width, n_elements = n_rows * width;

    if (run == 0)
        item->like.ne[axis] += n_rows;
    item->like.n_elements += n_elements;
    for (size_t i = from->first_piece; n_elements > 0 && i < from->end_piece; i++) {
        struct gguf_piece piece = made->pieces[i];
        const uint64_t skipped = skip < piece.n_elements ? skip : piece.n_elements;

        skip -= skipped;
        piece.first += skipped;
        piece.n_elements -= skipped;
        if (piece.n_elements > n_elements)
            piece.n_elements = n_elements;
        n_elements -= piece.n_elements;
        if (piece.n_elements > 0)
            gguf_append_piece(made, item, &piece);
    }
}

void gguf_take_rows(struct gguf_composition *made, struct gguf_item *item, uint32_t axis,
                    uint64_t first, uint64_t n_rows)
{
    struct gguf_item taken = gguf_begin_rows(made, item, axis, item->like.name);

    for (uint64_t run = 0; made->result == 0 && run < gguf_count_runs(item, axis); run++)
        gguf_append_rows(made, &taken, item, axis, run, first, n_rows);
    *item = taken;
    made->is_changed = true;
}
