/* Printing text of unknown origin on a terminal. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gguf/support/safe_print.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static void expect_escaped(const char *bytes, size_t length, const char *expected)
{
    char *out = malloc(GGUF_ESCAPED_BYTES * length + 1), *printed = NULL;
    size_t n, n_printed = 0;
    FILE *stream = open_memstream(&printed, &n_printed);

    cr_assert(out && stream);
    n = gguf_escape(bytes, length, out);
    cr_expect(n == strlen(expected) && memcmp(out, expected, n) == 0, "expected %s, not %.*s",
              expected, (int)n, out);
    gguf_print_safe(stream, bytes, length);
    fclose(stream);
    cr_expect(n_printed == n && memcmp(printed, out, n) == 0, "%s", printed);
    free(printed);
    free(out);
}

Test(gguf_safe_print, escapes_control_sequences)
{
    static const struct {
        const char *bytes, *expected;
    } cases[] = {
        {"", ""},
        {"plain ~", "plain ~"},
        {"\x1b]0;title\x07", "\\x1b]0;title\\x07"},
        {"a\tb\r\n", "a\\x09b\\x0d\\x0a"},
        {"\x7f", "\\x7f"},
        /* C1 controls as UTF-8 and as bare bytes. U+009B is CSI, U+009D is OSC. */
        {"\xc2\x9b", "\\xc2\\x9b"},
        {"\xc2\x80\xc2\x9f\xc2\xa0", "\\xc2\\x80\\xc2\\x9f\xc2\xa0"},
        {"\x9b[2J", "\\x9b[2J"},
        /* Overlong forms: ESC in two and three bytes, NUL in two. */
        {"\xc0\x9b\xe0\x80\x9b\xc0\x80", "\\xc0\\x9b\\xe0\\x80\\x9b\\xc0\\x80"},
        /* Surrogates, values above U+10FFFF, incomplete characters. */
        {"\xed\xa0\x80", "\\xed\\xa0\\x80"},
        {"\xf4\x90\x80\x80", "\\xf4\\x90\\x80\\x80"},
        {"\xe6\xa8", "\\xe6\\xa8"},
        {"\xe6\xa8z", "\\xe6\\xa8z"},
        {"\xff\xfe", "\\xff\\xfe"},
        /* Valid text is not changed. */
        {"\xc3\xa9 \xe6\xa8\xa1\xe5\x9e\x8b \xf0\x9f\x90\x89",
         "\xc3\xa9 \xe6\xa8\xa1\xe5\x9e\x8b \xf0\x9f\x90\x89"},
        /* U+202E and U+2066 reorder text; the mark U+200F does not. */
        {"\xe2\x80\xae"
         "fugg",
         "\\xe2\\x80\\xae"
         "fugg"},
        {"\xe2\x81\xa6\xe2\x81\xa9", "\\xe2\\x81\\xa6\\xe2\\x81\\xa9"},
        {"\xe2\x80\x8f", "\xe2\x80\x8f"},
    };

    for (size_t i = 0; i < COUNT(cases); i++)
        expect_escaped(cases[i].bytes, strlen(cases[i].bytes), cases[i].expected);
    expect_escaped("a\0b", 3, "a\\x00b");
}

/* A single byte is kept if it is ASCII from space to tilde, else escaped. */
Test(gguf_safe_print, single_bytes)
{
    for (int byte = 0; byte < 256; byte++) {
        const char c = (char)byte;
        char expected[8];

        snprintf(expected, sizeof expected, byte >= 0x20 && byte < 0x7f ? "%c" : "\\x%02x", byte);
        expect_escaped(&c, 1, expected);
    }
}

Test(gguf_safe_print, formats)
{
    char *printed = NULL;
    size_t n_printed = 0;
    FILE *stream = open_memstream(&printed, &n_printed);

    cr_assert_not_null(stream);
    gguf_print_safe_format(stream, "%s: %d\n", "\x1b[2J", 5);
    fclose(stream);
    cr_expect_str_eq(printed, "\\x1b[2J: 5\\x0a");
    free(printed);
}

/* Pass quoted words through a shell and compare. */
Test(gguf_safe_print, words_for_a_shell)
{
    static const char *const words[] = {"model.gguf", "my model.gguf", "it's",         "$(reboot)",
                                        "a\nb",       "a'\x1b[2J\\",   "\xe6\xa8\xa1", ""};

    for (size_t i = 0; i < COUNT(words); i++) {
        char *command = NULL;
        size_t n_bytes = 0;
        FILE *stream = open_memstream(&command, &n_bytes);
        char back[64] = "";
        FILE *shell;
        size_t n;

        cr_assert_not_null(stream);
        fputs("exec bash -c 'printf %s \"$1\"' - ", stream);
        gguf_print_shell_word(stream, words[i]);
        fclose(stream);
        for (size_t j = 0; j < n_bytes; j++)
            cr_expect((unsigned char)command[j] >= 0x20, "%s", command);
        setenv("GGUFS_TEST_COMMAND", command, 1);
        shell = popen("exec bash -c \"$GGUFS_TEST_COMMAND\"", "r");
        cr_assert_not_null(shell);
        n = fread(back, 1, sizeof back - 1, shell);
        cr_expect_eq(pclose(shell), 0);
        cr_expect(n == strlen(words[i]) && memcmp(back, words[i], n) == 0, "%s: %s", command, back);
        free(command);
    }
}
