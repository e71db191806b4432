/*
 * The files in hf/ that describe the tokenizer, in the form that Hugging Face's tokenizers and
 * transformers read: https://huggingface.co/docs/tokenizers. They give the same tokens as ggufs-run
 * and llama.cpp.
 */
#pragma once

#include "fs/tree/core/text.h"
#include "fs/tree/hf/vocabulary.h"
#include "fs/tree/output/sink.h"

/* Return why the model has no hf/tokenizer.json, as a sentence, or NULL if it has one. */
const char *fs_tokenizer_obstacle(const struct fs_tree *tree);

/* Return true if the model has these files. */
bool fs_tokenizer_applies(const struct fs_tree *tree, const void *subject);

/* Return true if hf/ has the chat template of the key `subject`; NULL: the default. */
bool fs_tokenizer_template_applies(const struct fs_tree *tree, const void *subject);

fs_text_writer fs_tokenizer_json_write;
fs_text_writer fs_tokenizer_config_write;
fs_text_writer fs_special_tokens_map_write;

/*
 * hf/tokenizer.model, the file of SentencePiece, for programs that read no tokenizer.json: slow
 * tokenizers of transformers 4, and llama.cpp's converter. Only tokenizers of SentencePiece with
 * scores have it.
 */
bool fs_sentencepiece_applies(const struct fs_tree *tree, const void *subject);
fs_text_writer fs_sentencepiece_write;

/* ---- parts of these files; the vocabulary must be loaded ---- */

/*
 * Return the vocabulary of a tree with its index, or NULL if it cannot be loaded; the sink then has
 * the error.
 */
const struct fs_vocabulary *fs_tokenizer_load(const struct fs_tree *tree, struct fs_sink *sink);

/*
 * Write JSON by a format, in which ' stands for ", and these for arguments: %t a token, null for a
 * negative id; %b a bool; %u an unsigned number; %s a text, in quotes; %j a text, as it is.
 */
void fs_tokenizer_print(const struct fs_vocabulary *vocabulary, struct fs_sink *sink,
                        const char *format, ...);

/* Return true if there is a token of the type BYTE for each byte. */
bool fs_tokenizer_has_all_bytes(const struct fs_vocabulary *vocabulary);

/*
 * Return true if tokenizing can produce the token: `text`, its text, is UTF-8, not empty and, in
 * the notation of tokenizer.json, not equal to the text of an earlier token.
 */
bool fs_tokenizer_has_own_text(const struct fs_vocabulary *vocabulary, uint32_t id,
                               struct gguf_string text);

/*
 * Write the token's text as JSON, in the notation of tokenizer.json. A token that no text can
 * become, because its own is empty, not UTF-8, or equal to the text of an earlier token, or in that
 * notation to the text of another token, gets a text that is unique.
 */
void fs_tokenizer_token(const struct fs_vocabulary *vocabulary, uint32_t id, struct fs_sink *sink);

/* Write the members "normalizer" to "decoder". */
void fs_tokenizer_write_pipeline(const struct fs_vocabulary *vocabulary, struct fs_sink *sink);

/* Write the value of "model", with the vocabulary and the merges. */
void fs_tokenizer_write_model(const struct fs_vocabulary *vocabulary, struct fs_sink *sink);
