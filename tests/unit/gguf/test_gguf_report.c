/* Findings, quoted names and the comparison of strings. */
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#include "gguf/model.h"
#include "gguf/support/safe_print.h"
#include "tests/unit/gguf/model_file.h"

static struct gguf_string string_of(const char *text)
{
    return (struct gguf_string){text, strlen(text)};
}

Test(gguf_report, quotes_are_printable)
{
    cr_expect_str_eq(gguf_quote(string_of("blk.0.attn_q.weight")).text, "\"blk.0.attn_q.weight\"");
    cr_expect_str_eq(gguf_quote((struct gguf_string){NULL, 0}).text, "\"\"");
    cr_expect_str_eq(gguf_quote(string_of("a\"b\\c")).text, "\"a\\\"b\\\\c\"");
    cr_expect_str_eq(gguf_quote((struct gguf_string){"\0\x1b[2J\n\x7f", 7}).text,
                     "\"\\x00\\x1b[2J\\x0a\\x7f\"");
    cr_expect_str_eq(gguf_quote(string_of("\xc3\xa9\xff~ ")).text, "\"\xc3\xa9\\xff~ \"");
    cr_expect_str_eq(gguf_quote(string_of("\xe6\xa8\xa1\xe5\x9e\x8b")).text,
                     "\"\xe6\xa8\xa1\xe5\x9e\x8b\"");
}

/* Check that a quoted text is printable and ends in a complete escape or character. */
static void expect_safe_quote(const struct gguf_quoted *quoted, size_t n)
{
    size_t i = 1;

    cr_assert_lt(n, sizeof quoted->text);
    cr_assert(quoted->text[0] == '"' && quoted->text[n - 1] == '"');
    while (i < n - 1) {
        const size_t length = gguf_printable_length(quoted->text + i, n - 1 - i);

        cr_assert_gt(length, 0u);
        cr_assert_neq(quoted->text[i], '"');
        i += quoted->text[i] == '\\' ? 2 : length;
    }
    cr_assert_eq(i, n - 1);
}

Test(gguf_report, quotes_bytes_and_lengths)
{
    static char name[600];

    for (int byte = 0; byte < 256; byte++) {
        memset(name, byte, sizeof name);
        for (uint64_t length = 0; length <= sizeof name; length++) {
            const struct gguf_quoted quoted = gguf_quote((struct gguf_string){name, length});
            const size_t n = strnlen(quoted.text, sizeof quoted.text);

            expect_safe_quote(&quoted, n);
            if (length <= 40)
                cr_assert_null(byte == '.' ? NULL : strstr(quoted.text, "..."));
            else if (length > 200)
                cr_assert_str_eq(quoted.text + n - 4, "...\"");
        }
    }
}

Test(gguf_report, cuts_long_names_between_characters)
{
    static char name[600];

    for (size_t start = 0; start < 4; start++) {
        struct gguf_quoted quoted;

        memset(name, 'a', start);
        for (size_t i = start; i + 4 <= sizeof name; i += 4)
            memcpy(name + i, "\xf0\x9f\x90\x89", 4); /* U+1F409 */
        quoted = gguf_quote((struct gguf_string){name, sizeof name - 8});
        expect_safe_quote(&quoted, strlen(quoted.text));
        cr_expect_null(strstr(quoted.text, "\\x"), "%s", quoted.text);
    }
}

struct seen {
    size_t count;
    struct gguf_finding findings[8];
};

static void see(void *user, const struct gguf_finding *finding)
{
    struct seen *seen = user;

    seen->findings[seen->count++] = *finding;
}

