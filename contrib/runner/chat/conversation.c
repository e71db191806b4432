#include "contrib/runner/chat/conversation.h"

#include "contrib/runner/chat/answer_forms.h"
#include "gguf/support/template_options.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* `given`: the options that may be the cause. */
static int fail_template(struct run_failure *failure, const struct jinja_error *error,
                         const char *given)
{
    char place[40] = "";

    if (error->is_argument)
        return run_fail_elsewhere(failure, -EINVAL, "%s; correct %s", error->text,
                                  given ? given : "the message");
    if (error->line > 0)
        snprintf(place, sizeof place, ", line %u", error->line);
    return run_fail_elsewhere(
        failure, -EINVAL, "the chat template%s: %s; %s%s%s--chat-template NAME takes another",
        place, error->text, given ? "change " : "", given ? given : "", given ? ", or " : "");
}

/* Set the variables of the special tokens. One that the model lacks stays undefined. */
static int set_tokens(struct run_conversation *conversation, const struct run_tokenizer *tokenizer,
                      struct run_failure *failure)
{
    static const char *const names[] = {"bos_token", "eos_token", "unk_token", "pad_token"};
    const struct gguf_special_ids *special = run_tokenizer_special(tokenizer);
    const int32_t ids[] = {special->bos, special->eos, special->unk, special->pad};
    size_t n_bytes, length;
    FILE *out = open_memstream(&conversation->tokens, &n_bytes);
    bool is_first = true;

    if (!out)
        return run_fail_memory(failure);
    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++) {
        const char *piece = run_tokenizer_piece(tokenizer, ids[i], &length);

        if (ids[i] == RUN_NO_TOKEN)
            continue;
        fprintf(out, "%c\"%s\":", is_first ? '{' : ',', names[i]);
        run_json_print_string(out, piece, length);
        is_first = false;
    }
    fputs(is_first ? "{}" : "}", out);
    return fclose(out) == 0
               ? run_conversation_set(conversation, NULL, conversation->tokens, n_bytes, failure)
               : run_fail_memory(failure);
}

int run_conversation_open(const char *jinja, const struct run_tokenizer *tokenizer,
                          struct run_conversation *conversation, struct run_failure *failure)
{
    const time_t now = time(NULL);
    struct jinja_error error;
    int code;

    *conversation = (struct run_conversation){.jinja = jinja};
    localtime_r(&now, &conversation->now);
    code = jinja_template_parse(jinja, strlen(jinja), &conversation->parsed, &error);
    if (code < 0)
        return fail_template(failure, &error, NULL);
    return set_tokens(conversation, tokenizer, failure);
}

void run_conversation_close(struct run_conversation *conversation)
{
    run_conversation_cut(conversation, 0);
    free(conversation->messages);
    free(conversation->system);
    cJSON_free(conversation->first_joined);
    free(conversation->arguments);
    free(conversation->tokens);
    jinja_template_free(conversation->parsed);
}

int run_conversation_set(struct run_conversation *conversation, const char *name, const char *json,
                         size_t n_bytes, struct run_failure *failure)
{
    struct jinja_argument *grown = gguf_grow(conversation->arguments, &conversation->room,
                                             conversation->n_arguments + 1, sizeof *grown);

    if (!grown)
        return run_fail_memory(failure);
    conversation->arguments = grown;
    grown[conversation->n_arguments++] = (struct jinja_argument){name, json, n_bytes};
    return 0;
}

static const char *string_of(const cJSON *object, const char *name)
{
    return cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, name));
}

/* Join the texts of a message's parts. Returns NULL, and the type of one that is a medium. */
static cJSON *join_parts(const cJSON *parts, const char **medium)
{
    static const char *const media[] = {"image", "audio", "video", "file"};
    struct gguf_buffer joined = {0};
    const cJSON *part;
    cJSON *result;
    int code = gguf_buffer_add_string(&joined, "");

    cJSON_ArrayForEach(part, parts)
    {
        const char *type = string_of(part, "type"), *text = string_of(part, "text");

        for (size_t i = 0; type && i < sizeof media / sizeof *media; i++)
            if (strstr(type, media[i]))
                *medium = type;
        if (code == 0 && text && joined.length > 0)
            code = gguf_buffer_add_string(&joined, "\n");
        if (code == 0 && text)
            code = gguf_buffer_add_string(&joined, text);
    }
    result = code == 0 && !*medium ? cJSON_CreateString(joined.bytes) : NULL;
    gguf_buffer_free(&joined);
    return result;
}

