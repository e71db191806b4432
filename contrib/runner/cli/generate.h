/* Generation: feeds a prompt and samples token after token. */
#pragma once

#include "contrib/runner/cli/session.h"
#include "contrib/runner/cli/speculation.h"
#include "contrib/runner/cli/text_output.h"
#include "contrib/runner/sampling/sampler.h"

/* The reason why a generation ended. */
enum run_ending {
    RUN_ENDING_TOKEN,     /* a token that ends the text or the turn */
    RUN_ENDING_LENGTH,    /* -n tokens were generated */
    RUN_ENDING_STOP,      /* a stop text */
    RUN_ENDING_CONTEXT,   /* no more tokens fit */
    RUN_ENDING_INTERRUPT, /* Ctrl-C */
};

struct run_generation {
    struct run_session *session;
    struct run_sampler *sampler;
    struct run_speculation speculation;
    struct run_output output;
    int32_t end_token; /* a further token that ends the text, or RUN_NO_TOKEN */

    /* The results. */
    struct run_ids generated;
    enum run_ending ending;
    size_t n_prompt, n_generated;             /* tokens, of all calls */
    double prompt_seconds, generated_seconds; /* computing them */
};

/* Prepare a generation with the session's options. Call run_generation_close() in any case. */
int run_generation_open(struct run_session *session, struct run_generation *generation,
                        struct run_failure *failure);
void run_generation_close(struct run_generation *generation);

/*
 * Feed a text, except for the tokens at its start that the engine has seen already. Shows a
 * progress line on a terminal, and prints the tokens fed if the options say so. Returns 0; -ERANGE
 * if the text does not fit the context, and then nothing was fed; -EINTR after a deferred
 * interrupt, with the ending set; or another negative errno.
 */
int run_generation_feed(struct run_generation *generation, const struct run_ids *text,
                        struct run_failure *failure);

/* Generate after the fed text until one of the endings. Returns 0 or a negative errno. */
int run_generate(struct run_generation *generation, struct run_failure *failure);

/* Print the times, and a message if the context was full. */
void run_generation_report(const struct run_generation *generation);
