/*
 * Memory, texts and values of the template interpreter, and its functions; internal to gguf/jinja/.
 *
 * A run `r` owns an arena: nothing is freed before its end, so that values may share parts. All
 * functions that take a run fail by jinja_fail(), which returns to the setjmp() of the run's entry
 * function. No function here keeps state outside the run.
 */
#pragma once

#include "gguf/jinja/jinja.h"

#include <setjmp.h>
#include <stdint.h>

#define JINJA_COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* The end of a message about what no published template uses. */
#define JINJA_NOT_IMPLEMENTED " is not implemented; --chat-template NAME takes another template"

/* A text of at most 100 bytes for "%.*s" in a message. */
#define JINJA_SHORT(text) (int)((text)->n > 100 ? 100 : (text)->n), (text)->bytes

/* ---- values ---- */

enum jinja_type {
    JINJA_ABSENT, /* an argument that was not given */
    JINJA_UNDEFINED,
    JINJA_NONE,
    JINJA_BOOL, /* `integer` is 0 or 1 */
    JINJA_INT,
    JINJA_FLOAT,
    JINJA_BIG, /* an integer beyond 64 bits, from JSON: `text`, which can be printed only */
    JINJA_STRING,
    JINJA_LIST, /* up to JINJA_ITEMS: `list` */
    JINJA_TUPLE,
    JINJA_RANGE,
    JINJA_KEYS, /* dict.keys() and the next */
    JINJA_VALUES,
    JINJA_ITEMS,
    JINJA_DICT,
    JINJA_GENERATOR,
    JINJA_LOOP,
    JINJA_NAMESPACE, /* as JINJA_DICT */
    JINJA_MACRO,
    JINJA_FUNCTION, /* a row of a table, with the value that it is a method of */
};

struct value {
    enum jinja_type type;
    union {
        int64_t integer;
        double number;
        struct text *text;
        struct list *list;
        struct dict *dict;
        struct undefined *undefined;
        struct generator *generator;
        struct loop *loop;
        struct macro *macro;
        struct function *function;
    };
};

/* UTF-8. Text can be appended without a change of other texts that share the bytes. */
struct text {
    char *bytes;
    char *marks; /* for each byte 1 if it is message text */
    size_t n;
    size_t n_chars;        /* 0: not counted */
    struct buffer *buffer; /* NULL: to append copies the text */
    bool is_markup;        /* result of the filter `safe` or `escape` */
};

struct list {
    struct value *items;
    size_t count, room;
};

/* In the order of insertion. */
struct dict {
    struct entry {
        struct value key, value;
    } * entries;
    size_t count, room;
};

/* Says in an error where the undefined value is from. */
struct undefined {
    const char *hint;   /* the whole message, or NULL */
    struct value owner; /* the value without this member; JINJA_ABSENT: a variable */
    struct value name;
};

/* Arguments of a call. */
struct call {
    struct list items;
    struct dict named;
};

/* A lazy result of map, select and the like, which can be consumed once. */
struct generator {
    struct value source;
    struct list *items; /* of the source, from the first step */
    size_t position;
    const struct builtin *builtin; /* a filter or test, or NULL */
    struct call call;              /* its arguments */
    struct value attribute;        /* JINJA_ABSENT: the item itself */
    struct value if_missing;       /* instead of a missing attribute */
    enum { JINJA_ALL, JINJA_MAP, JINJA_SELECT, JINJA_REJECT } step;
};

struct loop {
    const struct list *items;
    size_t index; /* of the current item, from 1, among those that the test lets pass */
    size_t at;    /* of the next one in `items` */
    struct value current, previous, next;
    bool has_peeked, has_next;
    const struct node *node;
    struct scope *scope; /* around the loop */
};

struct scope {
    struct scope *parent;
    struct dict variables;
};

struct macro {
    const struct node *node;
    struct scope *scope; /* where it was defined */
};

struct function {
    const struct builtin *builtin;
    struct value owner; /* JINJA_ABSENT: a global function */
};

/* ---- runs ---- */

struct run {
    jmp_buf failed;
    struct jinja_error *error;
    struct chunk *chunks; /* the arena */
    size_t memory_bytes;
    uint64_t steps;
    unsigned depth;
    unsigned line; /* of the statement that runs, for messages */
    struct dict variables;
    const struct tm *now;
    struct scope *scope;
    struct text *out;
    enum { JINJA_ON, JINJA_BREAK, JINJA_NEXT_ROUND } jump; /* through the bodies of a loop */
};

