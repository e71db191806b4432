/*
 * What every task needs: the tree, mounted if it must be, the tokenizer, the engine.
 */
#ifndef GGUFS_RUNNER_SESSION_H
#define GGUFS_RUNNER_SESSION_H

#include "gguf/support/buffer.h"
#include "contrib/runner/cli/private_mount.h"
#include "contrib/runner/cli/run_options.h"
#include "contrib/runner/engine/engine.h"
#include "contrib/runner/tokenizer/tokenizer.h"
#include "contrib/runner/tree/open_tree.h"

struct run_session {
    const struct run_options *options;
    struct run_private_mount mount;
    struct run_tree tree;
    struct run_tokenizer *tokenizer; /* NULL if the task needs none */
    struct run_engine *engine;       /* the same */
    uint32_t n_vocab, n_context;     /* of the engine */
    float *logits;                   /* of the token that was fed last; n_vocab */
    double started;                  /* run_seconds() at the beginning */
    double load_seconds;
};

/*
 * Opens what the task of the options needs, for a context of `n_context` tokens where the options
 * name none; 0: what is usual. Returns 0, or prints what is wrong and returns the exit status.
 * run_session_close() is to be called in both cases.
 */
int run_session_open(const struct run_options *options, uint32_t n_context,
                     struct run_session *session);
void run_session_close(struct run_session *session);

/* Prints what failed and returns the exit status for `code`, a negative errno. */
int run_session_complain(const struct run_session *session, int code,
                         const struct run_failure *failure);

/* Seconds of a clock that only goes forward. */
double run_seconds(void);

/*
 * Feeds tokens, the logits of the last of which are then in session->logits. -EINTR if an end was
 * asked for between two batches.
 */
int run_session_feed(struct run_session *session, const int32_t *tokens, size_t n,
                     struct run_failure *failure);

/* The tokens of a prompt, with those at its beginning that the model wants; none at its end. */
int run_session_encode(const struct run_session *session, const char *text, size_t length,
                       bool is_special, struct run_ids *ids, struct run_failure *failure);

/* Adds all bytes of the file to the text; "-" is stdin. -EINTR as above. */
int run_read_file(const char *path, struct gguf_buffer *text, struct run_failure *failure);

#endif
