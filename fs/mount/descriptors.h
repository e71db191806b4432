/* Open descriptors: passed from the keeper of a mount to its server, or left open by the caller. */
#pragma once

#include "fs/tree/facts/facts.h"
#include "gguf/files.h"

#include <stdbool.h>
#include <stddef.h>

/* The largest number of descriptors in one message. */
#define FS_MOST_DESCRIPTORS 2

/*
 * Send a message with n descriptors, at most FS_MOST_DESCRIPTORS, to a Unix socket. Returns true on
 * success.
 */
bool fs_send_message(int socket, const void *bytes, size_t n_bytes, const int *descriptors,
                     size_t n);

/*
 * Receive a message of n_bytes. *descriptor is the first that came with it, or -1; the others stay
 * open. Returns false if there is none: the sender has ended, or the socket does not block.
 */
bool fs_receive_message(int socket, void *bytes, size_t n_bytes, int *descriptor);

/* The same for descriptors alone. A signal handler may call the second, which returns -1 on
 * failure.
 */
bool fs_send_descriptors(int socket, const int *descriptors, size_t n);
int fs_receive_descriptor(int socket);

/* Close all descriptors except 0, 1, 2 and n others, in ascending order; -1 stands for none. */
void fs_close_all_but(const int *others, size_t n);

/*
 * Close all descriptors except 0, 1, 2, those of `files`, which may be NULL, and of the extras, and
 * `other` unless it is -1. Otherwise they would stay open as long as the daemon lives. Returns 0 or
 * -ENOMEM.
 */
int fs_close_inherited(const struct gguf_files *files, const struct fs_extra *extras,
                       size_t n_extras, int other);
