/* Runs statements and evaluates expressions. */
#include "gguf/jinja/jinja_syntax.h"

#include <string.h>

/* ---- scopes ---- */

/* Begin a scope in `parent`; ends with `r->scope = ` the scope before. */
static void open_scope(struct run *r, struct scope *parent)
{
    r->scope = jinja_alloc(r, sizeof *r->scope);
    r->scope->parent = parent;
}

static struct value lookup(struct run *r, struct value name)
{
    const struct value *found = NULL;
    const struct builtin *global;

    for (const struct scope *scope = r->scope; scope && !found; scope = scope->parent)
        found = jinja_find(r, &scope->variables, name);
    if (!found)
        found = jinja_find(r, &r->variables, name);
    if (found)
        return *found;
    global = jinja_find_builtin(JINJA_GLOBAL, name.text);
    if (jinja_is(name.text, "self")) /* has the blocks of the template; there are none */
        return (struct value){.type = JINJA_NAMESPACE, .dict = jinja_new_dict(r)};
    if (jinja_is(name.text, "cycler joiner lipsum"))
        jinja_fail(r, "the function %.*s" JINJA_NOT_IMPLEMENTED, JINJA_SHORT(name.text));
    return global ? jinja_function(r, global, jinja_absent)
                  : jinja_undefined(r, jinja_absent, name);
}

static void assign(struct run *r, const struct node *target, struct value value)
{
    const struct text *name = target->value.text;
    struct dict *variables = &r->scope->variables;
    const struct list *items;
    size_t n = 0;

    if (target->kind == NODE_TUPLE) {
        items = jinja_items(r, value);
        for (const struct node *item = target->a; item; item = item->next)
            n++;
        if (n != items->count)
            jinja_fail(r, "%s values to unpack (expected %zu, got %zu)",
                       n > items->count ? "not enough" : "too many", n, items->count);
        n = 0;
        for (const struct node *item = target->a; item; item = item->next)
            assign(r, item, items->items[n++]);
        return;
    }
    if (target->kind == NODE_ATTRIBUTE) {
        const struct value owner = jinja_evaluate(r, target->a);

        if (owner.type != JINJA_NAMESPACE)
            jinja_fail(r, "cannot assign attribute on non-namespace object");
        jinja_need_public(r, name);
        variables = owner.dict;
    }
    jinja_set(r, variables, target->value, value);
}

/* Run a body in a scope of its own and return its output. */
static struct text *capture(struct run *r, const struct node *body)
{
    struct text *out = r->out, *text = r->out = jinja_text(r, "", 0);
    struct scope *scope = r->scope;

    open_scope(r, scope);
    jinja_run_body(r, body);
    r->scope = scope;
    r->out = out;
    r->jump = JINJA_ON;
    return text;
}

/* ---- loops ---- */

/* Find the next item that the test of the loop lets pass. */
static void peek(struct run *r, struct loop *loop)
{
    struct scope *scope = r->scope;

    if (loop->has_peeked)
        return;
    loop->has_peeked = true;
    loop->has_next = false;
    while (!loop->has_next && loop->at < loop->items->count) {
        loop->next = loop->items->items[loop->at++];
        loop->has_next = true;
        jinja_charge(r, 1);
        if (loop->node->e) {
            open_scope(r, loop->scope);
            assign(r, loop->node->a, loop->next);
            loop->has_next = jinja_truth(jinja_evaluate(r, loop->node->e));
            r->scope = scope;
        }
    }
}

/* Move the loop to its next item; returns false at the end. */
static bool loop_next(struct run *r, struct loop *loop)
{
    peek(r, loop);
    loop->has_peeked = false;
    loop->previous = loop->current;
    loop->current = loop->next;
    loop->index++;
    return loop->has_next;
}

struct value jinja_loop_attribute(struct run *r, struct loop *loop, const struct text *name)
{
    const int64_t index = (int64_t)loop->index;
    struct loop rest = *loop;

