#include "contrib/runner/cli/generate.h"
#include "contrib/runner/cli/run_signals.h"
#include "contrib/runner/cli/tasks.h"

#include <errno.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

/* The exit status of a program ended by Ctrl-C. */
#define STATUS_INTERRUPTED 130

int run_finish_json(const struct run_session *session)
{
    struct run_failure failure;
    int code;

    putchar('\n');
    code = run_flush_stdout(&failure);
    return code < 0 ? run_session_complain(session, code, &failure) : EX_OK;
}

/* Read the prompt, without the newline at the end of a file or of echo(1)'s output. */
static int read_prompt(const struct run_session *session, struct gguf_buffer *text,
                       struct run_failure *failure)
{
    const char *prompt = session->options->prompt;
    int code;

    if (!session->options->prompt_file && prompt && strcmp(prompt, "-") != 0)
        return gguf_buffer_add_string(text, prompt) < 0 ? run_fail_memory(failure) : 0;
    code = run_task_files_read(&session->files, text, failure);
    if (code == 0 && text->length > 0 && text->bytes[text->length - 1] == '\n')
        text->bytes[--text->length] = '\0';
    return code;
}

/* Add an object with the number of tokens and the seconds. */
static void add_timing(const char *name, size_t n_tokens, double seconds)
{
    run_json_begin(name);
    run_json_integer("tokens", n_tokens);
    run_json_number("seconds", seconds);
    run_json_number("tokens_per_second", seconds > 0 ? (double)n_tokens / seconds : 0);
    run_json_end();
}

static void add_drafts(const char *name, const struct run_drafts *drafts)
{
    run_json_begin(name);
    run_json_integer("tokens", drafts->n_drafted);
    run_json_integer("accepted", drafts->n_accepted);
    run_json_end();
}

static int print_object(const struct run_generation *generation, const struct run_ids *prompt_ids,
                        const struct gguf_buffer *prompt)
{
    const struct run_session *session = generation->session;
    const struct run_sampling *sampling = &session->sampling;
    const struct gguf_buffer *text = &generation->output.text;

    run_json_begin(NULL);
    run_json_string("prompt", prompt->bytes, prompt->length);
    run_json_string("text", text->bytes, text->length);
    run_json_string("stop", run_ending_name(generation->ending),
                    strlen(run_ending_name(generation->ending)));
    run_json_ids("prompt_ids", prompt_ids);
    run_json_ids("ids", &generation->generated);
    if (sampling->temperature > 0)
        run_json_integer("seed", sampling->seed);
    run_json_integer("context", session->n_context);
    run_json_begin("timings");
    run_json_number("load_seconds", session->load_seconds);
    add_timing("prompt", generation->n_prompt, generation->prompt_seconds);
    add_timing("text", generation->n_generated, generation->generated_seconds);
    add_drafts("drafts", &generation->speculation.drafts[RUN_DRAFT_LOOKUP]);
    add_drafts("nextn_drafts", &generation->speculation.drafts[RUN_DRAFT_NEXTN]);
    run_json_number("total_seconds", run_seconds() - session->started);
    run_json_integer("huge_page_bytes", run_proc_bytes(session->files.sums, "\nFilePmdMapped:"));
    run_json_end();
    run_json_end();
    return run_finish_json(session);
}

/* Write the prompt as valid UTF-8; JSON has a member for it. */
static int show_prompt(struct run_generation *generation, const struct gguf_buffer *prompt,
                       struct gguf_buffer *shown, struct run_failure *failure)
{
    struct run_output *output = &generation->output;
    const bool is_shown = output->is_kept || generation->session->options->shows_prompt;
    int code = 0;

    run_output_begin(output, true);
    if (is_shown && prompt->length > 0)
        code = run_output_bytes(output, prompt->bytes, prompt->length, failure);
    if (code == 0 && gguf_buffer_add(shown, output->text.bytes, output->text.length) < 0)
        code = run_fail_memory(failure);
    run_output_begin(output, prompt->length == 0);
    return code;
}

static int generate_after(struct run_session *session, struct run_generation *generation,
                          const struct gguf_buffer *prompt, struct run_ids *ids,
                          struct gguf_buffer *shown, struct run_failure *failure)
{
    int code = run_session_encode(session, prompt->bytes ? prompt->bytes : "", prompt->length,
                                  session->options->is_special, ids, failure);

    if (code == 0 && ids->n == 0)
        code = run_fail(failure, -EINVAL, "the prompt is empty, and the model has no BOS token");
    if (code < 0)
        return code;
    code = run_generation_open(session, generation, failure);
    if (code == 0 && ids->n > session->n_context)
        code = run_fail(
            failure, -ERANGE,
            "the prompt has %zu tokens, more than the context of %u; -c N makes the context "
            "larger",
            ids->n, session->n_context);
    if (code == 0)
        code = run_generation_feed(generation, ids, failure);
    if (code == 0) /* not before, because the line of progress needs a line of its own */
        code = show_prompt(generation, prompt, shown, failure);
    return code == 0 ? run_generate(generation, failure) : code;
}

/* Return true if the text written to stdout, `shown` and what follows it, does not end a line. */
static bool ends_inside_line(const struct run_output *output, const struct gguf_buffer *shown)
{
    const struct gguf_buffer *last = output->text.length > 0 ? &output->text : shown;

    return !output->is_kept && last->length > 0 && last->bytes[last->length - 1] != '\n';
}

int run_task_generate(struct run_session *session)
{
    struct run_generation generation = {.session = session};
    struct gguf_buffer prompt = {0}, shown = {0};
    struct run_ids ids = {0};
    struct run_failure failure;
    int status = EX_OK;
    int code = read_prompt(session, &prompt, &failure);

    if (code == 0)
        code = generate_after(session, &generation, &prompt, &ids, &shown, &failure);
    run_signals_defer_interrupt(false);
    if (code == 0 && isatty(STDOUT_FILENO) && ends_inside_line(&generation.output, &shown))
        code = run_output_newline(&failure);
    if (code < 0)
        status = run_session_complain(session, code, &failure);
    else if (session->options->is_json)
        status = print_object(&generation, &ids, &shown);
    if (code == 0 && status == EX_OK)
        run_generation_report(&generation);
    if (status == EX_OK && generation.ending == RUN_ENDING_INTERRUPT)
        status = STATUS_INTERRUPTED;
    run_generation_close(&generation);
    run_ids_free(&ids);
    gguf_buffer_free(&shown);
    gguf_buffer_free(&prompt);
    return status;
}
