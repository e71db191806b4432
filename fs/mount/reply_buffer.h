/* Buffers for the data of replies. Any thread may call these functions. */
#pragma once

#include <stddef.h>

/*
 * Get `size` bytes, for fs_reply_buffer_give(). Up to n_kept large buffers, at most 16, stay
 * allocated for later calls. Returns NULL if out of memory.
 */
char *fs_reply_buffer_take(size_t size, unsigned n_kept);
void fs_reply_buffer_give(char *data);
