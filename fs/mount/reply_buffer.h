/* Buffers for the data of replies, one per thread. */
#pragma once

#include <stddef.h>

/* Return room for `size` bytes, valid until the thread's next call, or NULL if out of memory. */
char *fs_reply_buffer(size_t size);
