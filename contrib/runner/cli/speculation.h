/*
 * Speculative decoding (Leviathan et al. 2023, "Fast Inference from Transformers via Speculative
 * Decoding"): a pass computes the logits after a token and after the draft tokens that may follow
 * it. The caller chooses every token from its logits as without drafts; as long as it chooses the
 * draft's tokens, no further pass is needed. Logits do not depend on the number of tokens in a
 * pass, so drafts change only the speed. Prompt lookup costs nothing, so the model's nextn layer
 * drafts only if prompt lookup finds nothing.
 */
#pragma once

#include "contrib/runner/cli/session.h"
#include "contrib/runner/sampling/drafts.h"

/* Drafts of one source: prompt lookup or the nextn layer. */
struct run_drafts {
    struct run_draft_length length;
    size_t n_drafted, n_accepted; /* tokens, of all passes */
};

struct run_speculation {
    struct run_session *session;
    struct run_ids fed;       /* what the engine has seen, without drafts */
    struct run_lookup lookup; /* all text that was ever fed */
    struct run_drafts drafts[RUN_N_DRAFT_SOURCES];
    enum run_draft_source source;        /* of the drafts of the last pass */
    int32_t tokens[1 + RUN_MOST_DRAFTS]; /* of the last pass: a token and its drafts */
    size_t n_tokens;                     /* 0: the last pass was of a prompt */
    size_t row;                          /* of the logits: the number of drafts that were right */
    double seconds;                      /* of the last pass, with the making of its drafts */
};

/*
 * Set the limit of a session's drafts, and where they come from, as the options and the engine
 * permit. Prints what was asked for and is not there.
 */
void run_drafts_choose(struct run_session *session);

/* Begin with the session's limit of drafts. Call run_speculation_free() at the end. */
void run_speculation_begin(struct run_session *session, struct run_speculation *speculation);
void run_speculation_free(struct run_speculation *speculation);

/*
 * Feed a text. The engine keeps the common start of the text and of the tokens that it has seen, or
 * nothing if it cannot rewind to there; *n_kept is the number of tokens kept. Returns as
 * run_session_feed() does.
 */
int run_speculation_feed(struct run_speculation *speculation, const struct run_ids *text,
                         size_t *n_kept, struct run_failure *failure);

/*
 * Feed a token; run_speculation_logits() then returns the logits after it. `n_left` is the maximum
 * number of tokens still to be chosen, the first from these logits; it limits the drafts. Returns
 * as run_session_feed() does.
 */
int run_speculation_next(struct run_speculation *speculation, int32_t token, uint64_t n_left,
                         struct run_failure *failure);

/* Return the logits after the last token fed, n_vocab numbers. The caller may change them. */
float *run_speculation_logits(const struct run_speculation *speculation);
