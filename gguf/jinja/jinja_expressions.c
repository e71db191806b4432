/* Parses expressions, with the grammar and the precedence of operators of jinja2, which differ from
 * Python. */
#include "gguf/jinja/jinja_syntax.h"

/* ---- tokens and nodes ---- */

bool jinja_token_is(const struct token *token, const char *words)
{
    return token->type >= TOKEN_NAME && jinja_among(token->bytes, token->n, words);
}

void jinja_next(struct parser *p)
{
    p->token = jinja_lex(p->r, &p->lexer);
}

bool jinja_skip(struct parser *p, const char *words)
{
    const bool is_there = jinja_at(p, words);

    if (is_there)
        jinja_next(p);
    return is_there;
}

void jinja_fail_token(struct parser *p, const char *expected)
{
    static const char *const names[] = {
        [TOKEN_END] = "end of template", [TOKEN_DATA] = "template data",
        [TOKEN_PRINT_BEGIN] = "{{",      [TOKEN_PRINT_END] = "end of print statement",
        [TOKEN_BLOCK_BEGIN] = "{%",      [TOKEN_BLOCK_END] = "end of statement block",
        [TOKEN_STRING] = "string",       [TOKEN_NUMBER] = "number",
    };
    const bool is_word = p->token.type >= TOKEN_NAME;

    p->r->line = p->token.line;
    jinja_fail(p->r, "expected %s, got '%.*s'", expected,
               is_word && p->token.n < 100 ? (int)p->token.n : 100,
               is_word ? p->token.bytes : names[p->token.type]);
}

void jinja_expect(struct parser *p, const char *op)
{
    if (!jinja_skip(p, op))
        jinja_fail_token(p, jinja_format(p->r, "'%s'", op));
}

void jinja_expect_type(struct parser *p, enum token_type type, const char *expected)
{
    if (p->token.type != type)
        jinja_fail_token(p, expected);
    jinja_next(p);
}

struct node *jinja_make(struct parser *p, enum node_kind kind, unsigned line, struct node *a,
                        struct node *b)
{
    struct node *node = jinja_alloc(p->r, sizeof *node);

    *node = (struct node){.kind = kind, .line = line, .a = a, .b = b};
    return node;
}

struct node *jinja_make_value(struct parser *p, enum node_kind kind, unsigned line,
                              struct value value)
{
    struct node *node = jinja_make(p, kind, line, NULL, NULL);

    node->value = value;
    if (value.type == JINJA_STRING) { /* complete here, as threads may share the template */
        jinja_chars(p->r, value.text);
        value.text->buffer = NULL;
    }
    return node;
}

struct node *jinja_make_named(struct parser *p, enum node_kind kind, struct node *a)
{
    const struct token token = p->token;
    struct node *node;

    jinja_expect_type(p, TOKEN_NAME, "a name");
    node =
        jinja_make_value(p, kind, token.line, jinja_string(jinja_text(p->r, token.bytes, token.n)));
    node->a = a;
    return node;
}

/* ---- expressions ---- */

struct node *jinja_parse_items(struct parser *p, const char *close, parse_function *parse)
{
    struct node *items = NULL, **end = &items;

    for (; !jinja_at(p, close); end = &(*end)->next) {
        if (items)
            jinja_expect(p, ",");
        if (jinja_at(p, close))
            break;
        *end = parse(p);
    }
    jinja_next(p);
    return items;
}

struct node *jinja_parse_tuple(struct parser *p, parse_function *parse, const char *ends)
{
    const unsigned line = p->token.line;
    struct node *items = NULL, **end = &items;
    bool is_tuple = ends[0] == ')';

    for (; p->token.type != TOKEN_PRINT_END && p->token.type != TOKEN_BLOCK_END &&
           !jinja_at(p, ")") && !jinja_at(p, ends);
         end = &(*end)->next) {
        *end = parse(p);
        is_tuple = jinja_skip(p, ",");
        if (!is_tuple)
            break;
    }
    if (!is_tuple && !items)
        jinja_fail_token(p, "an expression");
    return items && !is_tuple && !items->next ? items
                                              : jinja_make(p, NODE_TUPLE, line, items, NULL);
}

static struct node *parse_pair(struct parser *p)
{
    struct node *key = jinja_parse_expression(p);

    jinja_expect(p, ":");
    return jinja_make(p, NODE_PAIR, key->line, key, jinja_parse_expression(p));
}

struct node *jinja_parse_primary(struct parser *p)
{
    const struct token token = p->token;
    struct value value = token.value;
    struct node *node;

