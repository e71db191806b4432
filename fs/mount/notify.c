#include "fs/mount/notify.h"

#include "fs/mount/complain.h"
#include "fs/mount/datagram_socket.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* A process has one service manager. */
static int manager = -1;

void fs_notify_open(void)
{
    const char *name = getenv("NOTIFY_SOCKET");

    if (!name || *name == '\0')
        return;
    manager = fs_datagram_connect(name);
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
