/* Lines of text about a checkpoint, for users. */
#ifndef GGUFS_FS_HF_LINES_H
#define GGUFS_FS_HF_LINES_H

#include "gguf/support/arrays.h"

/*
 * Add a line to `lines`, unless there are very many. `format` ends with a line break. Returns 0 or
 * -ENOMEM.
 */
int fs_hf_add_line(struct gguf_buffer *lines, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
