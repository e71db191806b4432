/* Reads the keys tokenizer.ggml.* of a vocabulary. */
#ifndef GGUFS_FS_VOCABULARY_KEYS_H
#define GGUFS_FS_VOCABULARY_KEYS_H

#include "fs/tree/hf/vocabulary_index.h"

/* Fill in the members for keys, and the obstacle. */
void fs_vocabulary_read_keys(struct fs_vocabulary *vocabulary);

/* Fill in the ids of special tokens. `end_of_text` is the token <|endoftext|>, or GGUF_NO_TOKEN. */
void fs_vocabulary_read_ids(struct fs_vocabulary *vocabulary, int32_t end_of_text);

#endif
