#include "fs/mount/datagram_socket.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

int fs_socket_address(const char *name, struct sockaddr_un *address, socklen_t *length)
{
    const size_t n = strlen(name);

    if ((name[0] != '/' && name[0] != '@') || n < 2)
        return -EAFNOSUPPORT;
    if (n >= sizeof address->sun_path)
        return -ENAMETOOLONG;
    *address = (struct sockaddr_un){.sun_family = AF_UNIX};
    memcpy(address->sun_path, name, n);
    if (name[0] == '@')
        address->sun_path[0] = '\0';
    /* All bytes of an abstract name count; a path ends in a NUL. */
    *length = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n + (name[0] == '/'));
    return 0;
}

int fs_datagram_connect(const char *name)
{
    struct sockaddr_un address;
    socklen_t length;
    int result = fs_socket_address(name, &address, &length);
    const int descriptor = result < 0 ? -1 : socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    if (result < 0)
        return result;
    if (descriptor < 0)
        return -errno;
    if (connect(descriptor, (const struct sockaddr *)&address, length) != 0) {
        result = -errno;
        close(descriptor);
    }
    return result < 0 ? result : descriptor;
}
