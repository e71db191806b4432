/*
 * hf/tokenizer.model, the file of SentencePiece, for programs that read no tokenizer.json: slow
 * tokenizers of transformers 4, and llama.cpp's converter. Source: sentencepiece_model.proto in
 * https://github.com/google/sentencepiece, src, encoded as Protocol Buffers 2.
 */
#pragma once

#include "fs/tree/core/text.h"

#include <stdbool.h>

/* Return true if the tokenizer is SentencePiece's, with scores. */
bool fs_sentencepiece_applies(const struct fs_tree *tree, const void *subject);

fs_text_writer fs_sentencepiece_write;
