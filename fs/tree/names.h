/* Names from a model as file names. */
#ifndef GGUFS_FS_NAMES_H
#define GGUFS_FS_NAMES_H

#include "gguf/support/strings.h"

/* The longest file name of Linux, in bytes, and its NUL. */
#define FS_NAME_BYTES 256

/*
 * Writes to `file_name` the name and `suffix` (at most 32 bytes of a safe file name).
 *
 * A name that is a safe file name stays as it is. '/', NUL, control characters and '%' become %XX,
 * "." and ".." become %2E and %2E%2E, the empty name becomes %. What would be longer than 255 bytes
 * with its suffix is cut and ends in "%~" and 16 hexadecimal digits of a hash of the whole name.
 * Different names give different file names, except where two long names have the same hash.
 */
void fs_name_escape(struct gguf_string name, const char *suffix, char file_name[FS_NAME_BYTES]);

#endif
