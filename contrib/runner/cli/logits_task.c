#include "contrib/runner/cli/messages.h"
#include "contrib/runner/cli/session.h"
#include "contrib/runner/cli/text_output.h"

#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

/* Limit of the logits in memory, in bytes. */
#define LOGITS_BYTES ((size_t)64 << 20)

/* The number of tokens to feed at once if all logits are wanted. */
static size_t rows_at_once(const struct run_session *session)
{
    const size_t row_bytes = session->n_vocab * sizeof(float);
    const size_t n_fit = row_bytes < LOGITS_BYTES ? LOGITS_BYTES / row_bytes : 1;

    return n_fit < session->options->n_batch ? n_fit : session->options->n_batch;
}

static int read_tokens(const struct run_task_files *files, struct run_ids *ids,
                       struct run_failure *failure)
{
    struct gguf_buffer bytes = {0};
    int code = run_task_files_read(files, &bytes, failure);

    if (code == 0 && (bytes.length == 0 || bytes.length % sizeof(int32_t) != 0))
        code = run_fail_elsewhere(failure, -EINVAL, "%s: %zu bytes are not ids of 4 bytes each",
                                  files->input_name, bytes.length);
    for (size_t i = 0; code == 0 && i < bytes.length; i += sizeof(int32_t)) {
        uint32_t id;

        memcpy(&id, bytes.bytes + i, sizeof id);
        if (run_ids_add(ids, (int32_t)le32toh(id)) < 0)
            code = run_fail_memory(failure);
    }
    gguf_buffer_free(&bytes);
    return code;
}

static int fail_output(const struct run_session *session, struct run_failure *failure)
{
    const char *name =
        session->files.output == STDOUT_FILENO ? "standard output" : session->options->logits_file;

    return run_fail_elsewhere(failure, -EIO, "cannot write to %s: %s", name, strerror(errno));
}

static int write_logits(struct run_session *session, const struct run_ids *ids, FILE *file,
                        struct run_failure *failure)
{
    const size_t n_at_once = rows_at_once(session);
    float *rows = calloc(n_at_once * session->n_vocab, sizeof *rows);
    int code = 0;

    if (!rows)
        return run_fail_memory(failure);
    for (size_t at = 0; code == 0 && at < ids->n;) {
        const size_t n = ids->n - at < n_at_once ? ids->n - at : n_at_once;

        code = run_engine_feed(session->engine, ids->list + at, n, RUN_LOGITS_ALL, rows, failure);
        for (size_t i = 0; code == 0 && i < n * session->n_vocab; i++) {
            uint32_t bits;

            memcpy(&bits, &rows[i], sizeof bits);
            bits = htole32(bits);
            memcpy(&rows[i], &bits, sizeof bits);
        }
        if (code == 0 &&
            fwrite(rows, sizeof *rows, n * session->n_vocab, file) != n * session->n_vocab)
            code = fail_output(session, failure);
        at += n;
    }
    free(rows);
    return code;
}

/* Write to stdout or the file. A regular file is replaced; it is empty if not all was written. */
static int write_output(struct run_session *session, const struct run_ids *ids,
                        struct run_failure *failure)
{
    const int fd = session->files.output;
    FILE *file = fd == STDOUT_FILENO ? stdout : fdopen(fd, "w");
    int code;

    if (!file)
        return run_fail_memory(failure);
    if (file != stdout && ftruncate(fd, 0) != 0 && errno != EINVAL) /* EINVAL: a device or pipe */
        return fail_output(session, failure);
    code = write_logits(session, ids, file, failure);
    if (fflush(file) != 0 && code == 0)
        code = fail_output(session, failure);
    if (file == stdout)
        return code;
    if (code < 0)
        (void)!ftruncate(fd, 0);
    if (fclose(file) != 0 && code == 0)
        code = fail_output(session, failure);
    session->files.output = -1;
    return code;
}

int run_task_logits(struct run_session *session, struct run_failure *failure)
{
    struct run_ids ids = {0};
    int code = read_tokens(&session->files, &ids, failure);

    if (code == 0 && ids.n > session->n_context)
        code = run_fail_elsewhere(
            failure, -ERANGE,
            "%s: %zu tokens, more than the context of %u; -c N makes the context larger",
            session->files.input_name, ids.n, session->n_context);
    if (code == 0)
        code = write_output(session, &ids, failure);
    run_ids_free(&ids);
    return code;
}
