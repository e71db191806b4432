/*
 * Chat formats: a table of the common prompt formats, as data. Models carry a Jinja template; it is
 * recognised by its characteristic parts and never executed.
 */
#ifndef GGUFS_RUNNER_CHAT_FORMAT_H
#define GGUFS_RUNNER_CHAT_FORMAT_H

#include <stdbool.h>
#include <stddef.h>

/* Placeholders in pieces for the model's own BOS and EOS token. */
#define RUN_CHAT_BOS "\001"
#define RUN_CHAT_EOS "\002"

enum run_chat_role { RUN_CHAT_SYSTEM, RUN_CHAT_USER, RUN_CHAT_ASSISTANT, RUN_CHAT_ROLES };

/* Flags of a format. */
enum {
    /* White space at both ends of this role's messages is removed. */
    RUN_CHAT_TRIM_SYSTEM = 1 << RUN_CHAT_SYSTEM,
    RUN_CHAT_TRIM_USER = 1 << RUN_CHAT_USER,
    RUN_CHAT_TRIM_ASSISTANT = 1 << RUN_CHAT_ASSISTANT,
    RUN_CHAT_TRIM = RUN_CHAT_TRIM_SYSTEM | RUN_CHAT_TRIM_USER | RUN_CHAT_TRIM_ASSISTANT,
    /* The system message goes inside the next user message, before its text. */
    RUN_CHAT_SYSTEM_IN_USER = 1 << 3,
};

struct run_chat_format {
    const char *name;
    const char *start; /* before the first message */
    /* follows `start` if the first message is not the system's */
    const char *no_system;
    const char *around[RUN_CHAT_ROLES][2]; /* before and after the messages of a role */
    const char *answer;                    /* prompts the model for its message */
    unsigned oddities;
};

struct run_chat_message {
    enum run_chat_role role;
    const char *text;
    size_t length;
};

/* The model's part of a conversation's text. */
struct run_chat_model {
    const char *bos, *eos; /* texts of these tokens; "" if the model has none */
    bool is_bos_added;     /* the tokenizer adds a BOS at the start */
};

/*
 * Take the next piece of the conversation. `is_message` is true for the text of a message, false
 * for text that the format adds. A result other than 0 ends the writing and is returned.
 */
typedef int run_chat_writer(void *user, const char *bytes, size_t length, bool is_message);

/* Return the format at `index`, in alphabetical order, or NULL past the last one. */
const struct run_chat_format *run_chat_format_at(size_t index);

/* Return the format of that name, or NULL. */
const struct run_chat_format *run_chat_format_find(const char *name);

/* Return the format that a Jinja template describes, or NULL if none is recognised. */
const struct run_chat_format *run_chat_format_recognise(const char *jinja);

/* Write the messages and the prompt for an answer. Returns 0 or what `writer` returned. */
int run_chat_write(const struct run_chat_format *format, const struct run_chat_model *model,
                   const struct run_chat_message *messages, size_t n_messages,
                   run_chat_writer *writer, void *user);

/*
 * Write the text after an answer of the model: the end of its message, the user's next message, and
 * the prompt for another answer. Returns 0 or what `writer` returned.
 */
int run_chat_write_next(const struct run_chat_format *format, const struct run_chat_model *model,
                        const struct run_chat_message *message, run_chat_writer *writer,
                        void *user);

/* Write the text before or after the messages of a role, with the model's tokens filled in. */
int run_chat_write_around(const struct run_chat_format *format, const struct run_chat_model *model,
                          enum run_chat_role role, bool is_behind, run_chat_writer *writer,
                          void *user);

#endif
