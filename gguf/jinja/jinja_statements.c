/* Runs statements: output, loops, assignments and macros. */
#include "gguf/jinja/jinja_run.h"

#include <string.h>

enum jump { NO_JUMP, JUMP_BREAK, JUMP_CONTINUE };

static enum jump run_body(struct run *run, struct scope *scope, const struct node *body);

static struct scope inner_scope(struct scope *parent)
{
    return (struct scope){.parent = parent};
}

/* Run a body in a scope of its own and return its output. */
static struct text *capture(struct run *run, struct scope *parent, const struct node *body)
{
    struct builder *out = run->out;
    struct scope *scope = jinja_alloc(run, sizeof *scope);
    struct text *text;

    *scope = inner_scope(parent);
    run->out = jinja_builder(run);
    run_body(run, scope, body);
    text = jinja_built(run, run->out);
    run->out = out;
    return text;
}

static void assign(struct run *run, struct scope *scope, const struct node *target,
                   struct value value)
{
    if (target->kind == NODE_NAME) {
        jinja_dict_set(run, &scope->variables, target->value, value);
    } else if (target->kind == NODE_ATTRIBUTE) {
        const struct value owner = jinja_evaluate(run, scope, target->a);

        if (owner.type != JINJA_NAMESPACE)
            jinja_fail(run, "cannot assign attribute on non-namespace object");
        if (target->value.text->bytes[0] == '_')
            jinja_fail(
                run,
                "a namespace cannot have the attribute '%.*s', which starts with an underscore",
                JINJA_SHORT(target->value.text));
        jinja_dict_set(run, owner.dict, target->value, value);
    } else {
        const struct list *items = jinja_items(run, value);
        size_t n = 0;

        for (const struct node *item = target->a; item; item = item->next)
            n++;
        if (n != items->count)
            jinja_fail(run,
                       n > items->count ? "not enough values to unpack (expected %zu, got %zu)"
                                        : "too many values to unpack (expected %zu, got %zu)",
                       n, items->count);
        n = 0;
        for (const struct node *item = target->a; item; item = item->next)
            assign(run, scope, item, items->items[n++]);
    }
}

/* ---- loops ---- */

/* Find the next item that the test of the loop lets pass. */
static void peek(struct run *run, struct loop *loop)
{
    if (loop->has_peeked)
        return;
    loop->has_peeked = true;
    loop->has_next = false;
    while (!loop->has_next && loop->at < loop->items->count) {
        loop->next = loop->items->items[loop->at++];
        jinja_charge(run, 1);
        if (loop->node->e) {
            struct scope scope = inner_scope(loop->scope);

            assign(run, &scope, loop->node->a, loop->next);
            loop->has_next = jinja_truth(jinja_evaluate(run, &scope, loop->node->e));
        } else {
            loop->has_next = true;
        }
    }
}

bool jinja_loop_next(struct run *run, struct loop *loop)
{
    peek(run, loop);
    loop->has_peeked = false;
    loop->previous = loop->current;
    loop->current = loop->next;
    loop->index++;
    return loop->has_next;
}

static size_t loop_length(struct run *run, struct loop *loop)
{
    struct loop rest = *loop;
    size_t n = loop->index;

    if (!loop->node->e)
        return loop->items->count;
    while (jinja_loop_next(run, &rest))
        n++;
    return n;
}

struct value jinja_loop_attribute(struct run *run, struct loop *loop, const struct text *name)
{
    const int64_t index = (int64_t)loop->index;

    if (jinja_text_is(name, "index"))
        return jinja_int(index);
    if (jinja_text_is(name, "index0"))
        return jinja_int(index - 1);
    if (jinja_text_is(name, "first"))
        return jinja_bool(index == 1);
    if (jinja_text_is(name, "length"))
        return jinja_int((int64_t)loop_length(run, loop));
    if (jinja_text_is(name, "previtem"))
        return index > 1 ? loop->previous
                         : jinja_undefined_because(run, "there is no previous item");
    if (jinja_text_among(name, "cycle changed depth depth0 revindex revindex0"))
        jinja_fail(run, "loop.%.*s" JINJA_NOT_IMPLEMENTED, JINJA_SHORT(name));
    if (!jinja_text_among(name, "last nextitem"))
        return jinja_absent();
    peek(run, loop);
    if (jinja_text_is(name, "last"))
        return jinja_bool(!loop->has_next);
    return loop->has_next ? loop->next : jinja_undefined_because(run, "there is no next item");
}

static enum jump run_loop(struct run *run, struct scope *parent, const struct node *node,
                          struct value iterable)
{
    struct loop *loop = jinja_alloc(run, sizeof *loop);
    struct scope *scope = jinja_alloc(run, sizeof *scope);
    const struct value name = jinja_string_of(run, "loop");
    bool has_run = false;

    *loop = (struct loop){.items = jinja_items(run, iterable), .node = node, .scope = parent};
    *scope = inner_scope(parent);
    while (jinja_loop_next(run, loop)) {
        has_run = true;
        scope->variables.count = 0; /* each round starts anew */
        if (scope->variables.slots)
            scope->variables = (struct dict){NULL};
        jinja_dict_set(run, &scope->variables, name,
                       (struct value){.type = JINJA_LOOP, .loop = loop});
        assign(run, scope, node->a, loop->current);
        if (run_body(run, scope, node->c) == JUMP_BREAK)
            break;
    }
    if (has_run || !node->d)
        return NO_JUMP;
    *scope = inner_scope(parent);
    return run_body(run, scope, node->d);
}

/* ---- macros ---- */

