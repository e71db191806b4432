#include "gguf/support/option_rows.h"

#include "gguf/support/strings.h"

#include <string.h>

bool gguf_option_is_dashed(const struct gguf_option *option)
{
    return option->names && option->names[0] == '-';
}

const struct gguf_option *gguf_option_find(const struct gguf_option_table *table, const char *word,
                                           size_t length)
{
    for (size_t i = 0; i < table->n_rows; i++)
        if (gguf_words_have(table->rows[i].names, (struct gguf_string){word, length}))
            return &table->rows[i];
    return NULL;
}

const char *gguf_option_choice(const struct gguf_option *option, size_t index)
{
    if (option->choice_at)
        return option->choice_at(index);
    return option->choices ? option->choices[index].name : NULL;
}

const char *gguf_option_command_name(const struct gguf_option_table *table, int command)
{
    for (size_t i = 0; command != 0 && i < table->n_rows; i++) {
        const char *last = table->rows[i].names ? strrchr(table->rows[i].names, ' ') : NULL;

        if (table->rows[i].command == command)
            return last ? last + 1 : table->rows[i].names;
    }
    return table->no_command;
}

/* ---- help ---- */

/* The column where descriptions begin. */
enum { INDENT = 27 };

/* Print a text from column `column` on, with line breaks at spaces; lines begin at `indent`. */
static void print_wrapped(FILE *stream, const char *text, int column, int indent)
{
    while (*text != '\0') {
        const int length = (int)strcspn(text, " ");

        if (column > indent && column + 1 + length > GGUF_HELP_COLUMNS) {
            fprintf(stream, "\n%*s", indent, "");
            column = indent;
        } else if (column > indent) {
            fputc(' ', stream);
            column++;
        }
        fprintf(stream, "%.*s", length, text);
        column += length;
        text += length;
        text += strspn(text, " ");
    }
    fputc('\n', stream);
}

static void print_option(FILE *stream, const struct gguf_option *option)
{
    const char *names = option->names;
    struct gguf_string name;
    char left[120] = "  ";
    size_t length;

    while (gguf_next_word(&names, &name)) {
        length = strlen(left);
        snprintf(left + length, sizeof left - length, "%s%s%.*s", length > 2 ? ", " : "",
                 gguf_option_is_dashed(option) ? "" : "-o ", (int)name.length_bytes, name.data);
    }
    length = strlen(left);
    if (option->argument)
        snprintf(left + length, sizeof left - length, "%s%s",
                 gguf_option_is_dashed(option) ? " " : "=", option->argument);
    if (strlen(left) + 2 > INDENT)
        fprintf(stream, "%s\n%*s", left, INDENT, "");
    else
        fprintf(stream, "%-*s", INDENT, left);
    print_wrapped(stream, option->help, INDENT, INDENT);
}

void gguf_options_print_help(const struct gguf_option_table *table, FILE *stream)
{
    /* Room for all of it: a write that fails does so at the end, where its cause is known. */
    static char buffer[1 << 14];

    setvbuf(stream, buffer, _IOFBF, sizeof buffer);
    fprintf(stream, "%s\n", table->usage);
    print_wrapped(stream, table->about, 0, 0);
    for (size_t i = 0; i < table->n_rows; i++) {
        const struct gguf_option *option = &table->rows[i];

        if (option->kind == GGUF_OPTION_HEADING)
            fprintf(stream, "\n%s:\n", option->help);
        else if (option->help)
            print_option(stream, option);
    }
    fprintf(stream, "\n%s", table->end);
}

/* ---- completion ---- */

/* Print prefix[0..prefix_length-1] and the name, if together they begin with `start`. */
static void offer(FILE *stream, const char *start, size_t prefix_length, struct gguf_string name,
                  const char *end, const char *help)
{
    if (gguf_string_starts_with(name, start + prefix_length))
        fprintf(stream, "%.*s%.*s%s\t%s\n", (int)prefix_length, start, (int)name.length_bytes,
                name.data, end, help);
}

static void offer_names(const struct gguf_option_table *table, const char *start,
                        size_t prefix_length, bool is_dashed, FILE *stream)
{
    for (size_t i = 0; i < table->n_rows; i++) {
        const struct gguf_option *option = &table->rows[i];
        const char *names = option->names;
        struct gguf_string name;

        while (option->help && gguf_option_is_dashed(option) == is_dashed &&
               gguf_next_word(&names, &name))
            offer(stream, start, prefix_length, name, !is_dashed && option->argument ? "=" : "",
                  option->help);
    }
}

/* Offer values of an option. They begin after the first `prefix_length` characters of `start`. */
static int offer_values(const struct gguf_option *option, const char *start, size_t prefix_length,
                        FILE *stream)
{
    const char *name;

    for (size_t i = 0; (name = gguf_option_choice(option, i)) != NULL; i++)
        offer(stream, start, prefix_length, gguf_string_of(name), "", "");
    return strcmp(option->argument, "FILE") == 0 || strcmp(option->argument, "MODEL") == 0;
}

/* The last option of a group; the group begins after `prefix_length` characters of `start`. */
static int offer_group(const struct gguf_option_table *table, const char *start,
                       size_t prefix_length, FILE *stream)
{
    const char *comma = strrchr(start + prefix_length, ',');
    const char *word = comma ? comma + 1 : start + prefix_length;
    const size_t length = strcspn(word, "=");
    const struct gguf_option *option = gguf_option_find(table, word, length);

    if (word[length] == '\0')
        offer_names(table, start, (size_t)(word - start), false, stream);
    else if (option && option->argument)
        return offer_values(option, start, (size_t)(word - start) + length + 1, stream);
    return 0;
}

int gguf_options_complete(const struct gguf_option_table *table, int n_words, char **words, int at,
                          FILE *stream)
{
    const char *word = at < n_words ? words[at] : "";
    const char *before = at > 0 && at <= n_words ? words[at - 1] : "";
    const size_t length = strcspn(word, "=");
    const struct gguf_option *option = gguf_option_find(table, before, strlen(before));

    for (int i = 0; i < at && i < n_words; i++) {
        if (strcmp(words[i], "--") == 0)
            return 2;
    }
    if (option && gguf_option_is_dashed(option) && option->argument)
        return option->kind == GGUF_OPTION_GROUP ? offer_group(table, word, 0, stream)
                                                 : offer_values(option, word, 0, stream);
    if (word[0] != '-')
        return 2;
    option = gguf_option_find(table, word, length);
    if (option && option->argument && word[length] == '=')
        return offer_values(option, word, length + 1, stream);
    option = gguf_option_find(table, word, word[1] == '-' ? 0 : 2);
    if (option && option->kind == GGUF_OPTION_GROUP && word[1] != '\0' && word[2] != '\0')
        return offer_group(table, word, 2, stream);
    offer_names(table, word, 0, true, stream);
    return 0;
}