    if (jinja_is(name, "index index0"))
        return jinja_int(index - (name->n > strlen("index")));
    if (jinja_is(name, "first"))
        return jinja_bool(index == 1);
    if (jinja_is(name, "length")) {
        while (loop->node->e && loop_next(r, &rest))
            continue;
        return jinja_int((int64_t)(loop->node->e ? rest.index - 1 : loop->items->count));
    }
    if (jinja_is(name, "previtem"))
        return index > 1 ? loop->previous : jinja_missing(r, "there is no previous item");
    if (jinja_is(name, "cycle changed depth depth0 revindex revindex0"))
        jinja_fail(r, "loop.%.*s" JINJA_NOT_IMPLEMENTED, JINJA_SHORT(name));
    if (!jinja_is(name, "last nextitem"))
        return jinja_absent;
    peek(r, loop);
    if (jinja_is(name, "last"))
        return jinja_bool(!loop->has_next);
    return loop->has_next ? loop->next : jinja_missing(r, "there is no next item");
}

static void run_loop(struct run *r, const struct node *node)
{
    struct value value = {.type = JINJA_LOOP, .loop = jinja_alloc(r, sizeof *value.loop)};
    const struct value name = jinja_string_of(r, "loop");
    struct scope *outer = r->scope;
    bool has_run = false;

    *value.loop = (struct loop){
        .items = jinja_items(r, jinja_evaluate(r, node->b)), .node = node, .scope = outer};
    open_scope(r, outer);
    while (r->jump != JINJA_BREAK && loop_next(r, value.loop)) {
        has_run = true;
        r->scope->variables.count = 0; /* each round starts anew */
        jinja_set(r, &r->scope->variables, name, value);
        assign(r, node->a, value.loop->current);
        r->jump = JINJA_ON;
        jinja_run_body(r, node->c);
    }
    r->scope->variables.count = 0;
    r->jump = JINJA_ON;
    if (!has_run)
        jinja_run_body(r, node->d);
    r->scope = outer;
}

/* ---- calls ---- */

static struct call evaluate_arguments(struct run *r, const struct node *node)
{
    struct call call = {.items = {NULL}};

    for (; node; node = node->next) {
        const unsigned op = node->kind == NODE_ARGUMENT ? node->op : 0;
        const struct value value = jinja_evaluate(r, op ? node->a : node);

        if (op == 0) {
            jinja_push(r, &call.items, value);
        } else if (op == 1) {
            jinja_set(r, &call.named, node->value, value);
        } else if (op == 2) {
            jinja_push_all(r, &call.items, jinja_items(r, value));
        } else {
            if (value.type != JINJA_DICT)
                jinja_fail(r, "argument after ** must be a mapping, not %s",
                           jinja_type_name(value));
            for (size_t i = 0; i < value.dict->count; i++)
                jinja_need_text(r, value.dict->entries[i].key);
            jinja_set_all(r, &call.named, value.dict);
        }
    }
    return call;
}

static struct value make_macro(struct run *r, const struct node *node)
{
    struct value value = {.type = JINJA_MACRO, .macro = jinja_alloc(r, sizeof *value.macro)};

    *value.macro = (struct macro){node, r->scope};
    return value;
}

