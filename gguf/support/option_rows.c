#include "gguf/support/option_rows.h"

#include <string.h>

size_t gguf_option_next_name(const char **rest, const char **name)
{
    const char *start = *rest ? *rest + strspn(*rest, " ") : "";
    const size_t length = strcspn(start, " ");

    *name = start;
    *rest = start + length;
    return length;
}

bool gguf_option_is_dashed(const struct gguf_option *option)
{
    return option->names && option->names[0] == '-';
}

const struct gguf_option *gguf_option_find(const struct gguf_option_table *table, const char *word,
                                           size_t length)
{
    for (size_t i = 0; i < table->n_rows && length > 0; i++) {
        const char *rest = table->rows[i].names, *name;
        size_t n;

        while ((n = gguf_option_next_name(&rest, &name)) > 0) {
            if (n == length && memcmp(name, word, length) == 0)
                return &table->rows[i];
        }
    }
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