Test(gguf_report, keeps_the_first_error_and_passes_all_on)
{
    struct seen seen = {0};
    struct gguf_report report = {.each = see, .user = &seen};
    const struct gguf_string name = {"a", 1};

    gguf_note(&report, GGUF_RULE_ZEROS, gguf_at(5), "note %d", 1);
    cr_expect_eq(report.n_errors, 0u);
    cr_expect_eq(
        gguf_error(&report, GGUF_RULE_VALUE, -EINVAL, gguf_at_key(name, 24), "error %s", "one"),
        -EINVAL);
    cr_expect_eq(
        gguf_error(&report, GGUF_RULE_TRUNCATED_DATA, -ENODATA, GGUF_NO_PLACE, "error two"),
        -ENODATA);

    cr_expect_eq(report.n_errors, 2u);
    cr_expect_str_eq(report.first_error.message, "key \"a\": error one");
    cr_expect_eq(report.first_error.rule, GGUF_RULE_VALUE);
    cr_expect_null(report.first_error.name.data, "the name is valid during `each` only");
    cr_expect_eq(report.first_error.code, -EINVAL);
    cr_expect_eq(report.first_error.file_offset, 24u);
    cr_assert_eq(seen.count, 3u);
    cr_expect_eq(seen.findings[0].severity, GGUF_NOTE);
    cr_expect_eq(seen.findings[0].code, 0);
    cr_expect_eq(seen.findings[0].file_offset, 5u);
    cr_expect_str_eq(seen.findings[0].message, "note 1");
    cr_expect_eq(seen.findings[0].rule, GGUF_RULE_ZEROS);
    cr_expect_eq(seen.findings[0].thing, GGUF_WHOLE_FILE);
    cr_expect_eq(seen.findings[1].thing, GGUF_A_KEY);
    cr_expect_eq(seen.findings[1].name.data, name.data);
    cr_expect_eq(seen.findings[2].severity, GGUF_ERROR);
    cr_expect_eq(seen.findings[2].file_offset, GGUF_NO_OFFSET);
    cr_expect_str_eq(seen.findings[2].message, "error two");
}

Test(gguf_report, begins_messages_with_the_thing)
{
    static const struct gguf_string name = {"a\n", 2};
    const struct {
        struct gguf_place place;
        const char *message;
    } rows[] = {
        {gguf_at(7), "is bad"},
        {gguf_at_part("header", 7), "header: is bad"},
        {gguf_at_key(name, 7), "key \"a\\x0a\": is bad"},
        {gguf_at_tensor(name, 7), "tensor \"a\\x0a\": is bad"},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct gguf_report report = {0};

        gguf_error(&report, GGUF_RULE_VALUE, -EINVAL, rows[i].place, "is bad");
        cr_expect_str_eq(report.first_error.message, rows[i].message);
        cr_expect_eq(report.first_error.file_offset, 7u);
    }
}

Test(gguf_report, errors_of_the_system_have_a_rule)
{
    static const struct {
        int code;
        enum gguf_rule rule;
    } rows[] = {{-ENOMEM, GGUF_RULE_MEMORY}, {-EIO, GGUF_RULE_READ}, {-EACCES, GGUF_RULE_OPEN}};

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct gguf_report report = {0};

        cr_expect_eq(gguf_system_error(&report, rows[i].code, GGUF_NO_PLACE), rows[i].code);
        cr_expect_eq(report.first_error.rule, rows[i].rule);
        cr_expect_str_eq(report.first_error.message, strerror(-rows[i].code));
    }
}

Test(gguf_report, warnings_are_no_errors)
{
    struct seen seen = {0};
    struct gguf_report report = {.each = see, .user = &seen};

    gguf_warning(&report, GGUF_RULE_ZEROS, GGUF_NO_PLACE, "zeros");
    cr_expect_eq(report.n_errors, 0u);
    cr_assert_eq(seen.count, 1u);
    cr_expect_eq(seen.findings[0].severity, GGUF_WARNING);
    cr_expect_eq(seen.findings[0].code, 0);
}

Test(gguf_report, cuts_a_message_that_is_too_long)
{
    struct gguf_report report = {0};

    gguf_error(&report, GGUF_RULE_VALUE, -EINVAL, gguf_at(0), "%01000d", 1);
    cr_expect_eq(strlen(report.first_error.message), sizeof report.first_error.message - 1);
}

Test(gguf_report, compares_strings_bytewise)
{
    /* in ascending order */
    static const struct gguf_string strings[] = {
        {NULL, 0}, {"\0", 1}, {"\0\0", 2}, {"a", 1}, {"a\0", 2}, {"ab", 2}, {"b", 1}, {"\xff", 1},
    };

    for (size_t i = 0; i < COUNT(strings); i++) {
        for (size_t j = 0; j < COUNT(strings); j++) {
            const int order = gguf_string_compare(strings[i], strings[j]);

            cr_expect_eq((order > 0) - (order < 0), (i > j) - (i < j), "%zu and %zu", i, j);
        }
    }
    cr_expect(gguf_string_equals(strings[5], "ab"));
    cr_expect_not(gguf_string_equals(strings[4], "a"));
    cr_expect(gguf_string_equals(strings[0], ""));
}
