/* fs/mount/events and datagram_socket: the form of each event, and names of sockets. */
#include "fs/mount/datagram_socket.h"
#include "fs/mount/events.h"

#include <criterion/criterion.h>

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

Test(fs_datagram_socket, path)
{
    struct sockaddr_un address;
    socklen_t length;

    cr_assert_eq(fs_socket_address("/run/systemd/notify", &address, &length), 0);
    cr_expect_eq(address.sun_family, AF_UNIX);
    cr_expect_str_eq(address.sun_path, "/run/systemd/notify");
    cr_expect_eq(length, offsetof(struct sockaddr_un, sun_path) + sizeof "/run/systemd/notify");
}

Test(fs_datagram_socket, abstract_name)
{
    struct sockaddr_un address;
    socklen_t length;

    cr_assert_eq(fs_socket_address("@/a/b", &address, &length), 0);
    cr_expect_eq(length, offsetof(struct sockaddr_un, sun_path) + 5);
    cr_expect_eq(memcmp(address.sun_path, "\0/a/b", 5), 0);
}

Test(fs_datagram_socket, other_addresses_are_refused)
{
    static const char *const names[] = {
        "vsock:2:1234", "run/notify", "unixgram:/run/x", "", "@", "/"};
    struct sockaddr_un address;
    socklen_t length;

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        cr_expect_eq(fs_socket_address(names[i], &address, &length), -EAFNOSUPPORT, "%s", names[i]);
}

Test(fs_datagram_socket, long_names_are_refused)
{
    struct sockaddr_un address;
    socklen_t length;
    char name[sizeof address.sun_path + 1];

    memset(name, 'x', sizeof name);
    name[0] = '/';
    name[sizeof name - 1] = '\0'; /* no room for the NUL of a path */
    cr_expect_eq(fs_socket_address(name, &address, &length), -ENAMETOOLONG);
    name[sizeof name - 2] = '\0';
    cr_expect_eq(fs_socket_address(name, &address, &length), 0);
    cr_expect_eq(length, sizeof address);
}

/* A socket that plays the service manager. Returns it, bound to the name. */
static int listen_at(const char *name)
{
    const int descriptor = socket(AF_UNIX, SOCK_DGRAM, 0);
    struct sockaddr_un address;
    socklen_t length;

    cr_assert_eq(fs_socket_address(name, &address, &length), 0);
    cr_assert_eq(bind(descriptor, (const struct sockaddr *)&address, length), 0);
    return descriptor;
}

/* Check that the manager got this text, or nothing if that is NULL. */
static void expect_datagram(int descriptor, const char *expected)
{
    char text[200];
    const ssize_t n = recv(descriptor, text, sizeof text - 1, MSG_DONTWAIT);

    cr_assert_eq(n >= 0, expected != NULL, "%s", expected ? expected : "nothing was expected");
    text[n >= 0 ? n : 0] = '\0';
    cr_expect(!expected || strcmp(text, expected) == 0, "%s", text);
}

/* Expect the byte at the pipe's end, or nothing if it is 0. */
static void expect_byte(int pipe_end, char expected)
{
    char byte = 0;
    const ssize_t n = read(pipe_end, &byte, 1);

    cr_expect_eq(n, expected ? 1 : -1);
    cr_expect_eq(byte, expected);
}

Test(fs_events, service_manager_and_descriptor)
{
    static const struct {
        enum fs_event event;
        const char *datagram;
        char byte;
    } cases[] = {
        {FS_EVENT_MOUNTED, "READY=1", 's'}, {FS_EVENT_STOPPING, "STOPPING=1", 0},
        {FS_EVENT_ENDED, NULL, 0},          {FS_EVENT_DIED, NULL, 0},
        {FS_EVENT_FAILED, NULL, 'f'},
    };
    char folder[] = "/tmp/ggufs-events-XXXXXX", path[64], abstract[64];
    const char *const names[] = {path, abstract};

    cr_assert(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/socket", folder);
    snprintf(abstract, sizeof abstract, "@ggufs-test-%d", getpid());
    for (size_t i = 0; i < 2; i++) {
        const int manager = listen_at(names[i]);

        setenv("NOTIFY_SOCKET", names[i], 1);
        fs_events_open(true);
        for (size_t j = 0; j < sizeof cases / sizeof *cases; j++) {
            int ends[2];

            cr_assert_eq(pipe2(ends, O_NONBLOCK), 0);
            cr_assert_eq(fs_events_set_descriptor(ends[1]), 0);
            cr_assert_gt(fs_events_descriptor(), STDERR_FILENO);
            fs_report_event(cases[j].event, "");
            expect_datagram(manager, cases[j].datagram);
            expect_byte(ends[0], cases[j].byte);
            /* After a byte the copy is closed. */
            cr_expect_eq(fs_events_descriptor() == -1, cases[j].byte != 0);
            fs_events_close_descriptor();
            close(ends[0]);
            close(ends[1]);
        }
        fs_events_close();
        fs_report_event(FS_EVENT_STOPPING, ""); /* goes nowhere */
        expect_datagram(manager, NULL);
        close(manager);
    }
    unlink(path);
    rmdir(folder);
}

Test(fs_events, no_service_manager)
{
    const int manager = listen_at("@ggufs-test-background");

    setenv("NOTIFY_SOCKET", "@ggufs-test-background", 1);
    fs_events_open(false);
    fs_report_event(FS_EVENT_STOPPING, "");
    expect_datagram(manager, NULL);
    setenv("NOTIFY_SOCKET", "/nowhere/at/all", 1);
    fs_events_open(true);
    fs_report_event(FS_EVENT_STOPPING, "");
    close(manager);
}

Test(fs_events, descriptors_must_be_writable)
{
    int ends[2];

    cr_assert_eq(pipe(ends), 0);
    cr_expect_eq(fs_events_set_descriptor(ends[0]), -EBADF);
    cr_expect_eq(fs_events_set_descriptor(999), -EBADF);
    cr_expect_eq(fs_events_descriptor(), -1);
    close(ends[0]);
    cr_assert_eq(fs_events_set_descriptor(ends[1]), 0);
    fs_report_event(FS_EVENT_MOUNTED, "/m"); /* the reader has gone */
    cr_expect_eq(fs_events_descriptor(), -1);
}
