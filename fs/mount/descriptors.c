#include "fs/mount/descriptors.h"

#include <errno.h>
#include <limits.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

union control {
    struct cmsghdr align;
    char bytes[CMSG_SPACE(sizeof(int))];
};

bool fs_send_message(int socket, const void *bytes, size_t n_bytes, int descriptor)
{
    union control control = {.align = {.cmsg_level = SOL_SOCKET,
                                       .cmsg_type = SCM_RIGHTS,
                                       .cmsg_len = CMSG_LEN(sizeof descriptor)}};
    struct iovec content = {.iov_base = (void *)(uintptr_t)bytes, .iov_len = n_bytes};
    struct msghdr message = {.msg_iov = &content, .msg_iovlen = 1};

    if (descriptor >= 0) {
        message.msg_control = control.bytes;
        message.msg_controllen = sizeof control.bytes;
        memcpy(CMSG_DATA(&control.align), &descriptor, sizeof descriptor);
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

static int compare(const void *a, const void *b)
{
    const int x = *(const int *)a, y = *(const int *)b;

    return (x > y) - (x < y);
}

void fs_close_all_but(int *others, size_t n)
{
    int low = STDERR_FILENO;

    if (n > 0)
        qsort(others, n, sizeof *others, compare);
    for (size_t i = 0; i < n; i++) {
        if (others[i] > low + 1)
            close_range((unsigned)low + 1, (unsigned)others[i] - 1, 0);
        if (others[i] > low)
            low = others[i];
    }
    close_range((unsigned)low + 1, UINT_MAX, 0);
}
