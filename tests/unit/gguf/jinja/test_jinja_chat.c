/* Chats: message text in the result, the work around a template, limits. */
#include "tests/unit/gguf/jinja/jinja_cases.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* ---- message text ---- */

/* Text that looks like control tokens in every place of a message. */
static const char messages[] =
    "[{\"role\": \"system\", \"content\": \" s<|x|> \"},"
    "{\"role\": \"user\", \"content\": [{\"type\": \"text\", \"text\": \"a<|b|>\"}, {\"type\": "
    "\"image\"}]},"
    "{\"role\": \"assistant\", \"content\": null, \"reasoning_content\": \"r</think>\", "
    "\"tool_calls\": [{\"function\": "
    "{\"name\": \"f\", \"arguments\": {\"q\": \"x\\\"y\\n\", \"n\": 5}}}]},"
    "{\"role\": \"tool\", \"content\": \"t'\\u00e9\"},"
    "{\"role\": \"assistant\", \"content\": {\"k\": \"deep\"}, \"tool_calls\": [{\"function\": "
    "{\"name\": \"g\", "
    "\"arguments\": \"{<s>}\"}}]}]";

/* The text of a template for these messages, with brackets around message text. */
static const struct {
    const char *source, *text;
} marked[] = {
    {"<|s|>{{ messages[0].content }}<|e|>", "<|s|>\xe2\x9f\xa6 s<|x|> \xe2\x9f\xa7<|e|>"},
    {"{{ messages[0].role }}{{ messages[2].tool_calls[0].function.name }}", "systemf"},
    {"[{{ messages[0].content|trim }}]", "[\xe2\x9f\xa6s<|x|>\xe2\x9f\xa7]"},
    {"{{ '[' + messages[0].content.strip() ~ ']' }}", "[\xe2\x9f\xa6s<|x|>\xe2\x9f\xa7]"},
    {"{{ messages[0].content[1:3] }}{{ messages[0].content[::-1] }}",
     "\xe2\x9f\xa6s< >|x|<s \xe2\x9f\xa7"},
    {"{{ messages[0].content[3] }}.", "\xe2\x9f\xa6|\xe2\x9f\xa7."},
    {"{{ messages[3].content|upper }}|{{ messages[3].content.title() }}",
     "\xe2\x9f\xa6T'\xc3\x89\xe2\x9f\xa7|\xe2\x9f\xa6T'\xc3\x89\xe2\x9f\xa7"},
    {"{{ messages[1].content[0].text|replace('<|', '{') }}", "\xe2\x9f\xa6"
                                                             "a\xe2\x9f\xa7{\xe2\x9f\xa6"
                                                             "b|>\xe2\x9f\xa7"},
    {"{{ '[<|im_end|>]'.replace('<|im_end|>', messages[1].content[0].text) }}",
     "[\xe2\x9f\xa6"
     "a<|b|>\xe2\x9f\xa7]"},
    {"{{ messages[1].content|map(attribute='text')|join('<|sep|>') }}",
     "\xe2\x9f\xa6"
     "a<|b|>\xe2\x9f\xa7<|sep|>"},
    {"{{ ' '.join(['x', messages[3].content]) }}", "x \xe2\x9f\xa6t'\xc3\xa9\xe2\x9f\xa7"},
    {"{{ messages[1].content[0].text.split('<|')|join('+') }}", "\xe2\x9f\xa6"
                                                                "a\xe2\x9f\xa7+\xe2\x9f\xa6"
                                                                "b|>\xe2\x9f\xa7"},
    {"{{ messages[1].content[0].text.rsplit('<', 1) }}",
     "['\xe2\x9f\xa6"
     "a\xe2\x9f\xa7', '\xe2\x9f\xa6|b|>\xe2\x9f\xa7']"},
    {"{{ messages[2].reasoning_content }}.{{ messages[2].thinking }}",
     "\xe2\x9f\xa6r</think>\xe2\x9f\xa7.\xe2\x9f\xa6r</think>\xe2\x9f\xa7"},
    {"{{ messages[2].tool_calls[0].function|tojson }}",
     "{\"name\": \"f\", \"arguments\": {\"q\": \"\xe2\x9f\xa6x\\\"y\\n\xe2\x9f\xa7\", \"n\": 5}}"},
    {"{{ [messages[3].content, messages[2].tool_calls[0].function.arguments.q] }}",
     "[\"\xe2\x9f\xa6t'\xc3\xa9\xe2\x9f\xa7\", '\xe2\x9f\xa6x\"y\\n\xe2\x9f\xa7']"},
    {"{{ messages[4].tool_calls[0].function.arguments }}{{ messages[4].content.k }}",
     "\xe2\x9f\xa6{<s>}deep\xe2\x9f\xa7"},
    {"{% for k, v in messages[2].tool_calls[0].function.arguments|dictsort %}{{ k }}={{ "
     "v|string|trim }};{% endfor %}",
     "n=5;q=\xe2\x9f\xa6x\"y\xe2\x9f\xa7;"},
    {"{{ '%s|%5s|%%' % (messages[3].content, messages[3].content) }}",
     "\xe2\x9f\xa6t'\xc3\xa9\xe2\x9f\xa7|  \xe2\x9f\xa6t'\xc3\xa9\xe2\x9f\xa7|%"},
    {"{{ '{}{}'.format(messages[3].content, '<e>') }}", "\xe2\x9f\xa6t'\xc3\xa9\xe2\x9f\xa7<e>"},
    {"{{ messages[3].content|e }}{{ messages[3].content|safe ~ '<' }}",
     "\xe2\x9f\xa6t&#39;\xc3\xa9t'\xc3\xa9\xe2\x9f\xa7<"},
    {"{{ ('a\n' ~ messages[3].content)|indent(1) }}", "a\n \xe2\x9f\xa6t'\xc3\xa9\xe2\x9f\xa7"},
    {"{% filter upper %}a{{ messages[3].content }}{% endfilter %}",
     "A\xe2\x9f\xa6T'\xc3\x89\xe2\x9f\xa7"},
    {"{% set x %}<{{ messages[3].content }}>{% endset %}{{ x }}",
     "<\xe2\x9f\xa6t'\xc3\xa9\xe2\x9f\xa7>"},
    {"{% macro m(c) %}({{ c }}{{ caller() }}){% endmacro %}{% call m(messages[3].content) %}c{% "
     "endcall %}",
     "(\xe2\x9f\xa6t'\xc3\xa9\xe2\x9f\xa7"
     "c)"},
    {"{% set ns = namespace(s='') %}{% for c in messages[3].content %}{% set ns.s = ns.s + c + '.' "
     "%}{% endfor %}{{ ns.s }}",
     "\xe2\x9f\xa6t\xe2\x9f\xa7.\xe2\x9f\xa6'\xe2\x9f\xa7.\xe2\x9f\xa6\xc3\xa9\xe2\x9f\xa7."},
    {"{{ ['b', messages[3].content, 'z']|sort|join }}{{ messages[3].content * 2 }}",
     "b\xe2\x9f\xa6t'\xc3\xa9\xe2\x9f\xa7z\xe2\x9f\xa6t'\xc3\xa9t'\xc3\xa9\xe2\x9f\xa7"},
    {"{{ messages[0].nothing|default(messages[3].content) }}",
     "\xe2\x9f\xa6t'\xc3\xa9\xe2\x9f\xa7"},
    {"{{ strftime_now(messages[3].content) }}", "\xe2\x9f\xa6t'\xc3\xa9\xe2\x9f\xa7"},
    {"{{ messages[3].content|length }}{{ messages[2].tool_calls[0].function.arguments.n }}", "35"},
};

