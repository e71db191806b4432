/* Parses a template: its statements. */
#include "gguf/jinja/jinja_parser.h"

/* ---- statements ---- */

/* Parse up to a tag whose name is in `ends` ("" for the end of the template), which is the token
 * then. */
static struct node *parse_body(struct parser *p, const char *ends);

static struct node *parse_block(struct parser *p, const char *ends)
{
    struct node *body;

    jinja_skip_op(p, ':');
    jinja_expect(p, TOKEN_BLOCK_END, "'end of statement block'");
    body = parse_body(p, ends);
    jinja_next(p);
    return body;
}

static struct node *parse_target(struct parser *p)
{
    struct node *target;

    if (p->token.type != TOKEN_NAME && !jinja_is_op(p, '('))
        jinja_fail_token(p, "a name to assign to");
    target = jinja_parse_primary(p);
    if (target->kind == NODE_NAME && jinja_skip_op(p, '.')) {
        struct node *attribute =
            jinja_make_value(p, NODE_ATTRIBUTE, target->line, jinja_expect_name(p));

        attribute->a = target;
        return attribute;
    }
    if (target->kind != NODE_NAME && target->kind != NODE_TUPLE)
        jinja_fail(p->run, "can't assign to a constant or an expression");
    for (const struct node *item = target->kind == NODE_TUPLE ? target->a : NULL; item;
         item = item->next) {
        if (item->kind != NODE_NAME && item->kind != NODE_TUPLE)
            jinja_fail(p->run, "can't assign to a constant or an expression");
    }
    return target;
}

static struct node *parse_set(struct parser *p, struct node *node)
{
    node->a = jinja_parse_tuple(p, parse_target, "", false);
    if (jinja_skip_op(p, '=')) {
        node->b = jinja_parse_tuple(p, jinja_parse_expression, "", false);
        return node;
    }
    node->kind = NODE_SET_BLOCK;
    while (jinja_skip_op(p, '|'))
        node->b = jinja_parse_filter(p, node->b);
    node->c = parse_block(p, "endset");
    return node;
}

static struct node *parse_for(struct parser *p, struct node *node)
{
    node->a = jinja_parse_tuple(p, parse_target, "in", false);
    if (!jinja_skip_name(p, "in"))
        jinja_fail_token(p, "'in'");
    node->b = jinja_parse_tuple(p, jinja_parse_or, "recursive", false);
    if (jinja_skip_name(p, "if"))
        node->e = jinja_parse_expression(p);
    if (jinja_is_name(&p->token, "recursive"))
        jinja_fail(p->run, "a recursive loop" JINJA_NOT_IMPLEMENTED);
    jinja_skip_op(p, ':');
    jinja_expect(p, TOKEN_BLOCK_END, "'end of statement block'");
    p->n_loops++;
    node->c = parse_body(p, "endfor else");
    p->n_loops--;
    if (jinja_skip_name(p, "else"))
        node->d = parse_block(p, "endfor");
    else
        jinja_next(p);
    return node;
}

static struct node *parse_if(struct parser *p, struct node *node)
{
    struct node *last = node;

    for (;;) {
        last->a = jinja_parse_tuple(p, jinja_parse_or, "", false);
        jinja_skip_op(p, ':');
        jinja_expect(p, TOKEN_BLOCK_END, "'end of statement block'");
        last->b = parse_body(p, "elif else endif");
        if (!jinja_skip_name(p, "elif"))
            break;
        last->c = jinja_make(p, NODE_IF, p->token.line, NULL, NULL);
        last = last->c;
        last->op = 1;
    }
    if (jinja_skip_name(p, "else"))
        last->c = parse_block(p, "endif");
    else
        jinja_next(p);
    return node;
}

static struct node *parse_parameter(struct parser *p)
{
    struct node *node = jinja_make_value(p, NODE_KEYWORD, p->token.line, jinja_expect_name(p));

    if (jinja_skip_op(p, '='))
        node->a = jinja_parse_expression(p);
    return node;
}

/* Parse the parameters and the body of a macro. */
static struct node *parse_macro_rest(struct parser *p, struct node *node, const char *end)
{
    const unsigned n_loops = p->n_loops;
    const bool uses_caller = p->uses_caller;
    bool has_default = false;

    if (jinja_skip_op(p, '('))
        node->a = jinja_parse_items(p, ')', parse_parameter);
    for (const struct node *parameter = node->a; parameter; parameter = parameter->next) {
        if (has_default && !parameter->a)
            jinja_fail(p->run, "non-default argument follows default argument");
        has_default = parameter->a;
    }
    if (node->kind == NODE_CALL_BLOCK) {
        node->b = jinja_parse_expression(p);
        if (node->b->kind != NODE_CALL)
            jinja_fail(p->run, "expected call");
        node->a = jinja_make(p, NODE_MACRO, node->line, node->a, NULL);
        node->a->value = jinja_string_of(p->run, "caller");
    }
    p->uses_caller = false;
    p->n_loops = 0;
    *(node->kind == NODE_CALL_BLOCK ? &node->a->c : &node->c) = parse_block(p, end);
    (node->kind == NODE_CALL_BLOCK ? node->a : node)->op = p->uses_caller;
    p->uses_caller |= uses_caller;
    p->n_loops = n_loops;
    return node;
}

