/* Sets members of a program's options to the values on the command line. */
#ifndef GGUFS_GGUF_OPTION_VALUES_H
#define GGUFS_GGUF_OPTION_VALUES_H

#include "gguf/support/option_rows.h"

/*
 * Parse use->value as the row says and set the member of `options`, or call the row's handler.
 * Returns 0, or calls table->print_error() and returns -EINVAL, -ENOMEM or the handler's error.
 */
int gguf_option_set(const struct gguf_option_table *table, void *options,
                    const struct gguf_option_use *use);

/* Append a text, which is not copied. Returns 0 or -ENOMEM. The caller frees texts->texts. */
int gguf_texts_add(struct gguf_texts *texts, const char *text);

#endif
