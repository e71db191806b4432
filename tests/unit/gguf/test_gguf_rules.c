/* The table of rules, and its copy in the manual. */
#include "gguf/rules.h"

#include "tests/unit/gguf/model_file.h"

#include <criterion/criterion.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define MANUAL     "ggufs.5"
#define TEXT_BYTES 2000

Test(gguf_rules, names_are_words_with_hyphens)
{
    for (enum gguf_rule i = 0; i < GGUF_N_RULES; i++) {
        const char *name = gguf_rule_text(i)->name;

        cr_assert_not_null(name, "rule %d has no row", i);
        cr_expect_eq(strspn(name, "abcdefghijklmnopqrstuvwxyz-"), strlen(name), "%s", name);
        for (enum gguf_rule j = 0; j < i; j++)
            cr_expect_str_neq(name, gguf_rule_text(j)->name);
    }
}

static void expect_sentences(const char *name, const char *text)
{
    cr_assert_not_null(text, "%s", name);
    cr_expect_gt(strlen(text), 20u, "%s: %s", name, text);
    cr_expect(text[0] >= 'A' && text[0] <= 'Z', "%s: %s", name, text);
    cr_expect_eq(text[strlen(text) - 1], '.', "%s: %s", name, text);
    cr_expect_null(strstr(text, "  "), "%s: %s", name, text);
}

Test(gguf_rules, every_rule_has_an_explanation_and_a_remedy)
{
    for (enum gguf_rule i = 0; i < GGUF_N_RULES; i++) {
        const struct gguf_rule_text *text = gguf_rule_text(i);

        expect_sentences(text->name, text->explanation);
        expect_sentences(text->name, text->remedy);
    }
}

/* Read a line of the manual, without its line break and without the \ of \-. */
static bool read_line(FILE *manual, char line[TEXT_BYTES])
{
    char *out = line;

    if (!fgets(line, TEXT_BYTES, manual))
        return false;
    for (const char *in = line; *in != '\0'; in++) {
        if (*in != '\n' && (in[0] != '\\' || in[1] != '-'))
            *out++ = *in;
    }
    *out = '\0';
    return true;
}

/* Read the next entry of the list: its name, and its lines joined with spaces. */
static bool read_entry(FILE *manual, char name[TEXT_BYTES], char text[TEXT_BYTES])
{
    static char line[TEXT_BYTES];
    size_t length = 0;

    while (strncmp(line, ".It Li ", 7) != 0) {
        if (strcmp(line, ".El") == 0 || !read_line(manual, line))
            return false;
    }
    strcpy(name, line + 7);
    while (read_line(manual, line) && line[0] != '.')
        length += (size_t)snprintf(text + length, TEXT_BYTES - length, "%s%s",
                                   length > 0 ? " " : "", line);
    return true;
}

Test(gguf_rules, the_manual_lists_them)
{
    FILE *manual = fopen(MANUAL, "r");
    char name[TEXT_BYTES] = "", text[TEXT_BYTES];

    cr_assert_not_null(manual, "%s", MANUAL);
    while (strcmp(name, ".Sh FINDINGS") != 0)
        cr_assert(read_line(manual, name), "%s has no section FINDINGS", MANUAL);
    for (enum gguf_rule i = 0; i < GGUF_N_RULES; i++) {
        const struct gguf_rule_text *rule = gguf_rule_text(i);
        char expected[TEXT_BYTES];

        cr_assert(read_entry(manual, name, text), "%s lacks %s", MANUAL, rule->name);
        cr_expect_str_eq(name, rule->name);
        snprintf(expected, sizeof expected, "%s %s", rule->explanation, rule->remedy);
        cr_expect_str_eq(text, expected, "%s:\n%s\n%s", rule->name, text, expected);
    }
    cr_expect_not(read_entry(manual, name, text), "%s lists %s, which is no rule", MANUAL, name);
    fclose(manual);
}
