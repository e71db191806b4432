/* What the processes of a mount may still do; see gguf/support/confine.h. */
#ifndef GGUFS_FS_SANDBOX_H
#define GGUFS_FS_SANDBOX_H

#include <stdbool.h>
#include <sys/types.h>

/*
 * Both functions confine the calling process for good, or print to stderr why they cannot and
 * return false. Call them while there is a single thread.
 */

/* Confine the server: it may start threads and use the descriptors that it has or is sent. */
bool fs_sandbox_enter_server(void);

/*
 * Confine the keeper of a server: it may signal the server, wait for it and unmount. The keeper of
 * a user other than root must start fusermount3 to unmount, which takes rights that a confined
 * process cannot have; it stays as it is.
 */
bool fs_sandbox_enter_keeper(pid_t server);

#endif
