#include "contrib/runner/cli/tasks.h"
#include "contrib/runner/cli/text_output.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

static int print_ids(const struct run_session *session, const char *text, size_t length,
                     struct run_ids *ids, struct run_failure *failure)
{
    const unsigned flags = session->options->is_special ? RUN_ENCODE_SPECIAL : 0U;
    int code;

    ids->n = 0;
    code = run_tokenizer_encode(session->tokenizer, text, length, flags, ids, failure);
    for (size_t i = 0; code == 0 && i < ids->n; i++)
        printf(i > 0 ? " %d" : "%d", ids->list[i]);
    if (code == 0)
        putchar('\n');
    return code;
}

/* Encode each text; with -0, each ends in NUL or at the end of the input. */
static int tokenize(const struct run_session *session, const struct gguf_buffer *input,
                    struct run_ids *ids, struct run_failure *failure)
{
    const char *bytes = input->bytes ? input->bytes : "";
    int code = 0;

    if (!session->options->is_null_separated)
        return print_ids(session, bytes, input->length, ids, failure);
    for (size_t at = 0; code == 0 && at < input->length;) {
        const char *end = memchr(bytes + at, '\0', input->length - at);
        const size_t length = end ? (size_t)(end - bytes) - at : input->length - at;

        code = print_ids(session, bytes + at, length, ids, failure);
        at += length + 1;
    }
    return code;
}

int run_task_tokenize(struct run_session *session)
{
    struct gguf_buffer input = {0};
    struct run_ids ids = {0};
    struct run_failure failure;
    const char *text = session->options->prompt;
    int code;

    if (!text || strcmp(text, "-") == 0)
        code = run_task_files_read(&session->files, &input, &failure);
    else
        code = gguf_buffer_add_string(&input, text) < 0 ? run_fail_memory(&failure) : 0;
    if (code == 0)
        code = tokenize(session, &input, &ids, &failure);
    if (code == 0)
        code = run_flush_stdout(&failure);
    run_ids_free(&ids);
    gguf_buffer_free(&input);
    return code < 0 ? run_session_complain(session, code, &failure) : EX_OK;
}

/* Return the length of the word at the start of a text, at most 20. */
static size_t word_length(const char *text)
{
    const size_t length = strcspn(text, " \t\r\n,");

    return length < 20 ? length : 20;
}

/*
 * Append the bytes of the ids unchanged, even if they are not UTF-8, so that encoded text is
 * restored exactly.
 */
static int detokenize(const struct run_session *session, const char *text, struct gguf_buffer *out,
                      struct run_failure *failure)
{
    const struct run_tokenizer *tokenizer = session->tokenizer;
    bool is_first = run_tokenizer_adds_space(tokenizer);

    for (;;) {
        const char *piece;
        size_t length;
        char *end;
        long id;

        while (isspace((unsigned char)*text) || *text == ',')
            text++;
        if (*text == '\0')
            return 0;
        errno = 0;
        id = strtol(text, &end, 10);
        if (end == text || errno != 0 || id < 0 || (size_t)id >= run_tokenizer_size(tokenizer))
            return run_fail_elsewhere(
                failure, -EINVAL, "stdin: \"%.*s\" is not an id from 0 to %zu",
                (int)word_length(text), text, run_tokenizer_size(tokenizer) - 1);
        text = end;
        if (run_tokenizer_is_hidden(tokenizer, (int32_t)id) && !session->options->is_special)
            continue;
        piece = run_tokenizer_piece(tokenizer, (int32_t)id, &length);
        if (is_first && length > 0 && *piece == ' ') {
            piece++;
            length--;
        }
        is_first = false;
        if (gguf_buffer_add(out, piece, length) < 0)
            return run_fail_memory(failure);
    }
}

int run_task_detokenize(struct run_session *session)
{
    struct gguf_buffer input = {0}, output = {0};
    struct run_failure failure;
    int code = run_task_files_read(&session->files, &input, &failure);
    int write_code;

    if (code == 0 && input.bytes)
        code = detokenize(session, input.bytes, &output, &failure);
    write_code = run_write_text(output.bytes, output.length); /* also the text before a wrong id */
    if (code == 0 && write_code < 0)
        code = run_fail_stdout(&failure, -write_code);
    gguf_buffer_free(&output);
    gguf_buffer_free(&input);
    return code < 0 ? run_session_complain(session, code, &failure) : EX_OK;
}
