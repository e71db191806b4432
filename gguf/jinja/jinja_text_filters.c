/* Filters of strings; they take any value and use its text. */
#include "gguf/jinja/jinja_run.h"

#include <string.h>

static struct value change_case(struct run *run, const struct value *a)
{
    return jinja_string(
        jinja_text_case(run, jinja_str(run, a[0]), (enum jinja_case)a[JINJA_VARIANT].integer));
}

static struct value trim(struct run *run, const struct value *a)
{
    return jinja_call_method(run, "strip", jinja_string(jinja_str(run, a[0])), a[1],
                             jinja_absent());
}

static struct value replace(struct run *run, const struct value *a)
{
    const struct value all[] = {
        jinja_string(jinja_str(run, a[0])), jinja_string(jinja_str(run, a[1])),
        jinja_string(jinja_str(run, a[2])), a[3].type == JINJA_NONE ? jinja_absent() : a[3]};

    return jinja_find_builtin(jinja_text_methods, jinja_string_of(run, "replace").text)
        ->call(run, all);
}

/* The first letter of each word in upper case; words begin after white space and one of -({[<. */
static struct value title(struct run *run, const struct value *a)
{
    const struct text *text = jinja_str(run, a[0]);
    struct builder *builder = jinja_builder(run);
    bool is_start = true;
    size_t start = 0, next;

    for (size_t at = 0; at < text->n_bytes; at = next) {
        uint32_t character;
        bool is_break;

        next = jinja_next_char(text, at, &character);
        is_break =
            jinja_is_space(character) || (character < 128 && strchr("-({[<", (int)character));
        if (is_start || is_break) {
            jinja_add_text(run, builder,
                           jinja_text_case(run, jinja_text_cut(run, text, start, at), JINJA_LOWER));
            jinja_add_text(run, builder,
                           jinja_text_case(run, jinja_text_cut(run, text, at, next), JINJA_UPPER));
            start = next;
        }
        is_start = is_break;
    }
    jinja_add_text(
        run, builder,
        jinja_text_case(run, jinja_text_cut(run, text, start, text->n_bytes), JINJA_LOWER));
    return jinja_string(jinja_built(run, builder));
}

static struct value string(struct run *run, const struct value *a)
{
    return jinja_string(jinja_str(run, a[0]));
}

static struct value safe(struct run *run, const struct value *a)
{
    struct text *text = jinja_str(run, a[0]);

    text = jinja_text_cut(run, text, 0, text->n_bytes);
    text->is_markup = true;
    return jinja_string(text);
}

static struct value escape(struct run *run, const struct value *a)
{
    static const char special[] = "&<>'\"";
    static const char *const entities[] = {"&amp;", "&lt;", "&gt;", "&#39;", "&#34;"};
    const struct text *text = jinja_str(run, a[0]);
    struct builder *builder = jinja_builder(run);
    struct value result;

    if (text->is_markup)
        return a[0];
    for (size_t i = 0; i < text->n_bytes; i++) {
        const char *found = text->bytes[i] ? strchr(special, text->bytes[i]) : NULL;
        const unsigned char mark[] = {1, 1, 1, 1, 1};

        jinja_add(run, builder, found ? entities[found - special] : text->bytes + i,
                  found ? strlen(entities[found - special]) : 1,
                  text->marks && text->marks[i] ? mark : NULL);
    }
    result = jinja_string(jinja_built(run, builder));
    result.text->is_markup = true;
    return result;
}

static struct value indent(struct run *run, const struct value *a)
{
    const struct text space = {.bytes = " ", .n_bytes = 1};
    const bool is_blank = jinja_truth(a[3]);
    const struct value newline = jinja_string_of(run, "\n");
    const struct value text =
        jinja_string(jinja_text_join(run, jinja_need_text(run, a[0]), newline.text));
    const struct list *lines =
        jinja_call_method(run, "splitlines", text, jinja_absent(), jinja_absent()).list;
    struct builder *builder = jinja_builder(run), *spaces = jinja_builder(run);
    const struct text *indent_text;

    if (a[1].type != JINJA_STRING)
        jinja_add_times(run, spaces, &space, jinja_need_int(run, a[1], 4));
    indent_text = a[1].type == JINJA_STRING ? a[1].text : jinja_built(run, spaces);
    for (size_t i = 0; i < lines->count; i++) {
        if (i > 0)
            jinja_add_text(run, builder, newline.text);
        if (i == 0 ? jinja_truth(a[2]) : is_blank || lines->items[i].text->n_bytes)
            jinja_add_text(run, builder, indent_text);
        jinja_add_text(run, builder, lines->items[i].text);
    }
    return jinja_string(jinja_built(run, builder));
}

static struct value format(struct run *run, const struct value *a)
{
    return jinja_string(jinja_percent_format(
        run, jinja_str(run, a[0]), (struct value){.type = JINJA_TUPLE, .list = a[1].list}));
}

const struct builtin jinja_text_filters[] = {{"upper", "", change_case, JINJA_UPPER},
                                             {"lower", "", change_case, JINJA_LOWER},
                                             {"capitalize", "", change_case, JINJA_CAPITALIZED},
                                             {"title", "", title, 0},
                                             {"trim", "| chars", trim, 0},
                                             {"replace", "old new | count", replace, 0},
                                             {"string", "", string, 0},
                                             {"safe", "", safe, 0},
                                             {"escape", "", escape, 0},
                                             {"e", "", escape, 0},
                                             {"indent", "| width first blank", indent, 0},
                                             {"format", "*", format, 0},
                                             {NULL, NULL, NULL, 0}};
