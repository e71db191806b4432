/* Entry functions: parsing, and rendering as transformers does around a template. */
#include "gguf/jinja/jinja_run.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* With the space, which the template may remove: then white space before it goes as well. */
#define TAG "CONTINUE_FINAL_MESSAGE_TAG "

static const char *const reasoning_names[] = {"reasoning_content", "thinking", "reasoning"};

/* setjmp() is in functions of their own, whose locals do not change. */
static int try_parse(struct run *run, const char *text, size_t n_bytes,
                     struct jinja_template **parsed)
{
    struct jinja_template *template;

    if (setjmp(run->failed))
        return -EINVAL;
    if (n_bytes > JINJA_MAX_TEMPLATE_BYTES)
        jinja_fail(run, "the template has %zu bytes, the limit is %u", n_bytes,
                   JINJA_MAX_TEMPLATE_BYTES);
    template = jinja_alloc(run, sizeof *template);
    template->body = jinja_parse(run, text, n_bytes);
    template->has_content = memmem(text, n_bytes, "content", 7);
    template->chunks = run->chunks;
    *parsed = template;
    return 0;
}

int jinja_template_parse(const char *text, size_t n_bytes, struct jinja_template **parsed,
                         struct jinja_error *error)
{
    struct run run = {.error = error};
    int result;

    *parsed = NULL;
    *error = (struct jinja_error){0};
    result = try_parse(&run, text, n_bytes, parsed);
    if (result < 0)
        jinja_free_chunks(run.chunks);
    return result;
}

void jinja_template_free(struct jinja_template *parsed)
{
    if (parsed)
        jinja_free_chunks(parsed->chunks);
}

/* ---- messages ---- */

/* Mark a string as message text, and the strings in a list or dict, also its keys if `marks_keys`.
 */
static void mark_in(struct run *run, struct value value, bool marks_keys)
{
    jinja_enter(run, JINJA_MAX_DEPTH);
    if (value.type == JINJA_STRING && value.text->n_bytes) {
        unsigned char *marks = jinja_alloc(run, value.text->n_bytes);

        memset(marks, 1, value.text->n_bytes);
        value.text->marks = marks;
        value.text->appended = NULL;
    }
    for (size_t i = 0; value.type == JINJA_LIST && i < value.list->count; i++)
        mark_in(run, value.list->items[i], marks_keys);
    for (size_t i = 0; value.type == JINJA_DICT && i < value.dict->count; i++) {
        if (marks_keys)
            mark_in(run, value.dict->entries[i].key, marks_keys);
        mark_in(run, value.dict->entries[i].value, marks_keys);
    }
    jinja_leave(run);
}

static void mark(struct run *run, struct value value)
{
    mark_in(run, value, false);
}

/* Mark all variables but the texts of tokens. */
static void mark_all(struct run *run)
{
    for (size_t i = 0; i < run->variables->count; i++) {
        const struct entry *entry = &run->variables->entries[i];
        const struct text *name = entry->key.text;

        if (name->n_bytes < 6 || memcmp(name->bytes + name->n_bytes - 6, "_token", 6) != 0)
            mark_in(run, entry->value, true);
    }
}

/*
 * Roles are no message text, since templates make control tokens of them. So a role must not be
 * able to hold one.
 */
static void admit_role(struct run *run, struct value message)
{
    struct value *role = jinja_dict_get(run, message.dict, "role");

    if (!role || role->type != JINJA_STRING)
        return;
    for (size_t i = 0; i < role->text->n_bytes; i++)
        if (!isalnum((unsigned char)role->text->bytes[i]) && !strchr("_-.", role->text->bytes[i]))
            jinja_fail(run,
                       "the role \"%.*s\" of a message: only letters, digits, \"_\", \"-\" and "
                       "\".\" may stand in it",
                       role->text->n_bytes > 100 ? 100 : (int)role->text->n_bytes,
                       role->text->bytes);
    role->text->marks = NULL;
}

/* Replace arguments of tool calls that are JSON in a string. Other strings stay. */
static void read_arguments(struct run *run, struct value message)
{
    const struct value *calls = jinja_dict_get(run, message.dict, "tool_calls");

    for (size_t i = 0; calls && calls->type == JINJA_LIST && i < calls->list->count; i++) {
        const struct value call = calls->list->items[i];
        const struct value *function =
            call.type == JINJA_DICT ? jinja_dict_get(run, call.dict, "function") : NULL;
        struct value *arguments = function && function->type == JINJA_DICT
                                      ? jinja_dict_get(run, function->dict, "arguments")
                                      : NULL;

        if (arguments && arguments->type == JINJA_STRING && arguments->text->n_bytes > 0 &&
            arguments->text->bytes[0] == '{')
            *arguments = jinja_read_json(run, "arguments of a tool call", arguments->text->bytes,
                                         arguments->text->n_bytes);
    }
}

static void mark_member(struct run *run, struct value value, const char *name)
{
    struct value *member = value.type == JINJA_DICT ? jinja_dict_get(run, value.dict, name) : NULL;

    if (member)
        mark(run, *member);
}

