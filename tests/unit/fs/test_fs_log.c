/* fs/mount/datagram_socket, log_formats and log_limit: names of sockets, bytes of each protocol. */
#include "fs/mount/datagram_socket.h"
#include "fs/mount/log_formats.h"
#include "fs/mount/log_limit.h"
#include "fs/mount/notify.h"

#include <criterion/criterion.h>

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>
#include <time.h>
#include <unistd.h>

static const struct fs_log_record full = {
    .time = {.tv_sec = 1700000000, .tv_nsec = 999999999}, /* 2023-11-14T22:13:20Z */
    .pid = 42,
    .priority = LOG_ERR,
    .message = "/mnt: it broke",
    .message_id = "8e8b1557affd4a68987943cc8b6ae2b3",
    .model = "/srv/m.gguf",
    .mountpoint = "/mnt",
    .file = "tensors/t/raw",
    .error = EIO,
    .reader = 43,
    .count = 7,
};

static void expect_bytes(const struct gguf_buffer *bytes, const char *expected, size_t length)
{
    cr_expect_eq(bytes->length, length, "%zu bytes instead of %zu", bytes->length, length);
    cr_expect(bytes->length == length && memcmp(bytes->bytes, expected, length) == 0, "%s",
              bytes->bytes);
}

Test(fs_log_formats, line)
{
    static const char expected[] = "2023-11-14T22:13:20Z ggufs[42] error: /mnt: it broke\n";
    struct gguf_buffer bytes = {0};

    cr_assert_eq(fs_log_format_line(&full, &bytes), 0);
    expect_bytes(&bytes, expected, sizeof expected - 1);
    gguf_buffer_free(&bytes);
}

Test(fs_log_formats, line_names_every_priority)
{
    static const struct {
        int priority;
        const char *name;
    } cases[] = {{LOG_ERR, " error: "},
                 {LOG_WARNING, " warning: "},
                 {LOG_NOTICE, " notice: "},
                 {LOG_INFO, " info: "}};

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct fs_log_record record = full;
        struct gguf_buffer bytes = {0};

        record.priority = cases[i].priority;
        cr_assert_eq(fs_log_format_line(&record, &bytes), 0);
        cr_expect(strstr(bytes.bytes, cases[i].name), "%s", bytes.bytes);
        gguf_buffer_free(&bytes);
    }
}

/* RFC 3164: facility 3 (daemon) * 8 + severity 3, local time with the day padded by a space. */
Test(fs_log_formats, syslog)
{
    static const char expected[] = "<27>Nov  5 06:00:00 ggufs[42]: /mnt: it broke";
    struct fs_log_record record = full;
    struct gguf_buffer bytes = {0};

    setenv("TZ", "XYZ-2", 1); /* two hours east of UTC */
    tzset();
    record.time.tv_sec = 1699156800; /* 2023-11-05T04:00:00Z */
    cr_assert_eq(fs_log_format_syslog(&record, &bytes), 0);
    expect_bytes(&bytes, expected, sizeof expected - 1);
    gguf_buffer_free(&bytes);
}

Test(fs_log_formats, journal)
{
    static const char expected[] = "PRIORITY=3\n"
                                   "SYSLOG_FACILITY=3\n"
                                   "SYSLOG_IDENTIFIER=ggufs\n"
                                   "MESSAGE=/mnt: it broke\n"
                                   "MESSAGE_ID=8e8b1557affd4a68987943cc8b6ae2b3\n"
                                   "GGUFS_MODEL=/srv/m.gguf\n"
                                   "GGUFS_MOUNTPOINT=/mnt\n"
                                   "GGUFS_FILE=tensors/t/raw\n"
                                   "ERRNO=5\n"
                                   "OBJECT_PID=43\n"
                                   "GGUFS_COUNT=7\n";
    struct gguf_buffer bytes = {0};

    cr_assert_eq(fs_log_format_journal(&full, &bytes), 0);
    expect_bytes(&bytes, expected, sizeof expected - 1);
    gguf_buffer_free(&bytes);
}

Test(fs_log_formats, journal_leaves_out_absent_fields)
{
    static const char expected[] = "PRIORITY=5\nSYSLOG_FACILITY=3\nSYSLOG_IDENTIFIER=ggufs\n"
                                   "MESSAGE=hello\n";
    const struct fs_log_record record = {.priority = LOG_NOTICE, .message = "hello"};
    struct gguf_buffer bytes = {0};

    cr_assert_eq(fs_log_format_journal(&record, &bytes), 0);
    expect_bytes(&bytes, expected, sizeof expected - 1);
    gguf_buffer_free(&bytes);
}

