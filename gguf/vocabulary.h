/* The keys of the vocabulary, which must fit together. */
#ifndef GGUFS_GGUF_VOCABULARY_H
#define GGUFS_GGUF_VOCABULARY_H

#include "gguf/model.h"

/*
 * Compare the vocabulary's keys with tokenizer.ggml.tokens. Report a warning for each of the lists
 * tokenizer.ggml.scores and .token_type of another length: runners refuse them or read past a
 * list's end. Report one for each key tokenizer.ggml.*_token_id or *_token_ids with an id that no
 * token has, other than -1: llama.cpp uses its default instead.
 */
void gguf_check_vocabulary(const struct gguf_model *model, struct gguf_report *report);

#endif
