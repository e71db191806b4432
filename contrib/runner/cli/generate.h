/*
 * Generation: a prompt in, token after token out.
 */
#ifndef GGUFS_RUNNER_GENERATE_H
#define GGUFS_RUNNER_GENERATE_H

#include "contrib/runner/cli/session.h"
#include "contrib/runner/cli/text_output.h"
#include "contrib/runner/sampling/sampler.h"

/* Why a generation ended. */
enum run_ending {
    RUN_ENDING_TOKEN,   /* the model gave a token that ends the text or the turn */
    RUN_ENDING_LENGTH,  /* there are as many tokens as were wanted */
    RUN_ENDING_STOP,    /* a text to end before */
    RUN_ENDING_CONTEXT, /* no more tokens fit */
    RUN_ENDING_ASKED,   /* Ctrl-C */
};

struct run_generation {
    struct run_session *session;
    struct run_sampler *sampler;
    struct run_output output;
    int32_t end_tokens[2];    /* more that end the text, or RUN_NO_TOKEN */
    struct run_ids forbidden; /* never chosen */

    /* The results. */
    struct run_ids generated;
    enum run_ending ending;
    int32_t unfed; /* the last token, if it is text that the engine does not have yet */
    size_t n_prompt, n_generated;             /* tokens, of all calls */
    double prompt_seconds, generated_seconds; /* computing them */
};

/* Makes what the session's options say; run_generation_close() is to be called in any case. */
int run_generation_open(struct run_session *session, struct run_generation *generation,
                        struct run_failure *failure);
void run_generation_close(struct run_generation *generation);

/*
 * Feeds the tokens and generates until there is a reason to end, which Ctrl-C is from then on.
 * -ERANGE if they don't fit the context; then nothing was fed.
 */
int run_generate(struct run_generation *generation, const struct run_ids *prompt,
                 struct run_failure *failure);

/* The word for it in JSON. */
const char *run_ending_name(enum run_ending ending);

/* Prints how long everything took, and why it ended if that may surprise. */
void run_generation_report(const struct run_generation *generation);

#endif
