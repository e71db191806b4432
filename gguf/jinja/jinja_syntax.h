/* Syntax of templates: tokens, and the tree that the parser makes; internal to gguf/jinja/. */
#pragma once

#include "gguf/jinja/jinja_run.h"

enum node_kind {
    /* expressions */
    NODE_CONSTANT, /* value */
    NODE_NAME,     /* value: name */
    NODE_TUPLE,    /* a: items */
    NODE_LIST,     /* a: items */
    NODE_DICT,     /* a: pairs (a: key, b: value) */
    NODE_PAIR,
    NODE_BINARY,    /* op, a, b */
    NODE_COMPARE,   /* a; b: operands (op, a) */
    NODE_AND,       /* a, b */
    NODE_OR,        /* a, b */
    NODE_NOT,       /* a */
    NODE_SIGN,      /* op, a */
    NODE_CONDITION, /* a if b else c */
    NODE_ATTRIBUTE, /* a, value: name */
    NODE_ITEM,      /* a, b: index or slice */
    NODE_SLICE,     /* a, b, c; each may be NULL */
    NODE_CALL,      /* a, b: arguments, c: a NODE_MACRO `caller` or NULL */
    NODE_FILTER,    /* a, value: name, b: arguments, op 1: of a block */
    NODE_TEST,      /* a, value: name, b: arguments */
    NODE_ARGUMENT, /* a; op 1: value: name, 2: *, 3: **. Or a parameter (value: name, a: default) */
    /* statements */
    NODE_PRINT,      /* a */
    NODE_SET,        /* a: target, b */
    NODE_IF,         /* a: test, b: body, c: else, which is a NODE_IF for elif */
    NODE_FOR,        /* a: target, b: iterable, c: body, d: else, e: test */
    NODE_MACRO,      /* value: name, a: parameters, c: body, op 1: it uses caller */
    NODE_CAPTURE,    /* the text of c, as an expression */
    NODE_GENERATION, /* c: body */
    NODE_BREAK,
    NODE_CONTINUE,
};

struct node {
    enum node_kind kind;
    unsigned op;
    unsigned line;
    struct value value;
    const struct builtin *builtin; /* of a filter or test; NULL: unknown */
    union {
        struct {
            struct node *a, *b, *c, *d, *e;
        };
        struct node *parts[5];
    };
    struct node *next; /* in a list */
};

struct jinja_template {
    struct chunk *chunks;
    struct node *body;
    bool has_content; /* the word "content" stands in the template */
};

struct node *jinja_parse(struct run *r, const char *source, size_t n_bytes);
/* Run statements or evaluate an expression. A statement returns JINJA_ABSENT. */
struct value jinja_evaluate(struct run *r, const struct node *node);
void jinja_run_body(struct run *r, const struct node *body);

enum token_type {
    TOKEN_END,
    TOKEN_DATA,
    TOKEN_PRINT_BEGIN,
    TOKEN_PRINT_END,
    TOKEN_BLOCK_BEGIN,
    TOKEN_BLOCK_END,
    TOKEN_STRING,
    TOKEN_NUMBER,
    TOKEN_NAME,
    TOKEN_OPERATOR,
};

struct token {
    enum token_type type;
    unsigned line;
    const char *bytes; /* of names and operators */
    size_t n;
    struct value value; /* of data, strings and numbers */
};

struct lexer {
    const char *at, *end; /* a NUL follows */
    unsigned line;
    bool is_line_start;
    enum { LEXER_TEXT, LEXER_TAG, LEXER_PRINT, LEXER_BLOCK } state;
    unsigned n_open;
    char closers[JINJA_MAX_PARSE_DEPTH]; /* of open brackets */
};

/* Copy the source with normal line ends, without the last one. Fails if it is not UTF-8. */
struct lexer jinja_lexer(struct run *r, const char *source, size_t n_bytes);
struct token jinja_lex(struct run *r, struct lexer *lexer);

/* ---- for the parser ---- */

struct parser {
    struct run *r;
    struct lexer lexer;
    struct token token;
    unsigned n_loops; /* around the current place */
    bool uses_caller; /* in the macro around the current place */
};

typedef struct node *parse_function(struct parser *p);

/* Return true if the token is a name or operator of a list like "else endif". */
bool jinja_token_is(const struct token *token, const char *words);
#define jinja_at(p, words) jinja_token_is(&(p)->token, words)
void jinja_next(struct parser *p);
/* Move on if the token is one of the words. */
bool jinja_skip(struct parser *p, const char *words);
_Noreturn void jinja_fail_token(struct parser *p, const char *expected);
void jinja_expect(struct parser *p, const char *op);
void jinja_expect_type(struct parser *p, enum token_type type, const char *expected);

struct node *jinja_make(struct parser *p, enum node_kind kind, unsigned line, struct node *a,
                        struct node *b);
struct node *jinja_make_value(struct parser *p, enum node_kind kind, unsigned line,
                              struct value value);
/* Make a node with the name at the current place. */
struct node *jinja_make_named(struct parser *p, enum node_kind kind, struct node *a);
/* Parse items of a list, dict, call or subscript up to the closing bracket. */
struct node *jinja_parse_items(struct parser *p, const char *close, parse_function *parse);
/* `ends` are names that may follow a trailing comma; ")" allows an empty tuple, too. */
struct node *jinja_parse_tuple(struct parser *p, parse_function *parse, const char *ends);
struct node *jinja_parse_expression(struct parser *p);
struct node *jinja_parse_or(struct parser *p);
struct node *jinja_parse_primary(struct parser *p);
struct node *jinja_parse_filter(struct parser *p, struct node *subject);
