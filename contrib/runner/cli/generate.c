#include "contrib/runner/cli/generate.h"

#include "contrib/runner/cli/messages.h"
#include "contrib/runner/cli/run_signals.h"
#include "gguf/support/safe_print.h"

#include <errno.h>
#include <math.h>

int run_generation_open(struct run_session *session, struct run_generation *generation,
                        struct run_failure *failure)
{
    const struct run_options *options = session->options;

    *generation = (struct run_generation){
        .session = session,
        .end_token = RUN_NO_TOKEN,
        .output = {.tokenizer = session->tokenizer,
                   .is_control_shown = options->is_special,
                   .is_kept = options->is_json,
                   .stops = options->stops.texts,
                   .n_stops = options->stops.n_texts},
    };
    run_speculation_begin(session, &generation->speculation);
    return run_sampler_open(&session->sampling, session->n_vocab, session->n_context,
                            &generation->sampler, failure);
}

void run_generation_close(struct run_generation *generation)
{
    run_sampler_close(generation->sampler);
    run_speculation_free(&generation->speculation);
    run_output_free(&generation->output);
    run_ids_free(&generation->generated);
}

static void print_token(const struct run_tokenizer *tokenizer, int32_t id)
{
    size_t length;
    const char *piece = run_tokenizer_piece(tokenizer, id, &length);

    fprintf(stderr, "%7d '", id);
    gguf_print_safe(stderr, piece, length);
    fprintf(stderr, "'\n");
}

int run_generation_feed(struct run_generation *generation, const struct run_ids *text,
                        struct run_failure *failure)
{
    const struct run_session *session = generation->session;
    const double started = run_seconds();
    size_t n_kept;
    int code;

    generation->generated.n = 0;
    if (text->n > session->n_context)
        return run_fail(failure, -ERANGE,
                        "the prompt has %zu tokens, more than the context of %u; -c N makes the "
                        "context larger",
                        text->n, session->n_context);
    code = run_speculation_feed(&generation->speculation, text, &n_kept, failure);
    generation->prompt_seconds += run_seconds() - started;
    if (code == -EINTR)
        generation->ending = RUN_ENDING_INTERRUPT;
    if (code < 0)
        return code;
    generation->n_prompt += text->n - n_kept;
    for (size_t i = n_kept; i < text->n; i++) {
        if (session->options->shows_prompt_tokens)
            print_token(session->tokenizer, text->list[i]);
        run_sampler_accept(generation->sampler, text->list[i]);
    }
    return 0;
}

/* Generate a token; `*is_over` becomes true if it is the last one. */
static int next_token(struct run_generation *generation, bool *is_over, struct run_failure *failure)
{
    const struct run_session *session = generation->session;
    struct run_output *output = &generation->output;
    float *logits = run_speculation_logits(&generation->speculation);
    int32_t id;
    int code;

    *is_over = true;
    for (uint32_t i = 0; session->options->ignores_end && i < session->n_vocab; i++)
        if (run_tokenizer_is_end(session->tokenizer, (int32_t)i))
            logits[i] = -INFINITY;
    code = run_sampler_pick(generation->sampler, logits, &id, failure);
    if (code < 0)
        return code;
    generation->n_generated++;
    if (run_ids_add(&generation->generated, id) < 0)
        return run_fail_memory(failure);
    if (id == generation->end_token || run_tokenizer_is_end(session->tokenizer, id)) {
        generation->ending = RUN_ENDING_TOKEN;
        return output->is_control_shown ? run_output_end_token(output, id, failure) : 0;
    }
    run_sampler_accept(generation->sampler, id);
    code = run_output_token(output, id, is_over, failure);
    if (code == 0 && *is_over)
        generation->ending = RUN_ENDING_STOP;
    return code;
}

static int generate(struct run_generation *generation, struct run_failure *failure)
{
    const struct run_session *session = generation->session;
    const struct run_ids *generated = &generation->generated;
    struct run_speculation *speculation = &generation->speculation;
    const int64_t n_limit = session->options->n_predict;
    bool is_over = false;
    int code = 0;

    while (code == 0 && !is_over) {
        const size_t n = generated->n;

        if (n_limit >= 0 && (int64_t)n >= n_limit) {
            generation->ending = RUN_ENDING_LENGTH;
            return 0;
        }
        if (speculation->fed.n == session->n_context && n > 0) {
            generation->ending = RUN_ENDING_CONTEXT;
            return 0;
        }
        if (n > 0)
            code = run_speculation_next(speculation, generated->list[n - 1],
                                        n_limit < 0 ? UINT64_MAX : (uint64_t)n_limit - n, failure);
        if (code == 0)
            code = next_token(generation, &is_over, failure);
    }
    return code;
}

int run_generate(struct run_generation *generation, struct run_failure *failure)
{
    const double started = run_seconds();
    int code;

    run_signals_defer_interrupt(true);
    code = generate(generation, failure);
    generation->generated_seconds += run_seconds() - started;
    if (code == 0 || code == -EINTR) {
        const int end_code = run_output_end(&generation->output, failure);

        code = end_code < 0 ? end_code : code;
    }
    if (code == -EINTR) {
        generation->ending = RUN_ENDING_INTERRUPT;
        code = 0;
    }
    return code;
}

static void report_part(const char *name, size_t n_tokens, double seconds)
{
    run_message("%s  %9.3f s, %5zu tokens, %9.2f tokens/s", name, seconds, n_tokens,
                seconds > 0 ? (double)n_tokens / seconds : 0);
}

void run_generation_report(const struct run_generation *generation)
{
    const struct run_session *session = generation->session;
    const struct run_drafts *drafts = generation->speculation.drafts;

    if (generation->ending == RUN_ENDING_CONTEXT && !session->editor) /* a chat has said so */
        run_message("the context of %u tokens is full; -c N makes it larger", session->n_context);
    if (generation->n_prompt == 0)
        return;
    run_message("load    %9.3f s", session->load_seconds);
    report_part("prompt", generation->n_prompt, generation->prompt_seconds);
    report_part("text  ", generation->n_generated, generation->generated_seconds);
    for (int i = 0; i < RUN_N_DRAFT_SOURCES; i++)
        if (drafts[i].n_drafted > 0)
            run_message("%s %5zu tokens, %9zu accepted",
                        i == RUN_DRAFT_LOOKUP ? "drafts              " : "drafts by nextn     ",
                        drafts[i].n_drafted, drafts[i].n_accepted);
    run_message("total   %9.3f s, %3.0f %% of the weights in huge pages",
                run_seconds() - session->started,
                100 * (double)run_proc_bytes(session->files.sums, "\nFilePmdMapped:") /
                    (double)run_weights_mapped_bytes(session->tree.weights));
}
