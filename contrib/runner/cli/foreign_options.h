/* Options of other runners, mainly llama.cpp's llama-cli, that ggufs-run lacks. */
#pragma once

#include <stddef.h>

enum run_foreign_value {
    RUN_FOREIGN_REFUSED, /* the option asks for something that ggufs-run lacks */
    /* The option changes nothing here. It has … */
    RUN_FOREIGN_ALONE,  /* no value */
    RUN_FOREIGN_VALUE,  /* a value */
    RUN_FOREIGN_ON_OFF, /* on, off or auto, or no value, depending on the version of llama.cpp */
};

struct run_foreign_option {
    const char *names; /* separated by spaces */
    enum run_foreign_value value;
    const char *hint; /* if refused, what to do instead, to follow the name and a colon */
};

extern const struct run_foreign_option run_foreign_options[];
extern const size_t run_foreign_option_count;

/* Return the row for a word of the command line, "NAME" or "NAME=VALUE", or NULL. */
const struct run_foreign_option *run_foreign_option_find(const char *word);

/* Handle a word of ggufs-run's command line: see take_foreign of struct gguf_option_table. */
int run_foreign_option_take(void *options, int argc, char **argv, int i);
