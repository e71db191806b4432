#include "contrib/runner/cli/speculation.h"

#include "contrib/runner/cli/messages.h"
#include "contrib/runner/cli/run_signals.h"

#include <errno.h>

void run_drafts_choose(struct run_session *session)
{
    const struct run_options *options = session->options;
    const uint32_t wanted = options->draft_sources;
    const char *problem;
    const bool has_nextn = run_engine_can_draft(session->engine, &problem);

    session->n_drafts = options->n_drafts >= 0 ? (uint32_t)options->n_drafts : RUN_USUAL_DRAFTS;
    if (session->n_drafts >= options->n_batch) /* a pass is at most a batch */
        session->n_drafts = options->n_batch - 1;
    if (!run_engine_can_rewind(session->engine)) {
        session->n_drafts = 0;
        if (options->n_drafts > 0)
            run_message("--draft %d: no drafts, because recurrent layers cannot forget wrong ones",
                        options->n_drafts);
    }
    session->draft_sources = wanted > 0 ? wanted : (1U << RUN_N_DRAFT_SOURCES) - 1;
    if (has_nextn)
        return;
    session->draft_sources &= ~(1U << RUN_DRAFT_NEXTN);
    if (problem)
        run_message("%s: no drafts by the nextn layer: %s", options->model, problem);
    else if (wanted == 1U << RUN_DRAFT_NEXTN && session->n_drafts > 0)
        run_message("--draft-type nextn: no drafts, because the model has no nextn layer that "
                    "ggufs-run knows");
}

void run_speculation_begin(struct run_session *session, struct run_speculation *speculation)
{
    *speculation = (struct run_speculation){.session = session};
    for (int i = 0; i < RUN_N_DRAFT_SOURCES; i++) {
        const bool is_used = session->draft_sources >> i & 1;

        run_draft_length_begin(&speculation->drafts[i].length, is_used ? session->n_drafts : 0);
    }
}

void run_speculation_free(struct run_speculation *speculation)
{
    run_lookup_free(&speculation->lookup);
    run_ids_free(&speculation->fed);
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

/* Note a token that the engine has seen. */
static int note(struct run_speculation *speculation, int32_t token)
{
    if (speculation->drafts[RUN_DRAFT_LOOKUP].length.most > 0 &&
        run_lookup_add(&speculation->lookup, token) < 0)
        return -ENOMEM;
    return run_ids_add(&speculation->fed, token);
}

/* Account for the last pass. Without drafts, it shows every source how long a token takes. */
static void learn(struct run_speculation *speculation)
{
    const uint32_t n_drafts = (uint32_t)speculation->n_tokens - 1;

    for (int i = 0; i < RUN_N_DRAFT_SOURCES; i++)
        if (n_drafts == 0 || i == (int)speculation->source)
            run_draft_length_learn(&speculation->drafts[i].length, n_drafts,
                                   (uint32_t)speculation->row, speculation->seconds);
}

/* Forget the drafts that were not chosen. `learns`: another token was, which ends the pass. */
static int end_pass(struct run_speculation *speculation, bool learns, struct run_failure *failure)
{
    const double started = run_seconds();
    int code = 0;

    if (drafts_left(speculation) > 0)
        code =
            run_engine_rewind(speculation->session->engine, (uint32_t)speculation->fed.n, failure);
    speculation->seconds += run_seconds() - started;
    if (learns && speculation->n_tokens > 0)
        learn(speculation);
    speculation->n_tokens = speculation->row = 0;
    return code;
}

int run_speculation_feed(struct run_speculation *speculation, const struct run_ids *text,
                         size_t *n_kept, struct run_failure *failure)
{
    struct run_engine *engine = speculation->session->engine;
    struct run_ids *fed = &speculation->fed;
    int code = end_pass(speculation, false, failure);
    size_t n = 0;

    while (n < fed->n && n + 1 < text->n && fed->list[n] == text->list[n])
        n++;
    if (code == 0 && n < fed->n && run_engine_keeps(engine, (uint32_t)n)) {
        code = run_engine_rewind(engine, (uint32_t)n, failure);
    } else if (code == 0 && n < fed->n) {
        run_engine_reset(engine);
        n = 0;
    }
    *n_kept = fed->n = n;
    if (code == 0)
        code = run_session_feed(speculation->session, text->list + n, text->n - n, failure);
    for (; n < run_engine_counts(engine).n_past && n < text->n; n++)
        if (note(speculation, text->list[n]) < 0)
            return run_fail_memory(failure);
    return code;
}

/* Return the number of tokens that the source is to draft after the last token. */
static size_t choose_length(const struct run_speculation *speculation, enum run_draft_source source,
                            uint64_t n_left)
{
    const struct run_session *session = speculation->session;
    const uint64_t n_room = session->n_context - speculation->fed.n;
    size_t n = run_draft_length_get(&speculation->drafts[source].length);

    if (n > n_left - 1)
        n = n_left - 1;
    if (n > n_room)
        n = n_room;
    return n;
}

/* Draft tokens that may follow `token`, and store how many at *n. */
static int make_drafts(struct run_speculation *speculation, int32_t token, uint64_t n_left,
                       size_t *n, struct run_failure *failure)
{
    int32_t *draft = speculation->tokens + 1;
    size_t most = choose_length(speculation, RUN_DRAFT_LOOKUP, n_left);

    speculation->source = RUN_DRAFT_LOOKUP;
    *n = run_lookup_find(&speculation->lookup, most, draft);
    if (*n > 0)
        return 0;
    speculation->source = RUN_DRAFT_NEXTN;
    most = choose_length(speculation, RUN_DRAFT_NEXTN, n_left);
    return most > 0 ? run_engine_draft(speculation->session->engine, token, most, draft, n, failure)
                    : 0;
}

/* Feed the token with its drafts. */
static int pass(struct run_speculation *speculation, int32_t token, uint64_t n_left,
                struct run_failure *failure)
{
    struct run_session *session = speculation->session;
    double started;
    size_t n_drafts = 0;
    int code;

    code = end_pass(speculation, true, failure);
    started = run_seconds();
    if (code == 0 && note(speculation, token) < 0)
        code = run_fail_memory(failure);
    if (code < 0)
        return code;
    speculation->tokens[0] = token;
    code = make_drafts(speculation, token, n_left, &n_drafts, failure);
    if (code == 0)
        code = run_engine_feed(session->engine, speculation->tokens, 1 + n_drafts, RUN_LOGITS_ALL,
                               session->logits, failure);
    if (code < 0) {
        speculation->fed.n--;
        run_lookup_drop(&speculation->lookup);
        return code;
    }
    speculation->n_tokens = 1 + n_drafts;
    speculation->drafts[speculation->source].n_drafted += n_drafts;
    speculation->seconds = run_seconds() - started;
    return 0;
}

int run_speculation_next(struct run_speculation *speculation, int32_t token, uint64_t n_left,
                         struct run_failure *failure)
{
    if (run_signals_is_interrupted())
        return run_fail(failure, -EINTR, "interrupted");
    if (drafts_left(speculation) > 0 && speculation->tokens[speculation->row + 1] == token) {
        speculation->row++;
        speculation->drafts[speculation->source].n_accepted++;
        return note(speculation, token) < 0 ? run_fail_memory(failure) : 0;
    }
    return pass(speculation, token, n_left, failure);
}
