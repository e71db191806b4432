/* Sockets for datagrams to services of the system: the service manager, the journal and syslog. */
#pragma once

#include <sys/socket.h>
#include <sys/un.h>

/*
 * Convert the name of a Unix socket: an absolute path, or '@' and the name of an abstract socket.
 * Returns 0, -EAFNOSUPPORT for any other kind of address, like vsock:, or -ENAMETOOLONG.
 */
int fs_socket_address(const char *name, struct sockaddr_un *address, socklen_t *length);

/*
 * Connect to the socket of that name. Returns the descriptor or a negative errno. A keeper confined
 * with `connects` of gguf/support/confine.h may call this.
 */
int fs_datagram_connect(const char *name);
