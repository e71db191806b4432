#include "contrib/runner/chat/answer.h"
#include "contrib/runner/chat/conversation.h"
#include "contrib/runner/cli/generate.h"
#include "contrib/runner/cli/line_editor.h"
#include "contrib/runner/cli/messages.h"
#include "contrib/runner/cli/run_signals.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

struct chat {
    struct run_session *session;
    struct run_generation generation;
    struct run_conversation conversation;
    struct run_ids ids;     /* of the rendered conversation */
    struct gguf_buffer end; /* the text between an answer and the next message */
    const char **stops;     /* from the options, and `end` if it is ordinary text */
    const struct run_thought_marks *marks;
    bool begins_in_thoughts; /* the prompt ends inside of thoughts */
    struct gguf_buffer line; /* what the user said */
};

/* ---- the template ---- */

/* Find the Jinja text to use. Fails if the model has none. */
static int choose_template(const struct run_session *session, const char **jinja,
                           struct run_failure *failure)
{
    const struct run_options *options = session->options;
    char names[400];

    *jinja = session->files.chat_template.length > 0 ? session->files.chat_template.bytes
             : options->chat_template ? run_chat_template_find(options->chat_template)
                                      : session->chat_template;
    if (*jinja)
        return 0;
    run_options_list_templates(names, sizeof names);
    return run_fail(failure, -EINVAL,
                    "the model has no chat template; give --chat-template a file, or a name: %s; "
                    "without -i and --messages, the model continues text",
                    names);
}

/* Switch thinking off. Fails if the prompt is the same with thinking, after the same messages. */
static int set_no_think(struct run_conversation *conversation, bool has_messages,
                        struct run_failure *failure)
{
    static const char *const names[] = {"enable_thinking", "thinking"}, *const values[] = {"true",
                                                                                           "false"};
    struct jinja_rendering prompts[2] = {0};
    int code = 0;

    for (size_t i = 0; code == 0 && i < 2; i++) {
        for (size_t k = 0; code == 0 && k < 2; k++)
            code =
                run_conversation_set(conversation, names[k], values[i], strlen(values[i]), failure);
        if (code == 0 && !has_messages)
            code = run_conversation_say(conversation, "user", "a", 1, failure);
        if (code == 0)
            code = run_conversation_render(conversation, &prompts[i], failure);
        run_conversation_cut(conversation, 0);
    }
    if (code == 0 && strcmp(prompts[0].text, prompts[1].text) == 0)
        code = run_fail(failure, -EINVAL,
                        "--no-think: the chat template has no switch for thinking: "
                        "enable_thinking and thinking change nothing");
    jinja_rendering_free(&prompts[0]);
    jinja_rendering_free(&prompts[1]);
    return code;
}

static int set_arguments(struct chat *chat, struct run_failure *failure)
{
    const struct run_session *session = chat->session;
    const struct run_options *options = session->options;
    const struct gguf_buffer *messages = &session->files.messages, *tools = &session->files.tools;
    int code = 0;

    chat->conversation.given =
        gguf_template_options_given(&options->variables, options->system_text ? "--system" : NULL);
    if (messages->length > 0)
        code = run_conversation_begin_with(&chat->conversation, messages, failure);
    if (code == 0 && tools->length > 0)
        code = run_conversation_set(&chat->conversation, "tools", tools->bytes, tools->length,
                                    failure);
    for (size_t i = 0; code == 0 && i < options->variables.arguments.n_texts; i++) {
        const char *value, *name = gguf_template_argument(&options->variables, i, &value);

        code = run_conversation_set(&chat->conversation, name, value, strlen(value), failure);
    }
    if (code == 0 && options->system_text)
        code = run_conversation_say(&chat->conversation, "system", options->system_text,
                                    strlen(options->system_text), failure);
    if (code == 0 && !options->thinks)
        code = set_no_think(&chat->conversation, messages->length > 0, failure);
    return code;
}

/* Drop what follows the EOS token's text, if the text begins with it. */
static void cut_at_eos(const struct run_tokenizer *tokenizer, struct gguf_buffer *text)
{
    size_t length;
    const char *eos = run_tokenizer_piece(tokenizer, tokenizer->special.eos, &length);

    if (length > 0 && text->length > length && memcmp(text->bytes, eos, length) == 0) {
        text->length = length;
        text->bytes[length] = '\0';
    }
}