_Noreturn void jinja_fail(struct run *r, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Return a message of at most 299 bytes. */
const char *jinja_format(struct run *r, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Allocate zeroed memory, which lives until the end of the run. */
void *jinja_alloc(struct run *r, size_t n_bytes);
void jinja_free_chunks(struct chunk *chunks);
/* Count n steps; fails beyond JINJA_MAX_STEPS. */
void jinja_charge(struct run *r, uint64_t n);
/* Count a level of nesting, which `r->depth--` ends; fails beyond `limit`. */
void jinja_enter(struct run *r, unsigned limit);

/* ---- functions of values ---- */

#define jinja_bool(truth)   ((struct value){.type = JINJA_BOOL, .integer = (truth)})
#define jinja_int(i)        ((struct value){.type = JINJA_INT, .integer = (i)})
#define jinja_float(d)      ((struct value){.type = JINJA_FLOAT, .number = (d)})
#define jinja_string(text_) ((struct value){.type = JINJA_STRING, .text = (text_)})
#define jinja_list(list_)   ((struct value){.type = JINJA_LIST, .list = (list_)})
#define jinja_dict(dict_)   ((struct value){.type = JINJA_DICT, .dict = (dict_)})

static const struct value jinja_absent = {.type = JINJA_ABSENT}, jinja_none = {.type = JINJA_NONE};

static inline bool jinja_is_integer(struct value value)
{
    return value.type == JINJA_INT || value.type == JINJA_BOOL;
}

static inline bool jinja_is_number(struct value value)
{
    return jinja_is_integer(value) || value.type == JINJA_FLOAT;
}

static inline double jinja_as_double(struct value value)
{
    return value.type == JINJA_FLOAT ? value.number : (double)value.integer;
}

/* Return the name of the type in Python. */
const char *jinja_type_name(struct value value);
struct value jinja_undefined(struct run *r, struct value owner, struct value name);
/* Return an undefined value whose use fails with this message. */
struct value jinja_missing(struct run *r, const char *message);
/* Fail if the value is undefined. */
void jinja_need_defined(struct run *r, struct value value);
/* Return the text of a string, or the integer (`if_absent` for JINJA_ABSENT); fails for others. */
struct text *jinja_need_text(struct run *r, struct value value);
int64_t jinja_need_int(struct run *r, struct value value, int64_t if_absent);
bool jinja_truth(struct value value);
bool jinja_equal(struct run *r, struct value a, struct value b);
/* Return -1, 0 or 1, and 2 for NaN; fails if Python has no order for the two. `sign` is for the
 * message. */
int jinja_compare(struct run *r, const char *sign, struct value a, struct value b);

struct list *jinja_new_list(struct run *r, size_t room);
void jinja_push(struct run *r, struct list *list, struct value item);
void jinja_push_all(struct run *r, struct list *list, const struct list *items);
struct dict *jinja_new_dict(struct run *r);
/* Return the value of a key for reading or writing, or NULL. */
struct value *jinja_find(struct run *r, const struct dict *dict, struct value key);
struct value *jinja_get(struct run *r, const struct dict *dict, const char *key);
void jinja_set(struct run *r, struct dict *dict, struct value key, struct value value);
void jinja_set_all(struct run *r, struct dict *dict, const struct dict *entries);
/* Return JINJA_KEYS, JINJA_VALUES or JINJA_ITEMS of a dict. */
struct value jinja_view(struct run *r, const struct dict *dict, enum jinja_type type);
/* Return the items of any iterable; fails for other values. A list is returned itself. */
struct list *jinja_items(struct run *r, struct value value);
/* Take the next item; returns false at the end. */
bool jinja_generate(struct run *r, struct generator *generator, struct value *item);

/* ---- texts ---- */

/* Return a new text, which is from the template. */
struct text *jinja_text(struct run *r, const char *bytes, size_t n);
struct value jinja_string_of(struct run *r, const char *string);
/* Append bytes from the template, one character with a mark, or texts with theirs. */
void jinja_add(struct run *r, struct text *to, const char *bytes, size_t n);
void jinja_add_string(struct run *r, struct text *to, const char *string);
void jinja_add_char(struct run *r, struct text *to, uint32_t character, char mark);
void jinja_add_text(struct run *r, struct text *to, const struct text *text);
void jinja_add_part(struct run *r, struct text *to, const struct text *text, size_t start,
                    size_t end);
void jinja_add_times(struct run *r, struct text *to, const struct text *text, int64_t n);
/* Append U+FFFD for bytes that are not UTF-8. */
void jinja_add_clean(struct run *r, struct text *to, const char *bytes, size_t n);
/* Return bytes start to end - 1 of a text, which it shares. */
struct text *jinja_cut(struct run *r, const struct text *text, size_t start, size_t end);
size_t jinja_chars(struct run *r, struct text *text);
/* Return the byte offset of a character, at most the length. */
size_t jinja_offset(struct run *r, struct text *text, size_t character);
/* Return the offset of `part` at or after byte `from`, or SIZE_MAX. */
size_t jinja_search(struct run *r, const struct text *text, const struct text *part, size_t from);
/* Test whether the bytes are one of names that are divided by spaces. */
bool jinja_among(const char *bytes, size_t n, const char *names);
bool jinja_is(const struct text *text, const char *names);
/* Read the character at `at` and return the offset of the next one. */
size_t jinja_next_char(const struct text *text, size_t at, uint32_t *character);
/* As str.isspace() in Python. */
bool jinja_is_space(uint32_t character);

enum { JINJA_LEFT = 1, JINJA_RIGHT = 2, JINJA_BOTH = 3 };
/* Remove characters at some sides: those in `set`, or white space if it is NULL. */
struct text *jinja_strip(struct run *r, const struct text *text, const struct text *set, int sides);

/* JINJA_WORDS: the first letter of words that white space or one of -({[< divides in upper case */
enum jinja_case { JINJA_UPPER, JINJA_LOWER, JINJA_TITLE, JINJA_CAPITALIZED, JINJA_WORDS };
struct text *jinja_change_case(struct run *r, const struct text *text, enum jinja_case to);

/* ---- values as text ---- */

struct jinja_json_style {
    bool is_ascii, has_sorted_keys;
    const struct text *indent; /* of a level; NULL: all on one line */
    const struct text *item_separator, *key_separator;
};

/* Return str() of Python: the text of a string itself. */
struct text *jinja_str(struct run *r, struct value value);
/* Return JSON, or repr() of Python if `style` is NULL. */
struct text *jinja_to_json(struct run *r, struct value value, const struct jinja_json_style *style);
/* Read a JSON text; `what` is its name in messages. */
struct value jinja_read_json(struct run *r, const char *what, const char *bytes, size_t n_bytes);
/* Apply a printf format or the method format() of Python; fails for other than plain fields. */
struct text *jinja_percent_format(struct run *r, const struct text *format, struct value arguments);
struct value jinja_method_format(struct run *r, const struct value *a);

/* ---- functions of templates ---- */

/*
 * A filter, test, method or global function. `parameters` are names divided by spaces; the ones
 * after "|" are optional, "*" collects further arguments and "**" those with other names. A "$"
 * after a name asks for a string, "~" makes a string of any value. The function gets the value that
 * is filtered, tested or the owner of the method as a[0] (JINJA_ABSENT for a global function), then
 * the parameters, JINJA_ABSENT for those not given, `*` as a list, `**` as a dict. The row's
 * `variant` is a[JINJA_VARIANT].integer.
 */
enum { JINJA_MAX_PARAMETERS = 4, JINJA_VARIANT, JINJA_N_ARGUMENTS };
enum {
    JINJA_FILTER = 1,
    JINJA_TEST = 2,
    JINJA_GLOBAL = 4,
    JINJA_STR = 8, /* a filter of str(value) */
};
#define JINJA_METHOD(type) (16u << (type))

struct builtin {
    const char *names;      /* divided by spaces */
    unsigned kinds;         /* a method without `call` is forbidden */
    const char *parameters; /* NULL: not implemented */
    struct value (*call)(struct run *r, const struct value *a);
    int variant;
};

/* The tables end with a row without names. */
extern const struct builtin jinja_text_table[], jinja_list_table[], jinja_table[];

/* Return a row that has all of `kinds`, or NULL. */
const struct builtin *jinja_find_builtin(unsigned kinds, const struct text *name);
/* The same, but fails instead of NULL. */
const struct builtin *jinja_need_builtin(struct run *r, unsigned kind, const struct text *name);
/* Fail for a name that a namespace cannot have. */
void jinja_need_public(struct run *r, const struct text *name);
/* Return a value that can be called; `owner` is JINJA_ABSENT for a global function. */
struct value jinja_function(struct run *r, const struct builtin *builtin, struct value owner);
struct value jinja_call_builtin(struct run *r, unsigned kind, const struct builtin *builtin,
                                struct value subject, const struct call *call);

/* ---- operators and members ---- */

/* An operator of one or two characters; "in" and "no" for `in` and `not in`. */
#define JINJA_OP(a, b) ((unsigned)(a) | (unsigned)(b) << 8)

struct value jinja_binary(struct run *r, unsigned op, struct value a, struct value b);
bool jinja_compare_by(struct run *r, unsigned op, struct value a, struct value b);
/* Return owner[key] or owner.key; a missing member is undefined. */
struct value jinja_member(struct run *r, struct value owner, struct value key, bool is_item);
/* Return owner[start:stop:step]; JINJA_ABSENT and none are the defaults. */
struct value jinja_slice(struct run *r, struct value owner, const struct value bounds[3]);
struct value jinja_loop_attribute(struct run *r, struct loop *loop, const struct text *name);
/* Return the items sorted by an attribute (JINJA_ABSENT: by themselves). */
struct list *jinja_sorted(struct run *r, const struct list *items, struct value attribute,
                          bool is_case_sensitive, bool is_reverse);
/* Return the attribute of an item by a name with dots ("function.name", "0") or a number. */
struct value jinja_path(struct run *r, struct value item, struct value path,
                        struct value if_missing);
