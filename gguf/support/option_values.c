#include "gguf/support/option_parser.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* Print "option NAME VALUE: needs …". Returns -EINVAL. */
static int refuse(const struct gguf_option_table *table, const struct gguf_option_use *use,
                  const char *needs)
{
    table->print_error("option %s%s%s: needs %s", use->shown,
                       gguf_option_is_dashed(use->option) ? " " : "=",
                       *use->value ? use->value : "''", needs);
    return -EINVAL;
}

static bool parse_number(const char *text, bool is_octal, double *number)
{
    char *end;

    errno = 0;
    *number = is_octal ? (double)strtoul(text, &end, 8) : strtod(text, &end);
    return errno == 0 && (isdigit((unsigned char)*text) || (!is_octal && strchr("-+.", *text))) &&
           *end == '\0' && !strpbrk(text, "xX") && isfinite(*number);
}

static int set_number(const struct gguf_option_table *table, const struct gguf_option_use *use,
                      void *member)
{
    const struct gguf_option *option = use->option;
    const bool is_octal = option->kind == GGUF_OPTION_OCTAL;
    const bool is_whole = option->kind != GGUF_OPTION_FLOAT;
    char needs[80];
    double number;

    if (!*use->value || !parse_number(use->value, is_octal, &number) || number < option->least ||
        number > option->most || (is_whole && number != floor(number))) {
        if (is_octal)
            snprintf(needs, sizeof needs, "an octal number from 0 to %o", (unsigned)option->most);
        else
            snprintf(needs, sizeof needs, "a %snumber from %.10g to %.10g",
                     is_whole ? "whole " : "", option->least, option->most);
        return refuse(table, use, needs);
    }
    switch (option->kind) {
    case GGUF_OPTION_INT32:
        *(int32_t *)member = (int32_t)number;
        break;
    case GGUF_OPTION_INT64:
        *(int64_t *)member = (int64_t)number;
        break;
    case GGUF_OPTION_FLOAT:
        *(float *)member = (float)number;
        break;
    default:
        *(uint32_t *)member = (uint32_t)number;
    }
    return 0;
}

static int set_bytes(const struct gguf_option_table *table, const struct gguf_option_use *use,
                     uint64_t *member)
{
    static const char suffixes[] = "KMG";
    uint64_t value, factor = 1;
    const char *suffix;
    char *end;

    errno = 0;
    value = strtoull(use->value, &end, 10);
    suffix = *end != '\0' ? strchr(suffixes, *end) : NULL;
    for (const char *i = suffixes; suffix && i <= suffix; i++)
        factor *= 1000;
    if (errno == 0 && isdigit((unsigned char)*use->value) &&
        value >= (uint64_t)use->option->least && end[suffix != NULL] == '\0' &&
        !__builtin_mul_overflow(value, factor, member))
        return 0;
    return refuse(table, use, "a size in bytes, like 500M or 2G");
}

/* Find the value among the option's choices. Returns its index, or -EINVAL. */
static int find_choice(const struct gguf_option_table *table, const struct gguf_option_use *use)
{
    char needs[1024] = "one of: ";
    const char *name;

    for (int i = 0; (name = gguf_option_choice(use->option, (size_t)i)) != NULL; i++) {
        const size_t length = strlen(needs);

        if (strcasecmp(name, use->value) == 0)
            return i;
        snprintf(needs + length, sizeof needs - length, "%s%s", i > 0 ? ", " : "", name);
    }
    return refuse(table, use, needs);
}

int gguf_texts_add(struct gguf_texts *texts, const char *text)
{
    const char **larger =
        realloc((void *)texts->texts, (texts->n_texts + 1) * sizeof *texts->texts);

    if (!larger)
        return -ENOMEM;
    texts->texts = larger;
    texts->texts[texts->n_texts++] = text;
    return 0;
}

int gguf_option_set(const struct gguf_option_table *table, void *options,
                    const struct gguf_option_use *use)
{
    const struct gguf_option *option = use->option;
    void *member = (char *)options + option->offset;
    int choice = 0;

    if (option->choices || option->choice_at)
        choice = find_choice(table, use);
    if (choice < 0)
        return choice;
    switch (option->kind) {
    case GGUF_OPTION_ON:
    case GGUF_OPTION_OFF:
        *(bool *)member = option->kind == GGUF_OPTION_ON;
        return 0;
    case GGUF_OPTION_TEXT:
        *(const char **)member =
            gguf_option_choice(option, 0) ? gguf_option_choice(option, (size_t)choice) : use->value;
        return 0;
    case GGUF_OPTION_TEXTS:
        return *use->value == '\0' ? refuse(table, use, "a text")
                                   : gguf_texts_add(member, use->value);
    case GGUF_OPTION_PAIRS:
        return !strchr(use->value, '=') || use->value[0] == '='
                   ? refuse(table, use, "KEY=JSON, as in enable_thinking=false")
                   : gguf_texts_add(member, use->value);
    case GGUF_OPTION_UINT32:
    case GGUF_OPTION_INT32:
    case GGUF_OPTION_INT64:
    case GGUF_OPTION_FLOAT:
    case GGUF_OPTION_OCTAL:
        return set_number(table, use, member);
    case GGUF_OPTION_BYTES:
        return set_bytes(table, use, member);
    case GGUF_OPTION_CHOICE:
        *(unsigned *)member = option->choices ? option->choices[choice].value
                                              : (unsigned)choice + (unsigned)option->least;
        return 0;
    case GGUF_OPTION_CONSTANT:
        *(unsigned *)member = (unsigned)option->least;
        return 0;
    case GGUF_OPTION_HANDLER:
        return option->handle(options, use);
    default:
        return 0;
    }
}
