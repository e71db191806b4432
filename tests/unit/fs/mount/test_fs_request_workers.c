/* fs/mount/request_workers: threads that answer slow requests. The test is the kernel. */
#include "fs/mount/request_workers.h"

#include "fs/mount/server.h"
#include "fs/mount/session_io.h"

#include <criterion/criterion.h>

#include <errno.h>
#include <linux/fuse.h>
#include <semaphore.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static struct fs_request_workers workers;
static sem_t is_added;
static int detach_state = -1; /* of the thread that answers */
static bool is_own_thread;
static pthread_t main_thread;

static void answer(struct fs_slow_request *slow)
{
    pthread_attr_t attributes;

    is_own_thread = !pthread_equal(pthread_self(), main_thread);
    while (is_own_thread && sem_wait(&is_added) != 0)
        ;
    if (pthread_getattr_np(pthread_self(), &attributes) == 0) {
        pthread_attr_getdetachstate(&attributes, &detach_state);
        pthread_attr_destroy(&attributes);
    }
    if (fs_slow_request_end(slow))
        fuse_reply_err(slow->request, ENOTTY);
}

static void on_getattr(fuse_req_t request, fuse_ino_t inode, struct fuse_file_info *info)
{
    const struct fs_slow_request slow = {.request = request, .inode = inode, .answer = answer};

    (void)info;
    fs_request_workers_add(&workers, &slow);
    sem_post(&is_added);
}

static void send_request(struct fuse_session *session, int kernel, const void *request, size_t n)
{
    cr_assert_eq(write(kernel, request, n), (ssize_t)n);
    cr_assert_eq(fs_session_answer_init(session), 0); /* one request, whatever it is */
}

/* Nobody joins the thread, so the system must release it when it ends. */
Test(fs_request_workers, threads_are_detached)
{
    static const struct fuse_lowlevel_ops operations = {.getattr = on_getattr};
    static struct fs_activity activity;
    static struct fs_server server = {.activity = &activity};
    const struct {
        struct fuse_in_header header;
        struct fuse_init_in init;
    } init = {.header = {.len = sizeof init, .opcode = FUSE_INIT, .unique = 2},
              .init = {.major = 7, .minor = 36}};
    const struct {
        struct fuse_in_header header;
        struct fuse_getattr_in getattr;
    } request = {
        .header = {.len = sizeof request, .opcode = FUSE_GETATTR, .unique = 4, .nodeid = 1}};
    char *words[] = {"ggufs"}, buffer[1000];
    struct fuse_args args = FUSE_ARGS_INIT(1, words);
    struct fuse_session *session = fuse_session_new(&args, &operations, sizeof operations, &server);
    struct fuse_out_header reply;
    int ends[2];

    cr_assert_not_null(session);
    cr_assert_eq(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends), 0);
    cr_assert_eq(fs_session_serve(session, ends[0]), 0);
    sem_init(&is_added, 0, 0);
    main_thread = pthread_self();
    fs_request_workers_begin(&workers, session, 1);
    send_request(session, ends[1], &init, sizeof init);
    cr_assert_gt(read(ends[1], buffer, sizeof buffer), 0);
    send_request(session, ends[1], &request, sizeof request);
    fs_request_workers_end(&workers);
    cr_assert_eq(read(ends[1], &reply, sizeof reply), (ssize_t)sizeof reply);
    cr_expect_eq(reply.error, -ENOTTY);
    cr_expect(is_own_thread);
    cr_expect_eq(detach_state, PTHREAD_CREATE_DETACHED);
    sem_destroy(&is_added);
    close(ends[1]);
    fuse_session_destroy(session);
    fuse_opt_free_args(&args);
}
