/* What the processes of a mount may still do; see gguf/support/confine.h. */
#ifndef GGUFS_FS_SANDBOX_H
#define GGUFS_FS_SANDBOX_H

/*
 * Confine the server, which parses the model and answers requests: threads, and no more than the
 * descriptors that it has. Call it while there is a single thread. Return 0, or a negative errno
 * with *step set to what failed.
 */
int fs_sandbox_enter(const char **step);

#endif
