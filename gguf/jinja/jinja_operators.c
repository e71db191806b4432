/* Operators and members of values, as in Python. */
#include "gguf/jinja/jinja_run.h"

#include <math.h>
#include <string.h>

/* ---- arithmetic ---- */

static _Noreturn void fail_types(struct run *run, unsigned op, struct value a, struct value b)
{
    const char text[3] = {(char)(op & 0xff), (char)(op >> 8)};

    jinja_fail(run, "unsupported operand type(s) for %s: '%s' and '%s'", text, jinja_type_name(a),
               jinja_type_name(b));
}

static struct value calculate_integers(struct run *run, unsigned op, int64_t a, int64_t b)
{
    int64_t result = 0;
    bool overflows = false;

    if (op == '+')
        overflows = __builtin_add_overflow(a, b, &result);
    else if (op == '-')
        overflows = __builtin_sub_overflow(a, b, &result);
    else if (op == '*')
        overflows = __builtin_mul_overflow(a, b, &result);
    else if (b != -1) /* the remainder has the sign of b */
        result = a % b + (a % b && (a % b < 0) != (b < 0) ? b : 0);
    if (overflows)
        jinja_fail(run, "the result of %c does not fit in 64 bits", (char)op);
    return jinja_int(result);
}

static struct value calculate(struct run *run, unsigned op, struct value a, struct value b)
{
    const double x = jinja_as_double(a), y = jinja_as_double(b);

    if (y == 0 && (op == '/' || op == '%'))
        jinja_fail(run, "division by zero");
    if (jinja_is_integer(a) && jinja_is_integer(b) && op != '/')
        return calculate_integers(run, op, a.integer, b.integer);
    switch (op) {
    case '+':
        return jinja_float(x + y);
    case '-':
        return jinja_float(x - y);
    case '*':
        return jinja_float(x * y);
    case '/':
        return jinja_float(x / y);
    default:
        return jinja_float(fmod(x, y) + (fmod(x, y) != 0 && (fmod(x, y) < 0) != (y < 0) ? y : 0));
    }
}

static struct value repeat(struct run *run, struct value value, int64_t n)
{
    struct list *list;

    if (value.type == JINJA_STRING) {
        struct builder *builder = jinja_builder(run);

        jinja_add_times(run, builder, value.text, n);
        return jinja_string(jinja_built(run, builder));
    }
    if (n > 0 && value.list->count > JINJA_MAX_MEMORY_BYTES / (uint64_t)n)
        jinja_fail(run, "list too long: %zu items %lld times", value.list->count, (long long)n);
    list = jinja_list_make(run, n > 0 ? value.list->count * (size_t)n : 0);
    for (size_t i = 0; i < list->room; i++)
        jinja_list_add(run, list, value.list->items[i % value.list->count]);
    return (struct value){.type = value.type, .list = list};
}

static struct value escape(struct run *run, struct value value)
{
    return jinja_call_builtin(run, "filter",
                              jinja_find_builtin(jinja_text_filters, jinja_text_make(run, "e", 1)),
                              value, &(struct call){jinja_list_make(run, 0), NULL});
}

static struct value add(struct run *run, struct value a, struct value b)
{
    if (a.type == JINJA_STRING && b.type == JINJA_STRING) {
        const bool is_markup = a.text->is_markup || b.text->is_markup;

        if (is_markup) {
            a = escape(run, a);
            b = escape(run, b);
        }
        a.text = jinja_text_join(run, a.text, b.text);
        a.text->is_markup = is_markup;
        return a;
    }
    if ((a.type == JINJA_LIST || a.type == JINJA_TUPLE) && a.type == b.type) {
        struct list *list = jinja_list_make(run, a.list->count + b.list->count);

        jinja_charge(run, list->room / 8);
        list->count = list->room;
        memcpy(list->items, a.list->items, a.list->count * sizeof *list->items);
        memcpy(list->items + a.list->count, b.list->items, b.list->count * sizeof *list->items);
        return (struct value){.type = a.type, .list = list};
    }
    if (a.type == JINJA_STRING || a.type == JINJA_LIST || a.type == JINJA_TUPLE)
        jinja_fail(run, "can only concatenate %s (not \"%s\") to %s", jinja_type_name(a),
                   jinja_type_name(b), jinja_type_name(a));
    fail_types(run, '+', a, b);
}

struct value jinja_binary(struct run *run, unsigned op, struct value a, struct value b)
{
    const bool a_repeats = a.type == JINJA_STRING || a.type == JINJA_LIST || a.type == JINJA_TUPLE;
    const bool b_repeats = b.type == JINJA_STRING || b.type == JINJA_LIST || b.type == JINJA_TUPLE;

