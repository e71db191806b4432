/* How families of models write calls of tools; see answer.h. */
#pragma once

#include "contrib/runner/chat/answer.h"

/* A text that is read from its start. */
struct run_reader {
    const char *at, *end;
};

struct run_call_form {
    const char *needs;       /* the chat template has this text */
    const char *begin, *end; /* around a call, or several; `end` NULL: none */
    const char *outer[2];    /* around all calls, outside of `begin` and `end`; or NULL */
    const char *between;     /* between a name and its arguments; NULL: both are in the JSON */
    /* Read one call, or several, before `end`. Returns 1, 0 for another form, or -ENOMEM. */
    int (*read)(const struct run_call_form *form, struct run_reader *reader,
                struct run_answer *answer);
};

/* In the order in which they are tried; the last row has no `needs`. */
extern const struct run_call_form run_call_forms[];

/* Add a call. Returns 1 or -ENOMEM. */
int run_answer_add_call(struct run_answer *answer, const char *name, size_t n_name,
                        const char *arguments, size_t n_arguments);

/* Parse a JSON value with cJSON. Long integers stay exact, as raw text. `*end`: what follows it. */
struct cJSON *run_json_parse(const char *text, size_t n_bytes, const char **end);

/* Move past a text, if it is next. */
bool run_reader_skip(struct run_reader *reader, const char *text);
void run_reader_skip_blanks(struct run_reader *reader);
/* Return the place of a text, or NULL. */
const char *run_reader_find(const struct run_reader *reader, const char *text);
