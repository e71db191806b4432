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

/* Append an argument, whose JSON is then owned by the conversation, which frees it on failure. */
static int add_argument(struct run_conversation *conversation, const char *name,
                        struct gguf_buffer *json, struct run_failure *failure)
{
    const size_t n = conversation->n_variables + conversation->n_messages;
    struct jinja_argument **arguments = &conversation->arguments;

    if (!json->bytes ||
        gguf_reserve(arguments, &conversation->room, n + 2, sizeof **arguments) < 0) {
        gguf_buffer_free(json);
        return run_fail_memory(failure);
    }
    (*arguments)[n] = (struct jinja_argument){name, json->bytes, json->length};
    return 0;
}

int run_conversation_set(struct run_conversation *conversation, const char *name, const char *json,
                         size_t n_bytes, struct run_failure *failure)
{
    struct gguf_buffer copy = {0};
    int code;

    (void)gguf_buffer_add(&copy, json, n_bytes);
    code = add_argument(conversation, name, &copy, failure);
    if (code == 0)
        conversation->n_variables++;
    return code;
}

/* Set the variables of the special tokens. One that the model lacks stays undefined. */
static int set_tokens(struct run_conversation *conversation, const struct run_tokenizer *tokenizer,
                      struct run_failure *failure)
{
    static const char *const names[] = {"bos_token", "eos_token", "unk_token", "pad_token"};
    const struct gguf_special_ids *special = &tokenizer->special;
    const int32_t ids[] = {special->bos, special->eos, special->unk, special->pad};
    int code = 0;

    for (size_t i = 0; code == 0 && i < sizeof ids / sizeof *ids; i++) {
        struct gguf_buffer json = {0};
        size_t length;
        const char *piece = run_tokenizer_piece(tokenizer, ids[i], &length);

        if (ids[i] == RUN_NO_TOKEN)
            continue;
        code = run_json_add_string(&json, piece, length) < 0
                   ? run_fail_memory(failure)
                   : run_conversation_set(conversation, names[i], json.bytes, json.length, failure);
        gguf_buffer_free(&json);
    }
    return code;
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
    conversation->arguments = calloc(2, sizeof *conversation->arguments);
    if (!conversation->arguments)
        return run_fail_memory(failure);
    conversation->room = 2;
    conversation->n_variables = 1; /* no system message */
    return set_tokens(conversation, tokenizer, failure);
}

void run_conversation_close(struct run_conversation *conversation)
{
    run_conversation_cut(conversation, 0);
    for (size_t i = 0; i < conversation->n_variables; i++)
        free((char *)(uintptr_t)conversation->arguments[i].json);
    free(conversation->arguments);
    cJSON_free(conversation->first_joined);
    jinja_template_free(conversation->parsed);
}

static const char *string_of(const cJSON *object, const char *name)
{
    return cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, name));
}

/* Replace parts of texts by one text, and look for what no template sees to. */
static int join_parts(struct run_conversation *conversation, cJSON *message, size_t number,
                      bool *has_parts, struct run_failure *failure)
{
    static const char *const media[] = {"image", "audio", "video", "file"};
    const char *role = string_of(message, "role");
    const cJSON *content = cJSON_GetObjectItemCaseSensitive(message, "content"), *part;
    const bool is_list = cJSON_IsArray(content);
    struct gguf_buffer joined = {0};
    int code = gguf_buffer_add_string(&joined, "");

    if (role && (strcmp(role, "system") == 0 || strcmp(role, "developer") == 0))
        conversation->has_system_elsewhere = true;
    for (part = is_list ? content->child : NULL; part; part = part->next) {
        const char *type = string_of(part, "type"), *text = string_of(part, "text");

        for (size_t i = 0; type && i < sizeof media / sizeof *media; i++) {
            if (!strstr(type, media[i]))
                continue;
            gguf_buffer_free(&joined);
            return run_fail_elsewhere(failure, -EINVAL,
                                      "--messages: message %zu has a part of the type %.40s, and "
                                      "ggufs-run reads text only: remove the part",
                                      number, type);
        }
        if (code == 0 && text && joined.length > 0)
            code = gguf_buffer_add_string(&joined, "\n");
        if (code == 0 && text)
            code = gguf_buffer_add_string(&joined, text);
    }
    if (code == 0 && is_list) {
        *has_parts = true;
        if (!cJSON_ReplaceItemInObjectCaseSensitive(message, "content",
                                                    cJSON_CreateString(joined.bytes)))
            code = -ENOMEM;
    }
    gguf_buffer_free(&joined);
    return code < 0 ? run_fail_memory(failure) : 0;
}

