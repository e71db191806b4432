/* Operators and members of values, as in Python. */
#include "gguf/jinja/jinja_syntax.h"

#include <math.h>
#include <string.h>

/* ---- arithmetic ---- */

/* The remainder has the sign of y. */
static double remainder_of(double x, double y)
{
    const double rest = fmod(x, y);

    return rest != 0 && (rest < 0) != (y < 0) ? rest + y : rest;
}

static struct value calculate(struct run *r, unsigned op, struct value a, struct value b)
{
    const double x = jinja_as_double(a), y = jinja_as_double(b);
    int64_t i = 0;
    bool is_large = false;

    if (y == 0 && (op == '/' || op == '%'))
        jinja_fail(r, "division by zero");
    if (!jinja_is_integer(a) || !jinja_is_integer(b) || op == '/')
        return jinja_float(op == '+'   ? x + y
                           : op == '-' ? x - y
                           : op == '*' ? x * y
                           : op == '/' ? x / y
                                       : remainder_of(x, y));
    if (op == '%' && b.integer != -1) { /* the division by -1 may not fit */
        i = a.integer % b.integer;
        i += i && (i < 0) != (b.integer < 0) ? b.integer : 0;
    } else if (op != '%') {
        is_large = op == '+'   ? __builtin_add_overflow(a.integer, b.integer, &i)
                   : op == '-' ? __builtin_sub_overflow(a.integer, b.integer, &i)
                               : __builtin_mul_overflow(a.integer, b.integer, &i);
    }
    if (is_large)
        jinja_fail(r, "the result of %c does not fit in 64 bits", (char)op);
    return jinja_int(i);
}

static bool is_repeatable(struct value value)
{
    return value.type >= JINJA_STRING && value.type <= JINJA_TUPLE;
}

static struct value repeat(struct run *r, struct value value, struct value times)
{
    struct value result = value;
    int64_t n = times.integer;

    if (!jinja_is_integer(times))
        jinja_fail(r, "can't multiply sequence by non-int of type '%s'", jinja_type_name(times));
    if (value.type == JINJA_STRING) {
        result.text = jinja_text(r, "", 0);
        jinja_add_times(r, result.text, value.text, n);
        return result;
    }
    n = n > 0 ? n : 0;
    if (n > 0 && value.list->count > JINJA_MAX_MEMORY_BYTES / (uint64_t)n)
        jinja_fail(r, "list too long: %zu items %lld times", value.list->count, (long long)n);
    result.list = jinja_new_list(r, value.list->count * (size_t)n);
    for (; n > 0 && value.list->count; n--)
        jinja_push_all(r, result.list, value.list);
    return result;
}

static struct value join_texts(struct run *r, struct text *a, const struct text *b)
{
    const struct value value = jinja_string(jinja_cut(r, a, 0, a->n));

    value.text->buffer = a->buffer; /* to append in place */
    jinja_add_text(r, value.text, b);
    return value;
}

static struct value add(struct run *r, struct value a, struct value b)
{
    if (a.type == JINJA_STRING && b.type == JINJA_STRING) {
        const bool is_markup = a.text->is_markup || b.text->is_markup;
        const struct builtin *escape =
            is_markup ? jinja_find_builtin(JINJA_FILTER, jinja_text(r, "e", 1)) : NULL;

        if (is_markup) {
            a = escape->call(r, &a);
            b = escape->call(r, &b);
        }
        a = join_texts(r, a.text, b.text);
        a.text->is_markup = is_markup;
        return a;
    }
    if (a.type == b.type && is_repeatable(a)) {
        const struct list *first = a.list;

        a.list = jinja_new_list(r, first->count + b.list->count);
        jinja_charge(r, a.list->room / 8);
        jinja_push_all(r, a.list, first);
        jinja_push_all(r, a.list, b.list);
        return a;
    }
    if (is_repeatable(a))
        jinja_fail(r, "can only concatenate %s (not \"%s\") to %s", jinja_type_name(a),
                   jinja_type_name(b), jinja_type_name(a));
    jinja_fail(r, "unsupported operand type(s) for +: '%s' and '%s'", jinja_type_name(a),
               jinja_type_name(b));
}