/* Set the parameters of a macro in the current scope. */
static void set_parameters(struct run *r, const struct node *node, const struct call *call)
{
    const struct value caller = jinja_string_of(r, "caller");
    const struct text *name = node->value.text;
    struct dict *variables = &r->scope->variables;
    size_t n = 0;

    for (const struct node *parameter = node->a; parameter; parameter = parameter->next) {
        const struct value *named = jinja_find(r, &call->named, parameter->value);

        if (n < call->items.count && named)
            jinja_fail(r, "macro '%.*s' got two values for one argument", JINJA_SHORT(name));
        jinja_set(r, variables, parameter->value,
                  n < call->items.count ? call->items.items[n++]
                  : named               ? *named
                  : parameter->a        ? jinja_evaluate(r, parameter->a)
                                        : jinja_undefined(r, jinja_absent, parameter->value));
    }
    if (n < call->items.count)
        jinja_fail(r, "macro '%.*s' takes not more than %zu argument(s)", JINJA_SHORT(name), n);
    if (node->op && !jinja_find(r, variables, caller)) {
        const struct value *called = jinja_find(r, &call->named, caller);

        jinja_set(r, variables, caller, called ? *called : jinja_missing(r, "No caller defined"));
    }
    for (size_t i = 0; i < call->named.count; i++) {
        const struct value key = call->named.entries[i].key;

        if (!jinja_find(r, variables, key))
            jinja_fail(r, "macro '%.*s' takes no keyword argument '%.*s'", JINJA_SHORT(name),
                       JINJA_SHORT(key.text));
    }
}

static struct value call_macro(struct run *r, const struct macro *macro, const struct call *call)
{
    struct scope *scope = r->scope;
    const unsigned line = r->line;
    struct text *text;

    open_scope(r, macro->scope);
    set_parameters(r, macro->node, call);
    text = capture(r, macro->node->c);
    r->scope = scope;
    r->line = line;
    return jinja_string(text);
}

static struct value evaluate_call(struct run *r, const struct node *node)
{
    const struct value callee = jinja_evaluate(r, node->a);
    struct call call = evaluate_arguments(r, node->b);

    if (node->c)
        jinja_set(r, &call.named, node->c->value, make_macro(r, node->c));
    jinja_need_defined(r, callee);
    if (callee.type == JINJA_FUNCTION)
        return jinja_call_builtin(r, JINJA_GLOBAL, callee.function->builtin, callee.function->owner,
                                  &call);
    if (callee.type != JINJA_MACRO)
        jinja_fail(r, "'%s' object is not callable", jinja_type_name(callee));
    return call_macro(r, callee.macro, &call);
}

static struct value evaluate_filter(struct run *r, const struct node *node)
{
    const unsigned kind = node->kind == NODE_TEST ? JINJA_TEST : JINJA_FILTER;
    struct value subject;
    struct call call;

    if (!node->builtin)
        jinja_need_builtin(r, kind, node->value.text);
    subject = jinja_evaluate(r, node->a);
    call = evaluate_arguments(r, node->b);
    return jinja_call_builtin(r, kind, node->builtin, subject, &call);
}

/* ---- expressions ---- */

static struct value evaluate_items(struct run *r, const struct node *node)
{
    const bool is_dict = node->kind == NODE_DICT;
    struct value result =
        is_dict ? jinja_dict(jinja_new_dict(r)) : jinja_list(jinja_new_list(r, 0));

    result.type = node->kind == NODE_TUPLE ? JINJA_TUPLE : result.type;
    for (const struct node *item = node->a; item; item = item->next) {
        const struct value value = jinja_evaluate(r, is_dict ? item->a : item);

        if (is_dict)
            jinja_set(r, result.dict, value, jinja_evaluate(r, item->b));
        else
            jinja_push(r, result.list, value);
    }
    return result;
}

static struct value evaluate_comparison(struct run *r, const struct node *node)
{
    struct value left = jinja_evaluate(r, node->a);
    bool holds = true;

    for (const struct node *operand = node->b; operand && holds; operand = operand->next) {
        const struct value right = jinja_evaluate(r, operand->a);

        holds = jinja_compare_by(r, operand->op, left, right);
        left = right;
    }
    return jinja_bool(holds);
}

static struct value evaluate_item(struct run *r, const struct node *node)
{
    const struct value owner = jinja_evaluate(r, node->a);
    const struct node *index = node->b;
    struct value bounds[3];

    if (index->kind != NODE_SLICE)
        return jinja_member(r, owner, jinja_evaluate(r, index), true);
    for (size_t i = 0; i < 3; i++)
        bounds[i] = index->parts[i] ? jinja_evaluate(r, index->parts[i]) : jinja_absent;
    return jinja_slice(r, owner, bounds);
}

