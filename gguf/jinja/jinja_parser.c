/* Parses a template: its statements. */
#include "gguf/jinja/jinja_syntax.h"

#include <string.h>

static struct node *parse_body(struct parser *p, const char *ends);

/* Parse the end of a tag and the body up to a tag whose name is in `ends`, which is the token then;
 * it is skipped if it is the only one. */
static struct node *parse_block(struct parser *p, const char *ends)
{
    struct node *body;

    jinja_skip(p, ":");
    jinja_expect_type(p, TOKEN_BLOCK_END, "'end of statement block'");
    body = parse_body(p, ends);
    if (!strchr(ends, ' '))
        jinja_next(p);
    return body;
}

static struct node *parse_target(struct parser *p)
{
    struct node *target;
    bool is_allowed;

    if (p->token.type != TOKEN_NAME && !jinja_at(p, "("))
        jinja_fail_token(p, "a name to assign to");
    target = jinja_parse_primary(p);
    if (target->kind == NODE_NAME && jinja_skip(p, "."))
        return jinja_make_named(p, NODE_ATTRIBUTE, target);
    is_allowed = target->kind == NODE_NAME || target->kind == NODE_TUPLE;
    for (const struct node *item = is_allowed ? target->a : NULL; item; item = item->next)
        is_allowed &= item->kind == NODE_NAME || item->kind == NODE_TUPLE;
    if (!is_allowed)
        jinja_fail(p->r, "can't assign to a constant or an expression");
    return target;
}

/* Parse the filters and the body of a block. Before the first filter stands no "|" if
 * `is_first_bare`. */
static struct node *parse_capture(struct parser *p, bool is_first_bare, const char *end)
{
    struct node *capture = jinja_make(p, NODE_CAPTURE, p->token.line, NULL, NULL), *value = capture;

    while (is_first_bare || jinja_skip(p, "|")) {
        value = jinja_parse_filter(p, value);
        value->op = 1;
        is_first_bare = false;
    }
    capture->c = parse_block(p, end);
    return value;
}

static void parse_set(struct parser *p, struct node *node)
{
    node->a = jinja_parse_tuple(p, parse_target, "");
    node->b = jinja_skip(p, "=") ? jinja_parse_tuple(p, jinja_parse_expression, "")
                                 : parse_capture(p, false, "endset");
}

static void parse_filter_block(struct parser *p, struct node *node)
{
    node->a = parse_capture(p, true, "endfilter");
}

static void parse_generation(struct parser *p, struct node *node)
{
    node->c = parse_block(p, "endgeneration");
}

static void parse_for(struct parser *p, struct node *node)
{
    node->a = jinja_parse_tuple(p, parse_target, "in");
    jinja_expect(p, "in");
    node->b = jinja_parse_tuple(p, jinja_parse_or, "recursive");
    if (jinja_skip(p, "if"))
        node->e = jinja_parse_expression(p);
    if (jinja_at(p, "recursive"))
        jinja_fail(p->r, "a recursive loop" JINJA_NOT_IMPLEMENTED);
    p->n_loops++;
    node->c = parse_block(p, "endfor else");
    p->n_loops--;
    if (jinja_skip(p, "else"))
        node->d = parse_block(p, "endfor");
    else
        jinja_next(p);
}

static void parse_if(struct parser *p, struct node *node)
{
    node->a = jinja_parse_tuple(p, jinja_parse_or, "");
    node->b = parse_block(p, "elif else endif");
    while (jinja_at(p, "elif")) {
        node = node->c = jinja_make(p, NODE_IF, p->token.line, NULL, NULL);
        jinja_next(p);
        node->a = jinja_parse_tuple(p, jinja_parse_or, "");
        node->b = parse_block(p, "elif else endif");
    }
    if (jinja_skip(p, "else"))
        node->c = parse_block(p, "endif");
    else
        jinja_next(p);
}

static struct node *parse_parameter(struct parser *p)
{
    struct node *node = jinja_make_named(p, NODE_ARGUMENT, NULL);

    if (jinja_skip(p, "="))
        node->a = jinja_parse_expression(p);
    return node;
}

static void parse_macro(struct parser *p, struct node *node)
{
    const bool is_call = node->kind == NODE_PRINT, uses_caller = p->uses_caller;
    const unsigned n_loops = p->n_loops;
    struct node *macro =
        is_call ? jinja_make_value(p, NODE_MACRO, node->line, jinja_string_of(p->r, "caller"))
                : jinja_make_named(p, NODE_MACRO, NULL);

    if (!is_call || jinja_at(p, "(")) {
        jinja_expect(p, "(");
        macro->a = jinja_parse_items(p, ")", parse_parameter);
    }
    for (const struct node *one = macro->a; one && one->next; one = one->next)
        if (one->a && !one->next->a)
            jinja_fail(p->r, "non-default argument follows default argument");
    if (is_call) {
        node->a = jinja_parse_expression(p);
        if (node->a->kind != NODE_CALL)
            jinja_fail(p->r, "expected call");
        node->a->c = macro;
    }
    p->uses_caller = false;
    p->n_loops = 0;
    macro->c = parse_block(p, is_call ? "endcall" : "endmacro");
    macro->op = p->uses_caller;
    p->uses_caller |= uses_caller;
    p->n_loops = n_loops;
    if (!is_call)
        *node = *macro;
}

