/* File names for the names of keys and tensors. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistr.h>

#include "fs/tree/core/names.h"
#include "tests/unit/gguf/model_file.h"

static struct gguf_string string_of(const char *text)
{
    return (struct gguf_string){text, strlen(text)};
}

Test(fs_names, only_unsafe_bytes_are_escaped)
{
    static const struct {
        const char *name;
        size_t length_bytes;
        const char *file_name;
    } cases[] = {
        {"blk.0.attn_q.weight", 19, "blk.0.attn_q.weight"},
        {"tokenizer.ggml.tokens", 21, "tokenizer.ggml.tokens"},
        {"a name: with 'quotes' & $igns", 29, "a name: with 'quotes' & $igns"},
        {"\xc3\xa9t\xc3\xa9", 5, "\xc3\xa9t\xc3\xa9"},
        {"\xff\xfe", 2, "\xff\xfe"},
        {"a/b//c", 6, "a%2Fb%2F%2Fc"},
        {"100%", 4, "100%25"},
        {"%2F", 3, "%252F"},
        {"a\0b", 3, "a%00b"},
        {"\0", 1, "%00"},
        {"\x01\n\x1f\x7f", 4, "%01%0A%1F%7F"},
        {" ", 1, " "},
        {"", 0, "%"},
        {".", 1, "%2E"},
        {"..", 2, "%2E%2E"},
        {"...", 3, "..."},
        {".a", 2, ".a"},
        {"..a", 3, "..a"},
        {"a.", 2, "a."},
        {".\0", 2, ".%00"},
        {"~", 1, "~"},
        {"%~", 2, "%25~"},
    };
    char file_name[FS_NAME_BYTES], expected[FS_NAME_BYTES];

    for (size_t i = 0; i < COUNT(cases); i++) {
        const struct gguf_string name = {cases[i].name, cases[i].length_bytes};

        fs_name_escape(name, "", file_name);
        cr_expect_str_eq(file_name, cases[i].file_name);
        fs_name_escape(name, ".json", file_name);
        snprintf(expected, sizeof expected, "%s.json", cases[i].file_name);
        cr_expect_str_eq(file_name, expected);
    }
    fs_name_escape((struct gguf_string){NULL, 0}, "", file_name);
    cr_expect_str_eq(file_name, "%");
}

/* Unescape a file name that was not cut. Returns the length of the name. */
static size_t unescape(const char *file_name, char *name)
{
    size_t length = 0;

    if (strcmp(file_name, "%") == 0)
        return 0;
    while (*file_name != '\0') {
        unsigned byte = (unsigned char)*file_name++;

        if (byte == '%') {
            cr_assert_eq(sscanf(file_name, "%2X", &byte), 1);
            file_name += 2;
        }
        name[length++] = (char)byte;
    }
    return length;
}

Test(fs_names, every_name_of_up_to_two_bytes_unescapes)
{
    char file_name[FS_NAME_BYTES], back[FS_NAME_BYTES];

    for (unsigned first = 0; first < 256; first++) {
        for (unsigned second = 0; second <= 256; second++) {
            const char name[] = {(char)first, (char)second};
            const size_t length = second < 256 ? 2 : 1;

            fs_name_escape((struct gguf_string){name, length}, "", file_name);
            cr_assert(strcmp(file_name, ".") != 0 && strcmp(file_name, "..") != 0);
            cr_assert_null(strchr(file_name, '/'));
            cr_assert_eq(unescape(file_name, back), length);
            cr_assert_arr_eq(back, name, length);
        }
    }
}

Test(fs_names, only_names_that_are_too_long_are_cut)
{
    static const char *const suffixes[] = {"", ".json", ".sixteen-bytes.."};
    char name[300], file_name[FS_NAME_BYTES];

    memset(name, 'n', sizeof name);
    for (size_t i = 0; i < COUNT(suffixes); i++) {
        const size_t fits = 255 - strlen(suffixes[i]);

        for (size_t length = 200; length <= sizeof name; length++) {
            fs_name_escape((struct gguf_string){name, length}, suffixes[i], file_name);
            cr_assert_leq(strlen(file_name), 255u);
            cr_assert_str_eq(file_name + strlen(file_name) - strlen(suffixes[i]), suffixes[i]);
            if (length <= fits) {
                cr_assert_eq(strlen(file_name), length + strlen(suffixes[i]));
                cr_assert_null(strchr(file_name, '%'));
            } else {
                cr_assert_eq(strlen(file_name), 255u);
                cr_assert_eq(strchr(file_name, '%'), file_name + fits - 18);
                cr_assert_eq(file_name[fits - 17], '~');
                cr_assert_eq(strspn(file_name + fits - 16, "0123456789abcdef"), 16u);
            }
        }
    }
}

