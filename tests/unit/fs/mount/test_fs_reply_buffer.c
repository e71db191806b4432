/* fs/mount/reply_buffer: a few large buffers are kept and shared, all others are freed. */
#include "fs/mount/reply_buffer.h"

#include <criterion/criterion.h>

#include <stdint.h>
#include <string.h>

#define HUGE_PAGE_BYTES (2u << 20)

Test(fs_reply_buffer, large_buffers_are_kept)
{
    char *first = fs_reply_buffer_take(100000, 2), *second = fs_reply_buffer_take(65536, 2);

    cr_assert_not_null(first);
    cr_assert_not_null(second);
    cr_expect_neq(first, second);
    cr_expect_eq((uintptr_t)first % HUGE_PAGE_BYTES, 0);
    memset(first, 1, HUGE_PAGE_BYTES);
    memset(second, 2, HUGE_PAGE_BYTES);
    fs_reply_buffer_give(second);
    cr_expect_eq(fs_reply_buffer_take(HUGE_PAGE_BYTES, 2), second);
    fs_reply_buffer_give(first);
    cr_expect_eq(fs_reply_buffer_take(70000, 2), first);
    fs_reply_buffer_give(first);
    fs_reply_buffer_give(second);
}

/* While all buffers that may be kept are in use, others have the size of the read. */
Test(fs_reply_buffer, no_more_are_kept)
{
    char *only = fs_reply_buffer_take(100000, 1), *other = fs_reply_buffer_take(100000, 1);

    cr_assert_not_null(only);
    cr_assert_not_null(other);
    cr_expect_neq((uintptr_t)other % HUGE_PAGE_BYTES, 0);
    memset(other, 1, 100000);
    fs_reply_buffer_give(other);
    fs_reply_buffer_give(only);
    cr_expect_eq(fs_reply_buffer_take(100000, 1), only);
}

Test(fs_reply_buffer, other_sizes)
{
    char *small = fs_reply_buffer_take(1000, 11),
         *larger = fs_reply_buffer_take(HUGE_PAGE_BYTES + 1, 11);

    cr_assert_not_null(small);
    cr_assert_not_null(larger);
    memset(small, 1, 1000);
    memset(larger, 1, HUGE_PAGE_BYTES + 1);
    fs_reply_buffer_give(small);
    fs_reply_buffer_give(larger);
}

#ifndef __SANITIZE_ADDRESS__ /* its malloc() aborts for this size */
Test(fs_reply_buffer, too_large)
{
    char *kept;

    cr_expect_null(fs_reply_buffer_take((size_t)1 << 60, 11));
    fs_reply_buffer_give(NULL);
    kept = fs_reply_buffer_take(100000, 11);
    fs_reply_buffer_give(NULL);
    cr_expect_neq(fs_reply_buffer_take(100000, 11), kept);
}
#endif