    if (op == '%' && a.type == JINJA_STRING)
        return jinja_string(jinja_percent_format(run, a.text, b));
    if (a.type == JINJA_UNDEFINED || b.type == JINJA_UNDEFINED)
        jinja_fail_undefined(run, a.type == JINJA_UNDEFINED ? a : b);
    if (a.type == JINJA_BIG || b.type == JINJA_BIG)
        jinja_fail(run, "an integer does not fit in 64 bits");
    if (jinja_is_number(a) && jinja_is_number(b))
        return calculate(run, op, a, b);
    if (op == '+')
        return add(run, a, b);
    if (op == '*' && (a_repeats || b_repeats)) {
        const struct value n = a_repeats ? b : a;

        if (!jinja_is_integer(n))
            jinja_fail(run, "can't multiply sequence by non-int of type '%s'", jinja_type_name(n));
        return repeat(run, a_repeats ? a : b, n.integer);
    }
    fail_types(run, op, a, b);
}

/* ---- comparison ---- */

static bool contains(struct run *run, struct value container, struct value item)
{
    if (container.type == JINJA_STRING) {
        if (item.type != JINJA_STRING)
            jinja_fail(run, "'in <string>' requires string as left operand, not %s",
                       jinja_type_name(item));
        return jinja_text_find(run, container.text, item.text, 0) != SIZE_MAX;
    }
    if (container.type == JINJA_DICT)
        return jinja_dict_find(run, container.dict, item) != NULL;
    if (container.type < JINJA_LIST && container.type != JINJA_UNDEFINED)
        jinja_fail(run, "argument of type '%s' is not iterable", jinja_type_name(container));
    container.list = jinja_items(run, container);
    for (size_t i = 0; i < container.list->count; i++) {
        if (jinja_equal(run, container.list->items[i], item))
            return true;
    }
    return false;
}

bool jinja_compare_by(struct run *run, unsigned op, struct value a, struct value b)
{
    const char sign[3] = {(char)(op & 0xff), (char)(op >> 8)};
    int order;

    if (op == 'i' || op == 'n')
        return contains(run, b, a) == (op == 'i');
    if (op == OPERATOR('=', '=') || op == OPERATOR('!', '='))
        return jinja_equal(run, a, b) == (op == OPERATOR('=', '='));
    order = jinja_compare(run, sign, a, b);
    return order != 2 && (order < 0 ? sign[0] == '<' : order > 0 ? sign[0] == '>' : sign[1] == '=');
}

/* ---- members ---- */

static struct value method(struct run *run, const struct builtin *builtin, struct value owner)
{
    struct function *function = jinja_alloc(run, sizeof *function);

    *function = (struct function){builtin, owner};
    return (struct value){.type = JINJA_FUNCTION, .function = function};
}

/* Return an attribute in the sense of Python: a method, or a member of the interpreter's own
 * objects. */
static struct value find_attribute(struct run *run, struct value owner, struct text *name)
{
    static const struct builtin *const methods[JINJA_FUNCTION + 1] = {
        [JINJA_STRING] = jinja_text_methods,
        [JINJA_LIST] = jinja_list_methods,
        [JINJA_TUPLE] = jinja_list_methods,
        [JINJA_DICT] = jinja_dict_methods};
    static const char *const not_implemented[JINJA_FUNCTION + 1] = {
        [JINJA_STRING] =
            "casefold center count encode expandtabs format_map index isalnum isalpha isascii "
            "isdecimal isdigit isidentifier islower isnumeric isprintable isspace istitle isupper "
            "ljust maketrans partition removeprefix removesuffix rindex rjust rpartition swapcase "
            "translate zfill",
        [JINJA_LIST] = "copy count index",
        [JINJA_TUPLE] = "count index",
        [JINJA_DICT] = "copy fromkeys"};
    const struct builtin *builtin =
        methods[owner.type] ? jinja_find_builtin(methods[owner.type], name) : NULL;
    struct value value = {.type = JINJA_ABSENT}, *found;
    const bool is_hidden = name->n_bytes > 4 && memcmp(name->bytes, "__", 2) == 0 &&
                           memcmp(name->bytes + name->n_bytes - 2, "__", 2) == 0;

    if (is_hidden || (builtin && !builtin->call))
        return jinja_undefined_because(run, "access to attribute '%.*s' of '%s' object is unsafe.",
                                       JINJA_SHORT(name), jinja_type_name(owner));
    if (builtin)
        return method(run, builtin, owner);
    if (not_implemented[owner.type] && jinja_text_among(name, not_implemented[owner.type]))
        jinja_fail(run, "the method %s.%.*s" JINJA_NOT_IMPLEMENTED, jinja_type_name(owner),
                   JINJA_SHORT(name));
    if (owner.type == JINJA_LOOP)
        return jinja_loop_attribute(run, owner.loop, name);
    if (owner.type == JINJA_NAMESPACE &&
        (found = jinja_dict_find(run, owner.dict, jinja_string(name))))
        return *found;
    if (owner.type == JINJA_MACRO && jinja_text_is(name, "name"))
        return owner.macro->node->value;
    return value;
}

