#include "contrib/runner/chat/chat_format.h"

#include <string.h>

struct target {
    const struct run_chat_format *format;
    const struct run_chat_model *model;
    run_chat_writer *writer;
    void *user;
    bool is_begun; /* something was written */
};

/* Write a piece of the format. Leaves out the BOS that the tokenizer adds itself. */
static int write_piece(struct target *target, const char *piece)
{
    int result = 0;

    while (piece && *piece != '\0' && result == 0) {
        const char *bytes = piece;
        size_t length = strcspn(piece, RUN_CHAT_BOS RUN_CHAT_EOS);

        piece += length;
        if (length == 0) {
            bytes = *piece == *RUN_CHAT_BOS ? target->model->bos : target->model->eos;
            length = strlen(bytes);
            if (*piece++ == *RUN_CHAT_BOS && !target->is_begun && target->model->is_bos_added)
                continue;
        }
        target->is_begun = true;
        if (length > 0)
            result = target->writer(target->user, bytes, length, false);
    }
    return result;
}

static bool is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static int write_text(struct target *target, const struct run_chat_message *message)
{
    const char *text = message->text;
    size_t length = message->length;

    if (target->format->oddities & (1U << message->role)) {
        while (length > 0 && is_space(text[length - 1]))
            length--;
        while (length > 0 && is_space(*text)) {
            text++;
            length--;
        }
    }
    target->is_begun = true;
    return length > 0 ? target->writer(target->user, text, length, true) : 0;
}

/* `within` is the system message to put inside this one, or NULL. */
static int write_message(struct target *target, const struct run_chat_message *message,
                         const struct run_chat_message *within)
{
    const char *const *around = target->format->around[message->role];
    int result = write_piece(target, around[0]);

    if (result == 0 && within)
        result = write_message(target, within, NULL);
    if (result == 0)
        result = write_text(target, message);
    return result == 0 ? write_piece(target, around[1]) : result;
}

int run_chat_write(const struct run_chat_format *format, const struct run_chat_model *model,
                   const struct run_chat_message *messages, size_t n_messages,
                   run_chat_writer *writer, void *user)
{
    struct target target = {.format = format, .model = model, .writer = writer, .user = user};
    const struct run_chat_message *within = NULL;
    int result = write_piece(&target, format->start);

    if (result == 0 && (n_messages == 0 || messages[0].role != RUN_CHAT_SYSTEM))
        result = write_piece(&target, format->no_system);
    for (size_t i = 0; i < n_messages && result == 0; i++) {
        if (messages[i].role == RUN_CHAT_SYSTEM && (format->oddities & RUN_CHAT_SYSTEM_IN_USER)) {
            within = &messages[i];
            continue;
        }
        result =
            write_message(&target, &messages[i], messages[i].role == RUN_CHAT_USER ? within : NULL);
        if (messages[i].role == RUN_CHAT_USER)
            within = NULL;
    }
    return result == 0 ? write_piece(&target, format->answer) : result;
}

int run_chat_write_next(const struct run_chat_format *format, const struct run_chat_model *model,
                        const struct run_chat_message *message, run_chat_writer *writer, void *user)
{
    struct target target = {format, model, writer, user, .is_begun = true};
    int result = write_piece(&target, format->around[RUN_CHAT_ASSISTANT][1]);

    if (result == 0)
        result = write_message(&target, message, NULL);
    return result == 0 ? write_piece(&target, format->answer) : result;
}

int run_chat_write_around(const struct run_chat_format *format, const struct run_chat_model *model,
                          enum run_chat_role role, bool is_behind, run_chat_writer *writer,
                          void *user)
{
    struct target target = {format, model, writer, user, .is_begun = true};

    return write_piece(&target, format->around[role][is_behind]);
}