static void parse_jump(struct parser *p, struct node *node)
{
    if (p->n_loops == 0)
        jinja_fail(p->r, "break and continue need a loop around them");
}

static struct node *parse_statement(struct parser *p)
{
    static const struct {
        const char *name;
        enum node_kind kind;
        void (*parse)(struct parser *p, struct node *node);
    } statements[] = {
        {"set", NODE_SET, parse_set},
        {"if", NODE_IF, parse_if},
        {"for", NODE_FOR, parse_for},
        {"macro", NODE_MACRO, parse_macro},
        {"call", NODE_PRINT, parse_macro},
        {"filter", NODE_PRINT, parse_filter_block},
        {"generation", NODE_GENERATION, parse_generation},
        {"break", NODE_BREAK, parse_jump},
        {"continue", NODE_CONTINUE, parse_jump},
    };
    const struct token token = p->token;

    jinja_expect_type(p, TOKEN_NAME, "the name of a tag");
    for (size_t i = 0; i < JINJA_COUNT(statements); i++) {
        if (jinja_token_is(&token, statements[i].name)) {
            struct node *node = jinja_make(p, statements[i].kind, token.line, NULL, NULL);

            statements[i].parse(p, node);
            return node;
        }
    }
    p->r->line = token.line;
    jinja_fail(p->r,
               "Encountered unknown tag '%.*s', which is misplaced or not supported; use "
               "--chat-template NAME",
               token.n > 100 ? 100 : (int)token.n, token.bytes);
}

static struct node *parse_body(struct parser *p, const char *ends)
{
    struct node *body = NULL, **end = &body;
    const unsigned line = p->token.line;

    jinja_enter(p->r, JINJA_MAX_PARSE_DEPTH);
    for (; p->token.type != TOKEN_END; end = *end ? &(*end)->next : end) {
        const struct token token = p->token;

        jinja_next(p);
        if (token.type == TOKEN_DATA && token.value.text->n) {
            *end = jinja_make(p, NODE_PRINT, token.line,
                              jinja_make_value(p, NODE_CONSTANT, token.line, token.value), NULL);
        } else if (token.type == TOKEN_PRINT_BEGIN) {
            *end = jinja_make(p, NODE_PRINT, p->token.line, NULL, NULL);
            (*end)->a = jinja_parse_tuple(p, jinja_parse_expression, "");
            jinja_expect_type(p, TOKEN_PRINT_END, "token 'end of print statement'");
        } else if (token.type == TOKEN_BLOCK_BEGIN) {
            if (jinja_at(p, ends))
                break;
            *end = parse_statement(p);
            jinja_expect_type(p, TOKEN_BLOCK_END, "token 'end of statement block'");
        }
    }
    p->r->line = p->lexer.line;
    if (*ends && p->token.type == TOKEN_END)
        jinja_fail(p->r, "Unexpected end of template: the tag on line %u needs one of: %s", line,
                   ends);
    p->r->depth--;
    return body;
}

/* Fail for an unknown filter or test, unless it is in a condition and may never be reached, as in
 * jinja2. */
static void check_names(struct run *r, const struct node *node, bool is_conditional)
{
    jinja_enter(r, JINJA_MAX_DEPTH);
    for (; node; node = node->next) {
        const bool here = is_conditional || node->kind == NODE_IF || node->kind == NODE_CONDITION;
        /* The body of a loop, macro or block is compiled on its own; what stands before it not. */
        const bool is_own = (node->kind >= NODE_FOR && node->kind <= NODE_GENERATION) ||
                            (node->kind == NODE_FILTER && node->op);

        r->line = node->line;
        if ((node->kind == NODE_FILTER || node->kind == NODE_TEST) && !node->builtin &&
            (!here || is_own))
            jinja_need_builtin(r, node->kind == NODE_TEST ? JINJA_TEST : JINJA_FILTER,
                               node->value.text);
        for (size_t i = 0; i < JINJA_COUNT(node->parts); i++)
            check_names(r, node->parts[i], here && (!is_own || (node->kind == NODE_FOR && i == 1)));
    }
    r->depth--;
}

struct node *jinja_parse(struct run *r, const char *source, size_t n_bytes)
{
    struct parser *p = jinja_alloc(r, sizeof *p);
    struct node *body;

    p->r = r;
    p->lexer = jinja_lexer(r, source, n_bytes);
    jinja_next(p);
    body = parse_body(p, "");
    check_names(r, body, false);
    return body;
}
