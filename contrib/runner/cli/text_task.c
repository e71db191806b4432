#include "contrib/runner/cli/generate.h"
#include "contrib/runner/cli/messages.h"
#include "contrib/runner/cli/run_signals.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

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

/* Encode it, with the tokens that the model expects at the start of a text, but not at its end. */
static int encode(const struct run_session *session, const struct gguf_buffer *prompt,
                  struct run_ids *ids, struct run_failure *failure)
{
    const struct run_options *options = session->options;
    const struct gguf_special_ids *special = &session->tokenizer->special;
    const unsigned flags = (options->adds_bos ? RUN_ENCODE_BOS_EOS : 0U) |
                           (options->is_special ? RUN_ENCODE_SPECIAL : 0U);
    const int code = run_tokenizer_encode(session->tokenizer, prompt->bytes ? prompt->bytes : "",
                                          prompt->length, flags, ids, failure);

    if (code < 0)
        return code;
    if (options->adds_bos && special->is_eos_added && ids->n > 0 &&
        ids->list[ids->n - 1] == special->eos)
        ids->n--;
    return ids->n > 0
               ? 0
               : run_fail(failure, -EINVAL, "the prompt is empty, and the model has no BOS token");
}

static void print_ids(const char *name, const struct run_ids *ids)
{
    printf(",\"%s\":[", name);
    for (size_t i = 0; i < ids->n; i++)
        printf(i > 0 ? ",%" PRId32 : "%" PRId32, ids->list[i]);
    putchar(']');
}

static void print_timing(const char *name, size_t n_tokens, double seconds)
{
    printf(",\"%s\":{\"tokens\":%zu,\"seconds\":%.9g,\"tokens_per_second\":%.9g}", name, n_tokens,
           seconds, seconds > 0 ? (double)n_tokens / seconds : 0);
}

static void print_drafts(const char *name, const struct run_drafts *drafts)
{
    printf(",\"%s\":{\"tokens\":%zu,\"accepted\":%zu}", name, drafts->n_drafted,
           drafts->n_accepted);
}

static int print_object(const struct run_generation *generation, const struct gguf_buffer *prompt,
                        const struct run_ids *ids, struct run_failure *failure)
{
    static const char *const endings[] = {
        [RUN_ENDING_TOKEN] = "end",
        [RUN_ENDING_LENGTH] = "length",
        [RUN_ENDING_STOP] = "stop",
        [RUN_ENDING_CONTEXT] = "context",
        [RUN_ENDING_INTERRUPT] = "interrupted",
    };
    const struct run_session *session = generation->session;
    const struct run_sampling *sampling = &session->sampling;
    const struct gguf_buffer *text = &generation->output.text;

    run_print_json_string("{\"prompt\":", prompt->bytes, prompt->length);
    run_print_json_string(",\"text\":", text->bytes, text->length);
    printf(",\"stop\":\"%s\"", endings[generation->ending]);
    print_ids("prompt_ids", ids);
    print_ids("ids", &generation->generated);
    if (sampling->temperature > 0)
        printf(",\"seed\":%" PRIu64, sampling->seed);
    printf(",\"context\":%u,\"timings\":{\"load_seconds\":%.9g", session->n_context,
           session->load_seconds);
    print_timing("prompt", generation->n_prompt, generation->prompt_seconds);
    print_timing("text", generation->n_generated, generation->generated_seconds);
    print_drafts("drafts", &generation->speculation.drafts[RUN_DRAFT_LOOKUP]);
    print_drafts("nextn_drafts", &generation->speculation.drafts[RUN_DRAFT_NEXTN]);
    printf(",\"total_seconds\":%.9g,\"huge_page_bytes\":%" PRIu64 "}}\n",
           run_seconds() - session->started,
           run_proc_bytes(session->files.sums, "\nFilePmdMapped:"));
    return run_flush_stdout(failure);
}

