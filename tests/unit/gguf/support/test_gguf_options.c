/* Parsing of options by their rows, --help and completion. */
#include "gguf/support/option_parser.h"
#include "gguf/support/option_rows.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PLAIN, FIRST, SECOND, HELP };

struct options {
    int command;
    bool is_on, is_off;
    const char *text;
    struct gguf_texts texts;
    uint32_t number, octal;
    int32_t negative;
    int64_t large;
    float fraction;
    uint64_t bytes;
    unsigned choice, constant, chosen;
    const char *fruit;
};

static char message[1000];

static void print_error(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
}

static const struct gguf_choice colors[] = {{"red", 7}, {"blue", 9}, {0}};

static const char *fruit_at(size_t i)
{
    static const char *const fruits[] = {"apple", "pear", NULL};

    return fruits[i];
}

#define SET(kind, member) GGUF_OPTION_##kind, .offset = offsetof(struct options, member)

/* clang-format off */
static const struct gguf_option rows[] = {
    {.help = "Options", .kind = GGUF_OPTION_HEADING},
    {"-h --help", NULL, "help", GGUF_OPTION_NOTHING, .command = HELP},
    {"--first", NULL, "first", GGUF_OPTION_NOTHING, .command = FIRST},
    {"--second", NULL, "second", GGUF_OPTION_NOTHING, .command = SECOND},
    {"--on", NULL, "on", SET(ON, is_on), .commands = 1u << FIRST | 1u << PLAIN},
    {"--off", NULL, "off", SET(OFF, is_off)},
    {"-t --text", "TEXT", "a text that is so long that its description takes more than one line",
     SET(TEXT, text)},
    {"--texts", "TEXT", "texts", SET(TEXTS, texts)},
    {"-n --number --count", "N", "a number", SET(UINT32, number), .least = 1, .most = UINT32_MAX},
    {"--negative", "N", "negative", SET(INT32, negative), .least = -5, .most = 5},
    {"--large", "N", "large", SET(INT64, large), .least = -1, .most = 1e15},
    {"--fraction", "X", "fraction", SET(FLOAT, fraction), .least = 0, .most = 1},
    {"-o", "OPTION", "group", GGUF_OPTION_GROUP, .commands = 0},
    {"umask", "M", "octal", SET(OCTAL, octal), .most = 0777},
    {"size", "SIZE", "size", SET(BYTES, bytes), .least = 1},
    {"color", "COLOR", "color", SET(CHOICE, choice), .choices = colors, .without_value = "!"},
    {"fruit", "FRUIT", "fruit", SET(CHOICE, chosen), .choice_at = fruit_at, .least = 3},
    {"fruit_text", "FRUIT", "fruit", SET(TEXT, fruit), .choice_at = fruit_at},
    {"fixed", NULL, "fixed", SET(CONSTANT, constant), .least = 4},
    {"set", "KEY=VALUE", "set", SET(TEXT, text)},
    {"ro rw", NULL, NULL, GGUF_OPTION_NOTHING, .commands = 1u << PLAIN},
    {"sloppy", NULL, NULL, GGUF_OPTION_SLOPPY, .commands = 0},
    {"--file", "FILE", "file", SET(TEXT, text)},
};
/* clang-format on */

static const struct gguf_option_table table = {
    .program = "program",
    .rows = rows,
    .n_rows = sizeof rows / sizeof *rows,
    .usage = "usage: program\n",
    .about = "About the program.",
    .end = "End.\n",
    .no_command = "plain",
    .command_offset = offsetof(struct options, command),
    .final_commands = 1u << HELP,
    .print_error = print_error,
};

static struct options options;
static struct gguf_command_line line;

/* Parse words, which NULL ends. */
static int parse(char *const *words)
{
    char *argv[20] = {"program"};
    int argc = 1;

    for (; *words; words++)
        argv[argc++] = *words;
    options = (struct options){.is_off = true};
    message[0] = '\0';
    return gguf_options_parse(&table, argc, argv, &options, &line);
}

