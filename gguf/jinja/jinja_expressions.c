/* Parses expressions, with the grammar and the precedence of operators of jinja2, which differ from
 * Python. */
#include "gguf/jinja/jinja_syntax.h"

/* ---- nodes ---- */

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
        jinja_chars(value.text);
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

struct node *jinja_parse_expression(struct parser *p);

struct node *jinja_parse_items(struct parser *p, const char *close, parse_function *parse)
{
    struct node head = {.next = NULL}, *last = &head;

    while (!jinja_at(p, close)) {
        if (last != &head)
            jinja_expect(p, ",", "','");
        if (jinja_at(p, close))
            break;
        last->next = parse(p);
        last = last->next;
    }
    jinja_next(p);
    return head.next;
}

struct node *jinja_parse_tuple(struct parser *p, parse_function *parse, const char *ends)
{
    const unsigned line = p->token.line;
    struct node *items = NULL, **end = &items;
    bool is_tuple = ends[0] == ')';

    while (p->token.type != TOKEN_PRINT_END && p->token.type != TOKEN_BLOCK_END &&
           !jinja_at(p, ")") && !jinja_at(p, ends)) {
        *end = parse(p);
        end = &(*end)->next;
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

    jinja_expect(p, ":", "':'");
    return jinja_make(p, NODE_PAIR, key->line, key, jinja_parse_expression(p));
}

struct node *jinja_parse_primary(struct parser *p)
{
    const struct token token = p->token;
    struct text *text;
    struct node *node;

    if (token.type == TOKEN_STRING) {
        for (text = jinja_text(p->r, "", 0); p->token.type == TOKEN_STRING; jinja_next(p))
            jinja_add_text(p->r, text, p->token.value.text);
        return jinja_make_value(p, NODE_CONSTANT, token.line, jinja_string(text));
    }
    if (token.type == TOKEN_NAME && !jinja_token_is(&token, "true True false False none None")) {
        p->uses_caller |= jinja_token_is(&token, "caller");
        if (jinja_token_is(&token, "varargs kwargs"))
            jinja_fail(p->r, "'%.*s'" JINJA_NOT_IMPLEMENTED, (int)token.n, token.bytes);
        return jinja_make_named(p, NODE_NAME, NULL);
    }
    if (token.type != TOKEN_NAME && token.type != TOKEN_NUMBER && !jinja_token_is(&token, "( [ {"))
        jinja_fail_token(p, "an expression");
    jinja_next(p);
    if (jinja_token_is(&token, "["))
        return jinja_make(p, NODE_LIST, token.line,
                          jinja_parse_items(p, "]", jinja_parse_expression), NULL);
    if (jinja_token_is(&token, "{"))
        return jinja_make(p, NODE_DICT, token.line, jinja_parse_items(p, "}", parse_pair), NULL);
    if (jinja_token_is(&token, "(")) {
        node = jinja_parse_tuple(p, jinja_parse_expression, ")");
        jinja_expect(p, ")", "')'");
        return node;
    }
    return jinja_make_value(p, NODE_CONSTANT, token.line,
                            token.type == TOKEN_NUMBER ? token.value
                            : jinja_token_is(&token, "none None")
                                ? jinja_none
                                : jinja_bool(jinja_token_is(&token, "true True")));
}

static struct node *parse_argument(struct parser *p)
{
    const struct token token = p->token;
    struct node *node;

    if (jinja_skip(p, "* **")) {
        node = jinja_make(p, NODE_SPREAD, token.line, jinja_parse_expression(p), NULL);
        node->op = token.n == 1 ? '*' : JINJA_OP('*', '*');
        return node;
    }
    if (token.type != TOKEN_NAME || !jinja_token_is(jinja_look(p), "="))
        return jinja_parse_expression(p);
    node = jinja_make_named(p, NODE_KEYWORD, NULL);
    jinja_next(p);
    node->a = jinja_parse_expression(p);
    return node;
}

static struct node *parse_arguments(struct parser *p)
{
    const unsigned line = p->token.line;
    struct node *arguments;
    int last = 0;

    jinja_expect(p, "(", "'('");
    arguments = jinja_parse_items(p, ")", parse_argument);
    for (const struct node *node = arguments; node; node = node->next) {
        const int order = node->kind == NODE_KEYWORD  ? 1
                          : node->kind != NODE_SPREAD ? 0
                          : node->op == '*'           ? 2
                                                      : 3;

        p->r->line = line;
        if (order < last ? order != 1 || last == 3 : order == last && order > 1)
            jinja_fail(p->r, "invalid syntax for function call expression");
        last = order > last ? order : last;
    }
    return arguments;
}

static struct node *parse_subscript(struct parser *p)
{
    struct node *slice = jinja_make(p, NODE_SLICE, p->token.line, NULL, NULL),
                **const parts[] = {&slice->a, &slice->b, &slice->c};
    int n = 0;

    for (;; n++) {
        if (!jinja_at(p, ": ] ,"))
            *parts[n] = jinja_parse_expression(p);
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
    const struct token *token = &p->token;

    node->builtin = jinja_find_builtin(JINJA_TEST, node->value.text);
    if (jinja_token_is(token, "(")) {
        node->b = parse_arguments(p);
    } else if ((token->type == TOKEN_NAME && !jinja_token_is(token, "else or and")) ||
               token->type == TOKEN_STRING || token->type == TOKEN_NUMBER ||
               jinja_token_is(token, "[ {")) {
        if (jinja_token_is(token, "is"))
            jinja_fail(p->r, "You cannot chain multiple tests with is");
        node->b = jinja_parse_primary(p);
        node->b = parse_postfix(p, node->b);
    }
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
static int level_of_operator(struct parser *p)
{
    int level = LEVEL_PRODUCT;

    if (jinja_at(p, "** //"))
        jinja_fail(p->r, "the operator %.2s" JINJA_NOT_IMPLEMENTED, p->token.bytes);
    while (level >= 0 && !jinja_at(p, levels[level].operators))
        level--;
    return jinja_at(p, "not") && !jinja_token_is(jinja_look(p), "in") ? -1 : level;
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
        const unsigned op = JINJA_OP((unsigned char)token.bytes[0],
                                     token.n > 1 ? (unsigned char)token.bytes[1] : 0);
        struct node *right;

        jinja_next(p);
        if (jinja_token_is(&token, "not"))
            jinja_next(p);
        right = parse_level(p, level + 1);
        if (level == LEVEL_COMPARE) { /* one node for the whole chain */
            right = jinja_make(p, NODE_PAIR, token.line, right, NULL);
            right->op = op;
            if (!end) {
                left = jinja_make(p, NODE_COMPARE, line, left, NULL);
                end = &left->b;
            }
            *end = right;
            end = &right->next;
        } else {
            left = jinja_make(p, levels[level].kind, line, left, right);
            left->op = op;
            end = NULL;
        }
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
