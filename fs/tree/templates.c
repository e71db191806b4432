#include "fs/tree/model_check.h"

#include "fs/tree/prompts.h"
#include "fs/tree/facts/chat_template.h"
#include "gguf/jinja/jinja.h"
#include "gguf/support/safe_print.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define QUESTION(n)        "{\"role\":\"user\",\"content\":\"@question " #n "@\"}"
#define ANSWER(n)          ",{\"role\":\"assistant\",\"content\":\"@answer " #n "@\"},"
#define SHORT_CHAT         QUESTION(1) ANSWER(1) QUESTION(2)
#define LONG_CHAT          SHORT_CHAT ANSWER(2) QUESTION(3)
#define LAST_OF_SHORT_CHAT "@question 2@"
#define TOOLS                                                                                      \
    "[{\"type\":\"function\",\"function\":{\"name\":\"f\",\"description\":\"\",\"parameters\":"    \
    "{\"type\":\"object\",\"properties\":{}}}}]"

/* A template, and what is checked of it. */
struct check {
    const struct fs_prompts *prompts;
    const struct gguf_key *key;
    struct jinja_template *parsed;
    struct gguf_report *report;
};

static struct gguf_string after(struct gguf_string text, const char *at)
{
    return (struct gguf_string){at, text.length_bytes - (uint64_t)(at - text.data)};
}

/* Return the first place of `part`, or NULL. */
static const char *find(struct gguf_string text, const char *part)
{
    return memmem(text.data, text.length_bytes, part, strlen(part));
}

/* ---- the template's text ---- */

/* Return the first place of `part` outside of comments, or NULL. */
static const char *find_code(struct gguf_string text, const char *part)
{
    const char *found = find(text, part), *comment;

    while (found &&
           (comment = find((struct gguf_string){text.data, (uint64_t)(found - text.data)}, "{#"))) {
        comment = find(after(text, comment + 2), "#}");
        if (!comment)
            return NULL;
        text = after(text, comment + 2);
        if (found < text.data)
            found = find(text, part);
    }
    return found;
}

/* Warn of the first place outside of comments with the text. */
static bool warn_of(const struct check *check, enum gguf_rule rule, const char *part)
{
    const struct gguf_string text = check->key->value.string;
    const char *at = find_code(text, part);
    unsigned line = 1;
    uint64_t n_bytes = 0;

    if (!at)
        return false;
    for (const char *c = text.data; c < at; c++)
        line += *c == '\n';
    while (at + n_bytes < text.data + text.length_bytes && (unsigned char)at[n_bytes] > ' ' &&
           !strchr("\"'\\<>(){}[]|", at[n_bytes]))
        n_bytes++;
    gguf_warning(check->report, rule, gguf_key_place(check->key), "line %u: %s", line,
                 gguf_quote((struct gguf_string){at, n_bytes}).text);
    return true;
}

static void check_text(const struct check *check)
{
    static const char *const internals[] = {"__class__",      "__mro__",     "__base",
                                            "__subclasses__", "__globals__", "__builtins__",
                                            "__init__",       "__import__",  "__getattribute__",
                                            "__dict__",       "__code__",    "__reduce"};
    struct jinja_place place;
    bool is_found = false;

    if (jinja_find_word_condition(check->parsed, &place))
        gguf_warning(check->report, GGUF_RULE_TEMPLATE_WORDS, gguf_key_place(check->key),
                     "line %u: %s", place.line,
                     gguf_quote((struct gguf_string){place.text, strlen(place.text)}).text);
    for (size_t i = 0; !is_found && i < sizeof internals / sizeof *internals; i++)
        is_found = warn_of(check, GGUF_RULE_TEMPLATE_INTERNALS, internals[i]);
    if (!warn_of(check, GGUF_RULE_TEMPLATE_URL, "https://"))
        warn_of(check, GGUF_RULE_TEMPLATE_URL, "http://");
}

/* ---- prompts ---- */

static int render(const struct check *check, const char *messages, const char *tools,
                  struct jinja_rendering *rendering)
{
    const struct fs_sink *special = &check->prompts->special;
    const struct jinja_argument arguments[] = {{NULL, special->out, special->position},
                                               {"add_generation_prompt", "true", 4},
                                               {"messages", messages, strlen(messages)},
                                               {"tools", tools, strlen(tools)}};
    struct jinja_error error;

    return jinja_render_chat(check->parsed, arguments, sizeof arguments / sizeof *arguments,
                             JINJA_MARK_ALL, &check->prompts->now, rendering, &error);
}

