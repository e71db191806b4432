/* The cursor: bounds checks and both byte orders. */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "gguf/cursor.h"
#include "tests/unit/gguf/model_file.h"

static const uint8_t bytes[16] = {0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef,
                                  0x10, 0x32, 0x54, 0x76, 0x98, 0xba, 0xdc, 0xfe};

static struct gguf_cursor cursor_over(const void *data, uint64_t size_bytes, bool big_endian,
                                      uint8_t length_bytes)
{
    return (struct gguf_cursor){
        .data = data, .size_bytes = size_bytes, .encoding = {big_endian, length_bytes}};
}

Test(gguf_cursor, reads_numbers_in_both_byte_orders)
{
    static const struct {
        unsigned width_bytes;
        uint64_t little, big;
    } cases[] = {
        {1, 0x01, 0x01},
        {2, 0x2301, 0x0123},
        {4, 0x67452301, 0x01234567},
        {8, 0xefcdab8967452301, 0x0123456789abcdef},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        for (int big_endian = 0; big_endian < 2; big_endian++) {
            struct gguf_cursor cursor = cursor_over(bytes, sizeof bytes, big_endian, 8);
            uint64_t number = 0;

            cr_expect_eq(gguf_cursor_number(&cursor, cases[i].width_bytes, &number), 0);
            cr_expect_eq(number, big_endian ? cases[i].big : cases[i].little);
            cr_expect_eq(cursor.offset, cases[i].width_bytes);
        }
    }
}

Test(gguf_cursor, reads_u32_then_u64)
{
    for (int big_endian = 0; big_endian < 2; big_endian++) {
        struct gguf_cursor cursor = cursor_over(bytes, sizeof bytes, big_endian, 8);
        uint32_t small;
        uint64_t large;

        cr_expect_eq(gguf_cursor_u32(&cursor, &small), 0);
        cr_expect_eq(small, big_endian ? 0x01234567u : 0x67452301u);
        cr_expect_eq(gguf_cursor_u64(&cursor, &large), 0);
        cr_expect_eq(large, big_endian ? 0x89abcdef10325476u : 0x76543210efcdab89u);
        cr_expect_eq(cursor.offset, 12u);
        cr_expect_eq(gguf_cursor_left(&cursor), 4u);
    }
}

Test(gguf_cursor, failed_reads_change_nothing)
{
    for (unsigned width_bytes = 1; width_bytes <= 8; width_bytes++) {
        for (uint64_t left = 0; left < width_bytes; left++) {
            /* Memory of the exact size, so that a sanitizer detects reads past its end. */
            uint8_t *exact = malloc(left + 3);
            struct gguf_cursor cursor;
            uint64_t number = 77;

            cr_assert_not_null(exact);
            memcpy(exact, bytes, left + 3);
            cursor = cursor_over(exact, left + 3, false, 8);
            cr_assert_eq(gguf_cursor_skip(&cursor, 3), 0);
            cr_expect_eq(gguf_cursor_number(&cursor, width_bytes, &number), -ENODATA);
            cr_expect_eq(number, 77u);
            cr_expect_eq(cursor.offset, 3u);
            free(exact);
        }
    }
}

Test(gguf_cursor, failed_reads_of_lengths_change_nothing)
{
    struct gguf_cursor cursor = cursor_over(bytes, 3, false, 4);
    uint32_t small = 7;
    uint64_t large = 7;

    cr_expect_eq(gguf_cursor_u32(&cursor, &small), -ENODATA);
    cr_expect_eq(gguf_cursor_u64(&cursor, &large), -ENODATA);
    cr_expect_eq(gguf_cursor_length(&cursor, &large), -ENODATA);
    cr_expect_eq(small, 7u);
    cr_expect_eq(large, 7u);
    cr_expect_eq(cursor.offset, 0u);
}

