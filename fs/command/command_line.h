/* The command line of ggufs: the table of its options, and how it is parsed. */
#pragma once

#include "fs/command/options.h"
#include "gguf/support/option_rows.h"

extern const struct gguf_option_table fs_command_line;

/*
 * Parse the command line. Prints errors to stderr. Makes no libfuse call. Returns 0, -EINVAL,
 * -ENOMEM, or the error of reading a file that an edit names; call fs_options_free() in every
 * case. `argv` must outlive `options`.
 */
int fs_options_parse(int argc, char **argv, struct fs_options *options);

void fs_options_free(struct fs_options *options);
