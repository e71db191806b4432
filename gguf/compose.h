/*
 * A model made of tensors of other models. It is put together as a list of items, tensors that
 * consist of pieces of stored ones. No tensor data are copied: a tensor of one stored piece lies in
 * the file of its origin, and all others in a source that reads, decodes or encodes what is asked
 * for. Data that have not arrived in a growing file cannot be read, as there.
 *
 * After the first failure, the functions do nothing.
 */
#pragma once

#include "gguf/elements.h"

#include <errno.h>
#include <stddef.h>
#include <stdint.h>

/* All pieces of a model; more than any needs. */
#define GGUF_MAX_PIECES ((size_t)1 << 22)

/* A range of the elements of a stored tensor; or bytes in memory. */
struct gguf_piece {
    struct gguf_elements of;    /* the type is the new tensor's; model: NULL for `bytes` */
    uint64_t first, n_elements; /* whole blocks of both types; whole rows if they have headers */
    const void *bytes;          /* all data of the new tensor, in its type; kept by the caller */
};

/* A tensor of the new model. */
struct gguf_item {
    struct gguf_tensor like; /* its name, type and dimensions */
    bool is_dropped;
    size_t first_piece, end_piece; /* in the composition */
};

struct gguf_composition {
    const struct gguf_model *base;
    struct gguf_model *model; /* the new one: its keys, which may be changed, and memory */
    struct gguf_item *items;
    size_t n_items, items_room;
    struct gguf_piece *pieces;
    size_t n_pieces, pieces_room;
    bool is_changed; /* a key or an item differs from the base */
    int result;      /* 0 or a negative errno */
    struct gguf_report *report;
    const char *twins_remedy;          /* said of a name that two tensors would have */
    const struct gguf_model **origins; /* in the order of their files in the new model */
    size_t n_origins, origins_room;
};

/*
 * Begin a model with a copy of the keys of `base` and without items. The models of all pieces must
 * live as long as the new one. End it with gguf_compose_end(), also after a failure.
 */
void gguf_compose_begin(struct gguf_composition *made, const struct gguf_model *base,
                        struct gguf_report *report);

/*
 * Make the model, validate it, and end the composition. *model is NULL unless the result is 0; free
 * it with gguf_close(). Its `files` begin with its origins' files. Returns made->result or the
 * error of making it, which is reported.
 */
int gguf_compose_end(struct gguf_composition *made, struct gguf_model **model);

/* End the composition without a model. */
void gguf_compose_drop(struct gguf_composition *made);

/* Report the first failure. */
#define gguf_compose_fail(made, place, ...)                                                        \
    ((void)((made)->result == 0                                                                    \
                ? (made)->result = gguf_error((made)->report, GGUF_RULE_COMPOSITION, -EINVAL,      \
                                              place, __VA_ARGS__)                                  \
                : 0))

/* ---- items ---- */

/* Return a name in memory of the new model. A name that llama.cpp does not take is an error. */
struct gguf_string gguf_compose_name(struct gguf_composition *made, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* The place of a tensor that is made. */
static inline struct gguf_place gguf_place_of(const struct gguf_item *item)
{
    return gguf_at_tensor(item->like.name, GGUF_NO_OFFSET);
}

/* Return an item with the type and dimensions of `like` and without pieces. */
struct gguf_item gguf_begin_item(const struct gguf_composition *made,
                                 const struct gguf_tensor *like, struct gguf_string name);

/* Return an item that is a stored tensor. */
struct gguf_item gguf_whole_item(struct gguf_composition *made, const struct gguf_model *model,
                                 const struct gguf_tensor *tensor, struct gguf_string name);

/* Append a piece to an item. No other item may have been begun after it. */
void gguf_append_piece(struct gguf_composition *made, struct gguf_item *item,
                       const struct gguf_piece *piece);

/* Insert an item. Pointers to items are then invalid. */
void gguf_insert_item(struct gguf_composition *made, size_t index, struct gguf_item item);

/* Append all tensors of a model, under their names in GGUF. */
void gguf_append_items(struct gguf_composition *made, const struct gguf_model *model);

void gguf_remove_dropped(struct gguf_composition *made);

/* Return the index of the item with a name, or n_items. */
size_t gguf_find_item(const struct gguf_composition *made, struct gguf_string name);

/* Return the stored tensor that the item begins with, or NULL. */
const struct gguf_elements *gguf_origin_of(const struct gguf_composition *made,
                                           const struct gguf_item *item);

/* ---- rows: what follows one another in a dimension `axis` ---- */

/* Return an item without rows, else like `from`. */
struct gguf_item gguf_begin_rows(const struct gguf_composition *made, const struct gguf_item *from,
                                 uint32_t axis, struct gguf_string name);

/* Return the number of runs of rows: the product of the dimensions after the axis. */
uint64_t gguf_count_runs(const struct gguf_item *item, uint32_t axis);

/* Append rows of one run of an item. */
void gguf_append_rows(struct gguf_composition *made, struct gguf_item *item,
                      const struct gguf_item *from, uint32_t axis, uint64_t run, uint64_t first,
                      uint64_t n_rows);

/* Replace an item by n_rows of its rows, in all runs. */
void gguf_take_rows(struct gguf_composition *made, struct gguf_item *item, uint32_t axis,
                    uint64_t first, uint64_t n_rows);