static void mark_message(struct run *run, struct value message)
{
    const struct value *content = jinja_dict_get(run, message.dict, "content"),
                       *calls = jinja_dict_get(run, message.dict, "tool_calls");

    for (size_t i = 0; i < JINJA_COUNT(reasoning_names); i++)
        mark_member(run, message, reasoning_names[i]);
    for (size_t i = 0; content && content->type == JINJA_LIST && i < content->list->count; i++) {
        if (content->list->items[i].type == JINJA_STRING)
            mark(run, content->list->items[i]);
        mark_member(run, content->list->items[i], "text");
    }
    if (content && content->type != JINJA_LIST)
        mark(run, *content);
    for (size_t i = 0; calls && calls->type == JINJA_LIST && i < calls->list->count; i++) {
        const struct value call = calls->list->items[i];
        const struct value *function =
            call.type == JINJA_DICT ? jinja_dict_get(run, call.dict, "function") : NULL;

        mark_member(run, function ? *function : call, "arguments");
    }
}

/* Return a message without keys that have null, and with the reasoning under its other names. */
static struct value complete_message(struct run *run, struct value message, unsigned flags)
{
    struct value result = {.type = JINJA_DICT, .dict = jinja_dict_make(run)};
    struct value reasoning = {.type = JINJA_ABSENT};

    if (message.type != JINJA_DICT)
        return message;
    for (size_t i = 0; i < JINJA_COUNT(reasoning_names) && reasoning.type == JINJA_ABSENT; i++) {
        const struct value *member = jinja_dict_get(run, message.dict, reasoning_names[i]);

        if (member && member->type != JINJA_NONE)
            reasoning = *member;
    }
    if (reasoning.type != JINJA_ABSENT)
        jinja_dict_set(run, result.dict, jinja_string_of(run, "thinking"), reasoning);
    for (size_t i = 0; i < message.dict->count; i++) {
        const struct entry *entry = &message.dict->entries[i];

        if (entry->value.type != JINJA_NONE)
            jinja_dict_set(run, result.dict, entry->key, entry->value);
    }
    if (reasoning.type != JINJA_ABSENT)
        jinja_dict_set(run, result.dict, jinja_string_of(run, "reasoning_content"), reasoning);
    if (flags & JINJA_OBJECT_ARGUMENTS)
        read_arguments(run, result);
    if (flags & JINJA_MARK_ALL)
        admit_role(run, result);
    mark_message(run, result);
    return result;
}

/* Append the tag to the text of the last message and return the text before. */
static struct text *append_tag(struct run *run, const struct list *messages)
{
    struct value *content = NULL;
    struct text *text;

    if (messages && messages->count && messages->items[messages->count - 1].type == JINJA_DICT)
        content = jinja_dict_get(run, messages->items[messages->count - 1].dict, "content");
    for (size_t i = content && content->type == JINJA_LIST ? content->list->count : 0; i > 0; i--) {
        const struct value part = content->list->items[i - 1];

        if (part.type == JINJA_DICT && jinja_dict_get(run, part.dict, "text")) {
            content = jinja_dict_get(run, part.dict, "text");
            break;
        }
    }
    if (content && content->type == JINJA_STRING) {
        text = content->text;
        content->text = jinja_text_join(run, text, jinja_text_make(run, TAG, strlen(TAG)));
        return text;
    }
    jinja_fail(run, "continue_final_message is set but the final message has no text to continue");
}

/* Return the rendered text up to the tag. */
static struct text *cut_at_tag(struct run *run, struct text *rendered, const struct text *final)
{
    const struct text *stripped = jinja_text_strip(run, final, NULL, true, true);
    const struct text tag = {.bytes = TAG, .n_bytes = strlen(TAG) - 1};
    size_t at = SIZE_MAX;
    struct text *text;

    for (size_t next = 0; (next = jinja_text_find(run, rendered, &tag, next)) != SIZE_MAX; next++)
        at = next;
    if (at == SIZE_MAX || jinja_text_find(run, rendered, stripped, 0) == SIZE_MAX)
        jinja_fail(run, "continue_final_message is set but the final message does not appear in "
                        "the chat after applying the chat template");
    text = jinja_text_cut(run, rendered, 0, at);
    if (at + tag.n_bytes < rendered->n_bytes && rendered->bytes[at + tag.n_bytes] == ' ')
        return text;
    return jinja_text_strip(run, text, NULL, false, true);
}

/* ---- rendering ---- */

static struct text *render(struct run *run, const struct jinja_template *parsed, unsigned flags)
{
    static const char *const always[] = {"tools", "documents", "add_generation_prompt"};
    struct value *messages, *tools;
    struct text *final = NULL, *text;
    struct list *list = jinja_list_make(run, 0);