/* Return true if the text written to stdout does not end a line. */
static bool ends_inside_line(const struct run_generation *generation,
                             const struct gguf_buffer *prompt)
{
    const struct gguf_buffer *text = &generation->output.text;
    const struct gguf_buffer *last =
        text->length > 0 || !generation->session->options->shows_prompt ? text : prompt;

    return last->length > 0 && last->bytes[last->length - 1] != '\n';
}

int run_task_generate(struct run_session *session, struct run_failure *failure)
{
    const struct run_options *options = session->options;
    struct run_generation generation = {.session = session};
    struct run_output *output = &generation.output;
    struct gguf_buffer prompt = {0};
    struct run_ids ids = {0};
    int code = read_prompt(session, &prompt, failure);

    if (code == 0)
        code = encode(session, &prompt, &ids, failure);
    if (code == 0)
        code = run_generation_open(session, &generation, failure);
    if (code == 0)
        code = run_generation_feed(&generation, &ids, failure);
    /* The prompt is shown now, because the line of progress needs a line of its own. */
    run_output_begin(output, true);
    if (code == 0 && options->shows_prompt && !options->is_json)
        code = run_output_bytes(output, prompt.bytes, prompt.length, failure);
    run_output_begin(output, prompt.length == 0);
    if (code == 0)
        code = run_generate(&generation, failure);
    run_signals_defer_interrupt(false);
    if (code == 0 && !options->is_json && isatty(STDOUT_FILENO) &&
        ends_inside_line(&generation, &prompt))
        code = run_output_newline(failure);
    if (code == 0 && options->is_json)
        code = print_object(&generation, &prompt, &ids, failure);
    if (code == 0)
        run_generation_report(&generation);
    if (code == 0 && generation.ending == RUN_ENDING_INTERRUPT)
        code = -EINTR;
    run_generation_close(&generation);
    run_ids_free(&ids);
    gguf_buffer_free(&prompt);
    return code;
}

/* ---- --tokenize ---- */

static int print_line(const struct run_session *session, const char *text, size_t length,
                      struct run_ids *ids, struct run_failure *failure)
{
    const unsigned flags = session->options->is_special ? RUN_ENCODE_SPECIAL : 0U;
    int code;

    ids->n = 0;
    code = run_tokenizer_encode(session->tokenizer, text, length, flags, ids, failure);
    for (size_t i = 0; code == 0 && i < ids->n; i++)
        printf(i > 0 ? " %d" : "%d", ids->list[i]);
    if (code == 0)
        putchar('\n');
    return code;
}

/* Encode each text; with -0, each ends in NUL or at the end of the input. */
static int tokenize(const struct run_session *session, const struct gguf_buffer *input,
                    struct run_ids *ids, struct run_failure *failure)
{
    const char *bytes = input->bytes ? input->bytes : "";
    int code = 0;

    if (!session->options->is_null_separated)
        return print_line(session, bytes, input->length, ids, failure);
    for (size_t at = 0; code == 0 && at < input->length;) {
        const char *end = memchr(bytes + at, '\0', input->length - at);
        const size_t length = end ? (size_t)(end - bytes) - at : input->length - at;

        code = print_line(session, bytes + at, length, ids, failure);
        at += length + 1;
    }
    return code;
}

int run_task_tokenize(struct run_session *session, struct run_failure *failure)
{
    struct gguf_buffer input = {0};
    struct run_ids ids = {0};
    const char *text = session->options->prompt;
    int code;

    if (!text || strcmp(text, "-") == 0)
        code = run_task_files_read(&session->files, &input, failure);
    else
        code = gguf_buffer_add_string(&input, text) < 0 ? run_fail_memory(failure) : 0;
    if (code == 0)
        code = tokenize(session, &input, &ids, failure);
    if (code == 0)
        code = run_flush_stdout(failure);
    run_ids_free(&ids);
    gguf_buffer_free(&input);
    return code;
}
