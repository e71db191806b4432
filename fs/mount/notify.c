#include "fs/mount/notify.h"

#include "fs/mount/complain.h"

#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A process has one service manager. */
static int manager = -1;

int fs_notify_address(const char *name, struct sockaddr_un *address, socklen_t *length)
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

/* Returns a socket or a negative errno. */
static int connect_to(const char *name)
{
    struct sockaddr_un address;
    socklen_t length;
    int result = fs_notify_address(name, &address, &length);
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

void fs_notify_open(void)
{
    const char *name = getenv("NOTIFY_SOCKET");

    if (!name || *name == '\0')
        return;
    manager = connect_to(name);
    if (manager == -EAFNOSUPPORT)
        fs_complain(name, NULL,
                    "NOTIFY_SOCKET must be an absolute path, or @ and the name of an abstract "
                    "socket; the service manager is not notified");
    else if (manager < 0)
        fs_complain(name, NULL, "NOTIFY_SOCKET: the service manager is not notified: %s",
                    strerror(-manager));
}

bool fs_notify_is_open(void)
{
    return manager >= 0;
}

void fs_notify_close(void)
{
    if (manager >= 0)
        close(manager);
    manager = -1;
}

void fs_notify(const char *format, ...)
{
    char *text;
    va_list args;
    int length;

    if (manager < 0)
        return;
    va_start(args, format);
    length = vasprintf(&text, format, args);
    va_end(args);
    if (length < 0)
        return;
    send(manager, text, (size_t)length, MSG_NOSIGNAL);
    free(text);
}
