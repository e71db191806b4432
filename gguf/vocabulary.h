/* The lists of the vocabulary, which must fit together. */
#ifndef GGUFS_GGUF_VOCABULARY_H
#define GGUFS_GGUF_VOCABULARY_H

#include "gguf/model.h"

/*
 * Report a note for each of the lists tokenizer.ggml.scores and .token_type whose length differs
 * from that of tokenizer.ggml.tokens. Runners refuse such a vocabulary or read past a list's end.
 */
void gguf_check_vocabulary(const struct gguf_model *model, struct gguf_report *report);

#endif
