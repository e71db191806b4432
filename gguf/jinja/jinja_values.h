/*
 * Memory, texts and values of the template interpreter; internal to gguf/jinja/.
 *
 * A run owns an arena: nothing is freed before its end, so that values may share parts. All
 * functions that take a run fail by jinja_fail(), which returns to the setjmp() of the run's entry
 * function. No function here keeps state outside the run.
 */
#ifndef GGUFS_JINJA_VALUES_H
#define GGUFS_JINJA_VALUES_H

#include "gguf/jinja/jinja.h"

#include <setjmp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#define JINJA_COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* ---- runs ---- */

struct run {
    jmp_buf failed;
    struct jinja_error *error;
    struct chunk *chunks; /* the arena */
    size_t memory_bytes;
    uint64_t steps;
    unsigned depth;
    unsigned line; /* of the statement that runs, for messages */
    struct builder *out;
    struct dict *variables;
    const struct tm *now;
};

_Noreturn void jinja_fail(struct run *run, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* The end of a message about what no published template uses. */
#define JINJA_NOT_IMPLEMENTED " is not implemented; --chat-template NAME takes another template"

/* A text of at most 100 bytes for "%.*s" in a message. */
#define JINJA_SHORT(text) (int)((text)->n_bytes > 100 ? 100 : (text)->n_bytes), (text)->bytes

/* Allocate zeroed memory, which lives until the end of the run. */
void *jinja_alloc(struct run *run, size_t n_bytes);
void jinja_free_chunks(struct chunk *chunks);

/* Count n steps; fails beyond JINJA_MAX_STEPS. */
void jinja_charge(struct run *run, uint64_t n);

/* Count a level of nesting; fails beyond `limit`. jinja_leave() ends the level. */
void jinja_enter(struct run *run, unsigned limit);
void jinja_leave(struct run *run);

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
    JINJA_LIST,
    JINJA_TUPLE, /* this and the next two: as JINJA_LIST */
    JINJA_RANGE,
    JINJA_VIEW, /* dict.keys(), .values(), .items() */
    JINJA_DICT,
    JINJA_NAMESPACE, /* as JINJA_DICT */
    JINJA_GENERATOR,
    JINJA_LOOP,
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

struct text {
    const char *bytes;          /* valid UTF-8, not NUL-terminated */
    const unsigned char *marks; /* for each byte 1 if it is message text; NULL: none is */
    size_t n_bytes;
    size_t n_chars; /* valid if is_counted */
    uint64_t hash;  /* 0: not computed */
    bool is_counted;
    bool is_markup;           /* result of the filter `safe` or `escape` */
    struct builder *appended; /* the builder whose content this text is, or NULL */
};

struct list {
    struct value *items;
    size_t count, room;
    const char *kind; /* of a view: the name of its type in Python */
};

struct entry {
    struct value key, value;
    uint64_t hash;
};

/* In the order of insertion. */
struct dict {
    struct entry *entries;
    size_t count, room;
    uint32_t *slots; /* index + 1 of an entry, or 0; NULL for small ones */
    size_t n_slots;
};

/* Says in an error where the undefined value is from. */
struct undefined {
    const char *hint;   /* the whole message, or NULL */
    struct value owner; /* the value without this member; JINJA_ABSENT: a variable */
    struct value name;
};

struct value jinja_undefined(struct run *run, struct value owner, struct value name);
/* The format gives the message of the error that a use of the value causes. */
struct value jinja_undefined_because(struct run *run, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
_Noreturn void jinja_fail_undefined(struct run *run, struct value undefined);

static inline struct value jinja_absent(void)
{
    return (struct value){.type = JINJA_ABSENT};
}

static inline struct value jinja_none(void)
{
    return (struct value){.type = JINJA_NONE};
}

static inline struct value jinja_bool(bool truth)
{
    return (struct value){.type = JINJA_BOOL, .integer = truth};
}

static inline struct value jinja_int(int64_t integer)
{
    return (struct value){.type = JINJA_INT, .integer = integer};
}

static inline struct value jinja_float(double number)
{
    return (struct value){.type = JINJA_FLOAT, .number = number};
}

static inline struct value jinja_string(struct text *text)
{
    return (struct value){.type = JINJA_STRING, .text = text};
}

static inline struct value jinja_list(struct list *list)
{
    return (struct value){.type = JINJA_LIST, .list = list};
}

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

/* JINJA_LIST, JINJA_TUPLE, JINJA_RANGE: has an order and can be indexed. */
static inline bool jinja_is_sequence(struct value value)
{
    return value.type >= JINJA_LIST && value.type <= JINJA_RANGE;
}

/* Return the name of the type in Python. */
const char *jinja_type_name(struct value value);
bool jinja_truth(struct value value);
bool jinja_equal(struct run *run, struct value a, struct value b);
/* Return -1, 0 or 1, and 2 for NaN; fails if Python has no order for the two. `sign` is for the
 * message. */
int jinja_compare(struct run *run, const char *sign, struct value a, struct value b);

struct list *jinja_list_make(struct run *run, size_t room);
void jinja_list_add(struct run *run, struct list *list, struct value item);
struct dict *jinja_dict_make(struct run *run);
/* Return the value of a key for reading or writing, or NULL. */
struct value *jinja_dict_find(struct run *run, const struct dict *dict, struct value key);
struct value *jinja_dict_get(struct run *run, const struct dict *dict, const char *key);
void jinja_dict_set(struct run *run, struct dict *dict, struct value key, struct value value);
/* Return a view as a JINJA_VIEW; `kind` is "dict_keys", "dict_values" or "dict_items". */
struct value jinja_dict_view(struct run *run, const struct dict *dict, const char *kind);

/* ---- texts ---- */

struct builder {
    char *bytes;
    unsigned char *marks; /* as in a text */
    size_t n_bytes, room;
};

struct builder *jinja_builder(struct run *run);
/* Append bytes with their marks (NULL: none). */
void jinja_add(struct run *run, struct builder *builder, const char *bytes, size_t n_bytes,
               const unsigned char *marks);
void jinja_add_text(struct run *run, struct builder *builder, const struct text *text);
/* Append a C string, or one character, which is message text if `mark` is 1. */
void jinja_add_string(struct run *run, struct builder *builder, const char *string);
void jinja_add_char(struct run *run, struct builder *builder, uint32_t character,
                    unsigned char mark);
/* Append `text` n times. */
void jinja_add_times(struct run *run, struct builder *builder, const struct text *text, int64_t n);
struct text *jinja_built(struct run *run, struct builder *builder);

/* Return a text from the template. jinja_text_make() copies nothing. */
struct text *jinja_text_make(struct run *run, const char *bytes, size_t n_bytes);
struct value jinja_string_of(struct run *run, const char *string);
/* Return a copy, with U+FFFD for bytes that are not UTF-8. */
struct text *jinja_text_clean(struct run *run, const char *bytes, size_t n_bytes);
/* Return bytes start to end - 1 of a text, which it shares. */
struct text *jinja_text_cut(struct run *run, const struct text *text, size_t start, size_t end);
struct text *jinja_text_join(struct run *run, struct text *a, const struct text *b);
size_t jinja_text_chars(struct text *text);
/* Return the byte offset of a character, at most the length. */
size_t jinja_text_offset(struct text *text, size_t character);
/* Return the offset of `part` at or after byte `from`, or SIZE_MAX. */
size_t jinja_text_find(struct run *run, const struct text *text, const struct text *part,
                       size_t from);
bool jinja_text_is(const struct text *text, const char *string);
/* Test whether the text is one of names that are divided by spaces. */
bool jinja_text_among(const struct text *text, const char *names);
bool jinja_text_equal(const struct text *a, const struct text *b);
int jinja_text_compare(const struct text *a, const struct text *b);
uint64_t jinja_text_hash(struct text *text);
/* Read the character at `at` and return the offset of the next one. */
size_t jinja_next_char(const struct text *text, size_t at, uint32_t *character);
/* As str.isspace() in Python. */
bool jinja_is_space(uint32_t character);
/* Remove characters at the start and the end: those in `set`, or white space if it is NULL. */
struct text *jinja_text_strip(struct run *run, const struct text *text, const struct text *set,
                              bool left, bool right);

enum jinja_case { JINJA_UPPER, JINJA_LOWER, JINJA_TITLE, JINJA_CAPITALIZED };

struct text *jinja_text_case(struct run *run, const struct text *text, enum jinja_case to);

/* ---- values as text ---- */

struct jinja_json_style {
    bool is_ascii, has_sorted_keys;
    const struct text *indent; /* of a level; NULL: all on one line */
    const struct text *item_separator, *key_separator;
};

/* str() and repr() of Python. jinja_str() returns the text of a string itself. */
struct text *jinja_str(struct run *run, struct value value);
struct text *jinja_repr(struct run *run, struct value value);
/* Write into text[32] as repr() of a float does. */
void jinja_float_text(double number, char text[32]);
struct text *jinja_to_json(struct run *run, struct value value,
                           const struct jinja_json_style *style);
/* Read a JSON text; `what` is its name in messages. */
struct value jinja_read_json(struct run *run, const char *what, const char *bytes, size_t n_bytes);

#endif