static struct node *parse_macro(struct parser *p, struct node *node)
{
    node->value = jinja_expect_name(p);
    if (!jinja_is_op(p, '('))
        jinja_fail_token(p, "'('");
    return parse_macro_rest(p, node, "endmacro");
}

static struct node *parse_call(struct parser *p, struct node *node)
{
    return parse_macro_rest(p, node, "endcall");
}

static struct node *parse_filter_block(struct parser *p, struct node *node)
{
    node->b = jinja_parse_filter(p, NULL);
    while (jinja_skip_op(p, '|'))
        node->b = jinja_parse_filter(p, node->b);
    node->c = parse_block(p, "endfilter");
    return node;
}

static struct node *parse_generation(struct parser *p, struct node *node)
{
    node->c = parse_block(p, "endgeneration");
    return node;
}

static struct node *parse_jump(struct parser *p, struct node *node)
{
    if (p->n_loops == 0)
        jinja_fail(p->run, "break and continue need a loop around them");
    return node;
}

static struct node *parse_statement(struct parser *p)
{
    static const struct {
        const char *name;
        enum node_kind kind;
        struct node *(*parse)(struct parser *p, struct node *node);
    } statements[] = {
        {"set", NODE_SET, parse_set},
        {"if", NODE_IF, parse_if},
        {"for", NODE_FOR, parse_for},
        {"macro", NODE_MACRO, parse_macro},
        {"call", NODE_CALL_BLOCK, parse_call},
        {"filter", NODE_FILTER_BLOCK, parse_filter_block},
        {"generation", NODE_GENERATION, parse_generation},
        {"break", NODE_BREAK, parse_jump},
        {"continue", NODE_CONTINUE, parse_jump},
    };
    const struct token token = p->token;

    jinja_expect(p, TOKEN_NAME, "the name of a tag");
    for (size_t i = 0; i < JINJA_COUNT(statements); i++) {
        if (jinja_is_name(&token, statements[i].name))
            return statements[i].parse(p,
                                       jinja_make(p, statements[i].kind, token.line, NULL, NULL));
    }
    p->run->line = token.line;
    jinja_fail(p->run,
               "Encountered unknown tag '%.*s', which is misplaced or not supported; use "
               "--chat-template NAME",
               JINJA_SHORT(token.value.text));
}

static struct node *parse_body(struct parser *p, const char *ends)
{
    struct node *body = NULL, **end = &body;
    const unsigned line = p->token.line;

    jinja_enter(p->run, JINJA_MAX_PARSE_DEPTH);
    while (p->token.type != TOKEN_END) {
        const struct token token = p->token;

        jinja_next(p);
        if (token.type == TOKEN_DATA) {
            *end = jinja_make(p, NODE_PRINT, token.line,
                              jinja_make_value(p, NODE_CONSTANT, token.line, token.value), NULL);
        } else if (token.type == TOKEN_PRINT_BEGIN) {
            *end = jinja_make(p, NODE_PRINT, p->token.line,
                              jinja_parse_tuple(p, jinja_parse_expression, "", false), NULL);
            jinja_expect(p, TOKEN_PRINT_END, "token 'end of print statement'");
        } else {
            if (jinja_is_one_of(&p->token, ends)) {
                jinja_leave(p->run);
                return body;
            }
            *end = parse_statement(p);
            jinja_expect(p, TOKEN_BLOCK_END, "token 'end of statement block'");
        }
        end = &(*end)->next;
    }
    p->run->line = p->lexer.line;
    if (*ends)
        jinja_fail(p->run, "Unexpected end of template: the tag on line %u needs one of: %s", line,
                   ends);
    jinja_leave(p->run);
    return body;
}

/* Fail for an unknown filter or test, unless it is in a condition and may never be reached, as in
 * jinja2. */
static void check_names(struct run *run, const struct node *node, bool is_conditional)
{
    jinja_enter(run, JINJA_MAX_DEPTH);
    for (; node; node = node->next) {
        const bool opens = node->kind == NODE_IF || node->kind == NODE_CONDITION;
        /* The body of a loop or macro is compiled on its own; what stands before it is not. */
        const bool has_body =
            node->kind >= NODE_FOR && node->kind <= NODE_GENERATION && node->kind != NODE_SET;
        const bool here = opens || is_conditional, inner = has_body ? false : here;

        if ((node->kind == NODE_FILTER || node->kind == NODE_TEST) && !node->builtin &&
            !is_conditional)
            jinja_fail_unknown(run, node);
        check_names(run, node->a, inner);
        check_names(run, node->b,
                    node->kind == NODE_FOR || node->kind == NODE_CALL_BLOCK ? here : inner);
        check_names(run, node->c, inner);
        check_names(run, node->d, inner);
        check_names(run, node->e, inner);
    }
    jinja_leave(run);
}

struct node *jinja_parse(struct run *run, const char *source, size_t n_bytes)
{
    struct parser *p = jinja_alloc(run, sizeof *p);
    struct node *body;

    p->run = run;
    p->lexer = jinja_lexer(run, source, n_bytes);
    jinja_next(p);
    body = parse_body(p, "");
    check_names(run, body, false);
    return body;
}
