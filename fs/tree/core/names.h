/* Turns names from a model into file names. */
#pragma once

#include "gguf/support/strings.h"

/* Linux's longest file name in bytes, with its NUL. */
#define FS_NAME_BYTES 256

/*
 * Write the name and `suffix` (at most 32 bytes of a safe file name) to `file_name`.
 *
 * A name that is a safe file name is unchanged. '/', NUL, control characters and '%' become %XX,
 * "." and ".." become %2E and %2E%2E, the empty name becomes %. A name that would be longer than
 * 255 bytes with its suffix is cut and ends in "%~" and 16 hexadecimal digits of a hash of the
 * whole name. Different names give different file names, except for long names with equal hashes.
 */
void fs_name_escape(struct gguf_string name, const char *suffix, char file_name[FS_NAME_BYTES]);