struct value jinja_attribute(struct run *run, struct value owner, struct text *name)
{
    struct value value, *found = NULL;

    if (owner.type == JINJA_UNDEFINED)
        jinja_fail_undefined(run, owner);
    value = find_attribute(run, owner, name);
    if (value.type == JINJA_ABSENT && owner.type == JINJA_DICT)
        found = jinja_dict_find(run, owner.dict, jinja_string(name));
    if (found)
        return *found;
    return value.type == JINJA_ABSENT ? jinja_undefined(run, owner, jinja_string(name)) : value;
}

struct value jinja_item(struct run *run, struct value owner, struct value key)
{
    struct value value, *found = NULL;

    if (owner.type == JINJA_UNDEFINED)
        jinja_fail_undefined(run, owner);
    if (owner.type == JINJA_DICT && key.type <= JINJA_STRING)
        found = jinja_dict_find(run, owner.dict, key);
    if (found)
        return *found;
    if (jinja_is_integer(key) && (jinja_is_sequence(owner) || owner.type == JINJA_STRING)) {
        const bool is_text = owner.type == JINJA_STRING;
        const int64_t n = (int64_t)(is_text ? jinja_text_chars(owner.text) : owner.list->count);
        const int64_t i = key.integer < 0 ? key.integer + n : key.integer;

        if (i >= 0 && i < n && !is_text)
            return owner.list->items[i];
        if (i >= 0 && i < n) {
            jinja_charge(run, (uint64_t)(owner.text->n_bytes == (size_t)n ? 0 : i / 64));
            return jinja_string(jinja_text_cut(run, owner.text,
                                               jinja_text_offset(owner.text, (size_t)i),
                                               jinja_text_offset(owner.text, (size_t)i + 1)));
        }
    }
    if (key.type == JINJA_STRING &&
        (value = find_attribute(run, owner, key.text)).type != JINJA_ABSENT)
        return value;
    return jinja_undefined(run, owner, key);
}

/* Return a bound of a slice, moved into [low, high]. */
static int64_t bound(struct run *run, struct value value, int64_t n, int64_t low, int64_t high,
                     int64_t if_none)
{
    int64_t i;

    if (value.type == JINJA_ABSENT || value.type == JINJA_NONE)
        return if_none;
    if (!jinja_is_integer(value))
        jinja_fail(run, "slice indices must be integers or None or have an __index__ method");
    i = value.integer < 0 ? value.integer + n : value.integer;
    return i < low ? low : i > high ? high : i;
}

struct value jinja_slice(struct run *run, struct value owner, struct value start, struct value stop,
                         struct value step)
{
    const bool is_text = owner.type == JINJA_STRING;
    const struct list *source;
    struct list *list = jinja_list_make(run, 0);
    int64_t n, first, last, by;

    if (owner.type == JINJA_UNDEFINED)
        jinja_fail_undefined(run, owner);
    if (!is_text && !jinja_is_sequence(owner))
        jinja_fail(run,
                   owner.type == JINJA_DICT ? "unhashable type: 'slice'"
                                            : "'%s' object is not subscriptable",
                   jinja_type_name(owner));
    n = (int64_t)(is_text ? jinja_text_chars(owner.text) : owner.list->count);
    by = bound(run, step, 0, INT64_MIN, INT64_MAX, 1);
    if (by == 0)
        jinja_fail(run, "slice step cannot be zero");
    first = bound(run, start, n, by < 0 ? -1 : 0, by < 0 ? n - 1 : n, by < 0 ? n - 1 : 0);
    last = bound(run, stop, n, by < 0 ? -1 : 0, by < 0 ? n - 1 : n, by < 0 ? -1 : n);
    if (is_text && by == 1) {
        jinja_charge(run, owner.text->n_bytes == (size_t)n ? 1 : owner.text->n_bytes / 64);
        return jinja_string(
            jinja_text_cut(run, owner.text, jinja_text_offset(owner.text, (size_t)first),
                           first < last ? jinja_text_offset(owner.text, (size_t)last) : 0));
    }
    source = jinja_items(run, owner);
    for (int64_t i = first; by > 0 ? i < last : i > last;) {
        jinja_list_add(run, list, source->items[i]);
        if (__builtin_add_overflow(i, by, &i))
            break;
    }
    if (is_text) {
        struct builder *builder = jinja_builder(run);

        for (size_t i = 0; i < list->count; i++)
            jinja_add_text(run, builder, list->items[i].text);
        return jinja_string(jinja_built(run, builder));
    }
    return (struct value){.type = owner.type, .list = list};
}
