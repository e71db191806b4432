/*
 * A draft of a translated model: a composition of tensors of the file that is translated, and its
 * keys. After the first failure, the functions do nothing.
 */
#pragma once

#include "gguf/compose.h"
#include "gguf/models/tensor_names.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct gguf_draft {
    struct gguf_composition made;
    const struct gguf_model *file;   /* that tensors are taken from; made.base, or a projector */
    const struct gguf_model *source; /* of keys with the prefix `from`: a file or made.model */
    const char *from, *to;           /* prefixes of key names: "gemma3.vision.", "clip.vision." */
    const char *refusal;             /* why llama.cpp does not run this model */
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
 *     K                   the value of K in the file
 *     K<OLD               the value of OLD in the file
 *     K<OLD=TYPE:VALUE    that, or the default
 *     K=TYPE:VALUE        the value of K, or the default
 *     K=@TENSOR:D         dimension D of a tensor of the new model; TENSOR may be *END of a name
 *     K!TYPE:VALUE        the value, even if there is another
 *     K^OLD               the three numbers of the array OLD and a 0
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
    const char *refusal; /* why llama.cpp does not run this model */
};

/* The tables end with a row without an architecture. */
extern const struct gguf_layout gguf_text_layouts[], gguf_projector_layouts[];

/*
 * Bring the rows of each head of queries and keys into the order of llama.cpp, in which halves
 * become neighbours; or back.
 */
void gguf_draft_permute(struct gguf_draft *draft, bool is_back);

/* Begin a draft without items, with the keys of the file. */
void gguf_draft_begin(struct gguf_draft *draft, const struct gguf_model *file,
                      struct gguf_report *report);

/* Make the text of a refusal, or "WHAT: REASON" of a failure. Returns 0 or -ENOMEM. */
int gguf_draft_refuse(int result, const char *refusal, const char *what,
                      const struct gguf_report *why, char **text, struct gguf_report *report);

/* ---- words ---- */

/* Return true if the name begins with a word of the list; if one ends so. */
bool gguf_words_begin(const char *words, struct gguf_string name);
bool gguf_words_end_with(const char *words, const char *end);

/*
 * Split a name PREFIX N.REST, which is copied to `text`. Returns REST there, or NULL if the name is
 * another.
 */
const char *gguf_split_number(struct gguf_string name, const char *prefix, uint64_t *number,
                              char text[GGUF_NAME_BYTES]);

/* ---- keys ---- */

/* Return the new model's key: `name` with the prefix `to`, or without one after a slash. */
const struct gguf_key *gguf_draft_key(const struct gguf_draft *draft, const char *name);

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

void gguf_draft_set_text(struct gguf_draft *draft, const char *name, const char *text);

/* Set an array of numbers or bools, which are copied. */
void gguf_draft_set_array(struct gguf_draft *draft, const char *name, enum gguf_value_type type,
                          const void *elements, uint64_t count);

/* Obey the words of a list of keys. */
void gguf_draft_keys(struct gguf_draft *draft, const char *words);

/*
 * Give keys of the source their old names again. Those that are their defaults are left out, or
 * removed if the source is the new model.
 */
void gguf_draft_undo_keys(struct gguf_draft *draft, const char *words);

/* Return true if a text of the new model is missing, empty or "default". */
bool gguf_draft_lacks_text(const struct gguf_draft *draft, const char *name);

/* Give the keys of one architecture's prefix another. */
void gguf_draft_rename_architecture(struct gguf_draft *draft, const char *name);

/* ---- tensors ---- */

/* Return the item of that name, or NULL. It takes time for each item. */
struct gguf_item *gguf_draft_item(const struct gguf_draft *draft, const char *name);

/* Obey the words of a list of names, or reverse them. */
void gguf_draft_names(struct gguf_draft *draft, struct gguf_item *item, const char *words,
                      bool is_back);

void gguf_draft_drop(struct gguf_draft *draft, struct gguf_item *item);

void gguf_draft_set_type(struct gguf_draft *draft, struct gguf_item *item, uint32_t type_id);

/*
 * Replace the data of an item by n_elements zeros of F32. Returns them for changes, or NULL after a
 * failure.
 */
float *gguf_draft_make_data(struct gguf_draft *draft, struct gguf_item *item, uint64_t n_elements);
