#include "fs/command/commands.h"

#include "fs/command/edit_file.h"
#include "fs/command/model_input.h"
#include "fs/command/templates.h"
#include "fs/command/terminal.h"
#include "fs/tree/hf/vocabulary_keys.h"
#include "fs/tree/output/json.h"
#include "gguf/jinja/jinja.h"
#include "gguf/support/exit_status.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <time.h>
#include <unistd.h>

#define DEFAULT_MESSAGES "[{\"role\":\"user\",\"content\":\"Hello\"}]"
#define REMEDY                                                                                     \
    "correct --messages, --tools or --template-arg, or take another template with --template or "  \
    "--set " FS_TEMPLATE_KEY "=str:@FILE"

struct rendering {
    struct gguf_buffer messages, tools; /* contents of the files */
    struct tm now;
    struct fs_sink tokens; /* a JSON object: texts of special tokens */
    struct jinja_argument *arguments;
    size_t n_arguments;
};

static int32_t find_token(const struct gguf_array *tokens, const char *text)
{
    struct gguf_cursor cursor = gguf_array_begin(tokens);
    struct gguf_value token;

    for (uint64_t i = 0; i < tokens->n_elements; i++) {
        gguf_array_next(&cursor, GGUF_STRING, &token);
        if (gguf_string_equals(token.string, text))
            return (int32_t)i;
    }
    return GGUF_NO_TOKEN;
}

static void write_token(struct fs_sink *sink, const struct gguf_array *tokens, const char *name,
                        int32_t id)
{
    struct gguf_cursor cursor = gguf_array_begin(tokens);
    struct gguf_value token;

    if (id == GGUF_NO_TOKEN)
        return;
    for (int32_t i = 0; i <= id; i++)
        gguf_array_next(&cursor, GGUF_STRING, &token);
    fs_sink_literal(sink, sink->position > 1 ? ",\"" : "\"");
    fs_sink_literal(sink, name);
    fs_sink_literal(sink, "\":");
    fs_json_string(sink, token.string);
}

/* Write the special tokens that the model has. An obstacle to tokenizer.json does not matter. */
static void write_tokens(const struct gguf_model *model, struct fs_sink *sink)
{
    struct fs_vocabulary vocabulary = {.model = model};
    const struct gguf_special_ids *ids = &vocabulary.ids;

    fs_vocabulary_read_keys(&vocabulary);
    fs_sink_literal(sink, "{");
    if (vocabulary.tokens && vocabulary.tokens->n_elements <= INT32_MAX) {
        vocabulary.n_tokens = (uint32_t)vocabulary.tokens->n_elements;
        if (!vocabulary.name)
            vocabulary.name = "";
        fs_vocabulary_read_ids(&vocabulary, find_token(vocabulary.tokens, "<|endoftext|>"));
        write_token(sink, vocabulary.tokens, "bos_token", ids->bos);
        write_token(sink, vocabulary.tokens, "eos_token", ids->eos);
        write_token(sink, vocabulary.tokens, "unk_token", ids->unk);
        write_token(sink, vocabulary.tokens, "pad_token", ids->pad);
    }
    fs_sink_literal(sink, "}");
}

static void set(struct rendering *rendering, const char *name, const char *json, size_t n_bytes)
{
    rendering->arguments[rendering->n_arguments++] = (struct jinja_argument){name, json, n_bytes};
}

/* Collect the variables. The last one with a name counts, so that --template-arg comes last. */
static void set_variables(const struct fs_options *options, struct rendering *rendering)
{
    const struct gguf_buffer *messages = &rendering->messages, *tools = &rendering->tools;

    set(rendering, NULL, rendering->tokens.out, rendering->tokens.position);
    set(rendering, "add_generation_prompt", "true", 4);
    if (!options->messages)
        set(rendering, "messages", DEFAULT_MESSAGES, strlen(DEFAULT_MESSAGES));
    else
        set(rendering,
            messages->bytes[strspn(messages->bytes, " \t\r\n")] == '{' ? NULL : "messages",
            messages->bytes, messages->length);
    if (options->tools)
        set(rendering, "tools", tools->bytes, tools->length);
    for (size_t i = 0; i < options->template_arguments.n_texts; i++) {
        char *name = (char *)options->template_arguments.texts[i], *value = strchr(name, '=');

        *value++ = '\0';
        set(rendering, name, value, strlen(value));
    }
}

