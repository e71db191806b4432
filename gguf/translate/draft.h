/*
 * A draft of a translated model: its keys and its tensors, which consist of pieces of tensors of
 * the model that is translated. After the first failure, the functions do nothing.
 */
#pragma once

#include "gguf/compose.h"
#include "gguf/model.h"
#include "gguf/models/tensor_names.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct gguf_drafted_tensor {
    struct gguf_string name;          /* empty: the tensor is dropped */
    const struct gguf_tensor *stored; /* the first one that it is made of */
    const struct dequant_type *type;
    uint32_t n_dims;
    uint64_t ne[GGUF_MAX_DIMS];
    size_t first_piece, n_pieces; /* in draft->pieces */
};

struct gguf_draft {
    const struct gguf_model *base;
    struct gguf_composition *composition;
    struct gguf_model *model;        /* of the composition: owner of the new keys and of memory */
    const struct gguf_model *source; /* of keys with the prefix `from`: one of them */
    const char *from, *to;           /* prefixes of key names: "gemma3.vision.", "clip.vision." */
    const struct gguf_tensor **by_name;  /* the base's tensors */
    struct gguf_drafted_tensor *tensors; /* in the base's order */
    size_t n_tensors, tensors_room;
    size_t of_base, n_of_base; /* those drafted from the base; later ones may share a stored one */
    struct gguf_piece *pieces;
    size_t n_pieces, pieces_room;
    bool is_changed;     /* it differs from the base */
    const char *refusal; /* why llama.cpp runs no such model */
    int result;          /* 0 or a negative errno */
    struct gguf_report *report;
};

/*
 * A way to lay out a model: a row of a table. Lists are words separated by spaces.
 *
 *   Word in markers: any of them is enough
 *     KEY  !KEY           the key is there, is missing
 *     KEY=TEXT            it has that text
 *     v.*  *.ssm_dt  =v   a tensor's name begins so, ends so, is that
 *
 *   Word in keys, from left to right; the key K of the new model gets a value unless it has one
 *     K                   that of K in the file
 *     K<OLD               that of OLD in the file
 *     K<OLD=TYPE:VALUE    that, or the default
 *     K=TYPE:VALUE        that of K, or the default
 *     K=@TENSOR:D         dimension D of a tensor of the new model
 *     K!TYPE:VALUE        the value, even if there is another
 *     K~TEXT              the text, if the key is missing, empty or "default"
 *     -K                  the key is removed
 *   A name has the draft's prefix unless it begins with a slash.
 *
 *   Word in names, from left to right
 *     .attn_out>.attn_output   part of a name that ends there or before a dot; it is anywhere in
 *                              the name if it begins with a dot, else at the start
 *     .attn_sinks$>…           the end of a name
 */
struct gguf_layout {
    const char *architecture;                   /* of the file; words */
    const char *markers;                        /* NULL: all files of the architecture */
    bool (*is)(const struct gguf_draft *draft); /* instead of markers */
    const char *renamed;                        /* the architecture for llama.cpp; NULL: the same */
    const char *tower;                          /* of a projector: "vision" or "audio" */
    const char *takes;                          /* starts of names of a projector's tensors */
    const char *drops;                          /* starts of names of tensors to leave out */
    const char *names;
    const char *keys;
    const char *f32; /* starts of names of tensors that must be F32 */
    void (*rest)(struct gguf_draft *draft);
    void (*undo)(struct gguf_draft *draft); /* of a projector: the way back; NULL: there is none */
    const char *refusal;                    /* why llama.cpp runs no such model */
};

/* The tables end with a row without an architecture. */
extern const struct gguf_layout gguf_text_layouts[], gguf_projector_layouts[];

/* Translate the tensors mtp.* of Qwen 3.5, which predict further tokens. */
void gguf_draft_nextn(struct gguf_draft *draft);

/* ---- words ---- */

/* Get the next word of a list, which may be NULL. Returns false after the last. */
bool gguf_next_word(const char **list, struct gguf_string *word);

/* Return true if the name begins with a word of the list; if a word is the text; if one ends so. */
bool gguf_words_begin(const char *words, struct gguf_string name);
bool gguf_words_have(const char *words, const char *text);
bool gguf_words_end_with(const char *words, const char *end);

/*
 * Split a name PREFIX N.REST, which is copied to `text`. Returns REST there, or NULL if the name is
 * another.
 */
const char *gguf_split_number(struct gguf_string name, const char *prefix, uint64_t *number,
                              char text[GGUF_NAME_BYTES]);

/* Get the text of a key, or "" if there is none that fits. */
void gguf_get_text(const struct gguf_model *model, const char *key, char *text, size_t room);

/* ---- beginning and end ---- */

