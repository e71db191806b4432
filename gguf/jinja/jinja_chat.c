/* Entry functions: parsing, and rendering as transformers does around a template. */
#include "gguf/jinja/jinja_syntax.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* With the space, which the template may remove: then white space before it goes as well. */
#define TAG "CONTINUE_FINAL_MESSAGE_TAG "

static const char *const reasoning_names[] = {"reasoning_content", "thinking", "reasoning"};

/* setjmp() is in functions of their own, whose locals do not change. */
static int try_parse(struct run *r, const char *text, size_t n_bytes,
                     struct jinja_template **parsed)
{
    struct jinja_template *template;

    if (setjmp(r->failed))
        return -EINVAL;
    if (n_bytes > JINJA_MAX_TEMPLATE_BYTES)
        jinja_fail(r, "the template has %zu bytes, the limit is %u", n_bytes,
                   JINJA_MAX_TEMPLATE_BYTES);
    template = jinja_alloc(r, sizeof *template);
    template->body = jinja_parse(r, text, n_bytes);
    template->has_content = memmem(text, n_bytes, "content", 7);
    template->chunks = r->chunks;
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

/* Return a member of an object, or NULL. */
static struct value *member(struct run *r, const struct value *value, const char *name)
{
    return value && value->type == JINJA_DICT ? jinja_get(r, value->dict, name) : NULL;
}

/* Return the items of a list; other values have none. */
static struct list list_in(const struct value *value)
{
    return value && value->type == JINJA_LIST ? *value->list : (struct list){NULL};
}

/* Mark a string as message text, and the strings in a list or dict, also its keys if `marks_keys`;
 * NULL has none. */
static void mark(struct run *r, const struct value *value, bool marks_keys)
{
    const struct list items = list_in(value);

    jinja_enter(r, JINJA_MAX_DEPTH);
    if (value && value->type == JINJA_STRING)
        memset(value->text->marks, 1, value->text->n);
    for (size_t i = 0; i < items.count; i++)
        mark(r, &items.items[i], marks_keys);
    for (size_t i = 0; value && value->type == JINJA_DICT && i < value->dict->count; i++) {
        if (marks_keys)
            mark(r, &value->dict->entries[i].key, marks_keys);
        mark(r, &value->dict->entries[i].value, marks_keys);
    }
    r->depth--;
}

static bool ends_in_token(const struct text *name)
{
    return name->n >= 6 && memcmp(name->bytes + name->n - 6, "_token", 6) == 0;
}

/*
 * Roles are no message text, since templates make control tokens of them. So a role must not be
 * able to hold one.
 */
static void admit_role(struct run *r, const struct value *role)
{
    if (!role || role->type != JINJA_STRING)
        return;
    for (size_t i = 0; i < role->text->n; i++)
        if (!isalnum((unsigned char)role->text->bytes[i]) && !strchr("_-.", role->text->bytes[i]))
            jinja_fail(r,
                       "the role \"%.*s\" of a message: only letters, digits, \"_\", \"-\" and "
                       "\".\" may stand in it",
                       JINJA_SHORT(role->text));
    memset(role->text->marks, 0, role->text->n);
}

static void mark_message(struct run *r, const struct value *message, unsigned flags)
{
    const struct value *content = member(r, message, "content");
    const struct list parts = list_in(content), calls = list_in(member(r, message, "tool_calls"));

    for (size_t i = 0; i < JINJA_COUNT(reasoning_names); i++)
        mark(r, member(r, message, reasoning_names[i]), false);
    for (size_t i = 0; i < parts.count; i++)
        mark(r,
             parts.items[i].type == JINJA_STRING ? &parts.items[i]
                                                 : member(r, &parts.items[i], "text"),
             false);
    if (content && content->type != JINJA_LIST)
        mark(r, content, false);
    for (size_t i = 0; i < calls.count; i++) {
        const struct value *function = member(r, &calls.items[i], "function");
        struct value *arguments = member(r, function ? function : &calls.items[i], "arguments");

        /* JSON in a string becomes an object; other strings stay. */
        if (flags & JINJA_OBJECT_ARGUMENTS && function && arguments &&
            arguments->type == JINJA_STRING && arguments->text->n &&
            arguments->text->bytes[0] == '{')
            *arguments = jinja_read_json(r, "arguments of a tool call", arguments->text->bytes,
                                         arguments->text->n);
        mark(r, arguments, false);
    }
}

/* Return a message without keys that have null, and with the reasoning under its other names. */
static struct value complete_message(struct run *r, struct value message, unsigned flags)
{
    struct value result = jinja_dict(jinja_new_dict(r));
    const struct value *reasoning = NULL;

