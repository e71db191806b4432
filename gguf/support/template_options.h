/* The options that give variables of a chat template, which both programs have. */
#pragma once

#include "gguf/support/option_rows.h"

struct gguf_template_options {
    const char *messages, *tools; /* files; NULL: not given */
    struct gguf_texts arguments;  /* KEY=JSON, divided by gguf_template_argument() */
};

/* Return the names of those options that were given, or `otherwise` if none was. */
const char *gguf_template_options_given(const struct gguf_template_options *options,
                                        const char *otherwise);

/* Return the variable of the JSON in --messages: NULL for an object of variables. */
const char *gguf_messages_variable(const char *json);

/* Divide KEY=JSON. Returns KEY; `*json` becomes its value. */
const char *gguf_template_argument(const struct gguf_template_options *options, size_t index,
                                   const char **json);
