/*
 * The parts of the evaluator: attributes, operators, calls and the tables of filters, tests,
 * methods and global functions; internal to gguf/jinja/.
 */
#ifndef GGUFS_JINJA_RUN_H
#define GGUFS_JINJA_RUN_H

#include "gguf/jinja/jinja_syntax.h"

/* ---- functions of tables ---- */

/*
 * A filter, test, method or global function. `parameters` are names divided by spaces; the ones
 * after "|" are optional, "*" collects further arguments and "**" those with other names. The
 * function gets the value that is filtered, tested or the owner of the method as a[0] (JINJA_ABSENT
 * for a global function), then the parameters, JINJA_ABSENT for those not given, `*` as a list,
 * `**` as a dict. The row's `variant` is a[JINJA_VARIANT].integer.
 */
enum { JINJA_MAX_PARAMETERS = 4, JINJA_VARIANT, JINJA_N_ARGUMENTS };

struct builtin {
    const char *name;
    const char *parameters;
    struct value (*call)(struct run *run, const struct value *a);
    int variant;
};

/* The tables end with a row without a name. */
extern const struct builtin jinja_text_filters[], jinja_list_filters[], jinja_other_filters[],
    jinja_tests[], jinja_text_methods[], jinja_list_methods[], jinja_dict_methods[],
    jinja_globals[];

const struct builtin *jinja_find_builtin(const struct builtin *table, const struct text *name);
const struct builtin *jinja_find_filter(const struct text *name);
_Noreturn void jinja_fail_unknown(struct run *run, const struct node *node);

/* Arguments of a call. */
struct call {
    struct list *positional;
    struct dict *named; /* NULL: none */
};

/* Call a row with arguments from a template; `what` ("filter") is for messages. */
struct value jinja_call_builtin(struct run *run, const char *what, const struct builtin *builtin,
                                struct value subject, const struct call *call);
/* Call the method of a string by its name, with two arguments at most. */
struct value jinja_call_method(struct run *run, const char *name, struct value owner,
                               struct value first, struct value second);
/* Call any value. */
struct value jinja_call(struct run *run, struct value callee, const struct call *call);

struct function {
    const struct builtin *builtin;
    struct value owner; /* JINJA_ABSENT: a global function */
};

/* Arguments of a function with the types that it requires. */
struct text *jinja_need_text(struct run *run, struct value value);
int64_t jinja_need_int(struct run *run, struct value value, int64_t if_absent);

/* ---- operators and members ---- */

struct value jinja_binary(struct run *run, unsigned op, struct value a, struct value b);
bool jinja_compare_by(struct run *run, unsigned op, struct value a, struct value b);
/* Return value.name and value[key]; a missing member is undefined. */
struct value jinja_attribute(struct run *run, struct value owner, struct text *name);
struct value jinja_item(struct run *run, struct value owner, struct value key);
/* Return owner[start:stop:step]; JINJA_ABSENT and none are the defaults. */
struct value jinja_slice(struct run *run, struct value owner, struct value start, struct value stop,
                         struct value step);

/* ---- iteration ---- */

/* A lazy result of map, select and the like. Can be consumed once. */
struct generator {
    struct value source;
    struct list *items; /* of the source, from the first step */
    size_t position;
    /* Returns false to leave the item out, or changes it. */
    bool (*step)(struct run *run, const struct generator *generator, struct value *item);
    const struct builtin *builtin; /* of a filter or test, or NULL */
    const char *what;
    struct call call;        /* its arguments */
    struct value attribute;  /* JINJA_ABSENT: the item itself */
    struct value if_missing; /* instead of a missing attribute */
    bool is_negated;
};

bool jinja_generate(struct run *run, struct generator *generator, struct value *item);
/* Return the items of any iterable; fails for other values. A list is returned itself. */
struct list *jinja_items(struct run *run, struct value value);

/* Return the items sorted by an attribute (JINJA_ABSENT: by themselves). */
struct list *jinja_sorted(struct run *run, const struct list *items, struct value attribute,
                          bool is_case_sensitive, bool is_reverse);

struct loop {
    struct list *items;
    size_t index; /* of the current item, among those that the test lets pass */
    size_t at;    /* of the next one in `items` */
    struct value current, previous, next;
    bool has_peeked, has_next;
    const struct node *node;
    struct scope *scope; /* around the loop */
};

struct value jinja_loop_attribute(struct run *run, struct loop *loop, const struct text *name);

/* ---- evaluation ---- */

struct scope {
    struct scope *parent;
    struct dict variables;
};

struct macro {
    const struct node *node;
    struct scope *scope; /* where it was defined */
};

struct value jinja_evaluate(struct run *run, struct scope *scope, const struct node *node);
struct call jinja_evaluate_arguments(struct run *run, struct scope *scope,
                                     const struct node *arguments);
struct value jinja_call_macro(struct run *run, const struct macro *macro, const struct call *call);
/* Move the loop to its next item; returns false at the end. */
bool jinja_loop_next(struct run *run, struct loop *loop);
void jinja_run_template(struct run *run, const struct jinja_template *parsed);

/* Apply a printf format or the method format() of Python; fails for other than plain fields. */
struct text *jinja_percent_format(struct run *run, const struct text *format,
                                  struct value arguments);
struct value jinja_method_format(struct run *run, const struct value *a);

#endif
