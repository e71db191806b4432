/*
 * The model's vocabulary, for the files that describe its tokenizer. Made with the tree; the index
 * of the tokens, about 30 bytes for each, is made when a file is first read.
 */
#pragma once

#include "fs/tree/hf/vocabulary_keys.h"

/* Returns 0 or -ENOMEM. Free `vocabulary` with fs_vocabulary_free(), which accepts NULL. */
int fs_vocabulary_make(const struct gguf_model *model, struct fs_vocabulary **vocabulary);
void fs_vocabulary_free(struct fs_vocabulary *vocabulary);

/*
 * Make the index unless it exists. The functions below need it. Any thread may call all of them.
 * Returns 0 or a negative errno.
 */
int fs_vocabulary_load(struct fs_vocabulary *vocabulary);

/* Return the text of a token in the vocabulary's notation. */
static inline struct gguf_string fs_vocabulary_text(const struct fs_vocabulary *vocabulary,
                                                    uint32_t id)
{
    const struct gguf_array *tokens = vocabulary->tokens;
    const uint32_t start = vocabulary->starts[id] + tokens->encoding.length_bytes;

    return (struct gguf_string){(const char *)tokens->data + start,
                                vocabulary->starts[id + 1] - start};
}

/* Return the first token with that text, or GGUF_NO_TOKEN. */
int32_t fs_vocabulary_find(const struct fs_vocabulary *vocabulary, struct gguf_string text);
