/* Descriptors that the caller left open. */
#ifndef GGUFS_FS_INHERITED_H
#define GGUFS_FS_INHERITED_H

#include "gguf/files.h"

/*
 * Close all descriptors except 0, 1, 2, the descriptors of `files`, and `other` unless it is -1.
 * Otherwise they would stay open as long as the daemon lives. Returns 0 or -ENOMEM.
 */
int fs_close_inherited(const struct gguf_files *files, int other);

#endif
