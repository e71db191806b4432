#include "contrib/runner/tokenizer/tokenizer_kinds.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void run_tokenizer_add_note(struct run_tokenizer *tokenizer, const char *format, ...)
{
    const size_t length = strlen(tokenizer->note);
    const char *between = length > 0 && length + 2 < RUN_NOTE_BYTES ? "; " : "";
    char *end = stpcpy(tokenizer->note + length, between);
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(end, (size_t)(tokenizer->note + RUN_NOTE_BYTES - end), format, arguments);
    va_end(arguments);
}