/* Warn if the prompt of a longer chat changes text before the last message of the shorter one. */
static bool check_turns(const struct check *check, const char *tools, const char *with_tools)
{
    struct jinja_rendering first = {0}, second = {0};
    const char *last;
    size_t n = 0;
    bool is_changed = false;

    if (render(check, "[" SHORT_CHAT "]", tools, &first) == 0 &&
        render(check, "[" LONG_CHAT "]", tools, &second) == 0) {
        while (n < first.text_bytes && n < second.text_bytes && first.text[n] == second.text[n])
            n++;
        last = find((struct gguf_string){first.text, first.text_bytes}, LAST_OF_SHORT_CHAT);
        is_changed = last && n < (size_t)(last - first.text) + strlen(LAST_OF_SHORT_CHAT);
    }
    if (is_changed)
        gguf_warning(check->report, GGUF_RULE_TEMPLATE_TURNS, gguf_key_place(check->key),
                     "a third question%s changes the prompt from byte %zu, before the end of the "
                     "second question",
                     with_tools, n);
    jinja_rendering_free(&first);
    jinja_rendering_free(&second);
    return is_changed;
}

/* Warn of ends of turns that are no tokens. Other marks are text for many models. */
static void check_ends(const struct check *check, struct gguf_string prompt)
{
    static const char *const *const lists[] = {gguf_turn_ends, gguf_other_ends};

    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        for (const char *const *text = lists[i]; *text; text++) {
            const struct gguf_string end = {*text, strlen(*text)};

            if (find(prompt, *text) &&
                fs_vocabulary_find(check->prompts->vocabulary, end) == GGUF_NO_TOKEN)
                gguf_warning(check->report, GGUF_RULE_TEMPLATE_TOKENS, gguf_key_place(check->key),
                             "the vocabulary has no %s, which ends a turn", gguf_quote(end).text);
        }
    }
}

static void check_prompt(const struct check *check)
{
    const bool has_vocabulary = check->prompts->vocabulary->n_tokens > 0;
    struct jinja_rendering prompt;

    if (!check_turns(check, "null", ""))
        check_turns(check, TOOLS, ", with tools,");
    if (!has_vocabulary || (render(check, "[" SHORT_CHAT "]", "null", &prompt) < 0 &&
                            render(check, "[" QUESTION(1) "]", "null", &prompt) < 0))
        return;
    if (fs_prompts_add_bos(check->prompts) && fs_prompts_begin_with_bos(check->prompts, &prompt))
        gguf_note(check->report, GGUF_RULE_TEMPLATE_BOS, gguf_key_place(check->key),
                  "the prompt begins with the BOS token, and so does each text that is encoded");
    for (size_t i = 0; i < prompt.n_spans; i++) /* only the template's text is left */
        memset(prompt.text + prompt.spans[i].start, 0, prompt.spans[i].end - prompt.spans[i].start);
    check_ends(check, (struct gguf_string){prompt.text, prompt.text_bytes});
    jinja_rendering_free(&prompt);
}

static void check_template(struct check *check)
{
    const struct gguf_string text = check->key->value.string;
    struct jinja_error error;
    const int code = jinja_template_parse(text.data, text.length_bytes, &check->parsed, &error);
    char *message = code < 0 ? gguf_escaped(error.text) : NULL;

    if (code == 0) {
        check_text(check);
        check_prompt(check);
        jinja_template_free(check->parsed);
    } else if (code == -ENOMEM || !message) {
        gguf_system_error(check->report, -ENOMEM, gguf_key_place(check->key));
    } else {
        gguf_warning(check->report, GGUF_RULE_CHAT_TEMPLATE, gguf_key_place(check->key),
                     "line %u: %s", error.line, message);
    }
    free(message);
}

void fs_check_templates(const struct gguf_model *model, struct gguf_report *report)
{
    struct fs_prompts prompts;
    const int code = fs_prompts_open(model, &prompts);

    if (code < 0)
        gguf_system_error(report, code, GGUF_NO_PLACE);
    for (uint64_t i = 0; code == 0 && i < model->n_keys; i++) {
        const struct gguf_key *key = &model->keys[i];
        struct check check = {.prompts = &prompts, .key = key, .report = report};

        if (key->value.type == GGUF_STRING && (gguf_string_equals(key->name, FS_TEMPLATE_KEY) ||
                                               fs_chat_template_name(key).length_bytes > 0))
            check_template(&check);
    }
    fs_prompts_close(&prompts);
}