/*
 * Find what else ends an answer: the first control token of the text that the template writes after
 * one, or, if that does not begin with a control token, the text itself.
 */
static int find_end(struct chat *chat, struct run_failure *failure)
{
    const struct run_tokenizer *tokenizer = chat->session->tokenizer;
    const struct gguf_texts *given = &chat->session->options->stops;
    struct run_generation *generation = &chat->generation;
    struct gguf_buffer *end = &chat->end;
    struct run_ids ids = {0};
    size_t n = given->n_texts;
    int code;

    chat->stops = calloc(n + 1, sizeof *chat->stops);
    if (!chat->stops)
        return run_fail_memory(failure);
    code = run_conversation_find_end(&chat->conversation, end, failure);
    if (code < 0)
        return code;
    if (n > 0)
        memcpy((void *)chat->stops, (const void *)given->texts, n * sizeof *chat->stops);
    cut_at_eos(tokenizer, end);
    while (end->length > 0 && strchr(" \n", end->bytes[end->length - 1]))
        end->bytes[--end->length] = '\0';
    if (end->length > 0)
        gguf_buffer_drop(end, strspn(end->bytes, " \n"));
    if (end->length > 0)
        code = run_tokenizer_encode(tokenizer, end->bytes, end->length, RUN_ENCODE_SPECIAL, &ids,
                                    failure);
    if (ids.n > 0 && run_tokenizer_is_hidden(tokenizer, ids.list[0]))
        generation->end_token = ids.list[0];
    else if (ids.n > 0)
        chat->stops[n++] = end->bytes;
    generation->output.stops = chat->stops;
    generation->output.n_stops = n;
    run_ids_free(&ids);
    return code;
}

/* ---- an answer ---- */

/* Render the conversation and encode it. */
static int encode(struct chat *chat, struct run_failure *failure)
{
    const struct run_session *session = chat->session;
    const struct gguf_special_ids *special = &session->tokenizer->special;
    struct jinja_rendering rendering;
    int code = run_conversation_render(&chat->conversation, &rendering, failure);

    if (code < 0)
        return code;
    chat->ids.n = 0;
    chat->marks = run_thought_marks_find(chat->conversation.jinja, rendering.text,
                                         rendering.text_bytes, &chat->begins_in_thoughts);
    if (session->options->adds_bos && special->is_bos_added && special->bos != RUN_NO_TOKEN &&
        run_ids_add(&chat->ids, special->bos) < 0)
        code = run_fail_memory(failure);
    if (code == 0)
        code = run_tokenizer_encode_chat(session->tokenizer, rendering.text, rendering.text_bytes,
                                         (const struct run_span *)rendering.spans,
                                         rendering.n_spans, &chat->ids, failure);
    jinja_rendering_free(&rendering);
    /* No second BOS if the template writes it itself. */
    if (code == 0 && chat->ids.n > 1 && special->bos != RUN_NO_TOKEN &&
        chat->ids.list[0] == special->bos && chat->ids.list[1] == special->bos) {
        chat->ids.n--;
        memmove(chat->ids.list, chat->ids.list + 1, chat->ids.n * sizeof *chat->ids.list);
    }
    if (code == 0 && chat->ids.n == 0)
        code = run_fail(failure, -EINVAL, "the chat template gave an empty text");
    if (code == 0 && chat->ids.n >= session->n_context)
        code = run_fail(failure, -ERANGE,
                        "the conversation has %zu tokens, and the context is %u: %s, or -c N makes "
                        "it larger",
                        chat->ids.n, session->n_context,
                        session->editor ? "/clear begins anew" : "shorten the messages");
    return code;
}