Test(fs_names, a_name_too_long_once_escaped)
{
    char name[90], file_name[FS_NAME_BYTES];

    memset(name, '/', sizeof name);
    fs_name_escape((struct gguf_string){name, 85}, "", file_name);
    cr_expect_eq(strlen(file_name), 255u);
    cr_expect_str_eq(file_name + 252, "%2F");
    /* 79 escapes, the mark and the hash: no escape is cut. */
    fs_name_escape((struct gguf_string){name, 86}, "", file_name);
    cr_expect_eq(strlen(file_name), 79u * 3 + 18);
    cr_expect_arr_eq(file_name + 78 * 3, "%2F%~", 5);
}

Test(fs_names, characters_are_not_cut)
{
    static const char *const characters[] = {"\xc3\xa9", "\xe2\x96\x81", "\xf0\x9f\x8c\x8d"};

    for (size_t i = 0; i < COUNT(characters); i++) {
        const size_t width = strlen(characters[i]);

        for (size_t shift = 0; shift < 4; shift++) {
            char name[400], file_name[FS_NAME_BYTES];
            size_t length = shift;

            memset(name, 'x', shift);
            for (; length + width <= 300; length += width)
                memcpy(name + length, characters[i], width);
            fs_name_escape((struct gguf_string){name, length}, ".json", file_name);
            cr_expect_null(u8_check((const uint8_t *)file_name, strlen(file_name)), "%s",
                           file_name);
            cr_expect_leq(strlen(file_name), 255u);
            cr_expect_gt(strlen(file_name), 255u - width);
        }
    }
}

Test(fs_names, invalid_utf8_is_cut)
{
    char name[400], file_name[FS_NAME_BYTES];

    for (int byte = 0x80; byte < 0x100; byte++) {
        memset(name, byte, sizeof name);
        for (size_t length = 250; length < sizeof name; length++) {
            fs_name_escape((struct gguf_string){name, length}, "", file_name);
            cr_assert_leq(strlen(file_name), 255u);
            cr_assert_gt(strlen(file_name), 200u);
        }
    }
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(a, b);
}

enum { N_NAMES = 20000 };

Test(fs_names, different_names_give_different_file_names)
{
    static const char *const parts[] = {"/",  "%",        "%2F", ".", "~",
                                        "%~", "\xc3\xa9", "a",   "A", "\x01"};
    char(*file_names)[FS_NAME_BYTES] = calloc(N_NAMES, sizeof *file_names);
    uint64_t state = 1;

    cr_assert_not_null(file_names);
    /* A number at the start, middle or end makes each name unique. */
    for (unsigned i = 0; i < N_NAMES; i++) {
        char name[700];
        const size_t n_parts = model_file_random(&state) % (i % 2 ? 8 : 260);
        const size_t place = i % 3 == 0 ? 0 : i % 3 == 1 ? n_parts / 2 : n_parts;
        size_t length = 0;

        for (size_t j = 0; j <= n_parts; j++) {
            const char *part = parts[model_file_random(&state) % COUNT(parts)];

            if (j == place)
                length += (size_t)sprintf(name + length, "<%u>", i);
            if (length + strlen(part) + 10 >= sizeof name)
                continue;
            memcpy(name + length, part, strlen(part));
            length += strlen(part);
        }
        fs_name_escape((struct gguf_string){name, length}, ".json", file_names[i]);
        cr_assert_leq(strlen(file_names[i]), 255u);
        cr_assert_null(strchr(file_names[i], '/'));
    }
    qsort(file_names, N_NAMES, sizeof *file_names, compare_names);
    for (size_t i = 1; i < N_NAMES; i++)
        cr_assert_str_neq(file_names[i - 1], file_names[i]);
    free(file_names);
}

Test(fs_names, long_names_that_differ_in_the_last_byte)
{
    char name[1000], one[FS_NAME_BYTES], other[FS_NAME_BYTES];

    memset(name, 'n', sizeof name);
    fs_name_escape((struct gguf_string){name, sizeof name}, "", one);
    name[sizeof name - 1] = 'm';
    fs_name_escape((struct gguf_string){name, sizeof name}, "", other);
    cr_expect_arr_eq(one, other, 237);
    cr_expect_str_neq(one, other);
    fs_name_escape((struct gguf_string){name, sizeof name - 1}, "", one);
    cr_expect_str_neq(one, other);
}

Test(fs_names, a_name_like_a_cut_one_is_escaped)
{
    char name[300], cut[FS_NAME_BYTES], file_name[FS_NAME_BYTES];

    memset(name, 'n', sizeof name);
    fs_name_escape((struct gguf_string){name, sizeof name}, "", cut);
    fs_name_escape(string_of(cut), "", file_name);
    cr_expect_str_neq(file_name, cut);
}
