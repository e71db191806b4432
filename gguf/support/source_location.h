/*
 * The place of a file of the tree in the model file. ioctl(2) with GGUF_GET_SOURCE_LOCATION gets it
 * from an open file of a mount whose bytes are a part of the model file, for example `raw`. Another
 * program can then map the model file itself, so that its pages are in memory only once.
 *
 * ENOTTY: the file's bytes are not a part of the model file, the model file is growing, or the file
 * is not on a mount of ggufs. EIO or ESTALE: the model file has changed since it was mounted.
 *
 * This is not an extended attribute, because attributes are texts for people and do not check the
 * model file.
 */
#pragma once

#include <limits.h>
#include <stdint.h>
#include <sys/ioctl.h>

/* Documented in ggufs(5). */
struct gguf_source_location {
    uint64_t offset;        /* of the file's first byte in the model file */
    uint64_t device, inode; /* of the model file, as in struct stat */
    uint64_t size_bytes;
    int64_t modified_seconds, modified_nanoseconds;
    char path[PATH_MAX]; /* absolute, as the daemon opened it; ends in a NUL */
};

#define GGUF_GET_SOURCE_LOCATION _IOR('G', 1, struct gguf_source_location)

_Static_assert(GGUF_GET_SOURCE_LOCATION == 0x90304701, "ggufs(5) gives this number");