static void add_bracketed(const struct jinja_rendering *rendering, FILE *out)
{
    size_t done = 0;

    for (size_t i = 0; i < rendering->n_spans; i++) {
        const struct jinja_span span = rendering->spans[i];

        cr_assert(span.start < span.end && span.start >= done && span.end <= rendering->text_bytes);
        fprintf(out, "%.*s\xe2\x9f\xa6%.*s\xe2\x9f\xa7", (int)(span.start - done),
                rendering->text + done, (int)(span.end - span.start), rendering->text + span.start);
        done = span.end;
    }
    fprintf(out, "%s", rendering->text + done);
}

Test(jinja_chat, message_text_is_known_through_all_operations)
{
    const struct jinja_argument argument = {"messages", messages, sizeof messages - 1};

    for (size_t i = 0; i < COUNT(marked); i++) {
        struct jinja_template *parsed;
        struct jinja_rendering rendering;
        struct jinja_error error;
        char *text = NULL;
        size_t n_text;
        FILE *out = open_memstream(&text, &n_text);

        cr_assert_eq(
            jinja_template_parse(marked[i].source, strlen(marked[i].source), &parsed, &error), 0,
            "%s", error.text);
        cr_assert_eq(
            jinja_render_chat(parsed, &argument, 1, false, &(struct tm){0}, &rendering, &error), 0,
            "%s: %s", marked[i].source, error.text);
        add_bracketed(&rendering, out);
        fclose(out);
        cr_expect_str_eq(text, marked[i].text, "%s\n  gave %s\n  not  %s", marked[i].source, text,
                         marked[i].text);
        free(text);
        jinja_rendering_free(&rendering);
        jinja_template_free(parsed);
    }
}

