/*
 * Checks whether the programs that run GGUF files load a model. Sources: llama.cpp's
 * ggml/src/gguf.cpp, src/llama-model-loader.cpp, src/llama-model.cpp and src/llama-vocab.cpp,
 * ik_llama.cpp's ggml/src/ggml.c, and Ollama's fs/ggml/gguf.go and llama/compat, of August 2026.
 */
#pragma once

#include "gguf/model.h"

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
