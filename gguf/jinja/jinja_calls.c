/* Calls, lookups in the tables of functions, and iteration. */
#include "gguf/jinja/jinja_run.h"

#include <string.h>

const struct builtin *jinja_find_builtin(const struct builtin *table, const struct text *name)
{
    for (; table->name; table++) {
        if (jinja_text_is(name, table->name))
            return table;
    }
    return NULL;
}

const struct builtin *jinja_find_filter(const struct text *name)
{
    const struct builtin *found = jinja_find_builtin(jinja_text_filters, name);

    if (!found)
        found = jinja_find_builtin(jinja_list_filters, name);
    return found ? found : jinja_find_builtin(jinja_other_filters, name);
}

void jinja_fail_unknown(struct run *run, const struct node *node)
{
    const struct text *name = node->value.text;

    run->line = node->line;
    jinja_fail(run, "No %s named '%.*s'; use --chat-template NAME",
               node->kind == NODE_TEST ? "test" : "filter", JINJA_SHORT(name));
}

struct value jinja_call_builtin(struct run *run, const char *what, const struct builtin *builtin,
                                struct value subject, const struct call *call)
{
    struct value a[JINJA_N_ARGUMENTS] = {
        [0] = subject, [JINJA_VARIANT] = jinja_int(builtin->variant)};
    const size_t n_given = call->positional->count;
    size_t n_positional = 0, n_named = call->named ? call->named->count : 0, n = 1;
    bool is_optional = false;

    for (const char *name = builtin->parameters, *end; *name; name = end + strspn(end, " ")) {
        const struct text key = {.bytes = name, .n_bytes = strcspn(name, " ")};
        struct value *named;

        end = name + key.n_bytes;
        if (*name == '|') {
            is_optional = true;
        } else if (jinja_text_is(&key, "*")) {
            a[n] = jinja_list(jinja_list_make(run, n_given));
            while (n_positional < n_given)
                jinja_list_add(run, a[n].list, call->positional->items[n_positional++]);
            n++;
        } else if (jinja_text_is(&key, "**")) {
            a[n++] = (struct value){.type = JINJA_DICT,
                                    .dict = call->named ? call->named : jinja_dict_make(run)};
            n_named = 0;
        } else {
            struct text copy = key;

            named = call->named ? jinja_dict_find(run, call->named, jinja_string(&copy)) : NULL;
            if (named && n_positional < n_given)
                jinja_fail(run, "%s %s() got multiple values for argument '%.*s'", what,
                           builtin->name, (int)key.n_bytes, name);
            n_named -= named != NULL;
            if (n_positional < n_given)
                a[n] = call->positional->items[n_positional++];
            else if (named)
                a[n] = *named;
            else if (!is_optional)
                jinja_fail(run, "%s %s() missing 1 required argument: '%.*s'", what, builtin->name,
                           (int)key.n_bytes, name);
            n++;
        }
    }
    if (n_positional < n_given)
        jinja_fail(run, "%s %s() takes %zu arguments, %zu were given", what, builtin->name, n - 1,
                   n_given);
    if (n_named > 0)
        jinja_fail(run, "%s %s() got an unexpected keyword argument", what, builtin->name);
    return builtin->call(run, a);
}

struct value jinja_call_method(struct run *run, const char *name, struct value owner,
                               struct value first, struct value second)
{
    const struct builtin *row =
        jinja_find_builtin(jinja_text_methods, jinja_string_of(run, name).text);
    const struct value a[JINJA_N_ARGUMENTS] = {
        [0] = owner, [1] = first, [2] = second, [JINJA_VARIANT] = jinja_int(row->variant)};

    return row->call(run, a);
}

struct value jinja_call(struct run *run, struct value callee, const struct call *call)
{
    switch (callee.type) {
    case JINJA_FUNCTION:
        return jinja_call_builtin(run, "function", callee.function->builtin, callee.function->owner,
                                  call);
    case JINJA_MACRO:
        return jinja_call_macro(run, callee.macro, call);
    case JINJA_UNDEFINED:
        jinja_fail_undefined(run, callee);
    default:
        jinja_fail(run, "'%s' object is not callable", jinja_type_name(callee));
    }
}

struct text *jinja_need_text(struct run *run, struct value value)
{
    if (value.type == JINJA_UNDEFINED)
        jinja_fail_undefined(run, value);
    if (value.type != JINJA_STRING)
        jinja_fail(run, "expected str, got %s", jinja_type_name(value));
    return value.text;
}

int64_t jinja_need_int(struct run *run, struct value value, int64_t if_absent)
{
    if (value.type == JINJA_ABSENT)
        return if_absent;
    if (!jinja_is_integer(value))
        jinja_fail(run, "'%s' object cannot be interpreted as an integer", jinja_type_name(value));
    return value.integer;
}

/* ---- iteration ---- */

bool jinja_generate(struct run *run, struct generator *generator, struct value *item)
{
    if (!generator->items) /* jinja2 does not look into a false value */
        generator->items = jinja_truth(generator->source) ? jinja_items(run, generator->source)
                                                          : jinja_list_make(run, 0);
    while (generator->position < generator->items->count) {
        *item = generator->items->items[generator->position++];
        jinja_charge(run, 1);
        if (!generator->step || generator->step(run, generator, item))
            return true;
    }
    return false;
}

struct list *jinja_items(struct run *run, struct value value)
{
    struct list *list;
    struct value item;

    if (jinja_is_sequence(value) || value.type == JINJA_VIEW)
        return value.list;
    if (value.type == JINJA_DICT)
        return jinja_dict_view(run, value.dict, "dict_keys").list;
    list = jinja_list_make(run, 0);
    if (value.type == JINJA_STRING) {
        jinja_charge(run, value.text->n_bytes);
        for (size_t at = 0; at < value.text->n_bytes;) {
            uint32_t character;
            const size_t next = jinja_next_char(value.text, at, &character);
            struct text *one = jinja_text_cut(run, value.text, at, next);

            one->is_markup = false;
            jinja_list_add(run, list, jinja_string(one));
            at = next;
        }
    } else if (value.type == JINJA_GENERATOR) {
        jinja_enter(run, JINJA_MAX_DEPTH);
        while (jinja_generate(run, value.generator, &item))
            jinja_list_add(run, list, item);
        jinja_leave(run);
    } else if (value.type != JINJA_UNDEFINED) {
        jinja_fail(run, "'%s' object is not iterable", jinja_type_name(value));
    }
    return list;
}