/* Templates make control tokens of roles, so that roles are no message text. */
Test(jinja_chat, roles_are_not_marked_and_cannot_hold_tokens)
{
    static const struct {
        const char *json, *text; /* or the message of an error */
    } cases[] = {
        {"[{\"role\": \"user\", \"content\": \"a\", \"name\": \"b\"}]", "<|user|>\xe2\x9f\xa6"
                                                                        "ab\xe2\x9f\xa7<s>"},
        {"[{\"role\": \"x|>\", \"content\": \"a\"}]",
         "the role \"x|>\" of a message: only letters, digits, \"_\", \"-\" and \".\" may stand in "
         "it"},
    };
    static const char source[] = "{% for m in messages %}<|{{ m.role }}|>{{ m.content ~ m.name }}"
                                 "{{ bos_token }}{% endfor %}";
    struct jinja_template *parsed;
    struct jinja_error error;

    cr_assert_eq(jinja_template_parse(source, sizeof source - 1, &parsed, &error), 0);
    for (size_t i = 0; i < COUNT(cases); i++) {
        const struct jinja_argument arguments[] = {
            {"messages", cases[i].json, strlen(cases[i].json)}, {"bos_token", "\"<s>\"", 5}};
        struct jinja_rendering rendering;
        char *text = NULL;
        size_t n_text;
        FILE *out = open_memstream(&text, &n_text);

        if (jinja_render_chat(parsed, arguments, 2, JINJA_MARK_ALL, &(struct tm){0}, &rendering,
                              &error) < 0)
            fputs(error.text, out);
        else
            add_bracketed(&rendering, out);
        fclose(out);
        cr_expect_str_eq(text, cases[i].text, "%s gave %s", cases[i].json, text);
        free(text);
        jinja_rendering_free(&rendering);
    }
    jinja_template_free(parsed);
}

/* ---- around a template ---- */

static void expect_text(const char *source, const char *json, bool continues, const char *expected)
{
    const struct jinja_argument argument = {"messages", json, strlen(json)};
    char *text = jinja_render_with(source, &argument, 1, continues);

    cr_expect(strstr(expected, "...") ? strstr(text, expected + 3) != NULL
                                      : strcmp(text, expected) == 0,
              "%s for %s\n  gave %s\n  not  %s", source, json, text, expected);
    free(text);
}

Test(jinja_chat, arguments_are_completed_as_by_transformers)
{
    expect_text("{{ tools is none }}{{ documents is none }}{{ add_generation_prompt }}{{ bos_token "
                "is defined }}",
                "[]", false, "TrueTrueFalseFalse");
    expect_text("{{ messages }}", "[{\"role\": \"user\", \"content\": null, \"x\": {\"y\": null}}]",
                false, "[{'role': 'user', 'x': {'y': None}}]");
    expect_text("{{ messages }}", "[{\"a\": 1, \"reasoning\": \"r\"}]", false,
                "[{'thinking': 'r', 'a': 1, 'reasoning': 'r', 'reasoning_content': 'r'}]");
    expect_text("{{ messages[0].thinking }}{{ messages[0].reasoning_content }}",
                "[{\"reasoning_content\": \"a\", \"thinking\": \"b\"}]", false, "ba");
    expect_text("{{ messages }}", "[5, \"x\", [null]]", false, "[5, 'x', [None]]");
    expect_text("{{ messages }}", "[{\"a\": 1, \"a\": 2.0, \"b\": 12345678901234567890}]", false,
                "[{'a': 2.0, 'b': 12345678901234567890}]");
}

