/*
 * A conversation with a model, rendered by the model's own chat template. The template is a Jinja
 * program; see gguf/jinja/jinja.h.
 */
#pragma once

#include "contrib/runner/chat/answer.h"
#include "contrib/runner/tokenizer/tokenizer.h"
#include "gguf/jinja/jinja.h"
#include "gguf/support/arrays.h"

struct run_conversation {
    struct jinja_template *parsed;
    const char *jinja; /* its text */
    /*
     * Owned, as is their JSON: the system message (NULL: none), variables, the messages that were
     * added, and room for one more. A message is a list of one.
     */
    struct jinja_argument *arguments;
    size_t n_variables, n_messages, room; /* the system message is among the variables */
    /* The messages of run_conversation_begin_with(). */
    bool has_system_elsewhere; /* in them */
    size_t first;              /* their index in the arguments */
    char *first_joined;        /* their JSON with parts of texts joined; NULL: there are no parts */
    const char *given;         /* the options with what may be wrong; NULL: none */
    struct tm now;
};

/*
 * Begin with a template and the special tokens of the tokenizer. The template must outlive the
 * conversation. Returns 0 or -EINVAL with the error of the template, or -ENOMEM.
 * Close it in any case.
 */
int run_conversation_open(const char *jinja, const struct run_tokenizer *tokenizer,
                          struct run_conversation *conversation, struct run_failure *failure);
void run_conversation_close(struct run_conversation *conversation);

/*
 * Set a variable of the template to a JSON value, before messages are added. `name`, which must
 * outlive the conversation, is NULL for an object of variables.
 */
int run_conversation_set(struct run_conversation *conversation, const char *name, const char *json,
                         size_t n_bytes, struct run_failure *failure);

/*
 * Begin with messages: a JSON list, or an object of variables with the list "messages". A template
 * that does not take content in parts gets their texts, joined by line breaks. Returns 0, -EINVAL
 * if there is an image or another medium, or -ENOMEM.
 */
int run_conversation_begin_with(struct run_conversation *conversation,
                                const struct gguf_buffer *messages, struct run_failure *failure);

/* Add a message of a role. `role` "system" replaces the system message, which comes first;
 * -EINVAL if the messages that the conversation began with have one. */
int run_conversation_say(struct run_conversation *conversation, const char *role, const char *text,
                         size_t n_bytes, struct run_failure *failure);

/* Add a message of another role. Returns 0 or -ENOMEM. */
int run_conversation_add(struct run_conversation *conversation, const char *role,
                         const struct run_answer *message, struct run_failure *failure);

/* Return the message added last. Requires that one was added. */
struct jinja_argument *run_conversation_last(const struct run_conversation *conversation);

/* Drop all but the first `n` of the messages that were added. */
void run_conversation_cut(struct run_conversation *conversation, size_t n);

/*
 * Render the conversation with the prompt for an answer. Returns 0, -EINVAL with the error of the
 * template, or -ENOMEM. The caller frees the rendering.
 */
int run_conversation_render(const struct run_conversation *conversation,
                            struct jinja_rendering *rendering, struct run_failure *failure);

/*
 * Find what ends an answer: the text that the template writes between an answer and the next
 * message. Empty if the template does not write one, or cannot be rendered. Returns 0, -EINVAL if
 * an argument is wrong, or -ENOMEM. The caller frees `end` in any case.
 */
int run_conversation_find_end(struct run_conversation *conversation, struct gguf_buffer *end,
                              struct run_failure *failure);

/* Templates for models that have none. The last row has no name. */
struct run_chat_template {
    const char *name, *jinja;
};

extern const struct run_chat_template run_chat_templates[];

/* Return the text of the template with that name, or NULL. */
const char *run_chat_template_find(const char *name);