struct value jinja_binary(struct run *r, unsigned op, struct value a, struct value b)
{
    if (op == '~') {
        a = join_texts(r, jinja_str(r, a), jinja_str(r, b));
        a.text->is_markup = false;
        return a;
    }
    if (op == '%' && a.type == JINJA_STRING)
        return jinja_string(jinja_percent_format(r, a.text, b));
    jinja_need_defined(r, a);
    jinja_need_defined(r, b);
    if (a.type == JINJA_BIG || b.type == JINJA_BIG)
        jinja_fail(r, "an integer does not fit in 64 bits");
    if (jinja_is_number(a) && jinja_is_number(b))
        return calculate(r, op, a, b);
    if (op == '+')
        return add(r, a, b);
    if (op == '*' && (is_repeatable(a) || is_repeatable(b)))
        return is_repeatable(a) ? repeat(r, a, b) : repeat(r, b, a);
    jinja_fail(r, "unsupported operand type(s) for %c: '%s' and '%s'", (char)op, jinja_type_name(a),
               jinja_type_name(b));
}

/* ---- comparison ---- */

static bool contains(struct run *r, struct value container, struct value item)
{
    const struct list *items;

    if (container.type == JINJA_STRING) {
        if (item.type != JINJA_STRING)
            jinja_fail(r, "'in <string>' requires string as left operand, not %s",
                       jinja_type_name(item));
        return jinja_search(r, container.text, item.text, 0) != SIZE_MAX;
    }
    if (container.type == JINJA_DICT)
        return jinja_find(r, container.dict, item) != NULL;
    if (container.type < JINJA_LIST && container.type != JINJA_UNDEFINED)
        jinja_fail(r, "argument of type '%s' is not iterable", jinja_type_name(container));
    items = jinja_items(r, container);
    for (size_t i = 0; i < items->count; i++)
        if (jinja_equal(r, items->items[i], item))
            return true;
    return false;
}

bool jinja_compare_by(struct run *r, unsigned op, struct value a, struct value b)
{
    const char sign[3] = {(char)(op & 0xff), (char)(op >> 8)};
    int order;

    if (op == JINJA_OP('i', 'n') || op == JINJA_OP('n', 'o'))
        return contains(r, b, a) == (sign[0] == 'i');
    if (op == JINJA_OP('=', '=') || op == JINJA_OP('!', '='))
        return jinja_equal(r, a, b) == (sign[0] == '=');
    order = jinja_compare(r, sign, a, b);
    return order != 2 && (order < 0 ? sign[0] == '<' : order > 0 ? sign[0] == '>' : sign[1] == '=');
}

/* ---- members ---- */

/* Return an attribute in the sense of Python: a method, or a member of the interpreter's own
 * objects; otherwise JINJA_ABSENT. */
static struct value find_attribute(struct run *r, struct value owner, struct value key)
{
    const struct text *name = key.text;
    const struct builtin *builtin = jinja_find_builtin(JINJA_METHOD(owner.type), name);
    const struct value *found = NULL;

    if (builtin && !builtin->parameters)
        jinja_fail(r, "the method %s.%.*s" JINJA_NOT_IMPLEMENTED, jinja_type_name(owner),
                   JINJA_SHORT(name));
    if ((builtin && !builtin->call) || (name->n > 4 && memcmp(name->bytes, "__", 2) == 0 &&
                                        memcmp(name->bytes + name->n - 2, "__", 2) == 0)) {
        const char *hint = jinja_format(r, "access to attribute '%.*s' of '%s' object is unsafe.",
                                        JINJA_SHORT(name), jinja_type_name(owner));

        return jinja_missing(r, hint);
    }
    if (builtin)
        return jinja_function(r, builtin, owner);
    if (owner.type == JINJA_LOOP)
        return jinja_loop_attribute(r, owner.loop, name);
    if (owner.type == JINJA_MACRO && jinja_is(name, "name"))
        return owner.macro->node->value;
    if (owner.type == JINJA_MACRO)
        jinja_fail(r, "an attribute of a macro" JINJA_NOT_IMPLEMENTED);
    if (owner.type == JINJA_NAMESPACE)
        found = jinja_find(r, owner.dict, key);
    return found ? *found : jinja_absent;
}

static bool has_index(struct value value)
{
    return value.type >= JINJA_STRING && value.type <= JINJA_RANGE;
}

static int64_t length_of(struct run *r, struct value value)
{
    return (int64_t)(value.type == JINJA_STRING ? jinja_chars(r, value.text) : value.list->count);
}

/* Return characters of a text. */
static struct value cut_chars(struct run *r, struct text *text, int64_t first, int64_t last)
{
    jinja_charge(r, jinja_chars(r, text) == text->n ? 1 : text->n / 64);
    return jinja_string(jinja_cut(r, text, jinja_offset(r, text, (size_t)first),
                                  jinja_offset(r, text, (size_t)last)));
}

