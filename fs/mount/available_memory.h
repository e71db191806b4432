/* The memory available for a model. */
#ifndef GGUFS_FS_AVAILABLE_MEMORY_H
#define GGUFS_FS_AVAILABLE_MEMORY_H

#include <stdint.h>

/*
 * Return the bytes that the system estimates to be available without swapping, or the limit of this
 * process's control group if that is lower; UINT64_MAX if neither is known.
 */
uint64_t fs_available_memory(void);

#endif
