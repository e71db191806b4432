#include "contrib/runner/chat/answer.h"

#include "contrib/runner/chat/answer_forms.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistr.h>

/* ---- thoughts ---- */

static const struct run_thought_marks thoughts[] = {
    {"</think>", "<think>", "</think>", false},
    {"[/THINK]", "[THINK]", "[/THINK]", false},
    {"<|END_THINKING|>", "<|START_THINKING|>", "<|END_THINKING|>", false},
    {"</seed:think>", "<seed:think>", "</seed:think>", false},
    {"<|channel>", "<|channel>thought", "<channel|>", false},           /* Gemma 4 */
    {"<|channel|>", "<|channel|>analysis<|message|>", "<|end|>", true}, /* gpt-oss */
};

static bool has(const char *text, const char *part)
{
    return strstr(text, part) != NULL;
}

const struct run_thought_marks *run_thought_marks_find(const char *jinja, const char *prompt,
                                                       size_t n_bytes, bool *is_begun)
{
    for (size_t i = 0; i < sizeof thoughts / sizeof *thoughts; i++) {
        const struct run_thought_marks *marks = &thoughts[i];
        const size_t n = strlen(marks->begin);

        if (!has(jinja, marks->needs))
            continue;
        while (n_bytes > 0 && strchr(" \n", prompt[n_bytes - 1]))
            n_bytes--;
        *is_begun = n_bytes >= n && memcmp(prompt + n_bytes - n, marks->begin, n) == 0;
        return marks;
    }
    *is_begun = false;
    return NULL;
}

/* Add a text without the line breaks at its ends. */
static int add_trimmed(struct gguf_buffer *buffer, struct run_reader text)
{
    while (text.at < text.end && *text.at == '\n')
        text.at++;
    while (text.end > text.at && text.end[-1] == '\n')
        text.end--;
    return gguf_buffer_add(buffer, text.at, (size_t)(text.end - text.at));
}

/* Move past the thoughts at the start of an answer. */
static int read_thoughts(const struct run_thought_marks *marks, bool is_begun,
                         struct run_reader *reader, struct run_answer *answer)
{
    struct run_reader start = *reader;
    const char *end;
    int code;

    run_reader_skip_blanks(&start);
    if (!run_reader_skip(&start, marks->begin) && !is_begun)
        return 0;
    end = run_reader_find(&start, marks->end);
    code = add_trimmed(&answer->thoughts, (struct run_reader){start.at, end ? end : start.end});
    reader->at = end ? end + strlen(marks->end) : reader->end;
    while (reader->at < reader->end && *reader->at == '\n')
        reader->at++;
    return code;
}

/* ---- gpt-oss ---- */

static int add_harmony_call(struct run_answer *answer, struct run_reader header,
                            struct run_reader text)
{
    const char *name = run_reader_find(&header, "functions.") + strlen("functions.");
    const char *end = name;

    while (end < header.end && !strchr(" <", *end))
        end++;
    return run_answer_add_call(answer, name, (size_t)(end - name), text.at,
                               (size_t)(text.end - text.at));
}

/*
 * Messages of a header, "<|message|>", a text, and an end. The header names the channel, and the
 * function that is called.
 */
static int read_harmony(struct run_reader reader, struct run_answer *answer)
{
    static const char *const ends[] = {"<|end|>", "<|return|>", "<|call|>", "<|start|>"};
    int code = 0;

    while (code == 0 && reader.at < reader.end) {
        const char *mark = run_reader_find(&reader, "<|message|>");
        struct run_reader header = {reader.at, mark}, text;

        if (!mark) /* cut inside of a header */
            return 0;
        text = (struct run_reader){mark + strlen("<|message|>"), reader.end};
        reader.at = reader.end;
        for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
            const char *end = run_reader_find(&text, ends[i]);

            if (end) {
                text.end = end;
                reader.at = end + strlen(ends[i]);
            }
        }
        if (run_reader_find(&header, "to=functions."))
            code = add_harmony_call(answer, header, text) < 0 ? -ENOMEM : 0;
        else
            code = add_trimmed(
                run_reader_find(&header, "analysis") ? &answer->thoughts : &answer->content, text);
    }
    return code;
}

/* ---- calls ---- */

static void skip_outer(const struct run_call_form *form, struct run_reader *reader)
{
    run_reader_skip_blanks(reader);
    for (int i = 0; i < 2; i++)
        if (form->outer[i] && run_reader_skip(reader, form->outer[i]))
            run_reader_skip_blanks(reader);
}

/*
 * Read calls in one form, and what is around them as content. Returns 1, 0 if the text has another
 * form, or -ENOMEM.
 */
static int read_form(const struct run_call_form *form, struct run_reader reader,
                     struct run_answer *answer)
{
    const char *begin = run_reader_find(&reader, form->begin);
    struct run_reader before = {reader.at, begin};
    const char *outer;
    int result = 1;

    if (!begin)
        return 0;
    outer = form->outer[0] ? run_reader_find(&before, form->outer[0]) : NULL;
    if (outer)
        before.end = outer;
    reader.at = begin;
    while (result == 1 && run_reader_skip(&reader, form->begin)) {
        run_reader_skip_blanks(&reader);
        result = form->read(form, &reader, answer);
        run_reader_skip_blanks(&reader);
        if (result == 1 && form->end)
            run_reader_skip(&reader, form->end);
        skip_outer(form, &reader);
        if (*form->begin == '\0') {
            if (reader.at < reader.end) /* the whole answer, or none of it */
                result = 0;
            break;
        }
    }
    if (result == 1 &&
        (add_trimmed(&answer->content, before) < 0 || add_trimmed(&answer->content, reader) < 0))
        result = -ENOMEM;
    return result;
}

