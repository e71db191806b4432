/* fs/mount/events: the byte of each event. */
#include "fs/mount/events.h"

#include <criterion/criterion.h>

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

/* Expect the byte at the pipe's end, or nothing if it is 0. */
static void expect_byte(int pipe_end, char expected)
{
    char byte = 0;
    const ssize_t n = read(pipe_end, &byte, 1);

    cr_expect_eq(n, expected ? 1 : -1);
    cr_expect_eq(byte, expected);
}

Test(fs_events, bytes_for_the_descriptor)
{
    static const struct {
        enum fs_event event;
        char byte;
    } cases[] = {
        {FS_EVENT_MOUNTED, 's'}, {FS_EVENT_ENDED, 0}, {FS_EVENT_DIED, 0}, {FS_EVENT_FAILED, 'f'}};

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int ends[2];

        cr_assert_eq(pipe2(ends, O_NONBLOCK), 0);
        cr_assert_eq(fs_events_set_descriptor(ends[1]), 0);
        cr_assert_gt(fs_events_descriptor(), STDERR_FILENO);
        fs_report_event(cases[i].event, "");
        expect_byte(ends[0], cases[i].byte);
        /* After a byte the copy is closed. */
        cr_expect_eq(fs_events_descriptor() == -1, cases[i].byte != 0);
        fs_events_close();
        close(ends[0]);
        close(ends[1]);
    }
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
