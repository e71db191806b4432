#include "contrib/runner/chat/chat_format.h"
#include "contrib/runner/cli/generate.h"
#include "contrib/runner/cli/messages.h"
#include "contrib/runner/cli/run_signals.h"
#include "contrib/runner/cli/tasks.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#define STATUS_INTERRUPTED 130

/* A part of the text to feed: bytes [start, end). */
struct part {
    size_t start, end;
    bool is_message;
};

struct chat {
    struct run_session *session;
    struct run_generation generation;
    const struct run_chat_format *format;
    struct run_chat_model model;
    char *bos, *eos;         /* owned texts of these tokens */
    struct gguf_buffer text; /* to be fed next */
    struct part *parts;
    size_t n_parts, parts_capacity;
    struct run_ids ids;
    struct gguf_buffer marks[2]; /* the text after an answer, the text before the user's message */
    const char **stops;          /* from the options and from the format */
    char *line;                  /* buffer of getline() */
    size_t line_capacity;
    bool is_begun;
    bool is_terminal;
};

/* ---- the format ---- */

/* The names of all formats. */
static void list_formats(char *names, size_t capacity)
{
    const struct run_chat_format *format;

    names[0] = '\0';
    for (size_t i = 0; (format = run_chat_format_at(i)); i++)
        run_list_add(names, capacity, " ", format->name);
}

/* Prints errors. Returns an exit status. */
static int choose_format(struct chat *chat)
{
    const struct run_options *options = chat->session->options;
    const char *name = options->chat_template;
    const char *jinja = chat->session->chat_template;
    char names[4096];

    chat->format = name    ? run_chat_format_find(name)
                   : jinja ? run_chat_format_recognise(jinja)
                           : NULL;
    if (chat->format)
        return EX_OK;
    list_formats(names, sizeof names);
    run_message("%s: %s; without -i it continues text; or choose one with --chat-template NAME: %s",
                options->model,
                jinja ? "chat template not recognized" : "the model has no chat template", names);
    return EX_DATAERR;
}

static char *text_of(const struct run_tokenizer *tokenizer, int32_t id)
{
    size_t length = 0;
    const char *piece = id == RUN_NO_TOKEN ? "" : run_tokenizer_piece(tokenizer, id, &length);

    return strndup(piece, length);
}

static int add_mark(void *user, const char *bytes, size_t length, bool is_message)
{
    (void)is_message;
    return gguf_buffer_add(user, bytes, length);
}

/* Remove white space at both ends. */
static void trim(struct gguf_buffer *text)
{
    size_t n = 0;

    while (text->length > 0 && strchr(" \n\t", text->bytes[text->length - 1]))
        text->bytes[--text->length] = '\0';
    while (n < text->length && strchr(" \n\t", text->bytes[n]))
        n++;
    gguf_buffer_drop(text, n);
}

/*
 * Find what else ends an answer: the text that follows the model's messages, and the text that
 * precedes the user's. If it is a token of the vocabulary, that token ends the answer; unless it
 * is a control token, the text becomes a stop text, too.
 */
static int find_ends(struct chat *chat, struct run_failure *failure)
{
    const struct run_tokenizer *tokenizer = chat->session->tokenizer;
    const struct gguf_texts *given = &chat->session->options->stops;
    struct run_generation *generation = &chat->generation;
    size_t n = given->n_texts;

    chat->stops = calloc(n + 2, sizeof *chat->stops);
    if (!chat->stops)
        return run_fail_memory(failure);
    if (n > 0)
        memcpy((void *)chat->stops, (const void *)given->texts, n * sizeof *chat->stops);
    for (int i = 0; i < 2; i++) {
        struct gguf_buffer *mark = &chat->marks[i];
        int32_t id;

        if (run_chat_write_around(chat->format, &chat->model,
                                  i == 0 ? RUN_CHAT_ASSISTANT : RUN_CHAT_USER, i == 0, add_mark,
                                  mark) < 0)
            return run_fail_memory(failure);
        if (mark->length > 0)
            trim(mark);
        if (mark->length == 0)
            continue;
        id = run_tokenizer_find(tokenizer, mark->bytes);
        if (id != RUN_NO_TOKEN)
            generation->end_tokens[i] = id;
        /* The model may also spell out an ordinary token with others. */
        if (id == RUN_NO_TOKEN || !run_tokenizer_is_hidden(tokenizer, id))
            chat->stops[n++] = mark->bytes;
    }
    generation->output.stops = chat->stops;
    generation->output.n_stops = n;
    return 0;
}

/* ---- the turn of the user ---- */

