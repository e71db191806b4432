/* Syntax of templates: tokens, and the tree that the parser makes of them; internal to gguf/jinja/.
 */
#ifndef GGUFS_JINJA_SYNTAX_H
#define GGUFS_JINJA_SYNTAX_H

#include "gguf/jinja/jinja_values.h"

/* ---- tokens ---- */

enum token_type {
    TOKEN_END,
    TOKEN_DATA,
    TOKEN_PRINT_BEGIN,
    TOKEN_PRINT_END,
    TOKEN_BLOCK_BEGIN,
    TOKEN_BLOCK_END,
    TOKEN_NAME,
    TOKEN_STRING,
    TOKEN_NUMBER,
    TOKEN_OPERATOR,
};

/* An operator of one or two characters. */
#define OPERATOR(a, b) ((unsigned)(a) | (unsigned)(b) << 8)

struct token {
    enum token_type type;
    unsigned op;
    unsigned line;
    struct value value; /* of data, names, strings and numbers */
};

struct lexer {
    const char *at, *end;
    unsigned line;
    unsigned n_open;
    char closers[JINJA_MAX_PARSE_DEPTH]; /* of open brackets */
    enum { LEXER_TEXT, LEXER_PRINT, LEXER_BLOCK } state;
    bool is_at_line_start;
    bool has_queued;
    struct token queued;
};

/* Copy the source with normal line ends, without the last one. Fails if it is not UTF-8. */
struct lexer jinja_lexer(struct run *run, const char *source, size_t n_bytes);
struct token jinja_lex(struct run *run, struct lexer *lexer);

/* ---- tree ---- */

enum node_kind {
    /* expressions */
    NODE_CONSTANT, /* value */
    NODE_NAME,     /* value: name */
    NODE_TUPLE,    /* a: items */
    NODE_LIST,     /* a: items */
    NODE_DICT,     /* a: pairs (a: key, b: value) */
    NODE_PAIR,
    NODE_BINARY,    /* op, a, b */
    NODE_CONCAT,    /* a: items */
    NODE_COMPARE,   /* a; b: operands (op, a) */
    NODE_AND,       /* a, b */
    NODE_OR,        /* a, b */
    NODE_NOT,       /* a */
    NODE_SIGN,      /* op, a */
    NODE_CONDITION, /* a if b else c */
    NODE_ATTRIBUTE, /* a, value: name */
    NODE_ITEM,      /* a, b: index or slice */
    NODE_SLICE,     /* a, b, c; each may be NULL */
    NODE_CALL,      /* a, b: arguments */
    NODE_FILTER,    /* a (NULL: the text of a block), value: name, b: arguments */
    NODE_TEST,      /* a, value: name, b: arguments */
    NODE_KEYWORD,   /* an argument: value: name, a */
    NODE_SPREAD,    /* an argument: op '*' or '**', a */
    /* statements */
    NODE_PRINT,      /* a */
    NODE_IF,         /* a: test, b: body, c: else, which is a NODE_IF with op 1 for elif */
    NODE_FOR,        /* a: target, b: iterable, c: body, d: else, e: test */
    NODE_SET,        /* a: target, b */
    NODE_SET_BLOCK,  /* a: target, b: filter or NULL, c: body */
    NODE_MACRO,      /* value: name, a: parameters (value: name, a: default), c: body, op 1: it uses
                        caller */
    NODE_CALL_BLOCK, /* a: the macro `caller`, b: call */
    NODE_FILTER_BLOCK, /* b: filter, c: body */
    NODE_GENERATION,   /* c: body */
    NODE_BREAK,
    NODE_CONTINUE,
};

struct node {
    enum node_kind kind;
    unsigned op;
    unsigned line;
    struct value value;
    const struct builtin *builtin; /* of a filter or test; NULL: unknown */
    struct node *a, *b, *c, *d, *e;
    struct node *next; /* in a list */
};

struct jinja_template {
    struct chunk *chunks;
    struct node *body;
    bool has_content; /* the word "content" stands in the template */
};

struct node *jinja_parse(struct run *run, const char *source, size_t n_bytes);

#endif
