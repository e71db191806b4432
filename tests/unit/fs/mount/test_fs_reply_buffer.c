/* fs/mount/reply_buffer: one buffer per thread, kept between calls, that grows. */
#include "fs/mount/reply_buffer.h"

#include <criterion/criterion.h>

#include <pthread.h>
#include <stdint.h>
#include <string.h>

Test(fs_reply_buffer, is_kept_while_it_is_large_enough)
{
    char *small = fs_reply_buffer(1000), *large;

    cr_assert_not_null(small);
    memset(small, 1, 1000);
    cr_expect_eq(fs_reply_buffer(1000), small);
    cr_expect_eq(fs_reply_buffer(1), small);
    large = fs_reply_buffer(100000); /* from 64 KiB on, whole huge pages */
    cr_assert_not_null(large);
    cr_expect_eq((uintptr_t)large % (2u << 20), 0);
    memset(large, 1, 2u << 20);
    cr_expect_eq(fs_reply_buffer(2u << 20), large);
    large = fs_reply_buffer((2u << 20) + 1);
    cr_assert_not_null(large);
    memset(large, 1, 4u << 20);
}

static void *get_buffer(void *argument)
{
    (void)argument;
    return fs_reply_buffer(1000);
}

Test(fs_reply_buffer, each_thread_has_its_own)
{
    char *ours = fs_reply_buffer(1000);
    pthread_t thread;
    void *theirs;

    cr_assert_eq(pthread_create(&thread, NULL, get_buffer, NULL), 0);
    cr_assert_eq(pthread_join(thread, &theirs), 0);
    cr_expect_not_null(theirs);
    cr_expect_neq(theirs, ours);
}

#ifndef __SANITIZE_ADDRESS__ /* its malloc() aborts for this size */
Test(fs_reply_buffer, too_large)
{
    char *again;

    cr_assert_not_null(fs_reply_buffer(1000));
    cr_expect_null(fs_reply_buffer((size_t)1 << 60));
    again = fs_reply_buffer(1000); /* the thread has lost its buffer, and gets another */
    cr_assert_not_null(again);
    memset(again, 1, 1000);
}
#endif
