/* Tables of small templates with the results that jinja2 3.1 gives in the environment of
 * transformers. */
#pragma once

#include "gguf/jinja/jinja.h"

struct jinja_case {
    const char *source;
    const char *text; /* or, of a template that fails, a part of the message */
    unsigned line;    /* of the error; 0: not compared */
};

/* Render with the variables that all tables use. Ends the test if the template does not parse. */
int jinja_case_render(const char *source, struct jinja_rendering *rendering,
                      struct jinja_error *error);

/* Check the text of each template, up to a row without a source. */
void jinja_check_texts(const struct jinja_case *cases);

/* Check that each template fails with this message and line. */
void jinja_check_errors(const struct jinja_case *cases);

/* Render a template with arguments and return its text, or the message of its error, to be freed.
 */
char *jinja_render_with(const char *source, const struct jinja_argument *arguments,
                        size_t n_arguments, bool continues);