Test(jinja_chat, any_number_of_arguments_is_passed)
{
    static const char json[] = "[{\"reasoning\": \"r\"}]";
    struct jinja_argument arguments[40] = {{"messages", json, sizeof json - 1}};
    char names[40][8];

    for (size_t n = 1; n < COUNT(arguments); n++) {
        char *text = jinja_render_with("{{ messages[0].thinking }}{{ tools is none }}{{ a1 }}",
                                       arguments, n, false);

        cr_expect_str_eq(text, n > 1 ? "rTrue7" : "rTrue", "%zu arguments", n);
        free(text);
        snprintf(names[n], sizeof names[n], "a%zu", n);
        arguments[n] = (struct jinja_argument){names[n], "7", 1};
    }
}

Test(jinja_chat, the_final_message_is_continued)
{
    const char *const template =
        "{% for m in messages %}<{{ m.role }}>{{ m.content }}<end>{% endfor %}";
    const char *const trims =
        "{% for m in messages %}<{{ m.role }}>{{ m.content|trim }}<end>{% endfor %}";
    const char *const parts =
        "{% for m in messages %}{% for p in m.content %}{{ p.text }}{% endfor %}<end>{% endfor %}";

    expect_text(
        template,
        "[{\"role\": \"u\", \"content\": \"a\"}, {\"role\": \"b\", \"content\": \"one, \"}]", true,
        "<u>a<end><b>one, ");
    expect_text(trims, "[{\"role\": \"b\", \"content\": \" one, \"}]", true, "<b>one,");
    expect_text(parts,
                "[{\"content\": [{\"text\": \"x\"}, {\"text\": \"y\"}, {\"type\": \"image\"}]}]",
                true, "xy");
    expect_text("{{ messages|length }}content", "[{\"content\": \"a\"}]", true,
                "...the final message does not appear");
    expect_text("{{ messages|length }}", "[{\"content\": \"a\"}]", true,
                "...the template does not use content");
    expect_text(template, "[{\"role\": \"b\"}]", true,
                "...the final message has no text to continue");
    expect_text(template, "[]", true, "...the final message has no text to continue");
}

Test(jinja_chat, wrong_json_names_the_argument_and_the_byte)
{
    expect_text("x", "", false, "messages: byte 0: not JSON: expected a value");
    expect_text("x", "[1", false, "messages: byte 2: not JSON: expected ',' or ']'");
    expect_text("x", "{\"a\" 1}", false, "messages: byte 5: not JSON: expected ':' after a key");
    expect_text("x", "{a: 1}", false, "messages: byte 1: not JSON: expected a key in quotes");
    expect_text("x", "\"a\\q\"", false, "messages: byte 3: not JSON: unknown escape in a string");
    expect_text("x", "\"a\\u12\"", false,
                "messages: byte 6: not JSON: \\u needs four hexadecimal digits");
    expect_text("x", "\"a", false, "messages: byte 2: not JSON: the string has no end");
    expect_text("x", "1-2", false, "messages: byte 1: not JSON: more text after the value");
    expect_text("x", "01", false, "messages: byte 0: not JSON: wrong number");
    expect_text("x", "[] 1", false, "messages: byte 3: not JSON: more text after the value");
    expect_text("{{ messages }}",
                "[\"\\ud83d\\ude00\", \"\\ud83d\", \"a\xff\", -0.0, 1e5, -7, NaN, Infinity, true]",
                false,
                "['\xf0\x9f\x98\x80', '\xef\xbf\xbd', 'a\xef\xbf\xbd', -0.0, 100000.0, -7, nan, "
                "inf, True]");
}

/* ---- limits ---- */

