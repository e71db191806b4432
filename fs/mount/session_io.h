/* How a session reads requests and writes replies. */
#ifndef GGUFS_FS_SESSION_IO_H
#define GGUFS_FS_SESSION_IO_H

struct fuse_session;

/*
 * Have a session serve /dev/fuse, which is mounted already; the session takes the descriptor over.
 * The kernel is told that lookups in one directory may run in parallel: libfuse 3.14 forgets to
 * pass FUSE_CAP_PARALLEL_DIROPS on, so that a slow one would hold all others. Call it once in a
 * process. Returns 0 or a negative errno.
 */
int fs_session_serve(struct fuse_session *session, int fuse_descriptor);

#endif
