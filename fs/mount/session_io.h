/* Reads requests and writes replies for a session. */
#pragma once

struct fuse_session;

/*
 * Make a session serve /dev/fuse, which is mounted already; the session takes ownership of the
 * descriptor. Call it once per process. Returns 0 or a negative errno. When the file system is
 * unmounted and a thread of the session does not end within seconds, the process ends with status
 * 0.
 *
 * Also lets the kernel run lookups in one directory in parallel, so that one slow lookup does not
 * block all others, and map files that it does not cache. libfuse 3.14 does not pass the first of
 * these flags on, and does not know the second.
 */
int fs_session_serve(struct fuse_session *session, int fuse_descriptor);

/* Have the kernel repeat the interrupt of the request that this thread has taken last. */
int fs_session_repeat_interrupt(struct fuse_session *session);

/*
 * Answer the kernel's first request, which is there as soon as the file system is mounted. Returns
 * 0, also if it has been unmounted already, or a negative errno.
 */
int fs_session_answer_init(struct fuse_session *session);
