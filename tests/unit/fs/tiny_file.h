/* GGUF files with the tiny models of tests/unit/runner/tiny_models.h, for hf/. */
#pragma once

#include "tests/unit/gguf/model_file.h"
#include "tests/unit/runner/tiny_models.h"

#include <stdbool.h>
#include <stdint.h>

/*
 * Make a tiny model. Without `has_biases`, it has only those biases that the lists of its
 * architecture require.
 */
void tiny_file_model(const char *architecture, bool has_experts, bool has_biases,
                     struct tiny_model *tiny);

/* Add a tensor to the model, with the shape that tiny models have for its name. */
void tiny_file_extend(struct tiny_model *tiny, const char *name);

bool tiny_file_has(const struct tiny_model *tiny, const char *name);

/*
 * Add the biases that the lists require beside the tensors that are there. Returns false if a
 * tensor that is not a bias is missing.
 */
bool tiny_file_complete(struct tiny_model *tiny);

/*
 * Begin the file of a tiny model. Beside the keys of the model, it has numbers that the runner
 * takes from shapes. Tensors whose names contain `left_out`, which may be NULL, are left out.
 */
struct gguf_writer *tiny_file_begin(const struct tiny_model *tiny, const char *left_out);

/* Add a tensor of zeros. Unused dimensions are 0. */
void tiny_file_add(struct gguf_writer *w, const char *name, const uint64_t ne[4]);
