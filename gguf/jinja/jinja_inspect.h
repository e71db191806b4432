/* Looks into parsed templates, without running them. */
#pragma once

#include "gguf/jinja/jinja.h"

/* A place in a template. */
struct jinja_place {
    unsigned line;
    char text[64]; /* NUL-terminated, cut */
};

/*
 * Find the first condition on words in the text of a message, as in {% if "deploy" in
 * message.content %}: with it, a template acts on what is said. Conditions on marks, such as
 * </think>, and on the types of parts are common and not meant.
 */
bool jinja_find_word_condition(const struct jinja_template *parsed, struct jinja_place *place);
