/* fs/mount/session_io: replies of a session, and the count of requests. The test is the kernel. */
#include "fs/mount/session_io.h"

#include "fs/mount/server.h"

#include <criterion/criterion.h>

#include <linux/fuse.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

struct init_request {
    struct fuse_in_header header;
    struct fuse_init_in init;
};

struct init_reply {
    struct fuse_out_header header;
    struct fuse_init_out init;
};

/* A reply to FUSE_GETATTR without any attribute. */
static void on_getattr(fuse_req_t request, fuse_ino_t inode, struct fuse_file_info *info)
{
    const struct stat status = {0};

    fuse_reply_attr(request, &status, 0);
}

static struct fs_activity activity;
static struct fuse_session *session;
static int kernel; /* the kernel's end of a socket, which replaces /dev/fuse: it keeps messages */

/* Make a session, and return its answer to INIT. */
static struct init_reply answer_init(uint32_t flags)
{
    static const struct fuse_lowlevel_ops operations = {.getattr = on_getattr};
    static struct fs_server server = {.activity = &activity};
    const struct init_request request = {
        .header = {.len = sizeof request, .opcode = FUSE_INIT, .unique = 2},
        .init = {.major = 7, .minor = 36, .flags = flags}};
    char *words[] = {"ggufs"};
    struct fuse_args args = FUSE_ARGS_INIT(1, words);
    struct init_reply reply = {0};
    int ends[2];

    session = fuse_session_new(&args, &operations, sizeof operations, &server);
    cr_assert_not_null(session);
    cr_assert_eq(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends), 0);
    kernel = ends[1];
    cr_assert_eq(fs_session_serve(session, ends[0]), 0);
    cr_assert_eq(write(kernel, &request, sizeof request), (ssize_t)sizeof request);
    cr_assert_eq(fs_session_answer_init(session), 0);
    cr_assert_gt(read(kernel, &reply, sizeof reply), (ssize_t)sizeof reply.header);
    fuse_opt_free_args(&args);
    return reply;
}

static void end_session(void)
{
    close(kernel);
    fuse_session_destroy(session);
}

TestSuite(fs_session_io, .fini = end_session);

Test(fs_session_io, lookups_may_run_in_parallel)
{
    const struct init_reply reply = answer_init(FUSE_ASYNC_READ | FUSE_PARALLEL_DIROPS);

    cr_assert_eq(reply.header.error, 0);
    cr_expect_eq(reply.header.unique, 2u);
    cr_expect_eq(reply.init.major, 7u);
    cr_expect(reply.init.flags & FUSE_PARALLEL_DIROPS);
    cr_expect(reply.init.flags & FUSE_ASYNC_READ);
    cr_expect_eq(reply.init.flags2, 0u);
}

Test(fs_session_io, uncached_files_may_be_mapped)
{
    const struct init_reply reply = answer_init(FUSE_ASYNC_READ | FUSE_INIT_EXT);

    cr_assert_eq(reply.header.error, 0);
    cr_expect(reply.init.flags & FUSE_INIT_EXT);
    cr_expect_eq(reply.init.flags2, 1u << 4); /* FUSE_DIRECT_IO_ALLOW_MMAP, bit 36 of both */
}

/* Only the answer to INIT has flags; and each request is counted, also one without a body. */
Test(fs_session_io, later_replies_stay)
{
    const struct {
        struct fuse_in_header header;
        struct fuse_getattr_in getattr;
    } request = {
        .header = {.len = sizeof request, .opcode = FUSE_GETATTR, .unique = 4, .nodeid = 1}};
    const struct fuse_in_header bare = {
        .len = sizeof bare, .opcode = FUSE_STATFS, .unique = 6, .nodeid = 1};
    struct {
        struct fuse_out_header header;
        struct fuse_attr_out attributes;
    } reply;

    answer_init(FUSE_ASYNC_READ | FUSE_INIT_EXT);
    cr_expect_eq(activity.n_requests, 1u);
    cr_assert_eq(write(kernel, &request, sizeof request), (ssize_t)sizeof request);
    cr_assert_eq(fs_session_answer_init(session), 0); /* the next request, whatever it is */
    cr_assert_eq(read(kernel, &reply, sizeof reply), (ssize_t)sizeof reply);
    cr_expect_eq(reply.header.error, 0);
    cr_expect_eq(reply.attributes.dummy, 0u); /* where the flags of INIT are */
    cr_expect_eq(activity.n_requests, 2u);
    cr_assert_eq(write(kernel, &bare, sizeof bare), (ssize_t)sizeof bare);
    cr_assert_eq(fs_session_answer_init(session), 0);
    cr_expect_eq(activity.n_requests, 3u);
    cr_assert_eq(write(kernel, "", 1), 1);
    cr_expect_lt(fs_session_answer_init(session), 0);
    cr_expect_eq(activity.n_requests, 3u);
}
