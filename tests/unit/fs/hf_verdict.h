/* Decides if a model has hf/, without making its tree, and if the runner runs it. */
#pragma once

#include "gguf/model.h"
#include "tests/unit/runner/tree_copy.h"

#include <stdbool.h>

enum { HF_VERDICT_BYTES = 300 };

/* Return true if the model has hf/; if not, `reason` is the first line about it. */
bool hf_verdict(const struct gguf_model *model, char reason[HF_VERDICT_BYTES]);

/* Return true if the runner opens the model; if not, `reason` is its message. */
bool runner_verdict(const struct tree_copy *copy, char reason[HF_VERDICT_BYTES]);

/* Write a tensor's name with '%' for the layer. */
void hf_verdict_kind(struct gguf_string name, char kind[HF_VERDICT_BYTES]);

/* Call `check` for each model of fixtures/archs; skip the test if there are none. */
void hf_verdict_fixtures(void (*check)(const char *name, const struct gguf_model *model));
