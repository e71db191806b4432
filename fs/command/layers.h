/* ggufs --info --layers */
#pragma once

#include "gguf/model.h"

/*
 * Print a line per layer of the model to stdout: tensors, elements, bytes, bits per weight, and the
 * types, the one with most bytes first. Tensors outside of layers follow as one line. Returns 0 or
 * -ENOMEM.
 */
int fs_print_layers(const struct gguf_model *model);
