/* Reads requests and writes replies for a session. */
#ifndef GGUFS_FS_SESSION_IO_H
#define GGUFS_FS_SESSION_IO_H

struct fuse_session;

/*
 * Make a session serve /dev/fuse, which is mounted already; the session takes ownership of the
 * descriptor. Also lets the kernel run lookups in one directory in parallel: libfuse 3.14 does not
 * pass FUSE_CAP_PARALLEL_DIROPS on, so that one slow lookup would block all others. Call it once
 * per process. Returns 0 or a negative errno.
 */
int fs_session_serve(struct fuse_session *session, int fuse_descriptor);

#endif
