/*
 * What ggufs-run can do with a session. Each prints what fails, and returns the exit status.
 */
#ifndef GGUFS_RUNNER_TASKS_H
#define GGUFS_RUNNER_TASKS_H

#include "contrib/runner/cli/json_writer.h"
#include "contrib/runner/cli/session.h"

/* A prompt, and what comes behind it. */
int run_task_generate(struct run_session *session);

/* Turns of a conversation. */
int run_task_chat(struct run_session *session);

/* Text on stdin to ids, and back. */
int run_task_tokenize(struct run_session *session);
int run_task_detokenize(struct run_session *session);

/* The logits of given tokens; how well a text is predicted. */
int run_task_logits(struct run_session *session);
int run_task_perplexity(struct run_session *session);

/* Tokens per second. */
int run_task_bench(struct run_session *session);

/* Prints the object on a line of stdout, and frees it. */
int run_print_json(const struct run_session *session, struct run_json *json);

#endif