    if (message.type != JINJA_DICT)
        return message;
    for (size_t i = 0; i < JINJA_COUNT(reasoning_names) && !reasoning; i++) {
        reasoning = member(r, &message, reasoning_names[i]);
        reasoning = reasoning && reasoning->type == JINJA_NONE ? NULL : reasoning;
    }
    if (reasoning)
        jinja_set(r, result.dict, jinja_string_of(r, "thinking"), *reasoning);
    for (size_t i = 0; i < message.dict->count; i++) {
        const struct entry *entry = &message.dict->entries[i];

        if (entry->value.type != JINJA_NONE)
            jinja_set(r, result.dict, entry->key, entry->value);
    }
    if (reasoning)
        jinja_set(r, result.dict, jinja_string_of(r, "reasoning_content"), *reasoning);
    mark_message(r, &result, flags);
    return result;
}

/* Append the tag to the text of the last message and return the text before. */
static const struct text *append_tag(struct run *r, struct list messages)
{
    struct value *content =
        messages.count ? member(r, &messages.items[messages.count - 1], "content") : NULL;
    const struct list parts = list_in(content);
    const struct text *text;

    for (size_t i = 0; i < parts.count; i++) {
        struct value *part = member(r, &parts.items[i], "text");

        content = part ? part : content;
    }
    if (content && content->type == JINJA_STRING) {
        text = content->text;
        *content = jinja_binary(r, '~', *content, jinja_string_of(r, TAG));
        return text;
    }
    jinja_fail(r, "continue_final_message is set but the final message has no text to continue");
}

/* Return the rendered text up to the tag. */
static struct text *cut_at_tag(struct run *r, struct text *rendered, const struct text *final)
{
    const struct text *stripped = jinja_strip(r, final, NULL, JINJA_BOTH),
                      *tag = jinja_text(r, TAG, strlen(TAG) - 1);
    size_t at = SIZE_MAX, end;
    struct text *text;