/* Take the answer apart and add it to the conversation. */
static int add_answer(struct chat *chat, struct run_failure *failure)
{
    const struct run_session *session = chat->session;
    struct run_output *output = &chat->generation.output;
    const bool has_tools = session->files.tools.length > 0 || session->files.messages.length > 0;
    struct run_answer answer;
    const char *text;
    bool has_space;
    int code;

    text = output->raw.bytes ? output->raw.bytes : "";
    has_space = session->tokenizer->is_space_added && *text == ' ';
    code =
        run_answer_parse(chat->conversation.jinja, text + has_space, output->raw.length - has_space,
                         chat->marks, chat->begins_in_thoughts, has_tools, &answer);
    code = code == 0 ? run_conversation_add(&chat->conversation, "assistant", &answer, failure)
                     : run_fail_memory(failure);
    if (code == 0 && session->options->is_json) { /* a list of one */
        const struct jinja_argument *added = run_conversation_last(&chat->conversation);

        printf("%.*s\n", (int)added->json_bytes - 2, added->json + 1);
        code = run_flush_stdout(failure);
    }
    run_answer_free(&answer);
    return code;
}

/* Generate the answer to the conversation so far. */
static int answer(struct chat *chat, struct run_failure *failure)
{
    struct run_generation *generation = &chat->generation;
    struct run_output *output = &generation->output;
    const struct gguf_buffer *text = &output->text;
    int code = encode(chat, failure);

    if (code < 0)
        return code;
    run_output_begin(output, true);
    output->marks = chat->marks;
    output->is_dim = chat->begins_in_thoughts;
    run_signals_clear_interrupt();
    code = run_generation_feed(generation, &chat->ids, failure);
    if (code == 0)
        code = run_generate(generation, failure);
    if (code == 0 && generation->ending == RUN_ENDING_CONTEXT && chat->session->editor)
        run_message(
            "the answer was cut: the context of %u tokens is full; /clear begins anew, -c N "
            "makes it larger",
            chat->session->n_context);
    if (code == 0 && !output->is_kept &&
        (text->length == 0 || text->bytes[text->length - 1] != '\n'))
        code = run_output_newline(failure);
    return code == 0 ? add_answer(chat, failure) : code;
}

/* ---- the user ---- */

static int read_line(struct chat *chat)
{
    run_signals_clear_interrupt();
    return chat->session->editor ? run_line_editor_read(chat->session->editor, &chat->line)
                                 : run_plain_line_read(&chat->line);
}

static int say(struct chat *chat, const char *text, size_t n_bytes, struct run_failure *failure)
{
    struct run_conversation *conversation = &chat->conversation;
    const size_t n = conversation->n_messages;
    int code = run_conversation_say(conversation, "user", text, n_bytes, failure);

    if (code == 0)
        code = answer(chat, failure);
    if (code < 0) /* the message was not answered */
        run_conversation_cut(conversation, n);
    return code;
}

/* ---- commands ---- */

static int clear(struct chat *chat, const char *text, struct run_failure *failure)
{
    run_conversation_cut(&chat->conversation, 0);
    run_message("the conversation begins anew%s%s",
                chat->conversation.arguments[0].json
                    ? "; the system message stays: /system TEXT sets another"
                    : "",
                chat->session->files.messages.length > 0 ? "; the messages of --messages stay"
                                                         : "");
    return 0;
}

static int set_system(struct chat *chat, const char *text, struct run_failure *failure)
{
    int code;

    if (*text == '\0') {
        run_message("/system: needs a text, as in: /system Answer in one sentence.");
        return 0;
    }
    code = run_conversation_say(&chat->conversation, "system", text, strlen(text), failure);
    if (code == 0)
        run_message("the next answers follow this system message");
    return code;
}

/* Answer the last message again. A failure keeps the old answer. */
static int regenerate(struct chat *chat, const char *text, struct run_failure *failure)
{
    struct run_conversation *conversation = &chat->conversation;
    struct jinja_argument old;
    int code;

    if (conversation->n_messages == 0) {
        run_message("/regen: there is no answer yet");
        return 0;
    }
    old = *run_conversation_last(conversation);
    conversation->n_messages--;
    code = answer(chat, failure);
    if (code < 0 && code != -EIO) { /* no answer was added */
        conversation->n_messages++;
        *run_conversation_last(conversation) = old;
    } else {
        free((char *)(uintptr_t)old.json);
    }
    return code;
}

static int leave(struct chat *chat, const char *text, struct run_failure *failure)
{
    return -ENODATA;
}

