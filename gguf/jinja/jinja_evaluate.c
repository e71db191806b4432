/* Evaluates expressions. */
#include "gguf/jinja/jinja_run.h"

#include <string.h>

static struct value lookup(struct run *run, struct scope *scope, struct value name)
{
    struct value *found = NULL;
    const struct builtin *global;
    struct function *function;

    for (; scope && !found; scope = scope->parent)
        found = jinja_dict_find(run, &scope->variables, name);
    if (!found)
        found = jinja_dict_find(run, run->variables, name);
    if (found && found->type != JINJA_ABSENT)
        return *found;
    if (jinja_text_is(name.text, "self")) /* has the blocks of the template; there are none */
        return (struct value){.type = JINJA_NAMESPACE, .dict = jinja_dict_make(run)};
    global = jinja_find_builtin(jinja_globals, name.text);
    if (!global)
        return jinja_undefined(run, jinja_absent(), name);
    function = jinja_alloc(run, sizeof *function);
    function->builtin = global;
    return (struct value){.type = JINJA_FUNCTION, .function = function};
}

static struct list *evaluate_items(struct run *run, struct scope *scope, const struct node *items)
{
    struct list *list = jinja_list_make(run, 0);

    for (; items; items = items->next)
        jinja_list_add(run, list, jinja_evaluate(run, scope, items));
    return list;
}

static struct value evaluate_comparison(struct run *run, struct scope *scope,
                                        const struct node *node)
{
    struct value left = jinja_evaluate(run, scope, node->a);

    for (const struct node *operand = node->b; operand; operand = operand->next) {
        const struct value right = jinja_evaluate(run, scope, operand->a);

        if (!jinja_compare_by(run, operand->op, left, right))
            return jinja_bool(false);
        left = right;
    }
    return jinja_bool(true);
}

struct call jinja_evaluate_arguments(struct run *run, struct scope *scope,
                                     const struct node *arguments)
{
    struct call call = {jinja_list_make(run, 0), NULL};

    for (const struct node *node = arguments; node; node = node->next) {
        const bool is_named =
            node->kind == NODE_KEYWORD || (node->kind == NODE_SPREAD && node->op != '*');
        const struct value value = jinja_evaluate(
            run, scope, node->kind == NODE_KEYWORD || node->kind == NODE_SPREAD ? node->a : node);

        if (is_named && !call.named)
            call.named = jinja_dict_make(run);
        if (node->kind == NODE_KEYWORD) {
            jinja_dict_set(run, call.named, node->value, value);
        } else if (is_named) {
            if (value.type != JINJA_DICT)
                jinja_fail(run, "argument after ** must be a mapping, not %s",
                           jinja_type_name(value));
            for (size_t i = 0; i < value.dict->count; i++) {
                jinja_need_text(run, value.dict->entries[i].key);
                jinja_dict_set(run, call.named, value.dict->entries[i].key,
                               value.dict->entries[i].value);
            }
        } else if (node->kind == NODE_SPREAD) {
            const struct list *items = jinja_items(run, value);

            for (size_t i = 0; i < items->count; i++)
                jinja_list_add(run, call.positional, items->items[i]);
        } else {
            jinja_list_add(run, call.positional, value);
        }
    }
    return call;
}

static struct value evaluate_slice(struct run *run, struct scope *scope, const struct node *node)
{
    const struct value owner = jinja_evaluate(run, scope, node->a);
    struct value part[3] = {{.type = JINJA_ABSENT}, {.type = JINJA_ABSENT}, {.type = JINJA_ABSENT}};
    const struct node *const nodes[] = {node->b->a, node->b->b, node->b->c};

    for (size_t i = 0; i < 3; i++) {
        if (nodes[i])
            part[i] = jinja_evaluate(run, scope, nodes[i]);
    }
    return jinja_slice(run, owner, part[0], part[1], part[2]);
}

static struct value evaluate_sign(struct run *run, unsigned op, struct value value)
{
    if (value.type == JINJA_UNDEFINED)
        jinja_fail_undefined(run, value);
    if (!jinja_is_number(value))
        jinja_fail(run, "bad operand type for unary %c: '%s'", (char)op, jinja_type_name(value));
    if (value.type == JINJA_FLOAT)
        return jinja_float(op == '-' ? -value.number : value.number);
    return op == '-' ? jinja_binary(run, '-', jinja_int(0), value) : jinja_int(value.integer);
}