    for (size_t next = 0; (next = jinja_search(r, rendered, tag, next)) != SIZE_MAX; next++)
        at = next;
    if (at == SIZE_MAX || jinja_search(r, rendered, stripped, 0) == SIZE_MAX)
        jinja_fail(r, "continue_final_message is set but the final message does not appear in the "
                      "chat after applying the chat template");
    end = at + tag->n;
    text = jinja_cut(r, rendered, 0, at);
    return end < rendered->n && rendered->bytes[end] == ' '
               ? text
               : jinja_strip(r, text, NULL, JINJA_RIGHT);
}

/* ---- rendering ---- */

static const struct text *render(struct run *r, const struct jinja_template *parsed, unsigned flags)
{
    const struct value absent[] = {jinja_none, jinja_none, jinja_bool(false)};
    static const char *const always[] = {"tools", "documents", "add_generation_prompt"};
    struct value *messages, *tools;
    const struct text *final = NULL;
    struct list list = {NULL};

    for (size_t i = 0; i < JINJA_COUNT(always); i++)
        if (!jinja_get(r, &r->variables, always[i]))
            jinja_set(r, &r->variables, jinja_string_of(r, always[i]), absent[i]);
    tools = jinja_get(r, &r->variables, "tools");
    messages = jinja_get(r, &r->variables, "messages");
    if (messages && messages->type == JINJA_LIST) {
        for (size_t i = 0; i < messages->list->count; i++)
            jinja_push(r, &list, complete_message(r, messages->list->items[i], flags));
        *messages->list = list;
    }
    if (flags & JINJA_MARK_ALL) {
        if (!messages || messages->type != JINJA_LIST)
            jinja_fail(r, "messages: not a list");
        if (tools->type != JINJA_LIST && tools->type != JINJA_NONE)
            jinja_fail(r, "tools: not a list");
        for (size_t i = 0; i < r->variables.count; i++)
            if (!ends_in_token(r->variables.entries[i].key.text))
                mark(r, &r->variables.entries[i].value, true);
        for (size_t i = 0; i < list.count; i++)
            admit_role(r, member(r, &list.items[i], "role"));
    }
    if (flags & JINJA_CONTINUE && !parsed->has_content)
        jinja_fail(r, "continue_final_message is set but the template does not use content");
    if (flags & JINJA_CONTINUE)
        final = append_tag(r, list);
    r->steps = 0;
    r->error->is_argument = false;
    r->out = jinja_text(r, "", 0);
    r->scope = jinja_alloc(r, sizeof *r->scope);
    jinja_run_body(r, parsed->body);
    return final ? cut_at_tag(r, r->out, final) : r->out;
}

/* Copy the text and its spans to memory of the caller. */
static bool copy_rendering(const struct text *text, struct jinja_rendering *rendering)
{
    size_t n_spans = 1;
    bool is_marked = false;

    for (size_t i = 1; i < text->n; i++)
        n_spans += text->marks[i] > text->marks[i - 1];
    rendering->text = calloc(text->n + 1, 1);
    rendering->spans = malloc(n_spans * sizeof *rendering->spans);
    if (!rendering->text || !rendering->spans) {
        jinja_rendering_free(rendering);
        return false;
    }
    memcpy(rendering->text, text->bytes, text->n);
    rendering->text_bytes = text->n;
    for (size_t i = 0; i < text->n; is_marked = text->marks[i++]) {
        if (text->marks[i] && !is_marked)
            rendering->spans[rendering->n_spans++].start = i;
        if (text->marks[i])
            rendering->spans[rendering->n_spans - 1].end = i + 1;
    }
    return true;
}

static void add_variable(struct run *r, struct value name, struct value value)
{
    const struct value *before = jinja_find(r, &r->variables, name);
    const struct list items = list_in(&value);

    if (list_in(before).items && items.items && jinja_is(name.text, "messages"))
        jinja_push_all(r, before->list, &items);
    else
        jinja_set(r, &r->variables, name, value);
}

static void add_argument(struct run *r, const struct jinja_argument *argument)
{
    const char *what = argument->name ? argument->name : "the object of variables";
    const struct value value = jinja_read_json(r, what, argument->json, argument->json_bytes);

    if (argument->name)
        add_variable(r, jinja_string_of(r, argument->name), value);
    else if (value.type != JINJA_DICT)
        jinja_fail(r, "%s is no object", what);
    for (size_t i = 0; !argument->name && i < value.dict->count; i++)
        add_variable(r, value.dict->entries[i].key, value.dict->entries[i].value);
}

static int try_render(struct run *r, const struct jinja_template *parsed,
                      const struct jinja_argument *arguments, size_t n_arguments, unsigned flags,
                      struct jinja_rendering *rendering)
{
    if (setjmp(r->failed))
        return -EINVAL;
    r->error->is_argument = true;
    for (size_t i = 0; i < n_arguments; i++)
        add_argument(r, &arguments[i]);
    return copy_rendering(render(r, parsed, flags), rendering) ? 0 : -ENOMEM;
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
