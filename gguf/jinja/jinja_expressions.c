/* Parses expressions, with the grammar and the precedence of operators of jinja2, which differ from
 * Python. */
#include "gguf/jinja/jinja_parser.h"

#include <string.h>

/* ---- tokens ---- */

void jinja_next(struct parser *p)
{
    p->token = p->has_ahead ? p->ahead : jinja_lex(p->run, &p->lexer);
    p->has_ahead = false;
}

static const struct token *look(struct parser *p)
{
    if (!p->has_ahead)
        p->ahead = jinja_lex(p->run, &p->lexer);
    p->has_ahead = true;
    return &p->ahead;
}

bool jinja_is_op(const struct parser *p, unsigned op)
{
    return p->token.type == TOKEN_OPERATOR && p->token.op == op;
}

bool jinja_is_name(const struct token *token, const char *name)
{
    return token->type == TOKEN_NAME && jinja_text_is(token->value.text, name);
}

/* Return true if the token is a name of a list like "else endif". */
bool jinja_is_one_of(const struct token *token, const char *names)
{
    return token->type == TOKEN_NAME && jinja_text_among(token->value.text, names);
}

void jinja_fail_token(struct parser *p, const char *expected)
{
    static const char *const names[] = {
        [TOKEN_END] = "end of template", [TOKEN_DATA] = "template data",
        [TOKEN_PRINT_BEGIN] = "{{",      [TOKEN_PRINT_END] = "end of print statement",
        [TOKEN_BLOCK_BEGIN] = "{%",      [TOKEN_BLOCK_END] = "end of statement block",
        [TOKEN_STRING] = "string",       [TOKEN_NUMBER] = "number",
    };
    char op[3] = {(char)(p->token.op & 0xff), (char)(p->token.op >> 8)};
    const struct text *name = p->token.value.text;

    p->run->line = p->token.line;
    if (p->token.type == TOKEN_NAME)
        jinja_fail(p->run, "expected %s, got '%.*s'", expected, JINJA_SHORT(name));
    jinja_fail(p->run, "expected %s, got '%s'", expected,
               p->token.type == TOKEN_OPERATOR ? op : names[p->token.type]);
}

bool jinja_skip_op(struct parser *p, unsigned op)
{
    const bool is = jinja_is_op(p, op);

    if (is)
        jinja_next(p);
    return is;
}

bool jinja_skip_name(struct parser *p, const char *name)
{
    const bool is = jinja_is_name(&p->token, name);

    if (is)
        jinja_next(p);
    return is;
}

void jinja_expect_op(struct parser *p, char op)
{
    const char expected[] = {'\'', op, '\'', '\0'};

    if (!jinja_skip_op(p, (unsigned char)op))
        jinja_fail_token(p, expected);
}

void jinja_expect(struct parser *p, enum token_type type, const char *expected)
{
    if (p->token.type != type)
        jinja_fail_token(p, expected);
    jinja_next(p);
}

struct value jinja_expect_name(struct parser *p)
{
    const struct value name = p->token.value;

    jinja_expect(p, TOKEN_NAME, "a name");
    return name;
}

struct node *jinja_make(struct parser *p, enum node_kind kind, unsigned line, struct node *a,
                        struct node *b)
{
    struct node *node = jinja_alloc(p->run, sizeof *node);

    node->kind = kind;
    node->line = line;
    node->a = a;
    node->b = b;
    return node;
}

struct node *jinja_make_value(struct parser *p, enum node_kind kind, unsigned line,
                              struct value value)
{
    struct node *node = jinja_make(p, kind, line, NULL, NULL);

    node->value = value;
    if (value.type == JINJA_STRING) { /* computed here, as threads may share the template */
        jinja_text_hash(value.text);
        jinja_text_chars(value.text);
        value.text->appended = NULL;
    }
    return node;
}

/* ---- expressions ---- */

static struct node *parse_unary(struct parser *p, bool with_filters);

/* Parse items of a list, tuple, dict or subscript up to the closing bracket. */
struct node *jinja_parse_items(struct parser *p, char close,
                               struct node *(*parse)(struct parser *p))
{
    struct node head = {.next = NULL}, *last = &head;