/* Return owner[key] in the sense of Python, or JINJA_ABSENT. */
static struct value find_element(struct run *r, struct value owner, struct value key)
{
    const struct value *found = NULL;
    int64_t n, i;

    if (owner.type == JINJA_DICT && key.type <= JINJA_STRING)
        found = jinja_find(r, owner.dict, key);
    if (found || !jinja_is_integer(key) || !has_index(owner))
        return found ? *found : jinja_absent;
    n = length_of(r, owner);
    i = key.integer < 0 ? key.integer + n : key.integer;
    if (i < 0 || i >= n)
        return jinja_absent;
    return owner.type == JINJA_STRING ? cut_chars(r, owner.text, i, i + 1) : owner.list->items[i];
}

struct value jinja_member(struct run *r, struct value owner, struct value key, bool is_item)
{
    struct value value;

    jinja_need_defined(r, owner);
    value = is_item ? find_element(r, owner, key) : find_attribute(r, owner, key);
    if (value.type == JINJA_ABSENT && !is_item)
        value = find_element(r, owner, key);
    else if (value.type == JINJA_ABSENT && key.type == JINJA_STRING)
        value = find_attribute(r, owner, key);
    return value.type == JINJA_ABSENT ? jinja_undefined(r, owner, key) : value;
}

/* Return a bound of a slice, moved into [low, high]. */
static int64_t bound(struct run *r, struct value value, int64_t n, int64_t low, int64_t high,
                     int64_t if_none)
{
    int64_t i;

    if (value.type == JINJA_ABSENT || value.type == JINJA_NONE)
        return if_none;
    if (!jinja_is_integer(value))
        jinja_fail(r, "slice indices must be integers or None or have an __index__ method");
    i = value.integer < 0 ? value.integer + n : value.integer;
    return i < low ? low : i > high ? high : i;
}

struct value jinja_slice(struct run *r, struct value owner, const struct value bounds[3])
{
    const bool is_text = owner.type == JINJA_STRING;
    const int64_t step = bound(r, bounds[2], 0, INT64_MIN, INT64_MAX, 1);
    struct value result = owner;
    const struct list *items;
    int64_t n, low, high, first, last;

    jinja_need_defined(r, owner);
    if (!has_index(owner))
        jinja_fail(r,
                   owner.type == JINJA_DICT ? "unhashable type: 'slice'"
                                            : "'%s' object is not subscriptable",
                   jinja_type_name(owner));
    if (step == 0)
        jinja_fail(r, "slice step cannot be zero");
    n = length_of(r, owner);
    low = step < 0 ? -1 : 0;
    high = step < 0 ? n - 1 : n;
    first = bound(r, bounds[0], n, low, high, step < 0 ? high : low);
    last = bound(r, bounds[1], n, low, high, step < 0 ? low : high);
    if (is_text && step == 1)
        return cut_chars(r, owner.text, first, last);
    items = jinja_items(r, owner);
    if (is_text)
        result.text = jinja_text(r, "", 0);
    else
        result.list = jinja_new_list(r, 0);
    for (int64_t i = first; step > 0 ? i < last : i > last;) {
        jinja_charge(r, 1);
        if (is_text)
            jinja_add_text(r, result.text, items->items[i].text);
        else
            jinja_push(r, result.list, items->items[i]);
        if (__builtin_add_overflow(i, step, &i))
            break;
    }
    return result;
}

struct value jinja_path(struct run *r, struct value item, struct value path,
                        struct value if_missing)
{
    const struct text *text = path.type == JINJA_STRING ? path.text : &(struct text){.n = 0};

    if (path.type == JINJA_ABSENT || path.type == JINJA_NONE)
        return item;
    for (size_t start = 0, end; start <= text->n; start = end + 1) {
        bool is_number = true;
        int64_t number = 0;

        for (end = start; end < text->n && text->bytes[end] != '.'; end++) {
            const char digit = text->bytes[end];

            is_number &= digit >= '0' && digit <= '9' && end < start + 9;
            number = is_number ? 10 * number + (digit - '0') : 0;
        }
        item =
            jinja_member(r, item,
                         path.type != JINJA_STRING  ? path
                         : is_number && end > start ? jinja_int(number)
                                                    : jinja_string(jinja_cut(r, text, start, end)),
                         true);
        if (item.type == JINJA_UNDEFINED && if_missing.type != JINJA_ABSENT)
            item = if_missing;
    }
    return item;
}
