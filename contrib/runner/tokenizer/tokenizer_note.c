#include "contrib/runner/tokenizer/tokenizer_kinds.h"
#include "gguf/support/safe_print.h"

#include <stdarg.h>
#include <stdio.h>

void run_tokenizer_set_note(struct run_tokenizer *tokenizer, const char *format, ...)
{
    char text[RUN_NOTE_BYTES];
    va_list arguments;
    int length;

    if (tokenizer->note[0] != '\0')
        return;
    va_start(arguments, format);
    length = vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (length < 0)
        return;
    if (length >= (int)sizeof text)
        length = sizeof text - 1;
    tokenizer->note[gguf_escape(text, (size_t)length, tokenizer->note)] = '\0';
}
