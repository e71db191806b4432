#include "contrib/runner/chat/answer_forms.h"

#include <cjson/cJSON.h>
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

bool run_reader_skip(struct run_reader *reader, const char *text)
{
    const size_t n = strlen(text);
    const bool is_next =
        (size_t)(reader->end - reader->at) >= n && memcmp(reader->at, text, n) == 0;

    if (is_next)
        reader->at += n;
    return is_next;
}

void run_reader_skip_blanks(struct run_reader *reader)
{
    while (reader->at < reader->end && isspace((unsigned char)*reader->at))
        reader->at++;
}

const char *run_reader_find(const struct run_reader *reader, const char *text)
{
    return memmem(reader->at, (size_t)(reader->end - reader->at), text, strlen(text));
}

/* Skip blanks, and the marks of a block of code in Markdown. */
static void skip_fence(struct run_reader *reader)
{
    run_reader_skip_blanks(reader);
    if (run_reader_skip(reader, "```"))
        run_reader_skip(reader, "json");
    run_reader_skip_blanks(reader);
}

/* Give long integers back their digits, which cJSON rounds. `*at`: in the text of the values. */
static void keep_integers(cJSON *item, const char **at)
{
    for (; item; item = item->next) {
        size_t n;

        keep_integers(item->child, at);
        if (!cJSON_IsNumber(item))
            continue;
        for (; **at != '-' && !isdigit((unsigned char)**at); (*at)++)
            if (**at == '"')
                while (*++*at != '"')
                    *at += **at == '\\';
        n = strspn(*at, "-+.0123456789eE");
        if (n > 15 && strspn(*at, "-0123456789") == n && (*at)[**at == '-'] != '0' &&
            (item->valuestring = strndup(*at, n)))
            item->type = cJSON_Raw;
        *at += n;
    }
}

cJSON *run_json_parse(const char *text, size_t n_bytes, const char **end)
{
    cJSON *json = cJSON_ParseWithLengthOpts(text, n_bytes, end, 0);

    keep_integers(json, &text);
    return json;
}

/* Parse the JSON value that is next. `raw`: its text. */
static cJSON *read_json(struct run_reader *reader, struct run_reader *raw)
{
    const char *end = NULL;
    cJSON *json = run_json_parse(reader->at, (size_t)(reader->end - reader->at), &end);

    if (json) {
        *raw = (struct run_reader){reader->at, end};
        reader->at = end;
    }
    return json;
}

static const cJSON *member(const cJSON *object, const char *name, const char *other)
{
    const cJSON *found = cJSON_GetObjectItemCaseSensitive(object, name);

    return found ? found : cJSON_GetObjectItemCaseSensitive(object, other);
}

/* Add a call with arguments in JSON. */
static int add_json_call(struct run_answer *answer, const char *name, size_t n_name,
                         const cJSON *arguments)
{
    char *text = cJSON_PrintUnformatted(arguments);
    const int result =
        text ? run_answer_add_call(answer, name, n_name, text, strlen(text)) : -ENOMEM;

    cJSON_free(text);
    return result;
}

/* Add the call of an object with a name and arguments. */
static int add_object(struct run_answer *answer, const cJSON *object)
{
    const char *name = cJSON_GetStringValue(member(object, "name", "tool_name"));
    const cJSON *arguments = member(object, "arguments", "parameters");
    const char *text = cJSON_GetStringValue(arguments); /* JSON in a string */

    if (!name || !(cJSON_IsObject(arguments) || text))
        return 0;
    return text ? run_answer_add_call(answer, name, strlen(name), text, strlen(text))
                : add_json_call(answer, name, strlen(name), arguments);
}

/* An object, or several divided by semicolons, or an array of them. */
static int read_objects(const struct run_call_form *form, struct run_reader *reader,
                        struct run_answer *answer)
{
    int result = 1;

    do {
        struct run_reader raw;
        const cJSON *item;
        cJSON *json;

        skip_fence(reader);
        json = read_json(reader, &raw);

        if (!json)
            return 0;
        skip_fence(reader);
        if (cJSON_IsArray(json)) {
            cJSON_ArrayForEach(item, json) if (result == 1) result = add_object(answer, item);
        } else {
            result = add_object(answer, json);
        }
        cJSON_Delete(json);
    } while (result == 1 && run_reader_skip(reader, ";"));
    return result;
}

static bool is_in_name(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == '-' || c == '.';
}

/*
 * NAME, a mark, and an object. DeepSeek may write "function" and the mark before the name;
 * Kimi writes "functions." before the name; Mistral and Kimi may write more before the mark.
 */
static int read_named(const struct run_call_form *form, struct run_reader *reader,
                      struct run_answer *answer)
{
    const char *mark = run_reader_find(reader, form->between);
    const char *name, *end;
    struct run_reader raw = {NULL, NULL};
    cJSON *json;
    bool is_object;

    if (run_reader_skip(reader, "[")) { /* as older models write it */
        reader->at--;
        return read_objects(form, reader, answer);
    }
    if (!mark)
        return 0;
    if (run_reader_skip(reader, "function") && reader->at == mark)
        reader->at += strlen(form->between);
    else
        run_reader_skip(reader, "s.");
    name = end = reader->at;
    while (end < reader->end && is_in_name(*end))
        end++;
    reader->at = mark >= end ? mark + strlen(form->between) : end;
    skip_fence(reader);
    json = read_json(reader, &raw);
    is_object = cJSON_IsObject(json);
    cJSON_Delete(json);
    if (!is_object || !raw.at || name == end)
        return 0;
    skip_fence(reader);
    return run_answer_add_call(answer, name, (size_t)(end - name), raw.at,
                               (size_t)(raw.end - raw.at));
}

