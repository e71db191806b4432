/* The session of a task: the tree, mounted if necessary, the tokenizer and the engine. */
#pragma once

#include "contrib/runner/cli/line_editor.h"
#include "contrib/runner/cli/read_ahead.h"
#include "contrib/runner/cli/run_options.h"
#include "contrib/runner/cli/task_files.h"
#include "contrib/runner/engine/engine.h"
#include "contrib/runner/tokenizer/tokenizer.h"
#include "contrib/runner/tree/weights.h"

/* The progress of a prompt, which a terminal shows once it has taken a second. */
struct run_prompt_progress {
    bool is_drawn;
    double next;    /* run_seconds() at which the line is drawn again */
    size_t n_total; /* tokens to feed; at most 1: nothing is shown */
};

struct run_session {
    const struct run_options *options;
    struct run_task_files files;
    struct run_tree tree;
    bool is_tree_private;            /* mounted for this run, and detached already */
    struct run_tokenizer *tokenizer; /* NULL if the task needs none */
    struct run_engine *engine;       /* the same */
    bool reads_ahead;                /* the weights are read before they are needed */
    struct run_read_ahead read_ahead;
    struct run_line_editor *editor; /* of a chat at a terminal; NULL */
    const char *chat_template;      /* of the metadata; NULL: not there */
    struct run_sampling sampling;
    uint32_t n_vocab, n_context; /* of the engine */
    uint32_t n_drafts;           /* limit of the tokens drafted for a pass */
    uint32_t draft_sources;      /* 1 << source for each */
    float *logits;               /* of the last 1 + n_drafts tokens fed; n_vocab floats each */
    struct run_prompt_progress progress;
    double started; /* run_seconds() at the start */
    double load_seconds;
};

/*
 * Open everything that the task needs, for a context of `n_context` tokens unless the options give
 * another; 0: the default. Then confine the process, which can open nothing after that. Returns 0,
 * or prints an error and returns an exit status. Call run_session_close() in both cases.
 */
int run_session_open(const struct run_options *options, uint32_t n_context,
                     struct run_session *session);

/* Close everything, which ends a private mount. */
void run_session_close(struct run_session *session);

/* Print the failure and return the exit status for `code`, a negative errno. */
int run_session_complain(const struct run_session *session, int code,
                         const struct run_failure *failure);

/* An on_layer of the engine: shows a struct run_prompt_progress, and stops after an interrupt. */
bool run_session_progress(void *progress, size_t n_done);

/*
 * Feed tokens and store the logits of the last one at session->logits. On a terminal, shows the
 * progress of a prompt. -EINTR if an interrupt was deferred; checked between batches.
 */
int run_session_feed(struct run_session *session, const int32_t *tokens, size_t n,
                     struct run_failure *failure);

/*
 * Explain the failure `code`, a negative errno, to run a model. If the file holds another kind of
 * model, replace the failure by one that names the kind and its purpose, and return true. The
 * tree's metadata must be open.
 */
bool run_kind_explain(const struct run_tree *tree, int code, struct run_failure *failure);

/*
 * Fill in the parameters that the command line did not give, from the keys general.sampling.* or
 * from the program's defaults. Returns 0, or -EINVAL for a key with a value that is out of range or
 * no number.
 */
int run_sampling_complete(struct run_sampling *sampling, const struct run_metadata *metadata,
                          struct run_failure *failure);

/* A task. Returns 0, -EINTR without a failure if Ctrl-C ended it, or another negative errno. */
typedef int run_task_function(struct run_session *session, struct run_failure *failure);

run_task_function run_task_generate, run_task_chat, run_task_tokenize, run_task_logits,
    run_task_bench;