static int refuse(const char *path, const struct gguf_key *key, int code,
                  const struct jinja_error *error)
{
    char line[40] = "";

    if (code == -ENOMEM)
        return fs_refuse_memory();
    if (error->line > 0)
        snprintf(line, sizeof line, ", line %u", error->line);
    fs_print_error("%s: key %s%s: %s; " REMEDY, path, gguf_quote(key->name).text, line,
                   error->text);
    return gguf_exit_status(code);
}

static int render(const struct gguf_key *key, const char *path, const struct rendering *rendering)
{
    const struct gguf_string text = key->value.string;
    struct jinja_error error;
    struct jinja_template *parsed;
    struct jinja_rendering made;
    int code = jinja_template_parse(text.data, text.length_bytes, &parsed, &error);

    if (code < 0)
        return refuse(path, key, code, &error);
    code =
        jinja_render_chat(parsed, rendering->arguments, rendering->n_arguments,
                          JINJA_OBJECT_ARGUMENTS | JINJA_MARK_ALL, &rendering->now, &made, &error);
    jinja_template_free(parsed);
    if (code < 0)
        return refuse(path, key, code, &error);
    if (isatty(STDOUT_FILENO))
        fs_print_lines(made.text, made.text_bytes);
    else
        fwrite(made.text, 1, made.text_bytes, stdout);
    jinja_rendering_free(&made);
    return EX_OK;
}

static int render_model(const struct fs_options *options, struct fs_input *input,
                        struct rendering *rendering)
{
    const struct gguf_key *key = NULL;
    struct fs_tree *tree;
    char *name;
    int status = fs_make_tree(options, input, &tree);

    if (status != EX_OK)
        return status;
    if (asprintf(&name, FS_TEMPLATE_KEY "%s%s", options->template ? "." : "",
                 options->template ? options->template : "") < 0)
        name = NULL;
    rendering->tokens = fs_sink_that_grows(UINT64_MAX);
    write_tokens(tree->model, &rendering->tokens);
    rendering->arguments =
        calloc(4 + options->template_arguments.n_texts, sizeof *rendering->arguments);
    if (name)
        key = gguf_find_key(tree->model, name);
    if (!name || !rendering->arguments || rendering->tokens.error < 0) {
        status = fs_refuse_memory();
    } else if (!key || key->value.type != GGUF_STRING) {
        fs_print_error("%s: there is no chat template: no key \"%s\" with a string; take another "
                       "with --template or --set " FS_TEMPLATE_KEY "=str:@FILE",
                       input->path, name);
        status = EX_DATAERR;
    } else {
        set_variables(options, rendering);
        status = render(key, input->path, rendering);
    }
    free(rendering->arguments);
    free(rendering->tokens.out);
    free(name);
    fs_close_tree(tree);
    return status;
}

/* Read a file of JSON, "-" for standard input. Returns an exit status. */
static int read_json(const char *option, const char *path, struct gguf_buffer *text)
{
    struct gguf_report report = {0};
    int code = 0;

    if (path)
        code = fs_file_read(strcmp(path, "-") == 0 ? "/dev/stdin" : path, text, &report);
    if (path && code == 0 && text->length == 0)
        code = gguf_error(&report, GGUF_RULE_EDIT, -EINVAL, GGUF_NO_PLACE,
                          "%s: it is empty; give a list in JSON",
                          gguf_quote((struct gguf_string){path, strlen(path)}).text);
    if (code < 0)
        fs_print_error("%s: %s", option, report.first_error.message);
    return gguf_exit_status(code);
}

int fs_render(const struct fs_options *options)
{
    const time_t now = time(NULL);
    struct rendering rendering = {0};
    struct fs_input *inputs;
    int status = read_json("--messages", options->messages, &rendering.messages);

    localtime_r(&now, &rendering.now);
    if (status == EX_OK)
        status = read_json("--tools", options->tools, &rendering.tools);
    if (status == EX_OK)
        status = fs_open_inputs(options, &inputs);
    if (status == EX_OK) {
        status = fs_confine(options, &(struct gguf_confinement){.threads = true});
        if (status == EX_OK)
            status = render_model(options, &inputs[0], &rendering);
        fs_close_inputs(options, inputs);
    }
    gguf_buffer_free(&rendering.messages);
    gguf_buffer_free(&rendering.tools);
    return status;
}
