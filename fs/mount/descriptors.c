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

int fs_close_inherited(const struct gguf_files *files, int other)
{
    const size_t n = (size_t)files->count + 1;
    int *ours = calloc(n, sizeof *ours);
    int low = STDERR_FILENO;

    if (!ours)
        return -ENOMEM;
    for (uint32_t i = 0; i < files->count; i++)
        ours[i] = files->list[i].file.source.descriptor;
    ours[files->count] = other;
    qsort(ours, n, sizeof *ours, compare);
    for (size_t i = 0; i < n; i++) {
        if (ours[i] <= low) /* nothing to close */
            continue;
        close_between(low, ours[i]);
        low = ours[i];
    }
    close_between(low, INT_MAX);
    free(ours);
    return 0;
}