    while (!jinja_is_op(p, (unsigned char)close)) {
        if (last != &head)
            jinja_expect_op(p, ',');
        if (jinja_is_op(p, (unsigned char)close))
            break;
        last->next = parse(p);
        last = last->next;
    }
    jinja_next(p);
    return head.next;
}

/* `ends` are names that may follow a trailing comma. */
struct node *jinja_parse_tuple(struct parser *p, struct node *(*parse)(struct parser *p),
                               const char *ends, bool is_in_parentheses)
{
    const unsigned line = p->token.line;
    struct node *items = NULL, **end = &items;
    bool is_tuple = false;

    for (;;) {
        if (p->token.type == TOKEN_PRINT_END || p->token.type == TOKEN_BLOCK_END ||
            jinja_is_op(p, ')') || jinja_is_one_of(&p->token, ends))
            break;
        *end = parse(p);
        end = &(*end)->next;
        if (!jinja_skip_op(p, ','))
            break;
        is_tuple = true;
    }
    if (!is_tuple && items)
        return items;
    if (!is_tuple && !is_in_parentheses)
        jinja_fail_token(p, "an expression");
    return jinja_make(p, NODE_TUPLE, line, items, NULL);
}

static struct node *parse_pair(struct parser *p)
{
    struct node *key = jinja_parse_expression(p);

    jinja_expect_op(p, ':');
    return jinja_make(p, NODE_PAIR, key->line, key, jinja_parse_expression(p));
}

struct node *jinja_parse_primary(struct parser *p)
{
    const struct token token = p->token;
    struct node *node;

    if (token.type == TOKEN_STRING) {
        struct builder *builder = jinja_builder(p->run);

        for (; p->token.type == TOKEN_STRING; jinja_next(p))
            jinja_add_text(p->run, builder, p->token.value.text);
        return jinja_make_value(p, NODE_CONSTANT, token.line,
                                jinja_string(jinja_built(p->run, builder)));
    }
    if (token.type != TOKEN_NAME && token.type != TOKEN_NUMBER && !jinja_is_op(p, '(') &&
        !jinja_is_op(p, '[') && !jinja_is_op(p, '{'))
        jinja_fail_token(p, "an expression");
    jinja_next(p);
    if (token.type == TOKEN_NUMBER)
        return jinja_make_value(p, NODE_CONSTANT, token.line, token.value);
    if (jinja_is_one_of(&token, "true True false False"))
        return jinja_make_value(p, NODE_CONSTANT, token.line,
                                jinja_bool((token.value.text->bytes[0] | 32) == 't'));
    if (jinja_is_one_of(&token, "none None"))
        return jinja_make_value(p, NODE_CONSTANT, token.line, jinja_none());
    if (token.type == TOKEN_NAME) {
        p->uses_caller |= jinja_is_name(&token, "caller");
        if (jinja_is_one_of(&token, "varargs kwargs"))
            jinja_fail(p->run, "'%.*s'" JINJA_NOT_IMPLEMENTED, JINJA_SHORT(token.value.text));
        return jinja_make_value(p, NODE_NAME, token.line, token.value);
    }
    if (token.op == '[')
        return jinja_make(p, NODE_LIST, token.line,
                          jinja_parse_items(p, ']', jinja_parse_expression), NULL);
    if (token.op == '{')
        return jinja_make(p, NODE_DICT, token.line, jinja_parse_items(p, '}', parse_pair), NULL);
    node = jinja_parse_tuple(p, jinja_parse_expression, "", true);
    jinja_expect_op(p, ')');
    return node;
}

static struct node *parse_argument(struct parser *p)
{
    const struct token token = p->token;
    struct node *node;

    if (jinja_skip_op(p, '*') || jinja_skip_op(p, OPERATOR('*', '*'))) {
        node = jinja_make(p, NODE_SPREAD, token.line, jinja_parse_expression(p), NULL);
        node->op = token.op;
    } else if (token.type == TOKEN_NAME && look(p)->type == TOKEN_OPERATOR && look(p)->op == '=') {
        jinja_next(p);
        jinja_next(p);
        node = jinja_make_value(p, NODE_KEYWORD, token.line, token.value);
        node->a = jinja_parse_expression(p);
    } else {
        node = jinja_parse_expression(p);
    }
    return node;
}

static struct node *parse_arguments(struct parser *p)
{
    const unsigned line = p->token.line;
    struct node *arguments;
    int last = 0;

