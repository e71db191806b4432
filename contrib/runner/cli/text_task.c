#include "contrib/runner/cli/generate.h"
#include "contrib/runner/cli/run_signals.h"
#include "contrib/runner/cli/tasks.h"

#include <errno.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

/* The exit status of a program that Ctrl-C has ended. */
#define STATUS_INTERRUPTED 130

int run_print_json(const struct run_session *session, cJSON *object)
{
    struct run_failure failure;
    char *line = cJSON_PrintUnformatted(object);
    int status = EX_OK;

    cJSON_Delete(object);
    if (!line)
        return run_session_complain(session, run_fail_memory(&failure), &failure);
    if (puts(line) < 0 || fflush(stdout) != 0)
        status = run_session_complain(
            session, run_fail(&failure, -EIO, "stdout: %s", strerror(errno)), &failure);
    cJSON_free(line);
    return status;
}

/* The last newline of a file or of what echo(1) writes is not meant. */
static int read_prompt(const struct run_options *options, struct run_buffer *text,
                       struct run_failure *failure)
{
    const char *path = options->prompt_file;
    int code;

    if (!path && options->prompt && strcmp(options->prompt, "-") != 0)
        return run_buffer_add_string(text, options->prompt) < 0 ? run_fail_memory(failure) : 0;
    if (!path)
        path = "-";
    code = run_read_file(path, text, failure);
    if (code == 0 && text->length > 0 && text->bytes[text->length - 1] == '\n')
        text->bytes[--text->length] = '\0';
    return code;
}

static void print_tokens(const struct run_session *session, const struct run_ids *ids)
{
    for (size_t i = 0; i < ids->n; i++) {
        size_t length;
        const char *piece = run_tokenizer_piece(session->tokenizer, ids->list[i], &length);

        fprintf(stderr, "%7d '", ids->list[i]);
        for (size_t j = 0; j < length; j++) {
            const unsigned char c = (unsigned char)piece[j];

            if (c < 0x20 || c == 0x7f)
                fprintf(stderr, "\\x%02x", c);
            else
                fputc(c, stderr);
        }
        fprintf(stderr, "'\n");
    }
}

static cJSON *array_of(const struct run_ids *ids)
{
    cJSON *array = cJSON_CreateArray();

    for (size_t i = 0; array && i < ids->n; i++)
        cJSON_AddItemToArray(array, cJSON_CreateNumber(ids->list[i]));
    return array;
}

/* A part of the text's statistics: tokens and seconds. */
static void add_timing(cJSON *timings, const char *name, size_t n_tokens, double seconds)
{
    cJSON *timing = cJSON_AddObjectToObject(timings, name);

    cJSON_AddNumberToObject(timing, "tokens", (double)n_tokens);
    cJSON_AddNumberToObject(timing, "seconds", seconds);
    cJSON_AddNumberToObject(timing, "tokens_per_second",
                            seconds > 0 ? (double)n_tokens / seconds : 0);
}

static cJSON *describe(const struct run_generation *generation, const struct run_ids *prompt_ids,
                       const char *prompt)
{
    const struct run_session *session = generation->session;
    const struct run_sampling *sampling = &session->options->sampling;
    const char *text = generation->output.text.bytes;
    cJSON *object = cJSON_CreateObject(), *timings;
    char seed[24];

    cJSON_AddStringToObject(object, "prompt", prompt ? prompt : "");
    cJSON_AddStringToObject(object, "text", text ? text : "");
    cJSON_AddStringToObject(object, "stop", run_ending_name(generation->ending));
    cJSON_AddItemToObject(object, "prompt_ids", array_of(prompt_ids));
    cJSON_AddItemToObject(object, "ids", array_of(&generation->generated));
    snprintf(seed, sizeof seed, "%llu", (unsigned long long)sampling->seed);
    if (sampling->temperature > 0)
        cJSON_AddRawToObject(object, "seed", seed);
    cJSON_AddNumberToObject(object, "context", session->n_context);
    timings = cJSON_AddObjectToObject(object, "timings");
    cJSON_AddNumberToObject(timings, "load_seconds", session->load_seconds);
    add_timing(timings, "prompt", generation->n_prompt, generation->prompt_seconds);
    add_timing(timings, "text", generation->n_generated, generation->generated_seconds);
    cJSON_AddNumberToObject(timings, "total_seconds", run_seconds() - session->started);
    return object;
}

/* The prompt, as the reader sees it, comes first; in JSON it has a place of its own. */
static int show_prompt(struct run_generation *generation, const struct run_buffer *prompt,
                       struct run_buffer *shown, struct run_failure *failure)
{
    struct run_output *output = &generation->output;
    const bool is_shown = output->is_kept || generation->session->options->shows_prompt;
    int code = 0;

    run_output_begin(output, true);
    if (is_shown && prompt->length > 0)
        code = run_output_bytes(output, prompt->bytes, prompt->length, failure);
    if (code == 0 && run_buffer_add(shown, output->text.bytes, output->text.length) < 0)
        code = run_fail_memory(failure);
    run_output_begin(output, prompt->length == 0);
    return code;
}

static int generate_behind(struct run_session *session, struct run_generation *generation,
                           const struct run_buffer *prompt, struct run_ids *ids,
                           struct run_buffer *shown, struct run_failure *failure)
{
    int code = run_session_encode(session, prompt->bytes ? prompt->bytes : "", prompt->length,
                                  session->options->is_special, ids, failure);

    if (code == 0 && ids->n == 0)
        code = run_fail(failure, -EINVAL, "the prompt is empty, and the model has no BOS token");
    if (code < 0)
        return code;
    if (session->options->shows_prompt_tokens)
        print_tokens(session, ids);
    code = run_generation_open(session, generation, failure);
    if (code == 0 && ids->n > session->n_context) /* before the prompt is shown */
        code = run_fail(failure, -ERANGE,
                        "the context is of %u tokens, the prompt has %zu; -c N makes the context "
                        "larger",
                        session->n_context, ids->n);
    if (code == 0)
        code = show_prompt(generation, prompt, shown, failure);
    return code == 0 ? run_generate(generation, ids, failure) : code;
}

int run_task_generate(struct run_session *session)
{
    struct run_generation generation = {.session = session};
    struct run_buffer prompt = {0}, shown = {0};
    struct run_ids ids = {0};
    struct run_failure failure;
    int status = EX_OK;
    int code = read_prompt(session->options, &prompt, &failure);

    if (code == 0)
        code = generate_behind(session, &generation, &prompt, &ids, &shown, &failure);
    run_signals_ask(false);
    if (!session->options->is_json && shown.length + generation.output.text.length > 0 &&
        isatty(STDOUT_FILENO))
        putchar('\n');
    fflush(stdout);
    if (code < 0)
        status = run_session_complain(session, code, &failure);
    else if (session->options->is_json)
        status = run_print_json(session, describe(&generation, &ids, shown.bytes));
    if (code == 0)
        run_generation_report(&generation);
    if (status == EX_OK && generation.ending == RUN_ENDING_ASKED)
        status = STATUS_INTERRUPTED;
    run_generation_close(&generation);
    run_ids_free(&ids);
    run_buffer_free(&shown);
    run_buffer_free(&prompt);
    return status;
}
