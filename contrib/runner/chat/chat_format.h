/*
 * How models were taught to read conversations: a table of the common formats, as data. Models
 * carry a template in Jinja; it is recognised by what is characteristic of it, and not executed.
 */
#ifndef GGUFS_RUNNER_CHAT_FORMAT_H
#define GGUFS_RUNNER_CHAT_FORMAT_H

#include <stdbool.h>
#include <stddef.h>

/* In pieces: the model's own tokens that begin and end a text. */
#define RUN_CHAT_BOS "\001"
#define RUN_CHAT_EOS "\002"

enum run_chat_role { RUN_CHAT_SYSTEM, RUN_CHAT_USER, RUN_CHAT_ASSISTANT, RUN_CHAT_ROLES };

/* What is odd about a format. */
enum {
    /* White space around messages of that role is left out. */
    RUN_CHAT_TRIM_SYSTEM = 1 << RUN_CHAT_SYSTEM,
    RUN_CHAT_TRIM_USER = 1 << RUN_CHAT_USER,
    RUN_CHAT_TRIM_ASSISTANT = 1 << RUN_CHAT_ASSISTANT,
    RUN_CHAT_TRIM = RUN_CHAT_TRIM_SYSTEM | RUN_CHAT_TRIM_USER | RUN_CHAT_TRIM_ASSISTANT,
    /* The system's message stands within the user's next one, before its text. */
    RUN_CHAT_SYSTEM_IN_USER = 1 << 3,
};

struct run_chat_format {
    const char *name;
    const char *start;                     /* before everything */
    const char *no_system;                 /* then, if the first message is not the system's */
    const char *around[RUN_CHAT_ROLES][2]; /* before and behind the messages of a role */
    const char *answer;                    /* what asks the model for its message */
    unsigned oddities;
};

struct run_chat_message {
    enum run_chat_role role;
    const char *text;
    size_t length;
};

/* What a format does not know of the model. */
struct run_chat_model {
    const char *bos, *eos; /* the texts of these tokens; "" if there are none */
    bool is_bos_added;     /* the tokenizer puts one before everything */
};

/* Gets the conversation piece by piece; `is_message` tells what was said in it from what the format
 * puts around. What it returns, if not 0, ends the writing. */
typedef int run_chat_writer(void *user, const char *bytes, size_t length, bool is_message);

/* Formats in alphabetical order; NULL behind the last. */
const struct run_chat_format *run_chat_format_at(size_t index);

/* The format of that name, or NULL. */
const struct run_chat_format *run_chat_format_find(const char *name);

/* The format that a template in Jinja describes; NULL if it is not known. */
const struct run_chat_format *run_chat_format_recognise(const char *jinja);

/* Writes the messages, and what asks for an answer. */
int run_chat_write(const struct run_chat_format *format, const struct run_chat_model *model,
                   const struct run_chat_message *messages, size_t n_messages,
                   run_chat_writer *writer, void *user);

/* Writes what comes behind an answer of the model: the end of its message, the user's next one,
 * and what asks for another answer. */
int run_chat_write_next(const struct run_chat_format *format, const struct run_chat_model *model,
                        const struct run_chat_message *message, run_chat_writer *writer,
                        void *user);

/* Writes the piece before the messages of a role, or behind them, as the model has it. */
int run_chat_write_around(const struct run_chat_format *format, const struct run_chat_model *model,
                          enum run_chat_role role, bool is_behind, run_chat_writer *writer,
                          void *user);

#endif
