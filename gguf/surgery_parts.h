/* The tensors of a model while they are edited; for gguf/surgery.h. */
#pragma once

#include "gguf/compose.h"
#include "gguf/surgery.h"

/* Elements of a stored tensor. */
struct gguf_part {
    const struct gguf_model *model;
    const struct gguf_tensor *tensor;
    uint64_t first, n_elements;
};

struct gguf_item {
    struct gguf_tensor like; /* its name, type and dimensions; the name is memory of the model */
    struct gguf_part *parts; /* owned */
    size_t n_parts, room;
};

struct gguf_work {
    const struct gguf_model *base;
    struct gguf_composition *composition;
    struct gguf_model *model; /* the new one: its keys */
    struct gguf_item *items;  /* owned */
    size_t n_items, room;
    struct gguf_string architecture;
    uint64_t n_experts; /* 0: as in the base */
    struct gguf_report *report;
};

#define GGUF_NO_BLOCK UINT64_MAX
/* llama.cpp takes 512. */
#define GGUF_MAX_BLOCKS 4096

/* Return N of a name "blk.N.REST", with REST in *rest; or GGUF_NO_BLOCK. */
uint64_t gguf_block_of(struct gguf_string name, struct gguf_string *rest);

/* Return the number of blocks: one more than the last. */
uint64_t gguf_count_blocks(const struct gguf_model *model);

/* Return the model's key ARCHITECTURE.name, or NULL. */
const struct gguf_key *gguf_find_arch_key(const struct gguf_work *work,
                                          const struct gguf_model *model, const char *name);

/*
 * Get the value of a key for a block: of an array, its element. Returns false if the model has no
 * such key or the array no such element.
 */
bool gguf_value_of_block(const struct gguf_key *key, uint64_t block, struct gguf_value *value);

int gguf_fail_step(const struct gguf_work *work, struct gguf_place place, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The steps: all parts of --layers up to `end`, or one. Return 0 or a negative errno. */
int gguf_do_layers(struct gguf_work *work, const struct gguf_step *step,
                   const struct gguf_step *end);
int gguf_do_experts(struct gguf_work *work, const struct gguf_step *step);
int gguf_do_drop(struct gguf_work *work, const struct gguf_step *step);
int gguf_do_add(struct gguf_work *work, const struct gguf_step *step);
int gguf_do_rename(struct gguf_work *work, const struct gguf_step *step);
int gguf_do_fuse(struct gguf_work *work, const struct gguf_step *step);
int gguf_do_unfuse(struct gguf_work *work, const struct gguf_step *step);
int gguf_do_small_first(struct gguf_work *work, const struct gguf_step *step);

/* Set the keys that follow from the tensors. */
int gguf_set_following_keys(struct gguf_work *work);

/* Append a tensor as it is under a new name, printed into memory of the model. */
int gguf_take_whole(struct gguf_work *work, struct gguf_item *item, const struct gguf_model *model,
                    const struct gguf_tensor *tensor, const char *name);

/* Append elements of `from` to the parts of `item`. */
int gguf_take_elements(struct gguf_work *work, struct gguf_item *item, const struct gguf_item *from,
                       uint64_t first, uint64_t n_elements);

/* Make room for a new item before `index`, all zero. NULL if out of memory, which is reported. */
struct gguf_item *gguf_insert_item(struct gguf_work *work, size_t index);
void gguf_remove_item(struct gguf_work *work, size_t index);

/* Give an item a name of at most 63 bytes. */
int gguf_name_item(struct gguf_work *work, struct gguf_item *item, const char *name);

/*
 * Read a list like "0-9,20-31" of numbers below `limit`, with *list owned. `what` names one of them
 * in errors: "block".
 */
int gguf_read_list(struct gguf_work *work, const char *text, size_t length, const char *what,
                   uint64_t limit, uint64_t **list, size_t *count);