    if (token.type == TOKEN_NAME && !jinja_at(p, "true True false False none None")) {
        p->uses_caller |= jinja_at(p, "caller");
        if (jinja_at(p, "varargs kwargs"))
            jinja_fail(p->r, "'%.*s'" JINJA_NOT_IMPLEMENTED, (int)token.n, token.bytes);
        return jinja_make_named(p, NODE_NAME, NULL);
    }
    if (token.type < TOKEN_STRING || (token.type == TOKEN_OPERATOR && !jinja_at(p, "( [ {")))
        jinja_fail_token(p, "an expression");
    jinja_next(p);
    if (jinja_token_is(&token, "["))
        return jinja_make(p, NODE_LIST, token.line,
                          jinja_parse_items(p, "]", jinja_parse_expression), NULL);
    if (jinja_token_is(&token, "{"))
        return jinja_make(p, NODE_DICT, token.line, jinja_parse_items(p, "}", parse_pair), NULL);
    if (jinja_token_is(&token, "(")) {
        node = jinja_parse_tuple(p, jinja_parse_expression, ")");
        jinja_expect(p, ")");
        return node;
    }
    if (token.type == TOKEN_NAME)
        value = jinja_token_is(&token, "none None")
                    ? jinja_none
                    : jinja_bool(jinja_token_is(&token, "true True"));
    for (; token.type == TOKEN_STRING && p->token.type == TOKEN_STRING; jinja_next(p))
        jinja_add_text(p->r, value.text, p->token.value.text);
    return jinja_make_value(p, NODE_CONSTANT, token.line, value);
}

static struct node *parse_argument(struct parser *p)
{
    const struct token token = p->token;
    const bool uses_caller = p->uses_caller;
    struct node *node;

    if (jinja_skip(p, "* **")) {
        node = jinja_make(p, NODE_ARGUMENT, token.line, jinja_parse_expression(p), NULL);
        node->op = 1 + (unsigned)token.n;
        return node;
    }
    node = jinja_parse_expression(p);
    if (token.type == TOKEN_NAME && node->kind == NODE_NAME && jinja_skip(p, "=")) {
        p->uses_caller = uses_caller;
        node->kind = NODE_ARGUMENT;
        node->op = 1;
        node->a = jinja_parse_expression(p);
    }
    return node;
}

static struct node *parse_arguments(struct parser *p)
{
    const unsigned line = p->token.line;
    struct node *arguments;
    unsigned last = 0;

    jinja_expect(p, "(");
    arguments = jinja_parse_items(p, ")", parse_argument);
    for (const struct node *node = arguments; node; node = node->next) {
        const unsigned order = node->kind == NODE_ARGUMENT ? node->op : 0;

        p->r->line = line;
        if (order < last ? order != 1 || last == 3 : order == last && order > 1)
            jinja_fail(p->r, "invalid syntax for function call expression");
        last = order > last ? order : last;
    }
    return arguments;
}

static struct node *parse_subscript(struct parser *p)
{
    struct node *slice = jinja_make(p, NODE_SLICE, p->token.line, NULL, NULL);
    int n = 0;

    for (;; n++) {
        if (!jinja_at(p, ": ] ,"))
            slice->parts[n] = jinja_parse_expression(p);
        if (n == 2 || !jinja_skip(p, ":"))
            break;
    }
    return n ? slice : slice->a ? slice->a : jinja_parse_expression(p);
}

struct node *jinja_parse_filter(struct parser *p, struct node *subject)
{
    struct node *node = jinja_make_named(p, NODE_FILTER, subject);

    node->builtin = jinja_find_builtin(JINJA_FILTER, node->value.text);
    if (jinja_at(p, "("))
        node->b = parse_arguments(p);
    return node;
}

static struct node *parse_postfix(struct parser *p, struct node *node)
{
    for (;;) {
        const unsigned line = p->token.line;

        if (jinja_at(p, "(")) {
            node = jinja_make(p, NODE_CALL, line, node, parse_arguments(p));
        } else if (jinja_skip(p, "[")) {
            struct node *items = jinja_parse_items(p, "]", parse_subscript);

            if (!items || items->next)
                items = jinja_make(p, NODE_TUPLE, line, items, NULL);
            node = jinja_make(p, NODE_ITEM, line, node, items);
        } else if (!jinja_skip(p, ".")) {
            return node;
        } else if (p->token.type == TOKEN_NUMBER && p->token.value.type == JINJA_INT) {
            node = jinja_make(p, NODE_ITEM, line, node, jinja_parse_primary(p));
        } else {
            node = jinja_make_named(p, NODE_ATTRIBUTE, node);
        }
    }
}

static struct node *parse_test(struct parser *p, struct node *subject)
{
    const unsigned line = p->token.line;
    const bool is_negated = jinja_skip(p, "not");
    struct node *node = jinja_make_named(p, NODE_TEST, subject);

