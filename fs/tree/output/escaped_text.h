/* Names and tokens inside a line of text. */
#pragma once

#include "fs/tree/output/sink.h"

#include <stdbool.h>

/*
 * Write bytes, with what would break a line or a terminal escaped: \n, \r, \t, and \xNN for each
 * byte of other control characters and of invalid UTF-8; also \\ if `is_backslash_escaped`.
 */
void fs_escaped_write(struct fs_sink *sink, const char *bytes, size_t length,
                      bool is_backslash_escaped);
