/* Seeds for the translation of files of Ollama. */
#pragma once

#include "tests/writer/gguf_writer.h"

/* Make files as Ollama lays them out, each with keys and tensors of several layouts. */
void layout_seeds_make(void (*finish)(struct gguf_writer *w, const char *architecture));
