/*
 * Measures how fast ggufs-run generates a given text, without drafts and with them:
 *
 *     bench-drafts ROUNDS PROMPT TEXT [OPTION...] MODEL
 *
 * PROMPT and TEXT are files of token ids, 32-bit in the order of this machine; OPTION and MODEL are
 * as for ggufs-run. The tokens of TEXT replace the sampled tokens, so passes are as if the model
 * wrote this text, whatever its weights are. Prints a line for each round: tokens per second
 * without and with drafts, drafted and accepted tokens.
 */
#include "contrib/runner/cli/messages.h"
#include "contrib/runner/cli/run_signals.h"
#include "contrib/runner/cli/speculation.h"
#include "dequant/kernels.h"

#include <stdio.h>
#include <stdlib.h>
#include <sysexits.h>

static struct run_ids read_ids(const char *path)
{
    struct run_ids ids = {0};
    FILE *file = fopen(path, "rb");
    int32_t id;

    while (file && fread(&id, sizeof id, 1, file) == 1 && run_ids_add(&ids, id) == 0)
        ;
    if (file)
        fclose(file);
    if (ids.n == 0) {
        run_message("%s: no token ids", path);
        exit(EX_NOINPUT);
    }
    return ids;
}

static void check(const struct run_session *session, int code, const struct run_failure *failure)
{
    if (code < 0)
        exit(run_session_complain(session, code, failure));
}

/* Generate the text after the prompt, whose tokens but the last are already fed. */
static double measure(struct run_session *session, const struct run_ids *prompt,
                      const struct run_ids *text, struct run_speculation *speculation)
{
    size_t n_kept;
    struct run_failure failure;
    double started;

    check(session, run_engine_rewind(session->engine, (uint32_t)prompt->n - 1, &failure), &failure);
    run_speculation_begin(session, speculation);
    for (size_t i = 0; i + 1 < prompt->n; i++)
        if (run_ids_add(&speculation->fed, prompt->list[i]) < 0 ||
            (session->n_drafts > 0 && run_lookup_add(&speculation->lookup, prompt->list[i]) < 0))
            check(session, run_fail_memory(&failure), &failure);
    check(session, run_speculation_feed(speculation, prompt, &n_kept, &failure), &failure);
    started = run_seconds();
    for (size_t i = 0; i < text->n; i++)
        check(session, run_speculation_next(speculation, text->list[i], text->n - i, &failure),
              &failure);
    run_speculation_free(speculation);
    return (double)text->n / (run_seconds() - started);
}

int main(int argc, char **argv)
{
    struct run_options options;
    struct run_session session;
    struct run_failure failure;
    struct run_ids prompt, text;
    uint32_t n_drafts;

    if (argc < 5) {
        fprintf(stderr, "usage: %s ROUNDS PROMPT TEXT [OPTION...] MODEL\n", argv[0]);
        return EX_USAGE;
    }
    if (dequant_choose_kernels(getenv("GGUFS_CPU")) < 0)
        return EX_USAGE;
    run_signals_start();
    prompt = read_ids(argv[2]);
    text = read_ids(argv[3]);
    if (run_options_parse(argc - 3, argv + 3, &options) < 0)
        return EX_USAGE;
    if (run_session_open(&options, (uint32_t)(prompt.n + text.n), &session) != EX_OK)
        return EX_SOFTWARE;
    n_drafts = session.n_drafts;
    if (prompt.n > 1)
        check(&session, run_session_feed(&session, prompt.list, prompt.n - 1, &failure), &failure);
    for (long round = atol(argv[1]); round > 0; round--) {
        struct run_speculation plain, drafted;
        size_t n_drafted = 0, n_accepted = 0;
        double rates[2];

        session.n_drafts = 0;
        rates[0] = measure(&session, &prompt, &text, &plain);
        session.n_drafts = n_drafts;
        rates[1] = measure(&session, &prompt, &text, &drafted);
        for (int i = 0; i < RUN_N_DRAFT_SOURCES; i++) {
            n_drafted += drafted.drafts[i].n_drafted;
            n_accepted += drafted.drafts[i].n_accepted;
        }
        printf("%.3f %.3f %zu %zu\n", rates[0], rates[1], n_drafted, n_accepted);
        fflush(stdout);
    }
    run_ids_free(&prompt);
    run_ids_free(&text);
    run_options_free(&options);
    run_session_close(&session);
    return EX_OK;
}
