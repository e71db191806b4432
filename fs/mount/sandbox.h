/* Restricts what the processes of a mount can do; see gguf/support/confine.h. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

/*
 * Both functions confine the calling process for good. On failure they print the reason to stderr
 * and return false. Call them while there is a single thread.
 */

/* Confine the server: it may start threads and use descriptors that it has or receives. */
bool fs_sandbox_enter_server(void);

/* Confine a process that opens files for the server: it does nothing else. */
bool fs_sandbox_enter_opener(void);

/*
 * Confine the keeper of a server: it may signal the server, wait for it, and unmount. The keeper of
 * a user other than root is not confined, because it must start fusermount3 to unmount, which needs
 * rights that a confined process cannot have.
 */
bool fs_sandbox_enter_keeper(pid_t server);
