/* Passes open descriptors from the keeper of a mount to its server. */
#ifndef GGUFS_FS_DESCRIPTORS_H
#define GGUFS_FS_DESCRIPTORS_H

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

#endif