int run_conversation_begin_with(struct run_conversation *conversation,
                                const struct gguf_buffer *messages, struct run_failure *failure)
{
    /* Text that is not JSON is left to the interpreter, which says what is wrong. */
    const char *end;
    cJSON *json = run_json_parse(messages->bytes, messages->length, &end);
    const char *variable = gguf_messages_variable(messages->bytes);
    cJSON *list = variable ? json : cJSON_GetObjectItemCaseSensitive(json, "messages");
    cJSON *message = cJSON_IsArray(list) ? list->child : NULL;
    bool has_parts = false;
    int code = 0;

    for (size_t n = 1; code == 0 && message; message = message->next, n++)
        code = join_parts(conversation, message, n, &has_parts, failure);
    if (code == 0 && has_parts) {
        conversation->first_joined = cJSON_PrintUnformatted(json);
        if (!conversation->first_joined)
            code = run_fail_memory(failure);
    }
    cJSON_Delete(json);
    conversation->first = conversation->n_variables;
    return code == 0 ? run_conversation_set(conversation, variable, messages->bytes,
                                            messages->length, failure)
                     : code;
}

int run_conversation_add(struct run_conversation *conversation, const char *role,
                         const struct run_answer *message, struct run_failure *failure)
{
    struct gguf_buffer list = {0};
    int code;

    if (gguf_buffer_add_string(&list, "[") < 0 || run_answer_add_json(message, role, &list) < 0 ||
        gguf_buffer_add_string(&list, "]") < 0)
        gguf_buffer_free(&list);
    code = add_argument(conversation, "messages", &list, failure);
    if (code == 0)
        conversation->n_messages++;
    return code;
}

struct jinja_argument *run_conversation_last(const struct run_conversation *conversation)
{
    return &conversation->arguments[conversation->n_variables + conversation->n_messages - 1];
}

int run_conversation_say(struct run_conversation *conversation, const char *role, const char *text,
                         size_t n_bytes, struct run_failure *failure)
{
    const struct run_answer message = {.content = {.bytes = (char *)text, .length = n_bytes}};
    const bool is_system = strcmp(role, "system") == 0;
    int code;

    if (is_system && conversation->has_system_elsewhere)
        return run_fail_elsewhere(failure, -EINVAL,
                                  "--messages has a system message already: change it there, or "
                                  "remove it and give --system");
    code = run_conversation_add(conversation, role, &message, failure);
    if (code < 0 || !is_system)
        return code;
    free((char *)(uintptr_t)conversation->arguments[0].json);
    conversation->arguments[0] = *run_conversation_last(conversation);
    conversation->n_messages--;
    return 0;
}

void run_conversation_cut(struct run_conversation *conversation, size_t n)
{
    for (; conversation->n_messages > n; conversation->n_messages--)
        free((char *)(uintptr_t)run_conversation_last(conversation)->json);
}

static int render(const struct run_conversation *conversation, struct jinja_rendering *rendering,
                  struct jinja_error *error)
{
    const size_t n = conversation->n_variables + conversation->n_messages;
    struct jinja_argument *arguments = conversation->arguments;
    struct jinja_argument *first = &arguments[conversation->first], kept = *first;
    const size_t start = !arguments->json; /* no system message */
    int code = 0;

    arguments[n] = (struct jinja_argument){"add_generation_prompt", "true", 4};
    for (int are_joined = 0; are_joined < 2; are_joined++) {
        code = jinja_render_chat(conversation->parsed, arguments + start, n + 1 - start,
                                 JINJA_OBJECT_ARGUMENTS | JINJA_MARK_ALL, &conversation->now,
                                 rendering, error);
        if (code != -EINVAL || error->is_argument || !conversation->first_joined)
            break;
        first->json = conversation->first_joined;
        first->json_bytes = strlen(first->json);
    }
    *first = kept;
    return code;
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

int run_conversation_find_end(struct run_conversation *conversation, struct gguf_buffer *end,
                              struct run_failure *failure)
{
    static const char answer[] = "@an answer@", question[] = "@a question@";
    const size_t n_before = conversation->n_messages;
    struct jinja_rendering rendering;
    struct jinja_error error = {0};
    int code = 0;