    jinja_expect_op(p, '(');
    arguments = jinja_parse_items(p, ')', parse_argument);
    for (const struct node *node = arguments; node; node = node->next) {
        const int order = node->kind == NODE_KEYWORD  ? 1
                          : node->kind != NODE_SPREAD ? 0
                          : node->op == '*'           ? 2
                                                      : 3;

        p->run->line = line;
        if (order < last ? order != 1 || last == 3 : order == last && order > 1)
            jinja_fail(p->run, "invalid syntax for function call expression");
        last = order > last ? order : last;
    }
    return arguments;
}

static struct node *parse_subscript(struct parser *p)
{
    const unsigned line = p->token.line;
    struct node *part[3] = {NULL};
    int n = 0;

    for (; n < 3; n++) {
        if (!jinja_is_op(p, ':') && !jinja_is_op(p, ']') && !jinja_is_op(p, ','))
            part[n] = jinja_parse_expression(p);
        if (n == 2 || !jinja_skip_op(p, ':'))
            break;
    }
    if (n == 0)
        return part[0] ? part[0] : jinja_parse_expression(p);
    part[0] = jinja_make(p, NODE_SLICE, line, part[0], part[1]);
    part[0]->c = part[2];
    return part[0];
}

struct node *jinja_parse_filter(struct parser *p, struct node *subject)
{
    const unsigned line = p->token.line;
    struct node *node = jinja_make_value(p, NODE_FILTER, line, jinja_expect_name(p));

    node->builtin = jinja_find_filter(node->value.text);
    node->a = subject;
    if (jinja_is_op(p, '('))
        node->b = parse_arguments(p);
    return node;
}

static struct node *parse_postfix(struct parser *p, struct node *node)
{
    for (;;) {
        const unsigned line = p->token.line;

        if (jinja_is_op(p, '(')) {
            node = jinja_make(p, NODE_CALL, line, node, parse_arguments(p));
        } else if (jinja_skip_op(p, '[')) {
            struct node *items = jinja_parse_items(p, ']', parse_subscript);

            if (!items || items->next)
                items = jinja_make(p, NODE_TUPLE, line, items, NULL);
            node = jinja_make(p, NODE_ITEM, line, node, items);
        } else if (jinja_skip_op(p, '.')) {
            const struct token member = p->token;

            if (member.type == TOKEN_NUMBER && member.value.type == JINJA_INT) {
                jinja_next(p);
                node = jinja_make(p, NODE_ITEM, line, node,
                                  jinja_make_value(p, NODE_CONSTANT, line, member.value));
            } else {
                struct node *attribute =
                    jinja_make_value(p, NODE_ATTRIBUTE, line, jinja_expect_name(p));

                attribute->a = node;
                node = attribute;
            }
        } else {
            return node;
        }
    }
}

static struct node *parse_test(struct parser *p, struct node *subject)
{
    const unsigned line = p->token.line;
    const bool is_negated = jinja_skip_name(p, "not");
    struct node *node = jinja_make_value(p, NODE_TEST, line, jinja_expect_name(p));

    node->a = subject;
    node->builtin = jinja_find_builtin(jinja_tests, node->value.text);
    if (jinja_is_op(p, '(')) {
        node->b = parse_arguments(p);
    } else if ((p->token.type == TOKEN_NAME && !jinja_is_one_of(&p->token, "else or and")) ||
               p->token.type == TOKEN_STRING || p->token.type == TOKEN_NUMBER ||
               jinja_is_op(p, '[') || jinja_is_op(p, '{')) {
        if (jinja_is_name(&p->token, "is"))
            jinja_fail(p->run, "You cannot chain multiple tests with is");
        node->b = jinja_parse_primary(p);
        node->b = parse_postfix(p, node->b);
    }
    return is_negated ? jinja_make(p, NODE_NOT, line, node, NULL) : node;
}

static struct node *parse_unary(struct parser *p, bool with_filters)
{
    const struct token token = p->token;
    struct node *node;