static void end(void)
{
    free((void *)options.texts.texts);
    gguf_command_line_free(&line);
}

#define PARSE(...) parse((char *[]){__VA_ARGS__, NULL})

Test(gguf_options, every_kind)
{
    cr_assert_eq(PARSE("--on", "--off", "-ta b", "--texts=x", "--texts", "y", "-n7", "--negative",
                       "-5", "--large=-1", "--fraction", "0.5", "word", "-o",
                       "umask=27,size=3M,color=BLUE,fruit=pear,fruit_text=PEAR,fixed,ro", "-"),
                 0, "%s", message);
    cr_expect(options.is_on);
    cr_expect_not(options.is_off);
    cr_expect_str_eq(options.text, "a b");
    cr_assert_eq(options.texts.n_texts, 2);
    cr_expect_str_eq(options.texts.texts[1], "y");
    cr_expect_eq(options.number, 7);
    cr_expect_eq(options.negative, -5);
    cr_expect_eq(options.large, -1);
    cr_expect_eq(options.fraction, 0.5F);
    cr_expect_eq(options.octal, 027);
    cr_expect_eq(options.bytes, 3000000);
    cr_expect_eq(options.choice, 9);
    cr_expect_eq(options.chosen, 4);
    cr_expect_str_eq(options.fruit, "pear");
    cr_expect_eq(options.constant, 4);
    cr_assert_eq(line.n_words, 2);
    cr_expect_str_eq(line.words[0], "word");
    cr_expect_str_eq(line.words[1], "-");
    end();
}

Test(gguf_options, words_after_dashes)
{
    cr_assert_eq(PARSE("a", "--", "--on", "--"), 0);
    cr_assert_eq(line.n_words, 3);
    cr_expect_str_eq(line.words[1], "--on");
    cr_expect_not(options.is_on);
    end();
}

/* A comma and a backslash are escaped; octal numbers are as in fstab. */
Test(gguf_options, groups)
{
    cr_assert_eq(PARSE("-oset=a\\,b\\\\c\\040d,x-comment,,size=2"), 0, "%s", message);
    cr_expect_str_eq(options.text, "a,b\\c d");
    cr_expect_eq(options.bytes, 2);
    end();
    cr_assert_eq(PARSE("-o", "sloppy,nonsense=1,fixed"), 0);
    cr_expect_eq(options.constant, 4);
    end();
}

Test(gguf_options, commands)
{
    cr_assert_eq(PARSE("--first", "--on"), 0);
    cr_expect_eq(options.command, FIRST);
    end();
    cr_assert_eq(PARSE("--first", "--help", "--second", "--on"), 0);
    cr_expect_eq(options.command, HELP);
    end();
}

