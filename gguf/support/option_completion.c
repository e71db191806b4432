#include "gguf/support/option_completion.h"

#include <string.h>

/* Print prefix[0..prefix_length-1] and the name, if together they begin with `start`. */
static void offer(FILE *stream, const char *start, size_t prefix_length, const char *name,
                  size_t length, const char *end, const char *help)
{
    const char *begun = start + prefix_length;

    if (length >= strlen(begun) && strncmp(begun, name, strlen(begun)) == 0)
        fprintf(stream, "%.*s%.*s%s\t%s\n", (int)prefix_length, start, (int)length, name, end,
                help ? help : "");
}

static void offer_names(const struct gguf_option_table *table, const char *start,
                        size_t prefix_length, bool is_dashed, FILE *stream)
{
    for (size_t i = 0; i < table->n_rows; i++) {
        const struct gguf_option *option = &table->rows[i];
        const char *rest = option->help ? option->names : NULL, *name;
        size_t length;

        while (gguf_option_is_dashed(option) == is_dashed &&
               (length = gguf_option_next_name(&rest, &name)) > 0)
            offer(stream, start, prefix_length, name, length,
                  !is_dashed && option->argument ? "=" : "", option->help);
    }
}

/* Offer values of an option. They begin after the first `prefix_length` characters of `start`. */
static int offer_values(const struct gguf_option *option, const char *start, size_t prefix_length,
                        FILE *stream)
{
    const char *name;

    for (size_t i = 0; (name = gguf_option_choice(option, i)) != NULL; i++)
        offer(stream, start, prefix_length, name, strlen(name), "", NULL);
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
