/* Rows of config.json: the words in their texts. */
#include <criterion/criterion.h>
#include <string.h>

#include "fs/tree/hf/hf_config.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static bool is_writer(const char *name)
{
#define WRITER_NAME(name) #name
    static const char *const names[] = {FS_HF_WRITERS(WRITER_NAME)};
    size_t i = 0;

    while (i < COUNT(names) && strcmp(names[i], name) != 0)
        i++;
    return i < COUNT(names);
}

Test(fs_hf, members_are_complete)
{
    const struct fs_hf_row *row;

    for (size_t n = 0; (row = fs_hf_row_at(n)); n++) {
        struct fs_hf_member member;

        for (const char *at = row->config; fs_hf_next_member(&at, &member);) {
            cr_expect(member.writer ? is_writer(member.writer) : member.key || member.json,
                      "%s: %s", row->class_name, member.name);
        }
    }
}

static void expect_text(const char *text, const char *expected)
{
    cr_expect_str_eq(text ? text : "-", expected ? expected : "-");
}

/* Every form that a word can have. */
Test(fs_hf, words_of_members)
{
    static const struct {
        const char *name, *key, *json, *writer, *arguments[4];
    } expected[] = {
        {.name = "a", .key = "x.y"},
        {.name = "b", .key = "x", .json = ""},
        {.name = "c", .key = "x", .json = "0"},
        {.name = "d", .json = "'e'"},
        {.name = "f", .writer = "rope"},
        {.name = "g", .writer = "kinds", .arguments = {"blk.%.x", "y", "z"}},
    };
    const char *at = " a=x.y b=x? c=x:0 d:'e'  f@rope g@kinds/blk.%.x/y/z";
    struct fs_hf_member member;

    for (size_t i = 0; i < COUNT(expected); i++) {
        cr_assert(fs_hf_next_member(&at, &member));
        cr_expect_str_eq(member.name, expected[i].name);
        expect_text(member.key, expected[i].key);
        expect_text(member.json, expected[i].json);
        expect_text(member.writer, expected[i].writer);
        for (size_t j = 0; j < COUNT(expected[i].arguments); j++)
            expect_text(member.arguments[j], expected[i].arguments[j]);
    }
    cr_expect_not(fs_hf_next_member(&at, &member));
}
