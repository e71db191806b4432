#include "contrib/runner/cli/tasks.h"
#include "contrib/runner/cli/text_output.h"

#include <stdio.h>
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