    node->builtin = jinja_find_builtin(JINJA_TEST, node->value.text);
    if (jinja_at(p, "is"))
        jinja_fail(p->r, "You cannot chain multiple tests with is");
    if (jinja_at(p, "("))
        node->b = parse_arguments(p);
    else if (p->token.type == TOKEN_OPERATOR
                 ? jinja_at(p, "[ {")
                 : p->token.type >= TOKEN_STRING && !jinja_at(p, "else or and"))
        node->b = parse_postfix(p, jinja_parse_primary(p));
    return is_negated ? jinja_make(p, NODE_NOT, line, node, NULL) : node;
}

static struct node *parse_unary(struct parser *p, bool with_filters)
{
    const struct token token = p->token;
    struct node *node;

    jinja_enter(p->r, JINJA_MAX_PARSE_DEPTH);
    if (jinja_skip(p, "- +")) {
        node = jinja_make(p, NODE_SIGN, token.line, parse_unary(p, false), NULL);
        node->op = (unsigned char)*token.bytes;
    } else {
        node = jinja_parse_primary(p);
    }
    node = parse_postfix(p, node);
    while (with_filters) {
        if (jinja_skip(p, "|"))
            node = jinja_parse_filter(p, node);
        else if (jinja_skip(p, "is"))
            node = parse_test(p, node);
        else if (jinja_at(p, "("))
            node = jinja_make(p, NODE_CALL, p->token.line, node, parse_arguments(p));
        else
            break;
    }
    p->r->depth--;
    return node;
}

/* Operators by their precedence; the ones of a level go from left to right. */
enum { LEVEL_OR, LEVEL_AND, LEVEL_NOT, LEVEL_COMPARE, LEVEL_SUM, LEVEL_CONCAT, LEVEL_PRODUCT };

static const struct level {
    const char *operators;
    enum node_kind kind;
} levels[] = {
    [LEVEL_OR] = {"or", NODE_OR},
    [LEVEL_AND] = {"and", NODE_AND},
    [LEVEL_NOT] = {"", NODE_NOT},
    [LEVEL_COMPARE] = {"< > == != <= >= in not", NODE_COMPARE},
    [LEVEL_SUM] = {"+ -", NODE_BINARY},
    [LEVEL_CONCAT] = {"~", NODE_BINARY},
    [LEVEL_PRODUCT] = {"* / %", NODE_BINARY},
};

/* Return the level of the operator at the current place, or -1. */
static int level_of_operator(const struct parser *p)
{
    int level = LEVEL_PRODUCT;

    if (jinja_at(p, "** //"))
        jinja_fail(p->r, "the operator %.2s" JINJA_NOT_IMPLEMENTED, p->token.bytes);
    while (level >= 0 && !jinja_at(p, levels[level].operators))
        level--;
    return level;
}

/* Parse operators of this level and of higher ones. */
static struct node *parse_level(struct parser *p, int lowest)
{
    const unsigned line = p->token.line;
    struct node *left, **end = NULL; /* of the operands of a comparison */
    int level;

    if (lowest <= LEVEL_NOT && jinja_skip(p, "not")) {
        jinja_enter(p->r, JINJA_MAX_PARSE_DEPTH);
        left = jinja_make(p, NODE_NOT, line, parse_level(p, LEVEL_NOT), NULL);
        p->r->depth--;
    } else {
        left = parse_unary(p, true);
    }
    while ((level = level_of_operator(p)) >= lowest) {
        const struct token token = p->token;
        const bool is_compared = level == LEVEL_COMPARE; /* one node for the whole chain */
        struct node *node, *right;

        jinja_next(p);
        if (jinja_token_is(&token, "not"))
            jinja_expect(p, "in");
        right = parse_level(p, level + 1);
        if (is_compared && !end)
            left = jinja_make(p, NODE_COMPARE, line, left, NULL);
        node = is_compared ? jinja_make(p, NODE_PAIR, token.line, right, NULL)
                           : jinja_make(p, levels[level].kind, line, left, right);
        node->op = JINJA_OP(token.bytes[0], token.n > 1 ? token.bytes[1] : 0);
        if (is_compared)
            *(end ? end : &left->b) = node;
        else
            left = node;
        end = is_compared ? &node->next : NULL;
    }
    return left;
}

struct node *jinja_parse_or(struct parser *p)
{
    return parse_level(p, LEVEL_OR);
}

struct node *jinja_parse_expression(struct parser *p)
{
    const unsigned line = p->token.line;
    struct node *node;

    jinja_enter(p->r, JINJA_MAX_PARSE_DEPTH);
    node = jinja_parse_or(p);
    while (jinja_skip(p, "if")) {
        node = jinja_make(p, NODE_CONDITION, line, node, jinja_parse_or(p));
        if (jinja_skip(p, "else"))
            node->c = jinja_parse_expression(p);
    }
    p->r->depth--;
    return node;
}