Test(gguf_cursor, skips_at_most_to_the_end)
{
    static const uint64_t too_far[] = {17, 1ull << 32, 1ull << 61, UINT64_MAX - 4, UINT64_MAX};
    struct gguf_cursor cursor = cursor_over(bytes, sizeof bytes, false, 8);

    cr_expect_eq(gguf_cursor_skip(&cursor, 0), 0);
    for (size_t i = 0; i < COUNT(too_far); i++) {
        cr_expect_eq(gguf_cursor_skip(&cursor, too_far[i]), -ENODATA);
        cr_expect_eq(cursor.offset, 0u);
    }
    cr_expect_eq(gguf_cursor_skip(&cursor, 5), 0);
    for (size_t i = 0; i < COUNT(too_far); i++)
        cr_expect_eq(gguf_cursor_skip(&cursor, too_far[i]), -ENODATA);
    cr_expect_eq(gguf_cursor_left(&cursor), 11u);
    cr_expect_eq(gguf_cursor_skip(&cursor, 11), 0);
    cr_expect_eq(gguf_cursor_left(&cursor), 0u);
    cr_expect_eq(gguf_cursor_skip(&cursor, 0), 0);
    cr_expect_eq(gguf_cursor_skip(&cursor, 1), -ENODATA);
}

Test(gguf_cursor, version_sets_the_width_of_lengths)
{
    for (size_t i = 0; i < MODEL_N_ENCODINGS; i++) {
        const struct model_encoding *e = &model_encodings[i];
        struct gguf_cursor cursor =
            cursor_over(bytes, sizeof bytes, e->big_endian, (uint8_t)e->length_bytes);
        uint64_t length = 0;

        cr_expect_eq(gguf_cursor_length(&cursor, &length), 0);
        cr_expect_eq(cursor.offset, e->length_bytes);
        if (e->length_bytes == 4)
            cr_expect_eq(length, 0x67452301u);
        else
            cr_expect_eq(length, e->big_endian ? 0x0123456789abcdefu : 0xefcdab8967452301u);
    }
}

Test(gguf_cursor, reads_strings)
{
    static const uint8_t two[] = {3, 0, 0, 0, 'a', 0, 0xff, 0, 0, 0, 0};
    struct gguf_cursor cursor = cursor_over(two, sizeof two, false, 4);
    struct gguf_string string;

    cr_expect_eq(gguf_cursor_string(&cursor, &string), 0);
    cr_expect_eq(string.length_bytes, 3u);
    cr_expect_arr_eq(string.data, "a\0\xff", 3);
    cr_expect_eq(cursor.offset, 7u);
    cr_expect_eq(gguf_cursor_string(&cursor, &string), 0);
    cr_expect_eq(string.length_bytes, 0u);
    cr_expect_eq(gguf_cursor_left(&cursor), 0u);
    cr_expect_eq(gguf_cursor_string(&cursor, &string), -ENODATA);
}

Test(gguf_cursor, strings_past_the_end_are_refused)
{
    static const uint64_t lengths[] = {5, 1ull << 32, 1ull << 63, UINT64_MAX - 11, UINT64_MAX};

    for (size_t i = 0; i < COUNT(lengths); i++) {
        uint8_t file[12] = {0};
        struct gguf_cursor cursor = cursor_over(file, sizeof file, false, 8);
        struct gguf_string string = {"untouched", 9};

        for (unsigned j = 0; j < 8; j++)
            file[j] = (uint8_t)(lengths[i] >> 8 * j);
        cr_expect_eq(gguf_cursor_string(&cursor, &string), -ENODATA);
        cr_expect_eq(cursor.offset, 0u);
        cr_expect_eq(string.length_bytes, 9u);
        file[0] = 4;
        memset(file + 1, 0, 7);
        cr_expect_eq(gguf_cursor_string(&cursor, &string), 0);
        cr_expect_eq(string.length_bytes, 4u);
    }
}

Test(gguf_cursor, skipping_strings_stops_at_the_first_that_does_not_fit)
{
    static const uint8_t two[] = {3, 0, 0, 0, 'a', 0, 0xff, 2, 0, 0, 0, 'b', 'c', 9, 0, 0, 0};
    struct gguf_cursor cursor = cursor_over(two, sizeof two, false, 4);
    struct gguf_string string;

    cr_expect_eq(gguf_cursor_skip_strings(&cursor, 0), 0);
    cr_expect_eq(cursor.offset, 0u);
    cr_expect_eq(gguf_cursor_skip_strings(&cursor, 3), -ENODATA);
    cr_expect_eq(cursor.offset, 13u);
    cr_expect_eq(cursor.failure, -ENODATA);
    cursor.offset = 0;
    cr_expect_eq(gguf_cursor_skip_strings(&cursor, 1), 0);
    cr_expect_eq(gguf_cursor_string(&cursor, &string), 0);
    cr_expect_arr_eq(string.data, "bc", 2);
}
