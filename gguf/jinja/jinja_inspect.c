/* Looks into parsed templates, without running them. */
#include "gguf/jinja/jinja_syntax.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

/* Nodes that are nested deeper are not looked at. */
#define MAX_DEPTH 1000u
/* Each condition costs a walk. */
#define MAX_TRIES 100u

/* Return true if the value of an expression is the text of a message, as its names tell. */
static bool is_content(const struct node *node)
{
    for (; node; node = node->a) {
        if (node->kind == NODE_NAME)
            return memmem(node->value.text->bytes, node->value.text->n, "content", 7) != NULL;
        if (node->kind == NODE_ATTRIBUTE)
            return jinja_is(node->value.text, "content");
        if (node->kind == NODE_ITEM && node->b->value.type == JINJA_STRING &&
            node->b->kind == NODE_CONSTANT)
            return jinja_is(node->b->value.text, "content");
        if (node->kind == NODE_CALL) /* of a method, as in content.strip() */
            node = node->a;
        if (node->kind != NODE_ITEM && node->kind != NODE_FILTER && node->kind != NODE_ATTRIBUTE)
            return false;
    }
    return false;
}

/* Return true for a text that a person may write; not for marks, and the types of parts. */
static bool is_said(const struct node *node)
{
    size_t n_letters = 0;

    if (!node || node->kind != NODE_CONSTANT || node->value.type != JINJA_STRING ||
        jinja_is(node->value.text, "text image video audio type content"))
        return false;
    for (size_t i = 0; i < node->value.text->n; i++) {
        const unsigned char c = (unsigned char)node->value.text->bytes[i];

        n_letters += isalpha(c) || c >= 0x80;
        if (!isalnum(c) && c < 0x80 && !strchr(" .,;!?'-", c))
            return false;
    }
    return n_letters >= 3;
}

/* Return the text that the condition looks for, or NULL. */
static const struct node *find_said(const struct node *node)
{
    if (node->kind == NODE_COMPARE && node->b) {
        if (is_said(node->a) && is_content(node->b->a))
            return node->a;
        if (is_content(node->a) && is_said(node->b->a))
            return node->b->a;
    }
    if (node->kind == NODE_CALL && node->a->kind == NODE_ATTRIBUTE &&
        jinja_is(node->a->value.text, "startswith endswith find count") && is_content(node->a->a) &&
        is_said(node->b))
        return node->b;
    return NULL;
}

/* Call `visit` for nodes in order, until it returns true. */
static bool walk(const struct node *node, unsigned depth,
                 bool (*visit)(void *user, const struct node *node), void *user)
{
    for (; node && depth < MAX_DEPTH; node = node->next)
        if (visit(user, node) || walk(node->a, depth + 1, visit, user) ||
            walk(node->b, depth + 1, visit, user) || walk(node->c, depth + 1, visit, user) ||
            walk(node->d, depth + 1, visit, user) || walk(node->e, depth + 1, visit, user))
            return true;
    return false;
}

static bool is_member(void *user, const struct node *node)
{
    const struct text *name = user;
    const struct node *key =
        node->kind == NODE_ITEM && node->b && node->b->kind == NODE_CONSTANT ? node->b : node;

    return (key != node || node->kind == NODE_ATTRIBUTE) && key->value.type == JINJA_STRING &&
           key->value.text->n == name->n &&
           memcmp(key->value.text->bytes, name->bytes, name->n) == 0;
}

struct search {
    const struct jinja_template *parsed;
    struct jinja_place *place;
    unsigned n_tries;
};

/* Return true for a condition. Names of members are not meant: content may be an object. */
static bool is_condition(void *user, const struct node *node)
{
    struct search *search = user;
    const struct node *said = find_said(node);

    if (!said || search->n_tries++ > MAX_TRIES ||
        walk(search->parsed->body, 0, is_member, said->value.text))
        return false;
    search->place->line = node->line;
    snprintf(search->place->text, sizeof search->place->text, "%.*s", (int)said->value.text->n,
             said->value.text->bytes);
    return true;
}

bool jinja_find_word_condition(const struct jinja_template *parsed, struct jinja_place *place)
{
    struct search search = {parsed, place, 0};

    return walk(parsed->body, 0, is_condition, &search);
}
