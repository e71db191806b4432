/*
 * A program's table of options. One row per option drives the parser (option_parser.h), --help
 * and the completion in shells; a test compares the rows with the manual page.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* How an option is parsed, and the member of the program's options that it sets. */
enum gguf_option_kind {
    GGUF_OPTION_HEADING, /* a title in --help: only `help` is set */
    GGUF_OPTION_NOTHING, /* accepted; selects `command`, if the row has one */
    GGUF_OPTION_ON,      /* bool */
    GGUF_OPTION_OFF,     /* bool */
    GGUF_OPTION_TEXT,    /* const char * */
    GGUF_OPTION_TEXTS,   /* struct gguf_texts, to which it adds; "" is refused */
    GGUF_OPTION_PAIRS,   /* the same for KEY=JSON */
    GGUF_OPTION_UINT32,  /* uint32_t from `least` to `most`, as all numbers */
    GGUF_OPTION_INT32,
    GGUF_OPTION_INT64,
    GGUF_OPTION_FLOAT,
    GGUF_OPTION_OCTAL,    /* uint32_t */
    GGUF_OPTION_BYTES,    /* uint64_t of at least `least`; K, M and G are powers of 1000 */
    GGUF_OPTION_CONSTANT, /* unsigned or enum: `least` */
    GGUF_OPTION_CHOICE, /* unsigned or enum: a choice's value or, with choice_at, index + `least` */
    GGUF_OPTION_GROUP,  /* -o: options without dashes, separated by commas */
    GGUF_OPTION_SLOPPY, /* after it, unknown options in a group are ignored */
    GGUF_OPTION_HANDLER, /* calls `handle` */
};

/* An array that grows. The array is owned, the texts are not. */
struct gguf_texts {
    const char **texts;
    size_t n_texts;
};

struct gguf_choice {
    const char *name; /* NULL ends an array of choices */
    unsigned value;
};

struct gguf_option;

/* An option as found on the command line. */
struct gguf_option_use {
    const struct gguf_option *option;
    const char *shown;  /* its name for messages: "--set", "-o set" */
    const char *value;  /* NULL if the option takes no argument */
    const char *whole;  /* the word: "--set=KEY", "uid=1000" */
    bool has_successor; /* another option of the same group follows */
};

/* Handle an option. Returns 0, or prints an error and returns a negative errno. */
typedef int gguf_option_handler(void *options, const struct gguf_option_use *use);

struct gguf_option {
    const char *names;    /* separated by spaces: "-n --predict"; in a group: "uid" */
    const char *argument; /* its name in --help; NULL: the option takes none */
    const char *help;     /* NULL: not in --help and not in the manual's list */
    enum gguf_option_kind kind;
    unsigned commands; /* the commands that take it: bits 1u << command; 0: all */
    int command;       /* the command that it selects; 0: none */

    size_t offset; /* of the member in the program's options */
    double least, most;
    const struct gguf_choice *choices;      /* values of the argument, or NULL */
    const char *(*choice_at)(size_t index); /* the same as a function; NULL after the last */
    gguf_option_handler *handle;
    /* The argument is optional: the next word is it only if it fits. NULL: it is needed. */
    bool (*fits)(const char *word);
    /* End of the error if the value is missing, or of the handler's error; NULL: nothing. */
    const char *without_value;
};

/* A program's command line. */
struct gguf_option_table {
    const char *program; /* "ggufs" */
    const struct gguf_option *rows;
    size_t n_rows;

    const char *usage;       /* lines: "usage: ggufs …\n" */
    const char *about;       /* a paragraph between usage and options in --help */
    const char *end;         /* lines after the options */
    const char *no_command;  /* in messages, when no command is selected: "mounting" */
    size_t command_offset;   /* of the enum in the program's options; 0: none selected */
    unsigned final_commands; /* bits: --help and --version, which override all others */

    void (*print_error)(const char *format, ...) __attribute__((format(printf, 1, 2)));
    /* Called for each option before it is handled; NULL: none. */
    void (*note)(void *options, const struct gguf_option_use *use);
};

/* Return true if the option stands for itself, false if it belongs in a group. */
bool gguf_option_is_dashed(const struct gguf_option *option);

/* Find the row with the name word[0..length-1]. Returns NULL if no row has it. */
const struct gguf_option *gguf_option_find(const struct gguf_option_table *table, const char *word,
                                           size_t length);

/* Return a value of the argument, or NULL after the last. */
const char *gguf_option_choice(const struct gguf_option *option, size_t index);

/*
 * Return the name of a command for messages: the last name of its first option, or
 * table->no_command.
 */
const char *gguf_option_command_name(const struct gguf_option_table *table, int command);

/* No line of --help is longer. */
#define GGUF_HELP_COLUMNS 79

/* Print the usage lines, then all options by group. Write errors stay in the stream. */
void gguf_options_print_help(const struct gguf_option_table *table, FILE *stream);

/*
 * The scripts in contrib/completion/ call the program as
 *
 *   PROGRAM --complete INDEX WORD...
 *
 * and get a line "CANDIDATE<tab>DESCRIPTION" for each completion of WORD number INDEX, which starts
 * at 1; a description may be empty. An exit status other than 0 says that names of files may follow
 * as well.
 *
 * Print the completions of words[at], names of options and values; words[0] is not used. Returns 0
 * if the word cannot name a file, 1 if it is a file as the value of an option, or 2 if it is an
 * argument of the program.
 */
int gguf_options_complete(const struct gguf_option_table *table, int n_words, char **words, int at,
                          FILE *stream);
