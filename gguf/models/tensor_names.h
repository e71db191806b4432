/* Patterns of names of tensors. */
#pragma once

#include "gguf/support/strings.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A pattern that a name matched: the numbers that its placeholders stand for, and the rest. */
struct gguf_name_match {
    uint32_t layer;  /* of '%' */
    uint32_t expert; /* of '#' */
    /* ".weight" or ".bias", which the name has after the pattern; else "" */
    const char *suffix;
};

/*
 * Split a name of the form blk.LAYER.REST, where LAYER is one or more digits. Returns false, with
 * *layer and *rest unchanged, if the name has another form.
 */
bool gguf_tensor_name_split(struct gguf_string name, struct gguf_string *layer,
                            struct gguf_string *rest);

/* Return the number of a LAYER; UINT32_MAX for "" and for more than nine digits. */
uint32_t gguf_layer_number(struct gguf_string layer);

/* A name of no block. */
#define GGUF_NO_BLOCK UINT32_MAX

/* Return N of a name "blk.N.REST", with REST in *rest; or GGUF_NO_BLOCK, and *rest is empty. */
uint32_t gguf_block_of(struct gguf_string name, struct gguf_string *rest);

/*
 * Match a name with a pattern, in which '%' stands for the number of a layer and '#' for the number
 * of an expert. ".weight" or ".bias" may follow in the name.
 */
bool gguf_tensor_name_matches(struct gguf_string name, const char *pattern,
                              struct gguf_name_match *match);

/* Room for the name of a tensor. Names from patterns are much shorter. */
#define GGUF_NAME_BYTES 256

/* Write a pattern with the numbers and the suffix of a match. Returns false if it is too long. */
bool gguf_tensor_name_expand(const char *pattern, const struct gguf_name_match *match,
                             char name[GGUF_NAME_BYTES]);