    for (int i = 0; code == 0 && i < 3; i++) {
        const char *text = i == 1 ? answer : question;

        code = run_conversation_say(conversation, i == 1 ? "assistant" : "user", text, strlen(text),
                                    failure);
    }
    if (code == 0)
        code = render(conversation, &rendering, &error);
    if (code == -EINVAL) { /* the template may not admit this conversation */
        code = error.is_argument ? fail_template(failure, &error, conversation->given) : 0;
    } else if (code == 0) {
        const char *from = strstr(rendering.text, answer);
        const char *to = from ? strstr(from, question) : NULL;

        if (to &&
            gguf_buffer_add(end, from + strlen(answer), (size_t)(to - from) - strlen(answer)) < 0)
            code = run_fail_memory(failure);
        jinja_rendering_free(&rendering);
    }
    run_conversation_cut(conversation, n_before);
    return code;
}

/* ---- templates for models that have none: the forms of well-known families ---- */

#define MESSAGES(text) "{% for m in messages %}" text "{% endfor %}"
#define ANSWER(text)   "{% if add_generation_prompt %}" text "{% endif %}"
#define IF(role)       "{% if m.role == '" role "' %}"
#define ELIF(role)     "{% elif m.role == '" role "' %}"

const struct run_chat_template run_chat_templates[] = {
    {"alpaca", MESSAGES(IF("user") "{{ '### Instruction:\\n' + m.content + '\\n\\n' }}" ELIF(
                   "assistant") "{{ '### Response:\\n' + m.content + eos_token + '\\n\\n' }}"
                                "{% else %}{{ m.content + '\\n\\n' }}{% endif %}")
                   ANSWER("{{ '### Response:\\n' }}")},
    {"chatml", MESSAGES("{{ '<|im_start|>' + m.role + '\\n' + m.content + '<|im_end|>\\n' }}")
                   ANSWER("{{ '<|im_start|>assistant\\n' }}")},
    {"gemma",
     "{{ bos_token }}{% set ns = namespace(system='') %}" MESSAGES(
         IF("system") "{% set ns.system = m.content + '\\n\\n' %}{% else %}{{ '<start_of_turn>' + "
                      "('model' if m.role == 'assistant' else 'user') + '\\n' + (ns.system + "
                      "m.content)|trim + '<end_of_turn>\\n' }}{% set ns.system = '' %}{% endif %}")
         ANSWER("{{ '<start_of_turn>model\\n' }}")},
    {"llama2", "{{ bos_token }}{% set ns = namespace(system='') %}" MESSAGES(
                   IF("system") "{% set ns.system = '<<SYS>>\\n' + m.content + '\\n<</SYS>>\\n\\n' "
                                "%}" ELIF("user") "{{ '[INST] ' + ns.system + m.content + ' "
                                                  "[/INST]' }}{% set ns.system = '' %}"
                                                  "{% else %}{{ ' ' + m.content + ' ' + eos_token "
                                                  "+ bos_token }}{% endif %}")},
    {"llama3",
     "{{ bos_token }}" MESSAGES("{{ '<|start_header_id|>' + m.role + '<|end_header_id|>\\n\\n' + "
                                "m.content|trim + '<|eot_id|>' }}")
         ANSWER("{{ '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}")},
    {"mistral",
     "{{ bos_token }}{% set ns = namespace(system='') %}" MESSAGES(
         IF("system") "{% set ns.system = m.content + '\\n\\n' %}" ELIF(
             "user") "{{ '[INST] ' + ns.system + m.content + ' [/INST]' }}{% set ns.system = '' %}"
                     "{% else %}{{ ' ' + m.content + eos_token }}{% endif %}")},
    {"phi3", MESSAGES("{{ '<|' + m.role + '|>\\n' + m.content + '<|end|>\\n' }}")
                 ANSWER("{{ '<|assistant|>\\n' }}")},
    {"vicuna", MESSAGES(IF("user") "{{ 'USER: ' + m.content + ' ' }}" ELIF(
                   "assistant") "{{ 'ASSISTANT: ' + m.content + eos_token }}"
                                "{% else %}{{ m.content + ' ' }}{% endif %}") ANSWER("ASSISTANT:")},
    {"zephyr", MESSAGES("{{ '<|' + m.role + '|>\\n' + m.content + eos_token + '\\n' }}")
                   ANSWER("{{ '<|assistant|>\\n' }}")},
    {NULL, NULL},
};

const char *run_chat_template_find(const char *name)
{
    const struct run_chat_template *row = run_chat_templates;

    while (row->name && strcmp(row->name, name) != 0)
        row++;
    return row->jinja;
}