Test(jinja_chat, every_limit_is_named)
{
    static const struct jinja_case cases[] = {
        {"{% set r = range(90000) %}{% for i in r %}{% for j in r %}{% endfor %}{% endfor %}",
         "more than 20000000 steps", 1},
        {"{% set ns = namespace(s='ab') %}{% for i in range(60) %}{% set ns.s = ns.s ~ ns.s %}{% "
         "endfor %}",
         "text too long: more than 32 MiB", 1},
        {"{% set ns = namespace(l=[1]) %}{% for i in range(60) %}{% set ns.l = ns.l + ns.l %}{% "
         "endfor %}",
         "texts and lists need more than 256 MiB of memory", 1},
        {"{{ 'a' * 100000000 }}", "text too long: 1 bytes 100000000 times, more than 32 MiB", 1},
        {"{{ [1] * 100000000 }}", "list too long: 100000000 items", 1},
        {"a\n{% macro m() %}\n{{ m() }}{% endmacro %}{{ m() }}",
         "nesting or recursion deeper than 700 levels", 3},
        {"{% set ns = namespace(l=[]) %}{% for i in range(900) %}{% set ns.l = [ns.l] %}{% endfor "
         "%}\n{{ ns.l }}",
         "nesting or recursion deeper than 700 levels", 2},
        {"{{ 9223372036854775807 + 1 }}", "the result of + does not fit in 64 bits", 1},
        {"{{ 99999999999999999999 }}", "the integer 99999999999999999999 does not fit in 64 bits",
         1},
        {"{{ big + 1 }}", "an integer does not fit in 64 bits", 1},
        {"{{ '%999999999d' % 1 }}", "the format '%999999999d' is not implemented", 1},
        {"\n{{ 'a' + 1 }}", "can only concatenate str (not \"int\") to str", 2},
        {"{% if 1 %}\n\n{% foo %}", "Encountered unknown tag 'foo'", 3},
        {"a\n\xff", "the template is not UTF-8: byte 2", 2},
        {NULL, NULL, 0},
    };

    jinja_check_errors(cases);
}

/* Each operation that reads a whole text costs steps for its length. */
Test(jinja_chat, operations_on_long_texts_are_bounded)
{
    static const char *const operations[] = {
        "s.split()", "(s ~ '')|length", "s|int", "s < s", "s.startswith(s)", "{s: 1}[s]",
    };

    for (size_t i = 0; i < COUNT(operations); i++) {
        struct jinja_rendering rendering;
        struct jinja_error error;
        char source[200];

        snprintf(source, sizeof source,
                 "{%% set s = 'a' * 9000000 %%}{%% for i in range(90000) %%}{%% for j in "
                 "range(9000) %%}{%% set x = %s %%}{%% endfor %%}{%% endfor %%}",
                 operations[i]);
        cr_assert(jinja_case_render(source, &rendering, &error) < 0, "%s", operations[i]);
        cr_expect_str_eq(error.text, "more than 20000000 steps", "%s: %s", operations[i],
                         error.text);
    }
}

/* A name is looked up among all others, which costs steps for their number. */
Test(jinja_chat, names_are_bounded)
{
    enum { N_NAMES = 20000, NAME_BYTES = 32 };
    char *source = malloc(N_NAMES * NAME_BYTES);
    struct jinja_rendering rendering;
    struct jinja_error error;
    size_t n = 0;

    for (unsigned i = 0; i < N_NAMES; i++)
        n += (size_t)snprintf(source + n, NAME_BYTES, "{%% set v%u = 0 %%}", i);
    cr_assert(jinja_case_render(source, &rendering, &error) < 0);
    cr_expect_str_eq(error.text, "more than 20000000 steps", "%s", error.text);
    free(source);
}

Test(jinja_chat, parsing_is_bounded)
{
    char source[4000];
    struct jinja_template *parsed;
    struct jinja_error error;

    for (unsigned n = 1; n < 1500; n++) {
        memset(source, '(', sizeof source);
        memset(source + 3 + n, '1', 1);
        memset(source + 4 + n, ')', n);
        memcpy(source, "{{ ", 3);
        strcpy(source + 4 + 2 * n, " }}");
        if (jinja_template_parse(source, strlen(source), &parsed, &error) < 0) {
            cr_expect_str_eq(error.text, "nesting or recursion deeper than 150 levels");
            cr_expect_gt(n, 50u);
            return;
        }
        jinja_template_free(parsed);
    }
    cr_expect(false, "there is no limit");
}
