/*
 * The files in hf/ that describe the tokenizer, in the form that Hugging Face's tokenizers and
 * transformers read: https://huggingface.co/docs/tokenizers. They give the same tokens as ggufs-run
 * and llama.cpp.
 */
#pragma once

#include "fs/tree/core/text.h"

#include <stdbool.h>

/* Return why the model has no hf/tokenizer.json, as a sentence, or NULL if it has one. */
const char *fs_tokenizer_obstacle(const struct fs_tree *tree);

/* Return true if the model has these files. */
bool fs_tokenizer_applies(const struct fs_tree *tree, const void *subject);

/* Return true if hf/ has the chat template of the key `subject`; NULL: the default. */
bool fs_tokenizer_template_applies(const struct fs_tree *tree, const void *subject);

fs_text_writer fs_tokenizer_json_write;
fs_text_writer fs_tokenizer_config_write;
fs_text_writer fs_special_tokens_map_write;
