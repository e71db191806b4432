#include "tests/unit/gguf/jinja/jinja_cases.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const char *const variables[][2] = {
    {"d", "{\"b\": 1, \"A\": 2, \"items\": [7]}"},
    {"l", "[3, 1, 2]"},
    {"n", "null"},
    {"s", "\"it's <b>\""},
    {"f", "1.5"},
    {"t", "\"Stra\\u00dfe \\u00dcn\\u00ef \\u00e7ode x\""},
    {"e", "\"\""},
    {"people", "[{\"name\": \"Bo\", \"age\": 30, \"tags\": [\"x\", \"y\"]}, {\"name\": \"al\", "
               "\"age\": 7}, {\"name\": \"Cy\", \"age\": 30, \"job\": {\"title\": \"cook\"}}]"},
    {"tree",
     "[{\"v\": 1, \"c\": [{\"v\": 2, \"c\": [{\"v\": 3, \"c\": []}]}, {\"v\": 4, \"c\": []}]}]"},
    {"big", "12345678901234567890"},
    {"j", "{\"k\": [1, 2.0, true, null, \"\\u00e9\\\"\\\\\\n\\t\\u0001\\u2028\\ud83d\\ude00\"], "
          "\"o\": {}}"},
};

enum { N_VARIABLES = sizeof variables / sizeof *variables };

static const struct tm now = {.tm_year = 126,
                              .tm_mon = 6,
                              .tm_mday = 26,
                              .tm_hour = 13,
                              .tm_min = 5,
                              .tm_sec = 9,
                              .tm_wday = 0,
                              .tm_yday = 206};

static int render(const char *source, const struct jinja_argument *arguments, size_t n_arguments,
                  bool continues, struct jinja_rendering *rendering, struct jinja_error *error)
{
    struct jinja_template *parsed;
    int result = jinja_template_parse(source, strlen(source), &parsed, error);

    *rendering = (struct jinja_rendering){0};
    if (result == 0)
        result =
            jinja_render_chat(parsed, arguments, n_arguments, continues, &now, rendering, error);
    jinja_template_free(parsed);
    cr_expect((result < 0) == (error->text[0] != '\0'), "%s: %d, but the message is '%s'", source,
              result, error->text);
    return result;
}

int jinja_case_render(const char *source, struct jinja_rendering *rendering,
                      struct jinja_error *error)
{
    struct jinja_argument arguments[N_VARIABLES];

    for (size_t i = 0; i < N_VARIABLES; i++)
        arguments[i] =
            (struct jinja_argument){variables[i][0], variables[i][1], strlen(variables[i][1])};
    return render(source, arguments, N_VARIABLES, false, rendering, error);
}

void jinja_check_texts(const struct jinja_case *cases)
{
    for (; cases->source; cases++) {
        struct jinja_rendering rendering;
        struct jinja_error error;

        if (jinja_case_render(cases->source, &rendering, &error) < 0) {
            cr_expect(false, "%s\n  failed: %s", cases->source, error.text);
            continue;
        }
        cr_expect(rendering.text_bytes == strlen(cases->text) &&
                      memcmp(rendering.text, cases->text, rendering.text_bytes) == 0,
                  "%s\n  gave %s\n  not  %s", cases->source, rendering.text, cases->text);
        jinja_rendering_free(&rendering);
    }
}

void jinja_check_errors(const struct jinja_case *cases)
{
    for (; cases->source; cases++) {
        struct jinja_rendering rendering;
        struct jinja_error error;

        if (jinja_case_render(cases->source, &rendering, &error) == 0) {
            cr_expect(false, "%s\n  gave %s, not an error", cases->source, rendering.text);
            jinja_rendering_free(&rendering);
            continue;
        }
        cr_expect(strstr(error.text, cases->text), "%s\n  failed with: %s\n  not:         %s",
                  cases->source, error.text, cases->text);
        cr_expect(cases->line == 0 || error.line == cases->line, "%s: line %u, not %u",
                  cases->source, error.line, cases->line);
    }
}

char *jinja_render_with(const char *source, const struct jinja_argument *arguments,
                        size_t n_arguments, bool continues)
{
    struct jinja_rendering rendering;
    struct jinja_error error;

    return render(source, arguments, n_arguments, continues, &rendering, &error) < 0
               ? strdup(error.text)
               : (free(rendering.spans), rendering.text);
}
