/* The command line of ggufs-run: the table of its options, and its parser. */
#pragma once

#include "contrib/runner/sampling/sampler.h"
#include "gguf/support/option_parser.h"
#include "gguf/support/template_options.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum run_task {
    RUN_TASK_GENERATE,
    RUN_TASK_CHAT,
    RUN_TASK_TOKENIZE,
    RUN_TASK_LOGITS,
    RUN_TASK_BENCH,
    RUN_TASK_HELP,
    RUN_TASK_VERSION,
};

/* The maximum number of tokens drafted for a pass, and the default limit. */
enum { RUN_MOST_DRAFTS = 63, RUN_USUAL_DRAFTS = 15 };

/* Where drafts come from: prompt lookup, or the model's nextn layer. */
enum run_draft_source { RUN_DRAFT_LOOKUP, RUN_DRAFT_NEXTN, RUN_N_DRAFT_SOURCES };

struct run_options {
    enum run_task task;
    const char *model;       /* a tree or a model file */
    const char *prompt;      /* PROMPT; NULL: not given */
    const char *prompt_file; /* of -f; NULL */

    int64_t n_predict; /* -1: no limit */
    int64_t n_context; /* 0: the training context; -1: not given */
    uint32_t n_batch;
    int32_t n_drafts;       /* tokens drafted for a pass at most; -1: not given */
    uint32_t draft_sources; /* 1 << source for each; 0: not given */
    uint32_t n_threads;     /* 0: run_default_threads() */
    bool is_exact;          /* multiply in floats */
    uint32_t cache_type;    /* see struct run_cache */
    bool is_warmed_up;

    struct run_sampling sampling; /* not given: NAN, INT32_MIN, UINT32_MAX */
    bool has_seed;
    struct gguf_texts stops;
    bool ignores_end;

    bool adds_bos;
    bool is_special; /* read special tokens in prompts, and write them */
    bool shows_prompt;
    bool shows_prompt_tokens;
    bool is_interactive; /* -i */
    const char *system_text;
    const char *chat_template; /* a name or a file */
    struct gguf_template_options variables;
    bool thinks;

    bool is_null_separated;
    const char *tokens_file;
    const char *logits_file;
    uint32_t bench_prompt, bench_predict, bench_depth;
    bool is_json;

    struct gguf_texts mount_options; /* for ggufs */
    bool is_confined;

    struct gguf_texts unused; /* options of llama.cpp that change nothing here */
    struct gguf_command_line line;
};

extern const struct gguf_option_table run_command_line;

/*
 * Parse the command line; the result points into its words. Prints one warning that names all
 * options of llama.cpp that change nothing here. Returns 0, or prints an error to stderr and
 * returns -EINVAL or -ENOMEM. Call run_options_free() in both cases.
 */
int run_options_parse(int argc, char **argv, struct run_options *options);
void run_options_free(struct run_options *options);

/* Write the names that --chat-template takes into names[capacity]. */
void run_options_list_templates(char *names, size_t capacity);
