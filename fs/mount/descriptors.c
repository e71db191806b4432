#include "fs/mount/descriptors.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

union control {
    struct cmsghdr align;
    char bytes[CMSG_SPACE(FS_MOST_DESCRIPTORS * sizeof(int))];
};

bool fs_send_descriptors(int socket, const int *descriptors, size_t n)
{
    union control control = {0};
    struct iovec byte = {.iov_base = "", .iov_len = 1};
    struct msghdr message = {.msg_iov = &byte,
                             .msg_iovlen = 1,
                             .msg_control = control.bytes,
                             .msg_controllen = CMSG_SPACE(n * sizeof *descriptors)};
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);

    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(n * sizeof *descriptors);
    memcpy(CMSG_DATA(header), descriptors, n * sizeof *descriptors);
    return sendmsg(socket, &message, MSG_NOSIGNAL) == 1;
}

int fs_receive_descriptor(int socket)
{
    union control control;
    char byte;
    struct iovec room = {.iov_base = &byte, .iov_len = 1};
    struct msghdr message = {.msg_iov = &room,
                             .msg_iovlen = 1,
                             .msg_control = control.bytes,
                             .msg_controllen = sizeof control.bytes};
    const struct cmsghdr *header;
    int descriptor;
    ssize_t n;

    do
        n = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
    while (n < 0 && errno == EINTR);
    header = n == 1 ? CMSG_FIRSTHDR(&message) : NULL;
    if (!header || header->cmsg_type != SCM_RIGHTS)
        return -1;
    memcpy(&descriptor, CMSG_DATA(header), sizeof descriptor);
    return descriptor;
}
