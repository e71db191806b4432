#include "gguf/support/option_parser.h"

#include "gguf/support/strings.h"

#include <ctype.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/param.h>

struct parser {
    const struct gguf_option_table *table;
    void *options;
    struct gguf_command_line *line;
    const char **used; /* for each row: the name under which it was given, or NULL */
    bool is_sloppy;
};

/* ---- unknown options ---- */

/* Longer names are not suggested. */
#define LONGEST_NAME 32

/* Return the restricted edit distance: letters changed, added, removed or swapped with the next. */
static size_t edit_distance(const char *a, const char *b)
{
    const size_t length_a = strlen(a), length_b = strlen(b);
    size_t rows[LONGEST_NAME + 1][LONGEST_NAME + 1];

    for (size_t i = 0; i <= length_a; i++) {
        for (size_t j = 0; j <= length_b; j++) {
            size_t least = i + j;

            if (i > 0 && j > 0)
                least = MIN(MIN(rows[i - 1][j], rows[i][j - 1]) + 1,
                            rows[i - 1][j - 1] + (a[i - 1] != b[j - 1]));
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                least = MIN(least, rows[i - 2][j - 2] + 1);
            rows[i][j] = least;
        }
    }
    return rows[length_a][length_b];
}

/*
 * Return the name that resembles `word`, which has no dashes, most closely, or an empty one. A name
 * resembles a word if fewer than about a third of the letters were changed, added, removed or
 * swapped with the next. Of two names at the same distance, one that begins with the word is
 * closer.
 */
static struct gguf_string closest_name(const struct gguf_option_table *table, const char *word)
{
    struct gguf_string closest = {0};
    size_t limit = strlen(word) / 3 + 1;

    for (size_t i = 0; i < table->n_rows && strlen(word) > 1; i++) {
        const struct gguf_option *option = &table->rows[i];
        const char *names = option->names;
        struct gguf_string name;

        while (option->help && gguf_next_word(&names, &name)) {
            const size_t n_dashes = strspn(name.data, "-"), length = name.length_bytes - n_dashes;
            char bare[LONGEST_NAME + 1] = "";
            size_t distance;

            if (n_dashes == 1 || length >= sizeof bare)
                continue;
            memcpy(bare, name.data + n_dashes, length);
            distance = edit_distance(word, bare);
            if (distance < limit ||
                (distance == limit && closest.data && gguf_text_starts_with(bare, word))) {
                closest = name;
                limit = distance;
            }
        }
    }
    return closest;
}

/* `o` is "-o " if the word followed -o, else "". `cut` is the option before it in the group. */
static int refuse_unknown(const struct gguf_option_table *table, const char *word, const char *o,
                          const char *cut)
{
    const char *start = word + strspn(word, "-");
    const size_t length = strcspn(start, "=");
    char name[LONGEST_NAME + 1] = "";
    struct gguf_string meant;

    if (length < sizeof name)
        memcpy(name, start, length);
    meant = closest_name(table, name);
    if (cut)
        table->print_error(
            "unknown option -o %s; if it belongs to the value of -o %s before it, write the comma "
            "as \\, or use --%s, which needs no escaping",
            word, cut, cut);
    else if (meant.length_bytes > 0)
        table->print_error("unknown option %s%s; did you mean %s%.*s?", o, word,
                           *meant.data == '-' ? "" : "-o ", (int)meant.length_bytes, meant.data);
    else
        table->print_error("unknown option %s%s; for a list: %s --help", o, word, table->program);
    return -EINVAL;
}

/* ---- options ---- */

static int select_command(const struct parser *parser, const struct gguf_option_use *use)
{
    const struct gguf_option_table *table = parser->table;
    int *command = (int *)((char *)parser->options + table->command_offset);
    const int selected = use->option->command;

    if (table->final_commands & 1u << *command)
        return 0;
    if (*command != 0 && *command != selected && !(table->final_commands & 1u << selected)) {
        table->print_error("%s cannot be combined with %s", use->shown,
                           gguf_option_command_name(table, *command));
        return -EINVAL;
    }
    *command = selected;
    return 0;
}

/* `name` is the name as given, of `length` characters. */
static int take(struct parser *parser, const struct gguf_option *option, const char *name,
                size_t length, const char *whole, const char *value, bool has_successor)
{
    const struct gguf_option_table *table = parser->table;
    const bool is_dashed = gguf_option_is_dashed(option);
    char shown[64];
    const struct gguf_option_use use = {option, shown, value, whole, has_successor};

    snprintf(shown, sizeof shown, "%s%.*s", is_dashed ? "" : "-o ", (int)length, name);
    if (option->argument && !value && !option->fits) {
        table->print_error("option %s needs a value: %s%s%s%s", shown, shown, is_dashed ? " " : "=",
                           option->argument, option->without_value ? option->without_value : "");
        return -EINVAL;
    }
    if (!option->argument && value) {
        table->print_error("option %s takes no value, but got %s", shown, whole);
        return -EINVAL;
    }
    parser->used[option - table->rows] = name;
    if (option->command != 0 && select_command(parser, &use) < 0)
        return -EINVAL;
    if (table->note)
        table->note(parser->options, &use);
    if (option->kind == GGUF_OPTION_SLOPPY)
        parser->is_sloppy = true;
    return gguf_option_set(table, parser->options, &use);
}

/* End `word` at its next comma and undo its escapes, as libfuse does. Returns the rest or NULL. */
static char *cut_word(char *word)
{
    char *end = word;

    for (; *word != '\0' && *word != ','; word++) {
        unsigned octal;

        if (*word == '\\' && word[1] >= '0' && word[1] <= '3' &&
            sscanf(word + 1, "%3o", &octal) == 1 && strspn(word + 1, "01234567") >= 3) {
            *end++ = (char)octal;
            word += 3;
            continue;
        }
        word += *word == '\\' && word[1] != '\0';
        *end++ = *word;
    }
    word = *word == ',' ? word + 1 : NULL;
    *end = '\0';
    return word;
}