/* A line break in a path must not begin another field. */
Test(fs_log_formats, journal_gives_the_length_of_strange_paths)
{
    static const char expected[] = "PRIORITY=5\nSYSLOG_FACILITY=3\nSYSLOG_IDENTIFIER=ggufs\n"
                                   "MESSAGE=hello\n"
                                   "GGUFS_MODEL\n\x0a\0\0\0\0\0\0\0a\nUID=0\xff"
                                   "bc\n"
                                   "GGUFS_MOUNTPOINT=/m\xc3\xbc=1\n";
    const struct fs_log_record record = {.priority = LOG_NOTICE,
                                         .message = "hello",
                                         .model = "a\nUID=0\xff"
                                                  "bc",
                                         .mountpoint = "/m\xc3\xbc=1"};
    struct gguf_buffer bytes = {0};

    cr_assert_eq(fs_log_format_journal(&record, &bytes), 0);
    expect_bytes(&bytes, expected, sizeof expected - 1);
    gguf_buffer_free(&bytes);
}

Test(fs_log_limit, counts_what_comes_too_fast)
{
    struct fs_log_limit limit = {0};
    uint64_t n_lost = 99;

    for (unsigned i = 0; i < FS_LOG_LIMIT_RECORDS; i++) {
        cr_assert(fs_log_limit_take(&limit, 1000 + i % FS_LOG_LIMIT_SECONDS, &n_lost));
        cr_assert_eq(n_lost, 0);
    }
    for (unsigned i = 0; i < 5; i++)
        cr_expect_not(fs_log_limit_take(&limit, 1000 + FS_LOG_LIMIT_SECONDS - 1, &n_lost));
    cr_expect(fs_log_limit_take(&limit, 1000 + FS_LOG_LIMIT_SECONDS, &n_lost));
    cr_expect_eq(n_lost, 5);
    cr_expect(fs_log_limit_take(&limit, 1000 + FS_LOG_LIMIT_SECONDS, &n_lost));
    cr_expect_eq(n_lost, 0);
}

Test(fs_log_limit, counts_what_could_not_be_written)
{
    struct fs_log_limit limit = {0};
    uint64_t n_lost;

    fs_log_limit_lose(&limit, 2);
    fs_log_limit_lose(&limit, 1);
    cr_expect(fs_log_limit_take(&limit, 1, &n_lost));
    cr_expect_eq(n_lost, 3);
}

Test(fs_notify, path)
{
    struct sockaddr_un address;
    socklen_t length;

    cr_assert_eq(fs_socket_address("/run/systemd/notify", &address, &length), 0);
    cr_expect_eq(address.sun_family, AF_UNIX);
    cr_expect_str_eq(address.sun_path, "/run/systemd/notify");
    cr_expect_eq(length, offsetof(struct sockaddr_un, sun_path) + sizeof "/run/systemd/notify");
}

Test(fs_notify, abstract_name)
{
    struct sockaddr_un address;
    socklen_t length;

    cr_assert_eq(fs_socket_address("@/a/b", &address, &length), 0);
    cr_expect_eq(length, offsetof(struct sockaddr_un, sun_path) + 5);
    cr_expect_eq(memcmp(address.sun_path, "\0/a/b", 5), 0);
}

Test(fs_notify, other_addresses_are_refused)
{
    static const char *const names[] = {
        "vsock:2:1234", "run/notify", "unixgram:/run/x", "", "@", "/"};
    struct sockaddr_un address;
    socklen_t length;

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        cr_expect_eq(fs_socket_address(names[i], &address, &length), -EAFNOSUPPORT, "%s", names[i]);
}

Test(fs_notify, long_names_are_refused)
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

static void expect_datagram(int descriptor, const char *expected)
{
    char text[200];
    const ssize_t n = recv(descriptor, text, sizeof text - 1, MSG_DONTWAIT);

    cr_assert_geq(n, 0, "nothing was sent");
    text[n] = '\0';
    cr_expect_str_eq(text, expected);
}

Test(fs_notify, sends)
{
    char folder[] = "/tmp/ggufs-notify-XXXXXX", path[64], abstract[64];
    const char *const names[] = {path, abstract};

    cr_assert(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/socket", folder);
    snprintf(abstract, sizeof abstract, "@ggufs-test-%d", getpid());
    for (size_t i = 0; i < 2; i++) {
        const int descriptor = listen_at(names[i]);

        setenv("NOTIFY_SOCKET", names[i], 1);
        fs_notify_open();
        cr_expect(fs_notify_is_open());
        fs_notify("READY=1\nSTATUS=%s", "serving");
        fs_notify_close();
        cr_expect_not(fs_notify_is_open());
        fs_notify("STOPPING=1"); /* goes nowhere */
        expect_datagram(descriptor, "READY=1\nSTATUS=serving");
        cr_expect_lt(recv(descriptor, path, 1, MSG_DONTWAIT), 0);
        close(descriptor);
    }
    unlink(path);
    rmdir(folder);
}

Test(fs_notify, nobody_listens)
{
    unsetenv("NOTIFY_SOCKET");
    fs_notify_open();
    cr_expect_not(fs_notify_is_open());
    setenv("NOTIFY_SOCKET", "/nowhere/at/all", 1);
    fs_notify_open();
    cr_expect_not(fs_notify_is_open());
    fs_notify("READY=1");
}
