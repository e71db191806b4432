/*
 * A model made of tensors of other models. No tensor data are copied: a tensor of one stored piece
 * lies in the file of its origin, and all others in a source that reads, decodes or encodes what is
 * asked for.
 */
#pragma once

#include "gguf/elements.h"

#include <stddef.h>
#include <stdint.h>

struct gguf_composition;

/* A range of the elements of a stored tensor, as data of a type; or bytes in memory. */
struct gguf_piece {
    /* type: NULL, or the tensor's own, for the data as stored; model: NULL for `bytes`. */
    struct gguf_elements of;
    uint64_t first, n_elements; /* whole blocks of both types; whole rows if they have headers */
    const void *bytes;          /* n_elements of the new tensor's type, kept by the caller */
};

/*
 * Begin a model with a copy of the keys of `base`. The models of all pieces must live as long as
 * the new one. Returns NULL if out of memory. Free it with gguf_compose_free() or end it with
 * gguf_compose_finish().
 */
struct gguf_composition *gguf_compose_begin(const struct gguf_model *base);

/*
 * Return the model so far. Its keys may be changed, and gguf_model_alloc() gives memory for `bytes`
 * of pieces, names and values.
 */
struct gguf_model *gguf_compose_model(struct gguf_composition *composition);

/*
 * Add a tensor with the name (which is kept by the caller), type and dimensions of `like`; other
 * members do not count. Its pieces follow it, from its first element on. All functions return 0, or
 * a negative errno with the reason in `report`.
 */
int gguf_compose_tensor(struct gguf_composition *composition, const struct gguf_tensor *like,
                        struct gguf_report *report);
int gguf_compose_piece(struct gguf_composition *composition, const struct gguf_piece *piece,
                       struct gguf_report *report);

/* Add a tensor as it is, under another name. */
int gguf_compose_whole(struct gguf_composition *composition, const struct gguf_model *model,
                       const struct gguf_tensor *tensor, struct gguf_string name,
                       struct gguf_report *report);

/* Let the finished model close `model` with itself. Returns 0 or -ENOMEM. */
int gguf_compose_own(struct gguf_composition *composition, struct gguf_model *model);

/*
 * Validate the model; the composition ends, also on failure, when *model is NULL and owned models
 * are still the caller's. Free the model with gguf_close(). Its `files` begin with those of its
 * origins.
 */
int gguf_compose_finish(struct gguf_composition *composition, struct gguf_model **model,
                        struct gguf_report *report);

/* Does nothing if it is NULL. */
void gguf_compose_free(struct gguf_composition *composition);
