/* Open descriptors: passed from the keeper of a mount to its server, or left open by the caller. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Send a message with a descriptor, or -1, to a Unix socket. Returns true on success. */
bool fs_send_message(int socket, const void *bytes, size_t n_bytes, int descriptor);

/*
 * Receive a message of n_bytes. *descriptor is the one that came with it, or -1. Returns false if
 * no message comes: the sender has ended.
 */
bool fs_receive_message(int socket, void *bytes, size_t n_bytes, int *descriptor);

/*
 * Close all descriptors except 0, 1, 2 and n others, which it sorts; -1 stands for none. Otherwise
 * they would stay open as long as the daemon lives.
 */
void fs_close_all_but(int *others, size_t n);