static struct value evaluate_concat(struct run *run, struct scope *scope, const struct node *items)
{
    struct text *text = jinja_str(run, jinja_evaluate(run, scope, items));

    while ((items = items->next))
        text = jinja_text_join(run, text, jinja_str(run, jinja_evaluate(run, scope, items)));
    return jinja_string(text);
}

static struct value evaluate_filter(struct run *run, struct scope *scope, const struct node *node)
{
    struct value subject;
    struct call call;

    if (!node->builtin)
        jinja_fail_unknown(run, node);
    subject = jinja_evaluate(run, scope, node->a);
    call = jinja_evaluate_arguments(run, scope, node->b);
    return jinja_call_builtin(run, node->kind == NODE_FILTER ? "filter" : "test", node->builtin,
                              subject, &call);
}

static struct value evaluate_call(struct run *run, struct scope *scope, const struct node *node)
{
    const struct value callee = jinja_evaluate(run, scope, node->a);
    const struct call call = jinja_evaluate_arguments(run, scope, node->b);

    return jinja_call(run, callee, &call);
}

static struct value evaluate_dict(struct run *run, struct scope *scope, const struct node *pairs)
{
    struct value value = {.type = JINJA_DICT, .dict = jinja_dict_make(run)};

    for (; pairs; pairs = pairs->next) {
        const struct value key = jinja_evaluate(run, scope, pairs->a);

        jinja_dict_set(run, value.dict, key, jinja_evaluate(run, scope, pairs->b));
    }
    return value;
}

static struct value evaluate_condition(struct run *run, struct scope *scope,
                                       const struct node *node)
{
    if (jinja_truth(jinja_evaluate(run, scope, node->b)))
        return jinja_evaluate(run, scope, node->a);
    if (node->c)
        return jinja_evaluate(run, scope, node->c);
    return jinja_undefined_because(
        run,
        "the inline if-expression on line %u evaluated to false and no else section was defined.",
        node->line);
}

struct value jinja_evaluate(struct run *run, struct scope *scope, const struct node *node)
{
    struct value value, other;

    jinja_charge(run, 1);
    jinja_enter(run, JINJA_MAX_DEPTH);
    switch (node->kind) {
    case NODE_CONSTANT:
        value = node->value;
        break;
    case NODE_NAME:
        value = lookup(run, scope, node->value);
        break;
    case NODE_TUPLE:
    case NODE_LIST:
        value = jinja_list(evaluate_items(run, scope, node->a));
        value.type = node->kind == NODE_LIST ? JINJA_LIST : JINJA_TUPLE;
        break;
    case NODE_DICT:
        value = evaluate_dict(run, scope, node->a);
        break;
    case NODE_BINARY:
        value = jinja_evaluate(run, scope, node->a);
        other = jinja_evaluate(run, scope, node->b);
        value = jinja_binary(run, node->op, value, other);
        break;
    case NODE_CONCAT:
        value = evaluate_concat(run, scope, node->a);
        break;
    case NODE_COMPARE:
        value = evaluate_comparison(run, scope, node);
        break;
    case NODE_AND:
    case NODE_OR:
        value = jinja_evaluate(run, scope, node->a);
        if (jinja_truth(value) == (node->kind == NODE_AND))
            value = jinja_evaluate(run, scope, node->b);
        break;
    case NODE_NOT:
        value = jinja_bool(!jinja_truth(jinja_evaluate(run, scope, node->a)));
        break;
    case NODE_SIGN:
        value = evaluate_sign(run, node->op, jinja_evaluate(run, scope, node->a));
        break;
    case NODE_CONDITION:
        value = evaluate_condition(run, scope, node);
        break;
    case NODE_ATTRIBUTE:
        value = jinja_attribute(run, jinja_evaluate(run, scope, node->a), node->value.text);
        break;
    case NODE_ITEM:
        if (node->b->kind == NODE_SLICE) {
            value = evaluate_slice(run, scope, node);
        } else {
            value = jinja_evaluate(run, scope, node->a);
            other = jinja_evaluate(run, scope, node->b);
            value = jinja_item(run, value, other);
        }
        break;
    case NODE_CALL:
        value = evaluate_call(run, scope, node);
        break;
    case NODE_FILTER:
    case NODE_TEST:
        value = evaluate_filter(run, scope, node);
        break;
    default:
        jinja_fail(run, "a slice outside a subscript");
    }
    jinja_leave(run);
    return value;
}
