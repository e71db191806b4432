/*
 * The answer of a model, taken apart: what it says, what it thought before, and the calls of tools.
 * Families of models write thoughts and calls between marks of their own; answer_forms.c is the
 * table of these. A form applies only if the model's chat template has its marks.
 */
#pragma once

#include "gguf/support/arrays.h"

#include <stdbool.h>

/* Marks around thoughts. */
struct run_thought_marks {
    const char *needs; /* the chat template has this text */
    const char *begin, *end;
    bool are_messages; /* thoughts, calls and what it says are messages with a channel (gpt-oss) */
};

/*
 * Return the marks that a chat template names, or NULL. `*is_begun` becomes true if the text of the
 * prompt ends after the first mark, so that the answer begins inside the thoughts.
 */
const struct run_thought_marks *run_thought_marks_find(const char *jinja, const char *prompt,
                                                       size_t n_bytes, bool *is_begun);

struct run_answer {
    struct gguf_buffer content, thoughts;
    struct gguf_buffer calls; /* of tools: objects of JSON, divided by commas */
    size_t n_calls;
};

/*
 * Take an answer apart: the `n_bytes` bytes of UTF-8 that the model generated, with the texts of
 * control tokens. `marks` as found above, or NULL. Calls are read if `has_tools`; what does not
 * have the form of a call stays content. Returns 0 or -ENOMEM. Free the answer in any case.
 */
int run_answer_parse(const char *jinja, const char *text, size_t n_bytes,
                     const struct run_thought_marks *marks, bool is_begun, bool has_tools,
                     struct run_answer *answer);
void run_answer_free(struct run_answer *answer);

/* Append the answer as a JSON object, a message as OpenAI's API has it. Returns 0 or -ENOMEM. */
int run_answer_add_json(const struct run_answer *answer, const char *role,
                        struct gguf_buffer *json);

/*
 * Append a JSON string. All control characters are escaped, also those that JSON allows, because
 * the output may go to a terminal. Returns 0 or -ENOMEM.
 */
int run_json_add_string(struct gguf_buffer *json, const char *bytes, size_t n_bytes);