static int read_calls(const char *jinja, struct run_reader reader, struct run_answer *answer)
{
    for (const struct run_call_form *form = run_call_forms; form->needs; form++) {
        const int result = has(jinja, form->needs) ? read_form(form, reader, answer) : 0;

        if (result != 0)
            return result;
        answer->n_calls = 0;
        gguf_buffer_drop(&answer->calls, answer->calls.length);
    }
    return 0;
}

/* ---- the answer ---- */

int run_answer_parse(const char *jinja, const char *text, size_t n_bytes,
                     const struct run_thought_marks *marks, bool is_begun, bool has_tools,
                     struct run_answer *answer)
{
    static const char *const around[] = {"<|START_RESPONSE|>", "<|END_RESPONSE|>", "<|START_TEXT|>",
                                         "<|END_TEXT|>"};
    struct run_reader reader = {text, text + n_bytes};
    int code = 0;

    *answer = (struct run_answer){0};
    if (marks && marks->are_messages)
        return read_harmony(reader, answer);
    if (marks)
        code = read_thoughts(marks, is_begun, &reader, answer);
    if (code == 0 && has_tools)
        code = read_calls(jinja, reader, answer);
    if (code != 0)
        return code < 0 ? -ENOMEM : 0;
    for (size_t i = 0; i < sizeof around / sizeof *around; i++) {
        const char *end = has(jinja, around[i]) ? run_reader_find(&reader, around[i]) : NULL;

        if (end && i % 2 == 0)
            reader.at = end + strlen(around[i]);
        else if (end)
            reader.end = end;
    }
    return gguf_buffer_add(&answer->content, reader.at, (size_t)(reader.end - reader.at));
}

void run_answer_free(struct run_answer *answer)
{
    gguf_buffer_free(&answer->calls);
    gguf_buffer_free(&answer->content);
    gguf_buffer_free(&answer->thoughts);
}

/* ---- JSON ---- */

int run_json_add_string(struct gguf_buffer *json, const char *bytes, size_t n_bytes)
{
    int code = gguf_buffer_add_string(json, "\"");

    for (size_t i = 0, n; code == 0 && i < n_bytes; i += n) {
        ucs4_t c;
        const int length = u8_mbtoucr(&c, (const uint8_t *)bytes + i, n_bytes - i);
        char escape[8] = "";

        n = length > 0 ? (size_t)length : 1;
        if (length <= 0)
            strcpy(escape, "\\ufffd");
        else if (c == '\n')
            strcpy(escape, "\\n");
        else if (c == '"' || c == '\\')
            snprintf(escape, sizeof escape, "\\%c", (char)c);
        else if (c < 0x20 || (c >= 0x7f && c <= 0x9f))
            snprintf(escape, sizeof escape, "\\u%04x", c);
        code = *escape != '\0' ? gguf_buffer_add_string(json, escape)
                               : gguf_buffer_add(json, bytes + i, n);
    }
    return code == 0 ? gguf_buffer_add_string(json, "\"") : code;
}

int run_answer_add_call(struct run_answer *answer, const char *name, size_t n_name,
                        const char *arguments, size_t n_arguments)
{
    struct gguf_buffer *calls = &answer->calls;
    char start[80];

    /* Mistral's templates want ids of nine letters and digits. */
    snprintf(start, sizeof start,
             "%s{\"id\":\"call%05zu\",\"type\":\"function\",\"function\":{\"name\":",
             answer->n_calls > 0 ? "," : "", answer->n_calls % 100000);
    if (gguf_buffer_add_string(calls, start) < 0 || run_json_add_string(calls, name, n_name) < 0 ||
        gguf_buffer_add_string(calls, ",\"arguments\":") < 0 ||
        run_json_add_string(calls, arguments, n_arguments) < 0 ||
        gguf_buffer_add_string(calls, "}}") < 0)
        return -ENOMEM;
    answer->n_calls++;
    return 1;
}

int run_answer_add_json(const struct run_answer *answer, const char *role, struct gguf_buffer *json)
{
    if (gguf_buffer_add_string(json, "{\"role\":\"") < 0 ||
        gguf_buffer_add_string(json, role) < 0 ||
        gguf_buffer_add_string(json, "\",\"content\":") < 0 ||
        run_json_add_string(json, answer->content.bytes, answer->content.length) < 0 ||
        (answer->thoughts.length > 0 &&
         (gguf_buffer_add_string(json, ",\"reasoning_content\":") < 0 ||
          run_json_add_string(json, answer->thoughts.bytes, answer->thoughts.length) < 0)) ||
        (answer->n_calls > 0 && (gguf_buffer_add_string(json, ",\"tool_calls\":[") < 0 ||
                                 gguf_buffer_add_string(json, answer->calls.bytes) < 0 ||
                                 gguf_buffer_add_string(json, "]") < 0)))
        return -ENOMEM;
    return gguf_buffer_add_string(json, "}");
}
