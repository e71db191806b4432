/* The tasks of ggufs-run. Each prints its errors and returns an exit status. */
#pragma once

#include "contrib/runner/cli/session.h"

/* The exit status of a program ended by Ctrl-C. */
#define RUN_STATUS_INTERRUPTED 130

/* Generate text after a prompt. */
int run_task_generate(struct run_session *session);

/* Hold a conversation. */
int run_task_chat(struct run_session *session);

/* Encode a text to ids. */
int run_task_tokenize(struct run_session *session);

/* Compute the logits of given tokens. */
int run_task_logits(struct run_session *session);

/* Measure tokens per second. */
int run_task_bench(struct run_session *session);

/* End the line of a JSON object on stdout. */
int run_finish_json(const struct run_session *session);