static int take_group(struct parser *parser, const char *group)
{
    const struct gguf_option_table *table = parser->table;
    char *copy = strdup(group);
    const char *cut = NULL; /* "set", if the previous option is one */
    int result = 0;

    if (!copy)
        return -ENOMEM;
    parser->line->owned[parser->line->n_owned++] = copy;
    for (char *word = copy, *next; result == 0 && word; word = next) {
        const size_t length = strcspn(word, "=,");
        const struct gguf_option *option = gguf_option_find(table, word, length);

        next = cut_word(word);
        if (*word == '\0' || strncasecmp(word, "x-", 2) == 0) /* a comment, see mount(8) */
            continue;
        if (!option || gguf_option_is_dashed(option)) {
            if (parser->is_sloppy)
                continue;
            return refuse_unknown(table, word, "-o ", cut);
        }
        result = take(parser, option, word, length, word,
                      word[length] == '=' ? word + length + 1 : NULL, next != NULL);
        cut = strncmp(word, "set=", 4) == 0 ? "set" : NULL;
    }
    return result;
}

/* Return true if the letter of an option may be followed by this value; -temp is not -t emp. */
static bool can_follow(const struct gguf_option_table *table, const struct gguf_option *option,
                       const char *word)
{
    char name[64];

    snprintf(name, sizeof name, "-%.*s", (int)strcspn(word, "="), word);
    if (!option->argument || gguf_option_find(table, name, strlen(name)))
        return false;
    return option->kind == GGUF_OPTION_TEXT || option->kind == GGUF_OPTION_TEXTS ||
           option->kind == GGUF_OPTION_GROUP || isdigit((unsigned char)word[2]) || word[2] == '-';
}

/* Take the option in argv[i]. Returns the number of words used, or a negative errno. */
static int take_word(struct parser *parser, int argc, char **argv, int i)
{
    const struct gguf_option_table *table = parser->table;
    const char *word = argv[i];
    size_t length = strcspn(word, "=");
    const struct gguf_option *option = gguf_option_find(table, word, length);
    const char *value = word[length] == '=' ? word + length + 1 : NULL;
    int n_used = 1;
    int result;

    if (option && !gguf_option_is_dashed(option))
        option = NULL;
    if (!option && word[1] != '-') {
        option = gguf_option_find(table, word, 2);
        if (option && !can_follow(table, option, word))
            option = NULL;
        length = 2;
        value = word + 2;
    }
    if (!option)
        return refuse_unknown(table, word, "", NULL);
    if (option->argument && !value && i + 1 < argc &&
        (!option->fits || option->fits(argv[i + 1]))) {
        value = argv[i + 1];
        n_used = 2;
    }
    if (option->kind == GGUF_OPTION_GROUP && value)
        result = take_group(parser, value);
    else
        result = take(parser, option, word, length, word, value, false);
    return result < 0 ? result : n_used;
}

static int take_words(struct parser *parser, int argc, char **argv)
{
    struct gguf_command_line *line = parser->line;

    for (int i = 1; i < argc;) {
        int n_used;

        if (strcmp(argv[i], "--") == 0) {
            while (++i < argc)
                line->words[line->n_words++] = argv[i];
            break;
        }
        if (argv[i][0] != '-' || argv[i][1] == '\0') {
            line->words[line->n_words++] = argv[i++];
            continue;
        }
        n_used = take_word(parser, argc, argv, i);
        if (n_used < 0)
            return n_used;
        i += n_used;
    }
    return 0;
}

/* Check that the command takes the options that were given. */
static int check_commands(const struct parser *parser)
{
    const struct gguf_option_table *table = parser->table;
    const int command = *(const int *)((const char *)parser->options + table->command_offset);

    for (size_t i = 0; i < table->n_rows && !(table->final_commands & 1u << command); i++) {
        const struct gguf_option *option = &table->rows[i];
        char names[160] = "";

        if (!parser->used[i] || option->commands == 0 || option->commands & 1u << command)
            continue;
        for (int other = 0; other < 32; other++) {
            const size_t length = strlen(names);

            if (option->commands & 1u << other)
                snprintf(names + length, sizeof names - length, "%s%s", length > 0 ? ", " : "",
                         gguf_option_command_name(table, other));
        }
        table->print_error("option %s%.*s does not apply to %s, only to %s",
                           gguf_option_is_dashed(option) ? "" : "-o ",
                           (int)strcspn(parser->used[i], "="), parser->used[i],
                           gguf_option_command_name(table, command), names);
        return -EINVAL;
    }
    return 0;
}

int gguf_options_parse(const struct gguf_option_table *table, int argc, char **argv, void *options,
                       struct gguf_command_line *line)
{
    const size_t n_words = (size_t)argc + 1;
    struct parser parser = {.table = table, .options = options, .line = line};
    int result = -ENOMEM;

    *line = (struct gguf_command_line){.words = calloc(n_words, sizeof *line->words),
                                       .owned = calloc(n_words, sizeof *line->owned)};
    parser.used = calloc(table->n_rows, sizeof *parser.used);
    if (line->words && line->owned && parser.used)
        result = take_words(&parser, argc, argv);
    if (result == 0)
        result = check_commands(&parser);
    if (result == -ENOMEM)
        table->print_error("%s", strerror(ENOMEM));
    free((void *)parser.used);
    return result;
}

void gguf_command_line_free(struct gguf_command_line *line)
{
    for (int i = 0; i < line->n_owned; i++)
        free(line->owned[i]);
    free((void *)line->owned);
    free((void *)line->words);
}
