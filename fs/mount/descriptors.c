#include "fs/mount/descriptors.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

union control {
    struct cmsghdr align;
    char bytes[CMSG_SPACE(FS_MOST_DESCRIPTORS * sizeof(int))];
};

bool fs_send_message(int socket, const void *bytes, size_t n_bytes, const int *descriptors,
                     size_t n)
{
    union control control = {0};
    struct iovec content = {.iov_base = (void *)(uintptr_t)bytes, .iov_len = n_bytes};
    struct msghdr message = {.msg_iov = &content, .msg_iovlen = 1};
    struct cmsghdr *header;

    if (n > 0) {
        message.msg_control = control.bytes;
        message.msg_controllen = CMSG_SPACE(n * sizeof *descriptors);
        header = CMSG_FIRSTHDR(&message);
        header->cmsg_level = SOL_SOCKET;
        header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = CMSG_LEN(n * sizeof *descriptors);
        memcpy(CMSG_DATA(header), descriptors, n * sizeof *descriptors);
    }
    return sendmsg(socket, &message, MSG_NOSIGNAL) == (ssize_t)n_bytes;
}

bool fs_receive_message(int socket, void *bytes, size_t n_bytes, int *descriptor)
{
    union control control;
    struct iovec room = {.iov_base = bytes, .iov_len = n_bytes};
    struct msghdr message = {.msg_iov = &room,
                             .msg_iovlen = 1,
                             .msg_control = control.bytes,
                             .msg_controllen = sizeof control.bytes};
    const struct cmsghdr *header;
    ssize_t n;

    do
        n = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
    while (n < 0 && errno == EINTR);
    header = n >= 0 ? CMSG_FIRSTHDR(&message) : NULL;
    *descriptor = -1;
    if (header && header->cmsg_type == SCM_RIGHTS)
        memcpy(descriptor, CMSG_DATA(header), sizeof *descriptor);
    return n == (ssize_t)n_bytes;
}

bool fs_send_descriptors(int socket, const int *descriptors, size_t n)
{
    return fs_send_message(socket, "", 1, descriptors, n);
}

int fs_receive_descriptor(int socket)
{
    int descriptor;
    char byte;

    return fs_receive_message(socket, &byte, 1, &descriptor) ? descriptor : -1;
}

/* Close the descriptors between two. */
static void close_between(int low, int high)
{
    const long most = sysconf(_SC_OPEN_MAX);

    if (high - low <= 1 || syscall(SYS_close_range, low + 1, high - 1, 0) == 0) /* Linux 5.9 */
        return;
    for (int i = low + 1; i < high && i < most; i++)
        close(i);
}

static int compare(const void *a, const void *b)
{
    const int x = *(const int *)a, y = *(const int *)b;

    return (x > y) - (x < y);
}

void fs_close_all_but(const int *others, size_t n)
{
    int low = STDERR_FILENO;

    for (size_t i = 0; i < n; i++) {
        if (others[i] <= low) /* nothing to close */
            continue;
        close_between(low, others[i]);
        low = others[i];
    }
    close_between(low, INT_MAX);
}

int fs_close_inherited(const struct gguf_files *files, const struct fs_extra *extras,
                       size_t n_extras, int other)
{
    const size_t n_files = files ? files->count : 0, n = n_files + n_extras + 1;
    int *ours = calloc(n, sizeof *ours);

    if (!ours)
        return -ENOMEM;
    for (size_t i = 0; i < n_files; i++)
        ours[i] = files->list[i].file.source.descriptor;
    for (size_t i = 0; i < n_extras; i++)
        ours[n_files + i] = extras[i].file.source.descriptor;
    ours[n - 1] = other;
    qsort(ours, n, sizeof *ours, compare);
    fs_close_all_but(ours, n);
    free(ours);
    return 0;
}