static const struct command {
    const char *name, *help; /* `help` NULL: another name */
    int (*run)(struct chat *chat, const char *text, struct run_failure *failure);
} commands[] = {
    {"/help", "print this", NULL},
    {"/clear", "forget the conversation", clear},
    {"/system", "TEXT: set the system message", set_system},
    {"/regen", "answer the last message again", regenerate},
    {"/exit", "end the chat, as Ctrl-D does", leave},
    {"/quit", NULL, leave},
    {"/bye", NULL, leave},
};

static int help(void)
{
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
        if (commands[i].help)
            run_message("%-8s %s", commands[i].name, commands[i].help);
    run_message("Ctrl-C stops an answer; a line that ends with \\ goes on with the next one");
    return 0;
}

/* Run a command, or answer a message. Returns 0, or -ENODATA to end the chat, or an error. */
static int take_line(struct chat *chat, struct run_failure *failure)
{
    const char *line = chat->line.bytes ? chat->line.bytes : "";
    const char *start = line + strspn(line, " \t");
    const size_t n = strcspn(start, " \t");

    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
        if (strlen(commands[i].name) == n && strncmp(start, commands[i].name, n) == 0)
            return commands[i].run
                       ? commands[i].run(chat, start + n + strspn(start + n, " \t"), failure)
                       : help();
    /* Not paths, which begin with a slash, too, and pasted lines. */
    if (*start == '/' && chat->session->editor && !memchr(start + 1, '/', n - 1) &&
        !strchr(start, '\n')) {
        run_message("%.*s: no such command; /help lists them", (int)n, start);
        return 0;
    }
    return *start == '\0' ? 0 : say(chat, line, chat->line.length, failure);
}

/* ---- the conversation ---- */

/* A failure with one message does not end a chat at a terminal. */
static bool goes_on(const struct chat *chat, int code, const struct run_failure *failure)
{
    if (!chat->session->editor || (code != -ERANGE && code != -EINVAL && code != -EINTR))
        return false;
    if (code == -EINTR)
        run_message("stopped before the answer; the conversation is as it was before");
    else
        run_message("%s", failure->text);
    return true;
}

/* Take turns. Returns 0, -EINTR after Ctrl-C outside of an answer, or another negative errno. */
static int converse(struct chat *chat, struct run_failure *failure)
{
    const char *first = chat->session->options->prompt;
    int code = 0;

    if (first && strcmp(first, "-") != 0)
        code = say(chat, first, strlen(first), failure);
    else if (chat->session->files.messages.length > 0)
        code = answer(chat, failure);
    if (!chat->session->options->is_interactive)
        return code;
    while (code == 0) {
        code = read_line(chat);
        if (code == -ENOMEM)
            return run_fail_memory(failure);
        if (code < 0)
            break;
        code = take_line(chat, failure);
        if (goes_on(chat, code, failure))
            code = 0;
        /* Without a terminal, Ctrl-C ends the whole chat. */
        if (code == 0 && !chat->session->editor && run_signals_is_interrupted())
            return -EINTR;
    }
    return code == -ENODATA ? 0 : code;
}

static void end(struct chat *chat)
{
    run_generation_close(&chat->generation);
    run_conversation_close(&chat->conversation);
    gguf_buffer_free(&chat->end);
    gguf_buffer_free(&chat->line);
    run_ids_free(&chat->ids);
    free((void *)chat->stops);
}

int run_task_chat(struct run_session *session, struct run_failure *failure)
{
    struct chat chat = {.session = session};
    const char *jinja;
    int code = choose_template(session, &jinja, failure);

    if (code < 0)
        return code;
    code = run_conversation_open(jinja, session->tokenizer, &chat.conversation, failure);
    if (code == 0)
        code = set_arguments(&chat, failure);
    if (code == 0)
        code = run_generation_open(session, &chat.generation, failure);
    if (code == 0)
        code = find_end(&chat, failure);
    if (code == 0 && session->editor)
        run_message("Ctrl-C stops an answer, /help lists commands, /exit or Ctrl-D ends the chat");
    run_signals_defer_interrupt(true);
    if (code == 0)
        code = converse(&chat, failure);
    run_signals_defer_interrupt(false);
    if (session->editor)
        fputc('\n', stderr);
    if (code == 0 || code == -EINTR)
        run_generation_report(&chat.generation);
    end(&chat);
    return code;
}