static int add_part(void *user, const char *bytes, size_t length, bool is_message)
{
    struct chat *chat = user;
    const size_t start = chat->text.length;

    if (gguf_buffer_add(&chat->text, bytes, length) < 0 ||
        run_reserve(&chat->parts, &chat->parts_capacity, chat->n_parts + 1, sizeof *chat->parts) <
            0)
        return -ENOMEM;
    chat->parts[chat->n_parts++] = (struct part){start, start + length, is_message};
    return 0;
}

static int encode(const struct chat *chat, size_t start, size_t end, unsigned flags,
                  struct run_ids *ids, struct run_failure *failure)
{
    return run_tokenizer_encode(chat->session->tokenizer, chat->text.bytes + start, end - start,
                                flags, ids, failure);
}

/* Return true if a message contains the text of a control token. */
static int has_control(const struct chat *chat, bool *has, struct run_failure *failure)
{
    struct run_ids plain = {0}, special = {0};
    int code = 0;

    *has = false;
    for (size_t i = 0; code == 0 && !*has && i < chat->n_parts; i++) {
        const struct part *part = &chat->parts[i];

        if (!part->is_message)
            continue;
        plain.n = special.n = 0;
        code = encode(chat, part->start, part->end, 0, &plain, failure);
        if (code == 0)
            code = encode(chat, part->start, part->end, RUN_ENCODE_SPECIAL, &special, failure);
        *has = plain.n != special.n ||
               (plain.n > 0 && memcmp(plain.list, special.list, plain.n * sizeof *plain.list) != 0);
    }
    run_ids_free(&plain);
    run_ids_free(&special);
    return code;
}

/*
 * Encode all parts. They are encoded together, as in training, unless a message contains the text
 * of a control token, which must stay text; then each part is encoded separately.
 */
static int make_ids(struct chat *chat, struct run_failure *failure)
{
    const struct gguf_special_ids *special = run_tokenizer_special(chat->session->tokenizer);
    bool is_split;
    int code = has_control(chat, &is_split, failure);

    chat->ids.n = 0;
    if (code == 0 && chat->generation.unfed != RUN_NO_TOKEN &&
        run_ids_add(&chat->ids, chat->generation.unfed) < 0)
        code = run_fail_memory(failure);
    if (code == 0 && !chat->is_begun && chat->model.is_bos_added && special->bos != RUN_NO_TOKEN &&
        run_ids_add(&chat->ids, special->bos) < 0)
        code = run_fail_memory(failure);
    if (code == 0 && !is_split)
        code = encode(chat, 0, chat->text.length, RUN_ENCODE_SPECIAL, &chat->ids, failure);
    for (size_t i = 0; code == 0 && is_split && i < chat->n_parts; i++) {
        const struct part *part = &chat->parts[i];

        code = encode(chat, part->start, part->end, part->is_message ? 0U : RUN_ENCODE_SPECIAL,
                      &chat->ids, failure);
    }
    if (code < 0)
        return code;
    /* No second BOS if the format writes it itself. */
    if (!chat->is_begun && chat->ids.n > 1 && special->bos != RUN_NO_TOKEN &&
        chat->ids.list[0] == special->bos && chat->ids.list[1] == special->bos) {
        chat->ids.n--;
        memmove(chat->ids.list, chat->ids.list + 1, chat->ids.n * sizeof *chat->ids.list);
    }
    return 0;
}

/* Write the user's turn, and what comes before it, and encode both. */
static int write_turn(struct chat *chat, const char *said, size_t length,
                      struct run_failure *failure)
{
    const char *system_text = chat->session->options->system_text;
    struct run_chat_message messages[2] = {
        {RUN_CHAT_SYSTEM, system_text, system_text ? strlen(system_text) : 0},
        {RUN_CHAT_USER, said, length}};
    int code;

    gguf_buffer_drop(&chat->text, chat->text.length);
    chat->n_parts = 0;
    if (chat->is_begun)
        code = run_chat_write_next(chat->format, &chat->model, &messages[1], add_part, chat);
    else
        code = run_chat_write(chat->format, &chat->model, messages + !system_text,
                              system_text ? 2 : 1, add_part, chat);
    if (code < 0)
        return run_fail_memory(failure);
    return make_ids(chat, failure);
}

/* ---- the conversation ---- */

/* Generate the answer to a message. */
static int answer(struct chat *chat, const char *said, size_t length, struct run_failure *failure)
{
    struct run_generation *generation = &chat->generation;
    const struct gguf_buffer *text = &generation->output.text;
    int code = write_turn(chat, said, length, failure);

    if (code < 0)
        return code;
    chat->is_begun = true;
    run_output_begin(&generation->output, true);
    run_signals_clear_interrupt();
    code = run_generation_feed(generation, &chat->ids, failure);
    if (code == 0)
        code = run_generate(generation, failure);
    else if (code == -EINTR) {
        run_message("interrupted while the model read the message; it has seen only a part of it, "
                    "so the chat ends");
        return -EINTR;
    }
    if (code == 0 && (text->length == 0 || text->bytes[text->length - 1] != '\n'))
        code = run_output_newline(failure);
    return code == -EINTR ? 0 : code;
}

