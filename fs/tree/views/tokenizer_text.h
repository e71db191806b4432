/*
 * The vocabulary as text: one token, score, type or merge per line.
 *
 * Tokens are the bytes that they stand for. Bytes that would break a line or a terminal are
 * escaped: \n, \r, \t, \\, and \xNN for each byte of other control characters and of invalid UTF-8.
 * Merges stay in the vocabulary's notation, as files merges.txt have them.
 */
#ifndef GGUFS_FS_TOKENIZER_TEXT_H
#define GGUFS_FS_TOKENIZER_TEXT_H

#include "fs/tree/core/text.h"

#include <stdbool.h>

/* Each of these functions returns true if the model has the array that the text shows. */
bool fs_tokens_text_applies(const struct fs_tree *tree, const void *subject);
bool fs_scores_text_applies(const struct fs_tree *tree, const void *subject);
bool fs_types_text_applies(const struct fs_tree *tree, const void *subject);
bool fs_merges_text_applies(const struct fs_tree *tree, const void *subject);

fs_text_writer fs_tokens_text_write;
fs_text_writer fs_scores_text_write;
fs_text_writer fs_types_text_write;
fs_text_writer fs_merges_text_write;

#endif
