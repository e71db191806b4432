/* How much memory there is for a model. */
#ifndef GGUFS_FS_AVAILABLE_MEMORY_H
#define GGUFS_FS_AVAILABLE_MEMORY_H

#include <stdint.h>

/*
 * Return the bytes that the system estimates it could give without swapping, or less if a control
 * group of this process has a lower limit; UINT64_MAX if neither is known.
 */
uint64_t fs_available_memory(void);

#endif