static struct value evaluate_sign(struct run *r, unsigned op, struct value value)
{
    jinja_need_defined(r, value);
    if (!jinja_is_number(value))
        jinja_fail(r, "bad operand type for unary %c: '%s'", (char)op, jinja_type_name(value));
    if (value.type == JINJA_FLOAT)
        return jinja_float(op == '-' ? -value.number : value.number);
    return jinja_binary(r, op, jinja_int(0), value);
}

static struct value evaluate_condition(struct run *r, const struct node *node)
{
    const bool holds = jinja_truth(jinja_evaluate(r, node->b));

    if (holds || node->c)
        return jinja_evaluate(r, holds ? node->a : node->c);
    return jinja_missing(r, jinja_format(r,
                                         "the inline if-expression on line %u evaluated to false "
                                         "and no else section was defined.",
                                         node->line));
}

static struct value evaluate(struct run *r, const struct node *node)
{
    struct value value = jinja_absent;
    struct scope *scope = r->scope;

    switch (node->kind) {
    case NODE_CONSTANT:
        return node->value;
    case NODE_NAME:
        return lookup(r, node->value);
    case NODE_TUPLE:
    case NODE_LIST:
    case NODE_DICT:
        return evaluate_items(r, node);
    case NODE_BINARY:
        value = jinja_evaluate(r, node->a);
        return jinja_binary(r, node->op, value, jinja_evaluate(r, node->b));
    case NODE_COMPARE:
        return evaluate_comparison(r, node);
    case NODE_AND:
    case NODE_OR:
        value = jinja_evaluate(r, node->a);
        return jinja_truth(value) == (node->kind == NODE_AND) ? jinja_evaluate(r, node->b) : value;
    case NODE_NOT:
        return jinja_bool(!jinja_truth(jinja_evaluate(r, node->a)));
    case NODE_SIGN:
        return evaluate_sign(r, node->op, jinja_evaluate(r, node->a));
    case NODE_CONDITION:
        return evaluate_condition(r, node);
    case NODE_ATTRIBUTE:
        return jinja_member(r, jinja_evaluate(r, node->a), node->value, false);
    case NODE_ITEM:
        return evaluate_item(r, node);
    case NODE_CALL:
        return evaluate_call(r, node);
    case NODE_FILTER:
    case NODE_TEST:
        return evaluate_filter(r, node);
    case NODE_PRINT:
        jinja_add_text(r, r->out, jinja_str(r, jinja_evaluate(r, node->a)));
        break;
    case NODE_SET:
        assign(r, node->a, jinja_evaluate(r, node->b));
        break;
    case NODE_IF:
        jinja_run_body(r, jinja_truth(jinja_evaluate(r, node->a)) ? node->b : node->c);
        break;
    case NODE_FOR:
        run_loop(r, node);
        break;
    case NODE_CAPTURE:
        return jinja_string(capture(r, node->c));
    case NODE_MACRO:
        jinja_set(r, &r->scope->variables, node->value, make_macro(r, node));
        break;
    case NODE_GENERATION:
        open_scope(r, scope);
        jinja_run_body(r, node->c);
        r->scope = scope;
        break;
    case NODE_BREAK:
    case NODE_CONTINUE:
        r->jump = node->kind == NODE_BREAK ? JINJA_BREAK : JINJA_NEXT_ROUND;
        break;
    default:
        jinja_fail(r, "a slice outside a subscript");
    }
    return value;
}

struct value jinja_evaluate(struct run *r, const struct node *node)
{
    struct value value;

    jinja_charge(r, 1);
    jinja_enter(r, JINJA_MAX_DEPTH);
    value = evaluate(r, node);
    r->depth--;
    return value;
}

void jinja_run_body(struct run *r, const struct node *body)
{
    for (; body && r->jump == JINJA_ON; body = body->next) {
        r->line = body->line;
        jinja_evaluate(r, body);
    }
}