/* Join parts of texts, and look for what no template sees to. */
static int join_messages(struct run_conversation *conversation, cJSON *list, bool *has_parts,
                         struct run_failure *failure)
{
    cJSON *message;
    size_t n = 0;

    cJSON_ArrayForEach(message, list)
    {
        const char *role = string_of(message, "role"), *medium = NULL;
        const cJSON *content = cJSON_GetObjectItemCaseSensitive(message, "content");
        cJSON *joined;

        n++;
        if (role && (strcmp(role, "system") == 0 || strcmp(role, "developer") == 0))
            conversation->has_system_elsewhere = true;
        if (!cJSON_IsArray(content))
            continue;
        joined = join_parts(content, &medium);
        if (medium)
            return run_fail_elsewhere(failure, -EINVAL,
                                      "--messages: message %zu has a part of the type %.40s, and "
                                      "ggufs-run reads text only: remove the part",
                                      n, medium);
        if (!cJSON_ReplaceItemInObjectCaseSensitive(message, "content", joined))
            return run_fail_memory(failure);
        *has_parts = true;
    }
    return 0;
}

int run_conversation_begin_with(struct run_conversation *conversation,
                                const struct gguf_buffer *messages, struct run_failure *failure)
{
    /* Text that is not JSON is left to the interpreter, which says what is wrong. */
    const char *end;
    cJSON *json = run_json_parse(messages->bytes, messages->length, &end);
    const char *variable = gguf_messages_variable(messages->bytes);
    cJSON *list = variable ? json : cJSON_GetObjectItemCaseSensitive(json, "messages");
    bool has_parts = false;
    int code = 0;

    if (cJSON_IsArray(list))
        code = join_messages(conversation, list, &has_parts, failure);
    if (code == 0 && has_parts) {
        conversation->first_joined = cJSON_PrintUnformatted(json);
        if (!conversation->first_joined)
            code = run_fail_memory(failure);
    }
    cJSON_Delete(json);
    conversation->first = messages->bytes;
    return code == 0 ? run_conversation_set(conversation, variable, messages->bytes,
                                            messages->length, failure)
                     : code;
}

/* Return a message as a list of one in JSON, or NULL if out of memory. */
static char *list_of(const char *role, const struct run_answer *message)
{
    char *list = NULL;
    size_t length;
    FILE *out = open_memstream(&list, &length);

    if (!out)
        return NULL;
    fputc('[', out);
    run_answer_print(message, role, out);
    fputc(']', out);
    if (fclose(out) == 0)
        return list;
    free(list);
    return NULL;
}

int run_conversation_add(struct run_conversation *conversation, const char *role,
                         const struct run_answer *message, struct run_failure *failure)
{
    char **grown = gguf_grow(conversation->messages, &conversation->messages_room,
                             conversation->n_messages + 1, sizeof *grown);

    if (!grown)
        return run_fail_memory(failure);
    conversation->messages = grown;
    grown[conversation->n_messages] = list_of(role, message);
    if (!grown[conversation->n_messages])
        return run_fail_memory(failure);
    conversation->n_messages++;
    return 0;
}

int run_conversation_say(struct run_conversation *conversation, const char *role, const char *text,
                         size_t n_bytes, struct run_failure *failure)
{
    const struct run_answer message = {.content = {.bytes = (char *)text, .length = n_bytes}};

    if (strcmp(role, "system") != 0)
        return run_conversation_add(conversation, role, &message, failure);
    if (conversation->has_system_elsewhere)
        return run_fail_elsewhere(failure, -EINVAL,
                                  "--messages has a system message already: change it there, or "
                                  "remove it and give --system");
    free(conversation->system);
    conversation->system = list_of(role, &message);
    return conversation->system ? 0 : run_fail_memory(failure);
}