    jinja_enter(p->run, JINJA_MAX_PARSE_DEPTH);
    if (jinja_skip_op(p, '-') || jinja_skip_op(p, '+')) {
        node = jinja_make(p, NODE_SIGN, token.line, parse_unary(p, false), NULL);
        node->op = token.op;
    } else {
        node = jinja_parse_primary(p);
    }
    node = parse_postfix(p, node);
    while (with_filters) {
        if (jinja_skip_op(p, '|'))
            node = jinja_parse_filter(p, node);
        else if (jinja_skip_name(p, "is"))
            node = parse_test(p, node);
        else if (jinja_is_op(p, '('))
            node = jinja_make(p, NODE_CALL, p->token.line, node, parse_arguments(p));
        else
            break;
    }
    jinja_leave(p->run);
    return node;
}

enum {
    LEVEL_OR,
    LEVEL_AND,
    LEVEL_NOT,
    LEVEL_COMPARE,
    LEVEL_SUM,
    LEVEL_CONCAT,
    LEVEL_PRODUCT,
    LEVEL_UNARY
};

/* Return the operator at the current place if it belongs to the level, or 0. `in` is 'i', `not in`
 * 'n'. */
static unsigned operator_of(struct parser *p, int level)
{
    static const unsigned ops[][6] = {
        [LEVEL_COMPARE] = {'<', '>', OPERATOR('=', '='), OPERATOR('!', '='), OPERATOR('<', '='),
                           OPERATOR('>', '=')},
        [LEVEL_SUM] = {'+', '-'},
        [LEVEL_CONCAT] = {'~'},
        [LEVEL_PRODUCT] = {'*', '/', '%'},
    };

    if ((level == LEVEL_OR && jinja_is_name(&p->token, "or")) ||
        (level == LEVEL_AND && jinja_is_name(&p->token, "and")))
        return 'o';
    if (level == LEVEL_COMPARE && jinja_is_name(&p->token, "in"))
        return 'i';
    if (level == LEVEL_COMPARE && jinja_is_name(&p->token, "not") && jinja_is_name(look(p), "in")) {
        jinja_next(p);
        return 'n';
    }
    if (jinja_is_op(p, OPERATOR('*', '*')) || jinja_is_op(p, OPERATOR('/', '/')))
        jinja_fail(p->run, "the operator %c%c" JINJA_NOT_IMPLEMENTED, (char)(p->token.op & 0xff),
                   (char)(p->token.op >> 8));
    for (size_t i = 0; p->token.type == TOKEN_OPERATOR && i < 6; i++) {
        if (ops[level][i] == p->token.op)
            return p->token.op;
    }
    return 0;
}

static struct node *parse_level(struct parser *p, int level)
{
    unsigned line = p->token.line, op;
    struct node *left, **end = NULL;

    if (level == LEVEL_NOT && jinja_skip_name(p, "not")) {
        jinja_enter(p->run, JINJA_MAX_PARSE_DEPTH);
        left = jinja_make(p, NODE_NOT, line, parse_level(p, level), NULL);
        jinja_leave(p->run);
        return left;
    }
    if (level == LEVEL_UNARY)
        return parse_unary(p, true);
    left = parse_level(p, level + 1);
    while (level != LEVEL_NOT && (op = operator_of(p, level))) {
        struct node *right;

        jinja_next(p);
        right = parse_level(p, level + 1);
        if (level == LEVEL_CONCAT || level == LEVEL_COMPARE) { /* one node for the whole chain */
            if (!end && level == LEVEL_CONCAT) {
                end = &left->next;
                left = jinja_make(p, NODE_CONCAT, line, left, NULL);
            } else if (!end) {
                left = jinja_make(p, NODE_COMPARE, line, left, NULL);
                end = &left->b;
            }
            if (level == LEVEL_COMPARE) {
                right = jinja_make(p, NODE_PAIR, line, right, NULL);
                right->op = op;
            }
            *end = right;
            end = &right->next;
        } else {
            left = jinja_make(p,
                              level == LEVEL_OR    ? NODE_OR
                              : level == LEVEL_AND ? NODE_AND
                                                   : NODE_BINARY,
                              line, left, right);
            left->op = op;
            line = p->token.line;
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

    jinja_enter(p->run, JINJA_MAX_PARSE_DEPTH);
    node = jinja_parse_or(p);
    while (jinja_skip_name(p, "if")) {
        node = jinja_make(p, NODE_CONDITION, line, node, jinja_parse_or(p));
        if (jinja_skip_name(p, "else"))
            node->c = jinja_parse_expression(p);
    }
    jinja_leave(p->run);
    return node;
}
