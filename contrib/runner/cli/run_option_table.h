/* The table of options: the parser, --help, and by tests the manual and the completions. */
#ifndef GGUFS_RUNNER_RUN_OPTION_TABLE_H
#define GGUFS_RUNNER_RUN_OPTION_TABLE_H

#include "contrib/runner/cli/run_options.h"

#define RUN_OPTION_NAMES 3

/* How an option is read, and what of struct run_options it sets. */
enum run_option_kind {
    RUN_KIND_TASK,     /* only the task */
    RUN_KIND_TEXT,     /* const char * */
    RUN_KIND_TEXTS,    /* struct run_texts, which it adds to */
    RUN_KIND_ON,       /* bool */
    RUN_KIND_OFF,      /* bool */
    RUN_KIND_UNSIGNED, /* uint32_t, from low to high */
    RUN_KIND_SIGNED,   /* int32_t, the same */
    RUN_KIND_LARGE,    /* int64_t, the same */
    RUN_KIND_FRACTION, /* float, the same */
    RUN_KIND_SEED,
    RUN_KIND_CACHE,
    RUN_KIND_DRAFTS,
    RUN_KIND_BENCH,
};

struct run_option {
    const char *names[RUN_OPTION_NAMES]; /* as many as there are */
    const char *argument;                /* NULL if it takes none */
    const char *help;
    enum run_option_kind kind;
    enum run_task task; /* the task that it selects; RUN_TASK_GENERATE: none */
    size_t at;          /* offset of the member */
    double low, high;
};

extern const struct run_option run_option_table[];
extern const size_t run_option_count;

#endif
