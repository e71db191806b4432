/*
 * Checks whether the programs that run GGUF files load a model: its keys (key_checks.c), its
 * tensors, and what a loader alone refuses. Sources: llama.cpp's ggml/src/gguf.cpp,
 * src/llama-model-loader.cpp, src/llama-model.cpp and src/llama-vocab.cpp, ik_llama.cpp's
 * ggml/src/ggml.c, and Ollama's fs/ggml/gguf.go and llama/compat, of August 2026.
 */
#pragma once

#include "gguf/model.h"

/*
 * Warn of a block_count that is not the number of layers in the names of tensors, and of numbers of
 * heads that do not divide the widths. A model without tensors, and a key with a number for each
 * layer, are not checked.
 */
void gguf_check_shape_keys(const struct gguf_model *model, struct gguf_report *report);

/*
 * Return NULL if the value of a key, which is written without "ARCHITECTURE.", has the type that
 * llama.cpp reads, else the name of that type. With `any_width`, other integers will do, and other
 * numbers for float32.
 */
const char *gguf_wrong_type(const char *name, const struct gguf_value *value, bool any_width);

/*
 * Warn of the first key that the lists of the architecture require and the model lacks, and of
 * their keys whose type llama.cpp does not read. A file without "token_embd.weight", which is no
 * language model, and unknown architectures are not checked.
 */
void gguf_check_needed_keys(const struct gguf_model *model, struct gguf_report *report);

/*
 * Compare the vocabulary's keys with tokenizer.ggml.tokens. Report a warning for each of the lists
 * tokenizer.ggml.scores and .token_type of another length: runners refuse them or read past a
 * list's end. Report one for each key tokenizer.ggml.*_token_id or *_token_ids with an id that no
 * token has, other than -1: llama.cpp uses its default instead.
 */
void gguf_check_vocabulary(const struct gguf_model *model, struct gguf_report *report);

/*
 * Warn of tensors that the architecture requires and the model lacks, of tensors that it does not
 * have, and of shapes that contradict each other or the keys. A file without "token_embd.weight"
 * and unknown architectures are not checked.
 */
void gguf_check_tensors(const struct gguf_model *model, struct gguf_report *report);

/* Report an error for each further reason why report->loader refuses the model. */
void gguf_check_loader(const struct gguf_model *model, struct gguf_report *report);

/* Return true if llama.cpp reads ffn_gate_up_exps of the architecture. */
bool gguf_reads_gate_up_exps(struct gguf_string architecture);