    for (size_t i = 0; i < JINJA_COUNT(always); i++) {
        if (!jinja_dict_get(run, run->variables, always[i]))
            jinja_dict_set(run, run->variables, jinja_string_of(run, always[i]),
                           i == 2 ? jinja_bool(false) : jinja_none());
    }
    tools = jinja_dict_get(run, run->variables, "tools");
    messages = jinja_dict_get(run, run->variables, "messages");
    if (messages && messages->type == JINJA_LIST) {
        for (size_t i = 0; i < messages->list->count; i++)
            jinja_list_add(run, list, complete_message(run, messages->list->items[i], flags));
        *messages = jinja_list(list);
    }
    if (flags & JINJA_MARK_ALL) {
        if (!messages || messages->type != JINJA_LIST)
            jinja_fail(run, "messages: not a list");
        if (tools->type != JINJA_LIST && tools->type != JINJA_NONE)
            jinja_fail(run, "tools: not a list");
        mark_all(run);
    }
    if (flags & JINJA_CONTINUE && !parsed->has_content)
        jinja_fail(run, "continue_final_message is set but the template does not use content");
    if (flags & JINJA_CONTINUE)
        final = append_tag(run, list);
    run->steps = 0;
    run->error->is_argument = false;
    run->out = jinja_builder(run);
    jinja_run_template(run, parsed);
    text = jinja_built(run, run->out);
    return final ? cut_at_tag(run, text, final) : text;
}

/* Copy the text and its spans to memory of the caller. */
static bool copy_rendering(const struct text *text, struct jinja_rendering *rendering)
{
    size_t n_spans = 0;

    for (size_t i = 0; text->marks && i < text->n_bytes; i++)
        n_spans += text->marks[i] && (i == 0 || !text->marks[i - 1]);
    rendering->text = malloc(text->n_bytes + 1);
    rendering->spans = malloc((n_spans + 1) * sizeof *rendering->spans);
    if (!rendering->text || !rendering->spans)
        return false;
    memcpy(rendering->text, text->bytes, text->n_bytes);
    rendering->text[text->n_bytes] = '\0';
    rendering->text_bytes = text->n_bytes;
    for (size_t i = 0; text->marks && i < text->n_bytes; i++) {
        if (text->marks[i] && (i == 0 || !text->marks[i - 1]))
            rendering->spans[rendering->n_spans++].start = i;
        if (text->marks[i])
            rendering->spans[rendering->n_spans - 1].end = i + 1;
    }
    return true;
}

static void add_variable(struct run *run, struct value name, struct value value)
{
    struct value *before = jinja_dict_find(run, run->variables, name);

    if (before && before->type == JINJA_LIST && value.type == JINJA_LIST &&
        jinja_text_is(name.text, "messages"))
        for (size_t i = 0; i < value.list->count; i++)
            jinja_list_add(run, before->list, value.list->items[i]);
    else
        jinja_dict_set(run, run->variables, name, value);
}

static void add_argument(struct run *run, const struct jinja_argument *argument)
{
    const char *what = argument->name ? argument->name : "the object of variables";
    const struct value value = jinja_read_json(run, what, argument->json, argument->json_bytes);

    if (argument->name) {
        add_variable(run, jinja_string_of(run, argument->name), value);
        return;
    }
    if (value.type != JINJA_DICT)
        jinja_fail(run, "%s is no object", what);
    for (size_t i = 0; i < value.dict->count; i++)
        add_variable(run, value.dict->entries[i].key, value.dict->entries[i].value);
}

static int try_render(struct run *run, const struct jinja_template *parsed,
                      const struct jinja_argument *arguments, size_t n_arguments, unsigned flags,
                      struct jinja_rendering *rendering)
{
    if (setjmp(run->failed))
        return -EINVAL;
    run->error->is_argument = true;
    run->variables = jinja_dict_make(run);
    for (size_t i = 0; i < n_arguments; i++)
        add_argument(run, &arguments[i]);
    return copy_rendering(render(run, parsed, flags), rendering) ? 0 : -ENOMEM;
}

static int render_once(const struct jinja_template *parsed, const struct jinja_argument *arguments,
                       size_t n_arguments, unsigned flags, const struct tm *now,
                       struct jinja_rendering *rendering, struct jinja_error *error)
{
    struct run run = {.error = error, .now = now};
    int result;

    *rendering = (struct jinja_rendering){0};
    *error = (struct jinja_error){0};
    result = try_render(&run, parsed, arguments, n_arguments, flags, rendering);
    jinja_free_chunks(run.chunks);
    if (result < 0)
        jinja_rendering_free(rendering);
    return result;
}

int jinja_render_chat(const struct jinja_template *parsed, const struct jinja_argument *arguments,
                      size_t n_arguments, unsigned flags, const struct tm *now,
                      struct jinja_rendering *rendering, struct jinja_error *error)
{
    const unsigned other_flags = flags & ~(unsigned)JINJA_OBJECT_ARGUMENTS;
    const int result = render_once(parsed, arguments, n_arguments, flags, now, rendering, error);
    struct jinja_error second;

    if (result == -EINVAL && flags != other_flags && !error->is_argument &&
        render_once(parsed, arguments, n_arguments, other_flags, now, rendering, &second) == 0)
        return 0;
    return result;
}

void jinja_rendering_free(struct jinja_rendering *rendering)
{
    free(rendering->text);
    free(rendering->spans);
    *rendering = (struct jinja_rendering){0};
}