/* Begin a draft without tensors, with the keys of the base. */
void gguf_draft_begin(struct gguf_draft *draft, const struct gguf_model *base,
                      struct gguf_report *report);

/* Take tensors and keys from another model from now on. */
void gguf_draft_change_base(struct gguf_draft *draft, const struct gguf_model *base);

/*
 * Make the model of a draft that differs from its base and is not refused, and free the draft.
 * Returns draft->result or the error of making it, which is reported.
 */
int gguf_draft_end(struct gguf_draft *draft, struct gguf_model **model);

/* ---- keys ---- */

/* Return the new model's key: `name` with the prefix `to`, or without one after a slash. */
struct gguf_key *gguf_draft_key(const struct gguf_draft *draft, const char *name);

/* Return a whole number of the file, of a key with the prefix `from`, or `missing`. */
uint64_t gguf_draft_number(const struct gguf_draft *draft, const char *name, uint64_t missing);

/* Return the array of a key of the file, or an empty one. */
struct gguf_array gguf_draft_array(const struct gguf_draft *draft, const char *name);

/* Return whole number `index` of an array, or `missing`. */
uint64_t gguf_array_number(const struct gguf_array *array, uint64_t index, uint64_t missing);

/* Return the index of a token, or UINT64_MAX. */
uint64_t gguf_draft_token(const struct gguf_draft *draft, const char *text);

/* Set a key of the new model. */
void gguf_draft_set(struct gguf_draft *draft, const char *name, struct gguf_value value);
void gguf_draft_set_u32(struct gguf_draft *draft, const char *name, uint64_t number);

/* Set an array of 32-bit numbers, or of bools. */
void gguf_draft_set_numbers(struct gguf_draft *draft, const char *name, enum gguf_value_type type,
                            const uint32_t *numbers, uint64_t count);

/* Obey the words of a list of keys. */
void gguf_draft_keys(struct gguf_draft *draft, const char *words);

/*
 * Give keys of the source their old names again. Those that are their defaults are left out, or
 * removed if the source is the new model.
 */
void gguf_draft_undo_keys(struct gguf_draft *draft, const char *words);

/* Give the keys of one architecture's prefix another. */
void gguf_draft_rename_architecture(struct gguf_draft *draft, const char *name);

/* ---- tensors ---- */

/* Return the file's tensor of that name, or NULL. */
const struct gguf_tensor *gguf_draft_stored(const struct gguf_draft *draft, const char *name);

/* Return the drafted tensor that has that name in the file, or NULL. */
struct gguf_drafted_tensor *gguf_draft_of(const struct gguf_draft *draft, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Return the drafted tensor that has that new name, or NULL. It takes time for each tensor. */
struct gguf_drafted_tensor *gguf_draft_tensor(const struct gguf_draft *draft, const char *name);

/* Add a tensor that is the file's, unchanged. */
void gguf_draft_add(struct gguf_draft *draft, const struct gguf_tensor *stored);

void gguf_draft_rename(struct gguf_draft *draft, struct gguf_drafted_tensor *tensor,
                       const char *format, ...) __attribute__((format(printf, 3, 4)));

/* Obey the words of a list of names, or reverse them. */
void gguf_draft_names(struct gguf_draft *draft, struct gguf_drafted_tensor *tensor,
                      const char *words);
void gguf_draft_undo_names(struct gguf_draft *draft, struct gguf_drafted_tensor *tensor,
                           const char *words);

void gguf_draft_drop(struct gguf_draft *draft, struct gguf_drafted_tensor *tensor);

/* Begin the pieces of a tensor anew. */
void gguf_draft_begin_pieces(struct gguf_draft *draft, struct gguf_drafted_tensor *tensor,
                             const struct dequant_type *type);

/* Add elements of a stored tensor: as stored if `tensor` has its type, else as F32. */
void gguf_draft_add_piece(struct gguf_draft *draft, struct gguf_drafted_tensor *tensor,
                          const struct gguf_tensor *stored, uint64_t first, uint64_t n_elements);

/*
 * Make a tensor of F32 that is n_elements zeros. Returns them for changes, or NULL after a failure.
 */
float *gguf_draft_add_made(struct gguf_draft *draft, struct gguf_drafted_tensor *tensor,
                           uint64_t n_elements);

/* Encode the elements of a stored tensor as F32 or F16. */
void gguf_draft_set_type(struct gguf_draft *draft, struct gguf_drafted_tensor *tensor,
                         uint32_t type_id);

/*
 * Make the first tensor the n ones, joined along dimension `dim`, and drop the others. It has their
 * type, or F32 if types differ or is_f32. Returns false, with nothing changed, if one is NULL or
 * differs in another dimension.
 */
bool gguf_draft_join(struct gguf_draft *draft, struct gguf_drafted_tensor **tensors, size_t n,
                     uint32_t dim, bool is_f32);
