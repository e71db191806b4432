#include "fs/command/commands.h"

#include "fs/command/edit_options.h"
#include "fs/command/model_input.h"
#include "fs/command/terminal.h"
#include "fs/tree/prompts.h"
#include "fs/tree/facts/chat_template.h"
#include "gguf/support/exit_status.h"
#include "gguf/support/safe_print.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#define DEFAULT_MESSAGES "[{\"role\":\"user\",\"content\":\"Hello\"}]"
#define OTHER_TEMPLATE                                                                             \
    "take another template with --template or --set " FS_TEMPLATE_KEY "=str:@FILE"

struct rendering {
    struct gguf_buffer messages, tools; /* contents of the files */
    struct fs_prompts prompts;
    bool is_divided; /* print the parts of the prompt */
    struct jinja_argument *arguments;
    size_t n_arguments;
    const char *given; /* the options that may be the cause of a failure */
};

static void set(struct rendering *rendering, const char *name, const char *json, size_t n_bytes)
{
    rendering->arguments[rendering->n_arguments++] = (struct jinja_argument){name, json, n_bytes};
}

/* Collect the variables. The last one with a name counts, so that --template-arg comes last. */
static void set_variables(const struct fs_options *options, struct rendering *rendering)
{
    const struct gguf_buffer *messages = &rendering->messages, *tools = &rendering->tools;
    const struct gguf_template_options *given = &options->variables;

    set(rendering, NULL, rendering->prompts.special.out, rendering->prompts.special.position);
    set(rendering, "add_generation_prompt", "true", 4);
    if (given->messages)
        set(rendering, gguf_messages_variable(messages->bytes), messages->bytes, messages->length);
    else
        set(rendering, "messages", DEFAULT_MESSAGES, strlen(DEFAULT_MESSAGES));
    if (given->tools)
        set(rendering, "tools", tools->bytes, tools->length);
    for (size_t i = 0; i < given->arguments.n_texts; i++) {
        const char *value, *name = gguf_template_argument(given, i, &value);

        set(rendering, name, value, strlen(value));
    }
}

/* `given`: the options that may be the cause, or NULL. */
static int refuse(const char *path, const struct gguf_key *key, int code,
                  const struct jinja_error *error, const char *given)
{
    char line[40] = "";

    if (code == -ENOMEM)
        return fs_refuse_memory();
    if (error->line > 0)
        snprintf(line, sizeof line, ", line %u", error->line);
    if (error->is_argument)
        fs_print_error("%s; correct %s", error->text, given);
    else
        fs_print_error("%s: key %s%s: %s; %s%s%s" OTHER_TEMPLATE, path, gguf_quote(key->name).text,
                       line, error->text, given ? "change " : "", given ? given : "",
                       given ? ", or " : "");
    return gguf_exit_status(code);
}

static int print(const struct rendering *rendering, const struct jinja_rendering *made)
{
    struct fs_sink parts = fs_sink_that_grows(UINT64_MAX);
    const char *text = made->text;
    size_t n_bytes = made->text_bytes;

    if (rendering->is_divided) {
        fs_prompts_write_parts(&rendering->prompts, made, &parts);
        text = parts.out;
        n_bytes = parts.position;
    }
    if (parts.error < 0)
        fs_refuse_memory();
    else if (isatty(STDOUT_FILENO))
        gguf_print_safe_lines(stdout, text, n_bytes);
    else
        fwrite(text, 1, n_bytes, stdout);
    free(parts.out);
    return parts.error < 0 ? EX_OSERR : EX_OK;
}

static int render(const struct gguf_key *key, const char *path, const struct rendering *rendering)
{
    const struct gguf_string text = key->value.string;
    struct jinja_error error;
    struct jinja_template *parsed;
    struct jinja_rendering made;
    int code = jinja_template_parse(text.data, text.length_bytes, &parsed, &error);
    int status;

    if (code < 0)
        return refuse(path, key, code, &error, NULL);
    code = jinja_render_chat(parsed, rendering->arguments, rendering->n_arguments,
                             JINJA_OBJECT_ARGUMENTS | JINJA_MARK_ALL, &rendering->prompts.now,
                             &made, &error);
    jinja_template_free(parsed);
    if (code < 0)
        return refuse(path, key, code, &error, rendering->given);
    status = print(rendering, &made);
    jinja_rendering_free(&made);
    return status;
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
    rendering->arguments =
        calloc(4 + options->variables.arguments.n_texts, sizeof *rendering->arguments);
    if (name)
        key = gguf_find_key(tree->model, name);
    if (!name || !rendering->arguments || fs_prompts_open(tree->model, &rendering->prompts) < 0) {
        status = fs_refuse_memory();
    } else if (!key || key->value.type != GGUF_STRING) {
        fs_print_error("%s: there is no chat template: no key \"%s\" with a string; take another "
                       "with --template or --set " FS_TEMPLATE_KEY "=str:@FILE",
                       input->path, name);
        status = EX_DATAERR;
    } else if (options->tokens && rendering->prompts.vocabulary->n_tokens == 0) {
        fs_print_error(
            "%s: --tokens: there is no vocabulary: no key \"tokenizer.ggml.tokens\" with "
            "strings; --render without --tokens needs none",
            input->path);
        status = EX_DATAERR;
    } else {
        rendering->is_divided = options->tokens;
        set_variables(options, rendering);
        status = render(key, input->path, rendering);
    }
    fs_prompts_close(&rendering->prompts);
    free(rendering->arguments);
    free(name);
    fs_close_tree(tree);
    return status;
}

/* Read a file of JSON, "-" for standard input. Returns an exit status. */
static int read_json(const char *option, const char *path, struct gguf_buffer *text)
{
    struct gguf_report report = {0};
    int code = path ? fs_file_read(path, strcmp(path, "-") == 0, text, &report) : 0;

    if (path && code == 0 && text->length == 0)
        code = gguf_error(&report, GGUF_RULE_EDIT, -EINVAL, GGUF_NO_PLACE,
                          "\"%s\": it is empty; give a list in JSON", path);
    if (code < 0)
        fs_print_error("%s: %s", option, report.first_error.message);
    return gguf_exit_status(code);
}

int fs_render(const struct fs_options *options)
{
    struct rendering rendering = {
        .given = gguf_template_options_given(&options->variables, "--messages")};
    struct fs_input *inputs;
    int status = read_json("--messages", options->variables.messages, &rendering.messages);

    if (status == EX_OK)
        status = read_json("--tools", options->variables.tools, &rendering.tools);
    if (status == EX_OK)
        status = fs_open_inputs(options, NULL, &inputs);
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
