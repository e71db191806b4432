/*
 * The table of options. The parser, --help and completion are made from it; a test compares it with
 * the manual. A new option is a row here, a line in ggufs.1, and a handler if none of those in
 * option_handlers.h fits.
 */
#ifndef GGUFS_FS_OPTION_TABLE_H
#define GGUFS_FS_OPTION_TABLE_H

#include "fs/command/options.h"

#include <stddef.h>
#include <stdio.h>

struct fs_option;

/* An option as found on the command line. */
struct fs_option_use {
    const struct fs_option *option;
    const char *shown;  /* "-o uid", for messages */
    const char *value;  /* the text after '='; NULL if the option takes no argument */
    const char *whole;  /* the whole word: "uid=1000" */
    bool has_successor; /* another option follows in the same -o */
};

/* Handle an option. Prints errors to stderr. Returns as fs_options_parse(). */
typedef int fs_option_handler(struct fs_options *options, const struct fs_option_use *use);

struct fs_option {
    const char *name;     /* "-f", "--data", or as written after -o: "uid" */
    const char *synonym;  /* the long form of a short option, or NULL */
    const char *argument; /* its name in --help; NULL if there is none */
    const char *help;     /* NULL: not in --help, for options that mount(8) passes */
    fs_option_handler *handle;
    const char *without_value; /* end of the error if the value is missing; NULL: nothing */
    unsigned commands;         /* the commands that take it: bits 1u << FS_MOUNT and so on */

    /* For handlers that set a member of struct fs_options. */
    size_t offset;
    unsigned least, most; /* for numbers */
    enum fs_command command;
};

extern const struct fs_option fs_option_table[];
extern const size_t fs_n_options;

/* Return the name of a command in messages: "mounting" or "--list". */
const char *fs_command_name(enum fs_command command);

void fs_print_usage(FILE *stream);
void fs_print_help(FILE *stream);

#endif
