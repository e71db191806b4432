/* fs/mount/session_io: the first reply of a session. The test acts as the kernel. */
#include "fs/mount/session_io.h"

#include "fs/mount/requests.h"

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

/* A socket replaces /dev/fuse. Both transfer whole messages. */
static struct init_reply answer_init(uint32_t flags, bool passthrough)
{
    static const struct fuse_lowlevel_ops none;
    const struct init_request request = {
        .header = {.len = sizeof request, .opcode = FUSE_INIT, .unique = 2},
        .init = {.major = 7, .minor = 36, .flags = flags}};
    struct fs_activity activity = {0};
    struct fs_server server = {.passthrough = passthrough, .activity = &activity};
    char *words[] = {"ggufs"};
    struct fuse_args args = FUSE_ARGS_INIT(1, words);
    struct fuse_session *session = fuse_session_new(&args, &none, sizeof none, &server);
    struct init_reply reply = {0};
    int ends[2];

    cr_assert_not_null(session);
    cr_assert_eq(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends), 0);
    cr_assert_eq(fs_session_serve(session, ends[0]), 0);
    cr_assert_eq(write(ends[1], &request, sizeof request), (ssize_t)sizeof request);
    cr_assert_eq(fs_session_answer_init(session), 0);
    cr_assert_gt(read(ends[1], &reply, sizeof reply), (ssize_t)sizeof reply.header);
    close(ends[1]);
    fuse_session_destroy(session);
    fuse_opt_free_args(&args);
    return reply;
}

Test(fs_session_io, lookups_may_run_in_parallel)
{
    const struct init_reply reply = answer_init(FUSE_ASYNC_READ | FUSE_PARALLEL_DIROPS, true);

    cr_assert_eq(reply.header.error, 0);
    cr_expect_eq(reply.header.unique, 2u);
    cr_expect_eq(reply.init.major, 7u);
    cr_expect(reply.init.flags & FUSE_PARALLEL_DIROPS);
    cr_expect(reply.init.flags & FUSE_ASYNC_READ);
    cr_expect_eq(reply.init.flags2, 0u);
}

Test(fs_session_io, uncached_files_may_be_mapped)
{
    const struct init_reply reply = answer_init(FUSE_ASYNC_READ | FUSE_INIT_EXT, false);

    cr_assert_eq(reply.header.error, 0);
    cr_expect(reply.init.flags & FUSE_INIT_EXT);
    cr_expect_eq(reply.init.flags2, 1u << 4); /* FUSE_DIRECT_IO_ALLOW_MMAP, bit 36 of both */
}

Test(fs_session_io, passthrough_is_requested)
{
    const struct init_reply reply = answer_init(FUSE_ASYNC_READ | FUSE_INIT_EXT, true);
    uint32_t max_stack_depth;

    cr_assert_eq(reply.header.error, 0);
    cr_expect_eq(reply.init.flags2, 1u << 4 | 1u << 5); /* and FUSE_PASSTHROUGH, bit 37 */
    memcpy(&max_stack_depth, &reply.init.flags2 + 1, sizeof max_stack_depth);
    cr_expect_eq(max_stack_depth, 1u);
}
