/* Handlers of the options that edit a model and divide it; see command_line.h. */
#pragma once

#include "gguf/support/option_rows.h"

/* --set, --unset, --edits, the same without dashes, and the options of gguf_surgery_add(). */
int fs_take_edit(void *options, const struct gguf_option_use *use);
/* --layers, which --info takes without a value. */
int fs_take_layers(void *options, const struct gguf_option_use *use);
int fs_take_shards(void *options, const struct gguf_option_use *use);

/* Return true for a list of layers, "0-9,other.gguf:3". */
bool fs_is_list(const char *word);
