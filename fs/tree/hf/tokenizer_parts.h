/* Parts of the JSON that Hugging Face's tokenizers read. The vocabulary must be loaded. */
#ifndef GGUFS_FS_TOKENIZER_PARTS_H
#define GGUFS_FS_TOKENIZER_PARTS_H

#include "fs/tree/hf/vocabulary_index.h"
#include "fs/tree/text.h"

/* Write a string with its quotes. */
void fs_tokenizer_string(struct fs_sink *sink, const char *string);

/*
 * Write the token's text as JSON, in the notation of tokenizer.json. A token that no text can
 * become, because its own is empty, not UTF-8, that of an earlier token, or in that notation that
 * of another token, gets a text that is unique.
 */
void fs_tokenizer_token(const struct fs_vocabulary *vocabulary, uint32_t id, struct fs_sink *sink);

/*
 * A part of tokenizer.json. It is a text of its own: writes the next piece, moves `place`, and
 * returns 1 if there may be more.
 */
typedef int fs_tokenizer_part(const struct fs_vocabulary *vocabulary, struct fs_place *place,
                              struct fs_sink *sink);

/* The members "normalizer" to "decoder". */
fs_tokenizer_part fs_tokenizer_write_pipeline;

/* The value of "model" without its last brace: its head, the vocabulary and the merges. */
fs_tokenizer_part fs_tokenizer_write_model_head;
fs_tokenizer_part fs_tokenizer_write_tokens;
fs_tokenizer_part fs_tokenizer_write_merges;

#endif
