/*
 * What a process that only serves a tree may still do. A model file comes from strangers: should
 * one ever get code to run in the daemon, that code finds nothing to open, start or connect to.
 */
#ifndef GGUFS_FS_SANDBOX_H
#define GGUFS_FS_SANDBOX_H

/*
 * Gives up, for good and for all threads to come: capabilities, new privileges (no_new_privs), the
 * file system where the kernel has Landlock, and by a seccomp filter every system call that serving
 * does not need, which then fails with EPERM. Call it while there is a single thread.
 * Prints to stderr what the kernel refused; the rest is in force then.
 */
void fs_sandbox_enter(void);

#endif
