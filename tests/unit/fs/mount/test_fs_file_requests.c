/* fs/mount/file_requests: a read that was interrupted before it began. The test is the kernel. */
#include "fs/mount/requests.h"

#include "fs/mount/server.h"
#include "fs/mount/session_io.h"

#include <criterion/criterion.h>

#include <errno.h>
#include <linux/fuse.h>
#include <pthread.h>
#include <semaphore.h>
#include <sys/socket.h>
#include <unistd.h>

#define READ_UNIQUE      4
#define INTERRUPT_UNIQUE 5

static sem_t comes_back; /* the disk */
static struct fuse_session *session;
static int kernel;

static int read_stalled(const struct fs_image *image, const struct fs_segment *segment,
                        uint64_t offset, size_t length, const struct fs_interrupt *interrupt,
                        char *out)
{
    (void)image, (void)segment, (void)offset, (void)length, (void)interrupt, (void)out;
    while (sem_wait(&comes_back) != 0)
        ;
    return 0;
}

static int build(void *user, fs_node_index node, const struct fs_interrupt *interrupt,
                 struct fs_image *image)
{
    static const struct fs_segment_ops stalled = {.read = read_stalled};

    (void)node, (void)interrupt;
    fs_image_begin(image, NULL);
    image->tree = user;
    return fs_image_add(image, (struct fs_segment){.ops = &stalled}, 100);
}

static void *answer_one(void *argument)
{
    cr_expect_eq(fs_session_answer_init(session), 0); /* one request, whatever it is */
    return argument;
}

static void send_request(const void *request, size_t n)
{
    cr_assert_eq(write(kernel, request, n), (ssize_t)n);
}

static void begin_session(struct fs_server *server)
{
    const struct {
        struct fuse_in_header header;
        struct fuse_init_in init;
    } init = {.header = {.len = sizeof init, .opcode = FUSE_INIT, .unique = 2},
              .init = {.major = 7, .minor = 36}};
    char *words[] = {"ggufs"}, reply[1000];
    struct fuse_args args = FUSE_ARGS_INIT(1, words);
    int ends[2];

    session = fuse_session_new(&args, &fs_requests, sizeof fs_requests, server);
    cr_assert_not_null(session);
    server->session = session;
    cr_assert_eq(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends), 0);
    kernel = ends[1];
    cr_assert_eq(fs_session_serve(session, ends[0]), 0);
    send_request(&init, sizeof init);
    answer_one(NULL);
    cr_assert_gt(read(kernel, reply, sizeof reply), 0);
    fuse_opt_free_args(&args);
}

/* The server asks for the interrupt again, and replies EINTR while the disk does not answer. */
Test(fs_file_requests, interrupted_before_it_began, .timeout = 30)
{
    static const struct fs_mount_options options = {.kept_threads = 1};
    static struct fs_activity activity;
    static struct fs_tree tree;
    static struct fs_server server = {
        .activity = &activity, .options = &options, .shown.tree = &tree};
    const struct fs_image *image;
    struct {
        struct fuse_in_header header;
        struct fuse_interrupt_in interrupt;
    } interrupt = {
        .header = {.len = sizeof interrupt, .opcode = FUSE_INTERRUPT, .unique = INTERRUPT_UNIQUE},
        .interrupt = {.unique = READ_UNIQUE}};
    struct {
        struct fuse_in_header header;
        struct fuse_read_in read;
    } request = {
        .header = {.len = sizeof request, .opcode = FUSE_READ, .unique = READ_UNIQUE, .nodeid = 2},
        .read = {.size = 100}};
    struct fuse_out_header reply;
    pthread_t thread;

    sem_init(&comes_back, 0, 0);
    tree.user = &server.shown;
    fs_open_images_begin(&tree.images);
    cr_assert_eq(fs_open_images_get(&tree.images, 1, build, &tree, NULL, &image), 0);
    request.read.fh = (uintptr_t)image;
    begin_session(&server);

    send_request(&interrupt, sizeof interrupt);
    answer_one(NULL);
    send_request(&request, sizeof request);
    cr_assert_eq(pthread_create(&thread, NULL, answer_one, NULL), 0);
    cr_assert_eq(read(kernel, &reply, sizeof reply), (ssize_t)sizeof reply);
    cr_expect_eq(reply.error, -EAGAIN);
    cr_expect_eq(reply.unique, INTERRUPT_UNIQUE);

    send_request(&interrupt, sizeof interrupt);
    answer_one(NULL);
    cr_assert_eq(read(kernel, &reply, sizeof reply), (ssize_t)sizeof reply);
    cr_expect_eq(reply.error, -EINTR);
    cr_expect_eq(reply.unique, READ_UNIQUE);

    /* The killed reader closes the file before the disk comes back. */
    fs_open_images_put(&tree.images, image);
    cr_expect_not_null(tree.images.tree);
    sem_post(&comes_back);
    pthread_join(thread, NULL);
    cr_expect_null(tree.images.tree);
    cr_expect_eq(recv(kernel, &reply, sizeof reply, MSG_DONTWAIT), -1);
    close(kernel);
    fuse_session_destroy(session);
    fs_open_images_end(&tree.images);
}
