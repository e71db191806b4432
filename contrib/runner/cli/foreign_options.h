/* Options of other runners, mainly llama.cpp's llama-cli, that ggufs-run lacks. */
#ifndef GGUFS_RUNNER_FOREIGN_OPTIONS_H
#define GGUFS_RUNNER_FOREIGN_OPTIONS_H

#include <stddef.h>

struct run_foreign_option {
    const char *names; /* separated by spaces */
    const char *hint;  /* what to do instead, to follow the name and a colon */
};

extern const struct run_foreign_option run_foreign_options[];
extern const size_t run_foreign_option_count;

/* Return the hint for a word of the command line, "NAME" or "NAME=VALUE", or NULL. */
const char *run_foreign_option_hint(const char *word);

#endif