struct value jinja_call_macro(struct run *run, const struct macro *macro, const struct call *call)
{
    const struct node *node = macro->node;
    const struct text *name = node->value.text;
    struct scope scope = inner_scope(macro->scope), *kept = jinja_alloc(run, sizeof *kept);
    const struct value caller = jinja_string_of(run, "caller");
    struct value *called = call->named ? jinja_dict_find(run, call->named, caller) : NULL;
    const unsigned line = run->line;
    struct text *text;
    size_t n = 0;
    bool has_caller = false;

    jinja_enter(run, JINJA_MAX_DEPTH);
    *kept = scope;
    for (const struct node *parameter = node->a; parameter; parameter = parameter->next) {
        struct value *named =
            call->named ? jinja_dict_find(run, call->named, parameter->value) : NULL;
        struct value value;

        has_caller |= jinja_text_is(parameter->value.text, "caller");
        if (n < call->positional->count && named)
            jinja_fail(run, "macro '%.*s' got two values for one argument", JINJA_SHORT(name));
        if (n < call->positional->count)
            value = call->positional->items[n++];
        else if (named)
            value = *named;
        else if (parameter->a)
            value = jinja_evaluate(run, kept, parameter->a);
        else
            value = jinja_undefined(run, jinja_absent(), parameter->value);
        jinja_dict_set(run, &kept->variables, parameter->value, value);
    }
    if (n < call->positional->count)
        jinja_fail(run, "macro '%.*s' takes not more than %zu argument(s)", JINJA_SHORT(name), n);
    for (size_t i = 0; call->named && i < call->named->count; i++) {
        const struct value key = call->named->entries[i].key;

        if (!jinja_dict_find(run, &kept->variables, key) &&
            !(jinja_equal(run, key, caller) && node->op))
            jinja_fail(run, "macro '%.*s' takes no keyword argument '%.*s'", JINJA_SHORT(name),
                       JINJA_SHORT(key.text));
    }
    if (node->op && !has_caller)
        jinja_dict_set(run, &kept->variables, caller,
                       called ? *called : jinja_undefined_because(run, "No caller defined"));
    text = capture(run, kept, node->c);
    run->line = line;
    jinja_leave(run);
    return jinja_string(text);
}

static struct value make_macro(struct run *run, struct scope *scope, const struct node *node)
{
    struct macro *macro = jinja_alloc(run, sizeof *macro);

    *macro = (struct macro){node, scope};
    return (struct value){.type = JINJA_MACRO, .macro = macro};
}

/* ---- statements ---- */

/* Apply the filters of a block to its text. */
static struct value filter_block(struct run *run, struct scope *scope, const struct node *filter,
                                 struct text *text)
{
    struct value subject = jinja_string(text);
    struct call call;

    if (!filter)
        return subject;
    if (filter->a)
        subject = filter_block(run, scope, filter->a, text);
    if (!filter->builtin)
        jinja_fail_unknown(run, filter);
    call = jinja_evaluate_arguments(run, scope, filter->b);
    return jinja_call_builtin(run, "filter", filter->builtin, subject, &call);
}

static void print(struct run *run, struct value value)
{
    jinja_add_text(run, run->out, jinja_str(run, value));
}

static enum jump run_statement(struct run *run, struct scope *scope, const struct node *node)
{
    struct scope *inner;
    struct call call;
    struct value value;

    switch (node->kind) {
    case NODE_PRINT:
        print(run, jinja_evaluate(run, scope, node->a));
        return NO_JUMP;
    case NODE_IF:
        for (; node && node->kind == NODE_IF; node = node->c) {
            run->line = node->line;
            if (jinja_truth(jinja_evaluate(run, scope, node->a)))
                return run_body(run, scope, node->b);
            if (!node->c || !node->c->op || node->c->kind != NODE_IF)
                return node->c ? run_body(run, scope, node->c) : NO_JUMP;
        }
        return NO_JUMP;
    case NODE_FOR:
        return run_loop(run, scope, node, jinja_evaluate(run, scope, node->b));
    case NODE_SET:
        assign(run, scope, node->a, jinja_evaluate(run, scope, node->b));
        return NO_JUMP;
    case NODE_SET_BLOCK:
        assign(run, scope, node->a,
               filter_block(run, scope, node->b, capture(run, scope, node->c)));
        return NO_JUMP;
    case NODE_MACRO:
        jinja_dict_set(run, &scope->variables, node->value, make_macro(run, scope, node));
        return NO_JUMP;
    case NODE_CALL_BLOCK:
        value = jinja_evaluate(run, scope, node->b->a);
        call = jinja_evaluate_arguments(run, scope, node->b->b);
        if (!call.named)
            call.named = jinja_dict_make(run);
        jinja_dict_set(run, call.named, jinja_string_of(run, "caller"),
                       make_macro(run, scope, node->a));
        print(run, jinja_call(run, value, &call));
        return NO_JUMP;
    case NODE_FILTER_BLOCK:
        print(run, filter_block(run, scope, node->b, capture(run, scope, node->c)));
        return NO_JUMP;
    case NODE_GENERATION:
        inner = jinja_alloc(run, sizeof *inner);
        *inner = inner_scope(scope);
        return run_body(run, inner, node->c);
    case NODE_BREAK:
        return JUMP_BREAK;
    default:
        return JUMP_CONTINUE;
    }
}

static enum jump run_body(struct run *run, struct scope *scope, const struct node *body)
{
    enum jump jump = NO_JUMP;

    jinja_enter(run, JINJA_MAX_DEPTH);
    for (; body && jump == NO_JUMP; body = body->next) {
        jinja_charge(run, 1);
        run->line = body->line;
        jump = run_statement(run, scope, body);
    }
    jinja_leave(run);
    return jump;
}

void jinja_run_template(struct run *run, const struct jinja_template *parsed)
{
    struct scope *scope = jinja_alloc(run, sizeof *scope);

    run_body(run, scope, parsed->body);
}