/* The message for a wrong command line. */
Test(gguf_options, refusals)
{
    static const struct {
        char *words[4];
        const char *message;
    } cases[] = {
        {{"--first", "--second"}, "--second cannot be combined with --first"},
        {{"--second", "--on"}, "option --on does not apply to --second, only to plain, --first"},
        {{"--second", "-o", "rw"}, "option -o rw does not apply to --second, only to plain"},
        {{"--text"}, "option --text needs a value: --text TEXT"},
        {{"-o", "color"}, "option -o color needs a value: -o color=COLOR!"},
        {{"--on=1"}, "option --on takes no value, but got --on=1"},
        {{"-n", "0"}, "option -n 0: needs a whole number from 1 to 4294967295"},
        {{"-n", "1.5"}, "option -n 1.5: needs a whole number from 1 to 4294967295"},
        {{"--count", "0x10"}, "option --count 0x10: needs a whole number from 1 to 4294967295"},
        {{"--negative="}, "option --negative '': needs a whole number from -5 to 5"},
        {{"--fraction", "nan"}, "option --fraction nan: needs a number from 0 to 1"},
        {{"-o", "umask=8"}, "option -o umask=8: needs an octal number from 0 to 777"},
        {{"-o", "umask=1000"}, "option -o umask=1000: needs an octal number from 0 to 777"},
        {{"-o", "size=0"}, "option -o size=0: needs a size in bytes, like 500M or 2G"},
        {{"-o", "size=99999999999999999G"},
         "option -o size=99999999999999999G: needs a size in bytes, like 500M or 2G"},
        {{"-o", "size=1T"}, "option -o size=1T: needs a size in bytes, like 500M or 2G"},
        {{"-o", "color=green"}, "option -o color=green: needs one of: red, blue"},
        {{"-o", "fruit=fig"}, "option -o fruit=fig: needs one of: apple, pear"},
        {{"--texts="}, "option --texts '': needs a text"},
        {{"--frist"}, "unknown option --frist; did you mean --first?"},
        {{"-first"}, "unknown option -first; did you mean --first?"},
        {{"--colour=red"}, "unknown option --colour=red; did you mean -o color?"},
        {{"--nothing-like-it"}, "unknown option --nothing-like-it; for a list: program --help"},
        {{"-o", "--on"}, "unknown option -o --on; did you mean --on?"},
        {{"-x"}, "unknown option -x; for a list: program --help"},
        {{"-text", "a"}, "unknown option -text; did you mean --text?"},
        {{"-o", "set=a,b"},
         "unknown option -o b; if it belongs to the value of -o set before it, write the comma as "
         "\\, or use --set, which needs no escaping"},
        {{"-o"}, "option -o needs a value: -o OPTION"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        cr_expect_eq(parse(cases[i].words), -EINVAL, "case %zu", i);
        cr_expect_str_eq(message, cases[i].message, "case %zu", i);
        end();
    }
}

static char output[4000];

static char *help(void)
{
    FILE *stream = fmemopen(output, sizeof output, "w");

    gguf_options_print_help(&table, stream);
    fclose(stream);
    return output;
}

Test(gguf_options, help)
{
    cr_expect_str_eq(help() + strlen(output) - 5, "End.\n");
    cr_expect_not_null(
        strstr(output, "usage: program\n\nAbout the program.\n\nOptions:\n  -h, --help "));
    cr_expect_not_null(strstr(output, "\n  -o color=COLOR           color\n"));
    cr_expect_not_null(strstr(output, "takes\n                           more than one line\n"));
    cr_expect_null(strstr(output, "sloppy"));
}

/* Complete the last word. Returns the result of the function. */
static int complete(char *before, char *word)
{
    char *words[] = {"", before, word};
    FILE *stream;
    int result;

    memset(output, 0, sizeof output);
    stream = fmemopen(output, sizeof output, "w");
    result = gguf_options_complete(&table, 3, words, 2, stream);
    fclose(stream);
    return result;
}

Test(gguf_options, completion)
{
    cr_expect_eq(complete("", "--f"), 0);
    cr_expect_str_eq(output, "--first\tfirst\n--fraction\tfraction\n--file\tfile\n");
    cr_expect_eq(complete("-o", "ro,col"), 0);
    cr_expect_str_eq(output, "ro,color=\tcolor\n");
    cr_expect_eq(complete("-o", "fruit=p"), 0);
    cr_expect_str_eq(output, "fruit=pear\t\n");
    cr_expect_eq(complete("x", "-ofixed,color="), 0);
    cr_expect_str_eq(output, "-ofixed,color=red\t\n-ofixed,color=blue\t\n");
    cr_expect_eq(complete("--file", "x"), 1);
    cr_expect_eq(complete("x", "--file=x"), 1);
    cr_expect_eq(complete("-n", "1"), 0);
    cr_expect_str_eq(output, "");
    cr_expect_eq(complete("x", "word"), 2);
    cr_expect_eq(complete("--", "--f"), 2);
    cr_expect_str_eq(output, "");
}
