/* Open descriptors: passed from the keeper of a mount to its server, or left open by the caller. */
#pragma once

#include "gguf/files.h"

#include <stdbool.h>
#include <stddef.h>

/* The largest number of descriptors in one message. */
#define FS_MOST_DESCRIPTORS 2

/* Send n descriptors, at most FS_MOST_DESCRIPTORS, to a Unix socket. Returns true on success. */
bool fs_send_descriptors(int socket, const int *descriptors, size_t n);

/*
 * Return the first descriptor received; the others stay open. Returns -1 if the sender has ended,
 * or if the socket does not block and has no message. A signal handler may call this.
 */
int fs_receive_descriptor(int socket);

/*
 * Close all descriptors except 0, 1, 2, the descriptors of `files`, and `other` unless it is -1.
 * Otherwise they would stay open as long as the daemon lives. Returns 0 or -ENOMEM.
 */
int fs_close_inherited(const struct gguf_files *files, int other);
