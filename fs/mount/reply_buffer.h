/* Buffers for the data of replies, one per thread. */
#ifndef GGUFS_FS_REPLY_BUFFER_H
#define GGUFS_FS_REPLY_BUFFER_H

#include <stddef.h>

/* Return room for `size` bytes, valid until the thread's next call, or NULL if out of memory. */
char *fs_reply_buffer(size_t size);

#endif
