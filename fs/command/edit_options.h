/* Handlers of the options that edit a model and divide it; see command_line.h. */
#pragma once

#include "gguf/report.h"
#include "gguf/support/arrays.h"
#include "gguf/support/option_rows.h"

/*
 * Append the bytes of a file, or of standard input, to `text`, which the caller frees in every
 * case. Returns 0, or a negative errno with the reason in `report`.
 */
int fs_file_read(const char *path, bool is_stdin, struct gguf_buffer *text,
                 struct gguf_report *report);

/* --set, --unset, --edits, the same without dashes, and the options of gguf_surgery_add(). */
int fs_take_edit(void *options, const struct gguf_option_use *use);
/* --layers, which --info takes without a value. */
int fs_take_layers(void *options, const struct gguf_option_use *use);
int fs_take_shards(void *options, const struct gguf_option_use *use);

/* Return true unless the word is an option or a model: a list of layers, right or not. */
bool fs_is_list(const char *word);