/* Read the next line, without its end. Returns its length, or -1 at the end of the input. */
static ssize_t read_line(struct chat *chat)
{
    ssize_t length;

    for (;;) {
        errno = 0;
        if (chat->is_terminal)
            fputs("> ", stderr);
        length = getline(&chat->line, &chat->line_capacity, stdin);
        if (!chat->is_terminal || !run_is_line_cut(chat->line, length))
            break;
        run_message("the line was not read: a terminal cuts lines after %d bytes; give the text "
                    "as PROMPT \"$(cat FILE)\", or by a pipe",
                    RUN_TERMINAL_LINE_BYTES);
    }
    while (length > 0 && (chat->line[length - 1] == '\n' || chat->line[length - 1] == '\r'))
        chat->line[--length] = '\0';
    return length;
}

/* Return true if a line is a command to end the chat, with blanks around it or not. */
static bool is_exit(const char *line)
{
    static const char *const commands[] = {"/exit", "/quit", "/bye"};
    const char *start = line + strspn(line, " \t");

    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        const size_t length = strlen(commands[i]);

        if (strncmp(start, commands[i], length) == 0 &&
            start[length + strspn(start + length, " \t")] == '\0')
            return true;
    }
    return false;
}

/* Take turns. Returns 0, -EINTR after Ctrl-C outside of an answer, or another negative errno. */
static int converse(struct chat *chat, struct run_failure *failure)
{
    const char *first = chat->session->options->prompt;
    int code = 0;

    if (first && strcmp(first, "-") != 0)
        code = answer(chat, first, strlen(first), failure);
    while (code == 0 && chat->generation.ending != RUN_ENDING_CONTEXT) {
        ssize_t length;

        run_signals_clear_interrupt();
        length = read_line(chat);
        if (length < 0) {
            if (run_signals_is_interrupted())
                return -EINTR;
            break;
        }
        if (is_exit(chat->line))
            break;
        if (length > 0)
            code = answer(chat, chat->line, (size_t)length, failure);
        if (code == -ERANGE && run_engine_n_past(chat->session->engine) > 0) {
            chat->generation.ending = RUN_ENDING_CONTEXT;
            return 0;
        }
        /* Without a terminal, Ctrl-C ends the whole chat. */
        if (code == 0 && !chat->is_terminal && chat->generation.ending == RUN_ENDING_INTERRUPT)
            return -EINTR;
    }
    return code;
}

static int begin(struct chat *chat, struct run_failure *failure)
{
    struct run_session *session = chat->session;
    const struct gguf_special_ids *special = run_tokenizer_special(session->tokenizer);
    int code;

    chat->bos = text_of(session->tokenizer, special->bos);
    chat->eos = text_of(session->tokenizer, special->eos);
    if (!chat->bos || !chat->eos)
        return run_fail_memory(failure);
    chat->model = (struct run_chat_model){chat->bos, chat->eos,
                                          session->options->adds_bos && special->is_bos_added};
    code = run_generation_open(session, &chat->generation, failure);
    return code == 0 ? find_ends(chat, failure) : code;
}

static void end(struct chat *chat)
{
    run_generation_close(&chat->generation);
    for (int i = 0; i < 2; i++)
        gguf_buffer_free(&chat->marks[i]);
    gguf_buffer_free(&chat->text);
    run_ids_free(&chat->ids);
    free((void *)chat->stops);
    free(chat->parts);
    free(chat->line);
    free(chat->bos);
    free(chat->eos);
}

int run_task_chat(struct run_session *session)
{
    struct chat chat = {.session = session, .is_terminal = isatty(STDIN_FILENO)};
    struct run_failure failure;
    int status = choose_format(&chat);
    int code;

    if (status != EX_OK)
        return status;
    code = begin(&chat, &failure);
    if (code == 0 && chat.is_terminal)
        run_message("chat template %s; Ctrl-C stops an answer, /exit or Ctrl-D ends the chat",
                    chat.format->name);
    run_signals_defer_interrupt(true);
    if (code == 0)
        code = converse(&chat, &failure);
    run_signals_defer_interrupt(false);
    if (chat.is_terminal)
        fputc('\n', stderr);
    if (code < 0 && code != -EINTR)
        status = run_session_complain(session, code, &failure);
    else
        run_generation_report(&chat.generation);
    end(&chat);
    return code == -EINTR ? STATUS_INTERRUPTED : status;
}
