#include "contrib/runner/cli/speculation.h"

#include "contrib/runner/cli/run_signals.h"

#include <errno.h>

void run_speculation_begin(struct run_session *session, struct run_speculation *speculation)
{
    *speculation = (struct run_speculation){.session = session};
    run_draft_length_begin(&speculation->length, session->n_drafts);
}

void run_speculation_free(struct run_speculation *speculation)
{
    run_lookup_free(&speculation->lookup);
}

float *run_speculation_logits(const struct run_speculation *speculation)
{
    const struct run_session *session = speculation->session;

    return session->logits + speculation->row * session->n_vocab;
}

static size_t drafts_left(const struct run_speculation *speculation)
{
    return speculation->n_tokens > 0 ? speculation->n_tokens - 1 - speculation->row : 0;
}

uint32_t run_speculation_n_past(const struct run_speculation *speculation)
{
    return run_engine_n_past(speculation->session->engine) - (uint32_t)drafts_left(speculation);
}

/* Forget the drafts that were not chosen. */
static void end_pass(struct run_speculation *speculation)
{
    if (drafts_left(speculation) > 0)
        run_engine_rewind(speculation->session->engine, run_speculation_n_past(speculation));
    speculation->n_tokens = speculation->row = 0;
}

int run_speculation_feed(struct run_speculation *speculation, const struct run_ids *prompt,
                         struct run_failure *failure)
{
    int code;

    end_pass(speculation);
    code = run_session_feed(speculation->session, prompt->list, prompt->n, failure);
    for (size_t i = 0; code == 0 && speculation->length.most > 0 && i < prompt->n; i++)
        if (run_lookup_add(&speculation->lookup, prompt->list[i]) < 0)
            code = run_fail_memory(failure);
    return code;
}

/* Return the number of tokens to draft after the next token. */
static size_t choose_length(const struct run_speculation *speculation, uint64_t n_left)
{
    const struct run_session *session = speculation->session;
    const uint64_t n_room = session->n_context - run_speculation_n_past(speculation);
    size_t n = run_draft_length_get(&speculation->length);

    if (n > n_left - 1)
        n = n_left - 1;
    if (n > n_room - 1)
        n = n_room - 1;
    return n;
}

/* Feed the token with its drafts. */
static int pass(struct run_speculation *speculation, int32_t token, uint64_t n_left,
                struct run_failure *failure)
{
    struct run_session *session = speculation->session;
    const double started = run_seconds();
    size_t n_drafts;
    int code;

    end_pass(speculation);
    n_drafts = run_lookup_find(&speculation->lookup, choose_length(speculation, n_left),
                               speculation->tokens + 1);
    speculation->tokens[0] = token;
    code = run_engine_feed(session->engine, speculation->tokens, 1 + n_drafts, RUN_LOGITS_ALL,
                           session->logits, failure);
    if (code < 0)
        return code;
    speculation->n_tokens = 1 + n_drafts;
    speculation->n_drafted += n_drafts;
    speculation->seconds = run_seconds() - started;
    return 0;
}

int run_speculation_next(struct run_speculation *speculation, int32_t token, uint64_t n_left,
                         struct run_failure *failure)
{
    if (run_signals_is_interrupted())
        return run_fail(failure, -EINTR, "interrupted");
    if (speculation->length.most > 0 && run_lookup_add(&speculation->lookup, token) < 0)
        return run_fail_memory(failure);
    if (drafts_left(speculation) > 0 && speculation->tokens[speculation->row + 1] == token) {
        speculation->row++;
        speculation->n_accepted++;
        return 0;
    }
    if (speculation->n_tokens > 0)
        run_draft_length_learn(&speculation->length, (uint32_t)speculation->n_tokens - 1,
                               (uint32_t)speculation->row, speculation->seconds);
    return pass(speculation, token, n_left, failure);
}