/* Add a member of an object. A value that is JSON, but no string, stays JSON. */
static int add_member(cJSON *object, struct run_reader key, struct run_reader value)
{
    char *name = strndup(key.at, (size_t)(key.end - key.at));
    char *text = strndup(value.at, (size_t)(value.end - value.at));
    const char *end = NULL;
    cJSON *json = text ? run_json_parse(text, strlen(text), &end) : NULL;
    bool is_added;

    if (!json || cJSON_IsString(json) || *end != '\0') {
        cJSON_Delete(json);
        json = text ? cJSON_CreateString(text) : NULL;
    }
    is_added = name && json && cJSON_AddItemToObject(object, name, json);
    if (!is_added)
        cJSON_Delete(json);
    free(name);
    free(text);
    return is_added ? 1 : -ENOMEM;
}

/* Marks of a call whose arguments stand between tags. */
struct tags {
    const char *name_end;
    const char *key_begin, *key_end, *value_begin, *value_end;
    const char *end; /* after the last argument; NULL: none */
};

/* Read the text up to a mark, and move past it. */
static bool read_until(struct run_reader *reader, const char *mark, struct run_reader *text)
{
    const char *at = run_reader_find(reader, mark);

    if (!at)
        return false;
    *text = (struct run_reader){reader->at, at};
    reader->at = at + strlen(mark);
    return true;
}

/* Drop one line break at each end. */
static struct run_reader trimmed(struct run_reader text)
{
    run_reader_skip(&text, "\n");
    if (text.end > text.at && text.end[-1] == '\n')
        text.end--;
    return text;
}

static int read_tags(const struct tags *tags, struct run_reader *reader, struct run_answer *answer)
{
    cJSON *object = cJSON_CreateObject();
    struct run_reader name = {reader->at, reader->at}, key, value;
    int result = object ? 1 : -ENOMEM;

    while (name.end < reader->end && !isspace((unsigned char)*name.end) && *name.end != '<' &&
           *name.end != '>')
        name.end++;
    reader->at = name.end;
    if (result == 1 && (name.at == name.end || !run_reader_skip(reader, tags->name_end)))
        result = 0;
    for (run_reader_skip_blanks(reader); result == 1 && run_reader_skip(reader, tags->key_begin);
         run_reader_skip_blanks(reader)) {
        if (!read_until(reader, tags->key_end, &key))
            result = 0;
        run_reader_skip_blanks(reader);
        if (result == 1 && (!run_reader_skip(reader, tags->value_begin) ||
                            !read_until(reader, tags->value_end, &value)))
            result = 0;
        if (result == 1)
            result = add_member(object, trimmed(key), trimmed(value));
    }
    if (result == 1 && tags->end && !run_reader_skip(reader, tags->end))
        result = 0;
    if (result == 1)
        result = add_json_call(answer, name.at, (size_t)(name.end - name.at), object);
    cJSON_Delete(object);
    return result;
}

/* <function=NAME><parameter=KEY>VALUE</parameter></function> */
static int read_qwen(const struct run_call_form *form, struct run_reader *reader,
                     struct run_answer *answer)
{
    static const struct tags tags = {">", "<parameter=", ">", "", "</parameter>", "</function>"};

    return run_reader_skip(reader, "<function=") ? read_tags(&tags, reader, answer) : 0;
}

/* NAME<arg_key>KEY</arg_key><arg_value>VALUE</arg_value> */
static int read_glm(const struct run_call_form *form, struct run_reader *reader,
                    struct run_answer *answer)
{
    static const struct tags tags = {"",  "<arg_key>", "</arg_key>", "<arg_value>", "</arg_value>",
                                     NULL};

    return read_tags(&tags, reader, answer);
}

/* clang-format off */
const struct run_call_form run_call_forms[] = {
    /* Command R+, Command R7B, Command A */
    {"<|START_ACTION|>", "<|START_ACTION|>", "<|END_ACTION|>", {NULL, NULL}, NULL, read_objects},
    {"Action:", "Action:", NULL, {NULL, NULL}, NULL, read_objects},
    /* DeepSeek V3, R1, V3.1 */
    {"<｜tool▁call▁begin｜>", "<｜tool▁call▁begin｜>", "<｜tool▁call▁end｜>",
     {"<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>"}, "<｜tool▁sep｜>", read_named},
    /* Kimi K2 */
    {"<|tool_call_begin|>", "<|tool_call_begin|>", "<|tool_call_end|>",
     {"<|tool_calls_section_begin|>", "<|tool_calls_section_end|>"},
     "<|tool_call_argument_begin|>", read_named},
    /* Mistral, in both versions */
    {"[TOOL_CALLS]", "[TOOL_CALLS]", NULL, {NULL, NULL}, "[ARGS]", read_named},
    /* Granite 3, Phi-4 mini */
    {"<|tool_call|>", "<|tool_call|>", "<|/tool_call|>", {NULL, NULL}, NULL, read_objects},
    /* GLM 4.5 and later */
    {"<arg_key>", "<tool_call>", "</tool_call>", {NULL, NULL}, NULL, read_glm},
    /* Qwen3-Coder, Qwen3.5 */
    {"<function=", "<tool_call>", "</tool_call>", {NULL, NULL}, NULL, read_qwen},
    /* Hermes, Qwen 2.5, Qwen 3, Granite 4 */
    {"<tool_call>", "<tool_call>", "</tool_call>", {NULL, NULL}, NULL, read_objects},
    /* Llama 3, whose calls are the whole answer */
    {"\"parameters\"", "<|python_tag|>", NULL, {NULL, NULL}, NULL, read_objects},
    {"\"parameters\"", "", NULL, {NULL, NULL}, NULL, read_objects},
    {NULL, NULL, NULL, {NULL, NULL}, NULL, NULL},
};
/* clang-format on */
