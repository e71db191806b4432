#include "gguf/support/option_help.h"

#include <string.h>

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
    const char *rest = option->names, *name;
    char left[120] = "  ";
    size_t length;

    while ((length = gguf_option_next_name(&rest, &name)) > 0) {
        const size_t n = strlen(left);

        snprintf(left + n, sizeof left - n, "%s%s%.*s", n > 2 ? ", " : "",
                 gguf_option_is_dashed(option) ? "" : "-o ", (int)length, name);
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
