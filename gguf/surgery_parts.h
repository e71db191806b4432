/* The tensors of a model while they are edited; for gguf/surgery.h. */
#pragma once

#include "gguf/compose.h"
#include "gguf/models/tensor_names.h"
#include "gguf/surgery.h"

/* A tensor of the new model. */
struct gguf_item {
    struct gguf_tensor like;       /* its name, type and dimensions */
    bool is_dropped;               /* until gguf_remove_dropped(), after each step */
    size_t first_piece, end_piece; /* in work->pieces */
};

/* After the first failure, the functions below do nothing. */
struct gguf_work {
    const struct gguf_model *base;
    struct gguf_model *model; /* the new one: its keys, and memory for names */
    struct gguf_string architecture;
    struct gguf_item *items;
    size_t n_items, items_room;
    struct gguf_piece *pieces;
    size_t n_pieces, pieces_room;
    uint32_t n_blocks;  /* that --layers has put together … */
    size_t after_them;  /* … and the index of the item behind them */
    uint64_t n_experts; /* that --experts keeps; 0: as in the base */
    int result;         /* 0 or a negative errno */
    struct gguf_report *report;
};

/* A name of no block. */
#define GGUF_NO_BLOCK UINT32_MAX

/* Return N of a name "blk.N.REST", with REST in *rest; or GGUF_NO_BLOCK, and *rest is empty. */
uint32_t gguf_block_of(struct gguf_string name, struct gguf_string *rest);

/* Return the number of blocks: one more than the last. */
uint32_t gguf_count_blocks(const struct gguf_model *model);

/* Return the model's key ARCHITECTURE.name, or NULL. */
const struct gguf_key *gguf_find_arch_key(const struct gguf_work *work,
                                          const struct gguf_model *model, const char *name);

/* Return its integer, or 0; of an array, the element of a block. */
uint64_t gguf_arch_number(const struct gguf_work *work, const struct gguf_model *model,
                          const char *name, uint32_t block);

/* The place of a tensor that is made. */
static inline struct gguf_place gguf_place_of(const struct gguf_item *item)
{
    return gguf_at_tensor(item->like.name, GGUF_NO_OFFSET);
}

void gguf_fail_step(struct gguf_work *work, struct gguf_place place, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Check a name that gguf_model_print() has made, or its NULL. */
struct gguf_string gguf_new_name(struct gguf_work *work, const char *printed);

/* Return an item without pieces. */
struct gguf_item gguf_begin_item(const struct gguf_work *work, const struct gguf_tensor *like,
                                 struct gguf_string name);

/* Return an item that is a stored tensor. */
struct gguf_item gguf_whole_item(struct gguf_work *work, const struct gguf_model *model,
                                 const struct gguf_tensor *tensor, struct gguf_string name);

/* Return the stored tensor that the item begins with, or NULL. */
const struct gguf_elements *gguf_origin_of(const struct gguf_work *work,
                                           const struct gguf_item *item);

/* Append elements of `from` to an item. No other item may have been begun after it. */
void gguf_append(struct gguf_work *work, struct gguf_item *item, const struct gguf_item *from,
                 uint64_t first, uint64_t n_elements);

void gguf_insert_item(struct gguf_work *work, size_t index, struct gguf_item item);
void gguf_remove_dropped(struct gguf_work *work);

/* Return the index of the item with a name, or n_items. */
size_t gguf_find_item(const struct gguf_work *work, struct gguf_string name);

/*
 * Read a number or a range "0-9" of a list, whose numbers are below `limit`, and move *list to the
 * next; it is NULL after the last. `what` names a number in errors: "block". Returns false after
 * an error.
 */
bool gguf_read_range(struct gguf_work *work, const char **list, const char *what, uint64_t limit,
                     uint64_t range[2]);

/* The steps, one of each kind. */
typedef void gguf_do_step(struct gguf_work *work, const struct gguf_step *step);
gguf_do_step gguf_do_layers, gguf_do_experts, gguf_do_drop, gguf_do_add, gguf_do_rename,
    gguf_do_fuse, gguf_do_unfuse, gguf_do_small_first;

/* Set the keys that follow from the tensors. */
void gguf_set_following_keys(struct gguf_work *work);