void run_conversation_cut(struct run_conversation *conversation, size_t n)
{
    while (conversation->n_messages > n)
        free(conversation->messages[--conversation->n_messages]);
}

static int render_messages(const struct run_conversation *conversation, bool are_joined,
                           struct jinja_rendering *rendering, struct jinja_error *error)
{
    const size_t n = conversation->n_arguments + conversation->n_messages + 2;
    struct jinja_argument *arguments = calloc(n, sizeof *arguments);
    size_t k = 0;
    int code;

    if (!arguments)
        return -ENOMEM;
    if (conversation->system)
        arguments[k++] =
            (struct jinja_argument){"messages", conversation->system, strlen(conversation->system)};
    for (size_t i = 0; i < conversation->n_arguments; i++) {
        arguments[k] = conversation->arguments[i];
        if (are_joined && arguments[k].json == conversation->first) {
            arguments[k].json = conversation->first_joined;
            arguments[k].json_bytes = strlen(conversation->first_joined);
        }
        k++;
    }
    for (size_t i = 0; i < conversation->n_messages; i++)
        arguments[k++] = (struct jinja_argument){"messages", conversation->messages[i],
                                                 strlen(conversation->messages[i])};
    arguments[k++] = (struct jinja_argument){"add_generation_prompt", "true", 4};
    code = jinja_render_chat(conversation->parsed, arguments, k,
                             JINJA_OBJECT_ARGUMENTS | JINJA_MARK_ALL, &conversation->now, rendering,
                             error);
    free(arguments);
    return code;
}

static int render(const struct run_conversation *conversation, struct jinja_rendering *rendering,
                  struct jinja_error *error)
{
    const int code = render_messages(conversation, false, rendering, error);

    return code == -EINVAL && !error->is_argument && conversation->first_joined
               ? render_messages(conversation, true, rendering, error)
               : code;
}

int run_conversation_render(const struct run_conversation *conversation,
                            struct jinja_rendering *rendering, struct run_failure *failure)
{
    struct jinja_error error;
    const int code = render(conversation, rendering, &error);

    if (code == -EINVAL)
        return fail_template(failure, &error, conversation->given);
    return code < 0 ? run_fail_memory(failure) : 0;
}

int run_conversation_find_end(const struct run_conversation *conversation, struct gguf_buffer *end,
                              struct run_failure *failure)
{
    static const char answer[] = "@an answer@", question[] = "@a question@";
    struct run_conversation probe = {.parsed = conversation->parsed,
                                     .now = conversation->now,
                                     .first = conversation->first,
                                     .first_joined = conversation->first_joined};
    struct jinja_rendering rendering;
    struct jinja_error error = {0};
    const char *from = NULL, *to = NULL;
    int code = 0;

    probe.arguments = conversation->arguments;
    probe.n_arguments = conversation->n_arguments;
    code = run_conversation_say(&probe, "user", question, strlen(question), failure);
    if (code == 0)
        code = run_conversation_say(&probe, "assistant", answer, strlen(answer), failure);
    if (code == 0)
        code = run_conversation_say(&probe, "user", question, strlen(question), failure);
    if (code == 0)
        code = render(&probe, &rendering, &error);
    if (code == -EINVAL) { /* the template may not admit this conversation */
        code = error.is_argument ? fail_template(failure, &error, conversation->given) : 0;
    } else if (code == 0) {
        from = strstr(rendering.text, answer);
        to = from ? strstr(from, question) : NULL;
        if (to &&
            gguf_buffer_add(end, from + strlen(answer), (size_t)(to - from) - strlen(answer)) < 0)
            code = run_fail_memory(failure);
        jinja_rendering_free(&rendering);
    }
    run_conversation_cut(&probe, 0);
    free(probe.messages);
    return code;
}
