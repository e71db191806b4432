/* The parser of expressions, for the parser of statements; internal to gguf/jinja/. */
#ifndef GGUFS_JINJA_PARSER_H
#define GGUFS_JINJA_PARSER_H

#include "gguf/jinja/jinja_run.h"

struct parser {
    struct run *run;
    struct lexer lexer;
    struct token token, ahead;
    bool has_ahead;
    unsigned n_loops; /* around the current place */
    bool uses_caller; /* in the macro around the current place */
};

void jinja_next(struct parser *p);
bool jinja_is_op(const struct parser *p, unsigned op);
bool jinja_is_name(const struct token *token, const char *name);
bool jinja_is_one_of(const struct token *token, const char *names);
_Noreturn void jinja_fail_token(struct parser *p, const char *expected);
bool jinja_skip_op(struct parser *p, unsigned op);
bool jinja_skip_name(struct parser *p, const char *name);
void jinja_expect_op(struct parser *p, char op);
void jinja_expect(struct parser *p, enum token_type type, const char *expected);
struct value jinja_expect_name(struct parser *p);
struct node *jinja_make(struct parser *p, enum node_kind kind, unsigned line, struct node *a,
                        struct node *b);
struct node *jinja_make_value(struct parser *p, enum node_kind kind, unsigned line,
                              struct value value);
struct node *jinja_parse_items(struct parser *p, char close,
                               struct node *(*parse)(struct parser *p));
struct node *jinja_parse_tuple(struct parser *p, struct node *(*parse)(struct parser *p),
                               const char *ends, bool is_in_parentheses);
struct node *jinja_parse_expression(struct parser *p);
struct node *jinja_parse_or(struct parser *p);
struct node *jinja_parse_primary(struct parser *p);
struct node *jinja_parse_filter(struct parser *p, struct node *subject);

#endif
