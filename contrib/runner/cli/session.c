#include "contrib/runner/cli/session.h"

#include "contrib/runner/cli/run_progress.h"
#include "contrib/runner/cli/run_signals.h"
#include "gguf/support/exit_status.h"

#include <errno.h>
#include <fcntl.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sysexits.h>
#include <time.h>
#include <unistd.h>

/* The context where nobody says another, unless the model was trained for less. */
#define USUAL_CONTEXT 4096

double run_seconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

int run_session_complain(const struct run_session *session, int code,
                         const struct run_failure *failure)
{
    fprintf(stderr, "ggufs-run: %s: %s\n", session->options->model, failure->text);
    return gguf_exit_status(code);
}

static int complain_of_place(const char *path)
{
    const int error = errno;

    fprintf(stderr, "ggufs-run: %s: %s", path, strerror(error));
    if (error == ENOENT)
        fprintf(stderr, "; mount a model with \"ggufs MODEL DIRECTORY\", or name a model file");
    if (error == ENOTCONN)
        fprintf(stderr, "; the mount's ggufs is gone: fusermount3 -u clears it away");
    fputc('\n', stderr);
    return gguf_exit_status(-error);
}

/* The directory of the tree; a file is mounted first. Returns an exit status. */
static int find_tree(struct run_session *session)
{
    const char *model = session->options->model;
    struct stat status;
    int result;

    if (stat(model, &status) != 0)
        return complain_of_place(model);
    if (S_ISDIR(status.st_mode)) {
        session->tree.fd = open(model, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (session->tree.fd < 0)
            return complain_of_place(model);
        if (faccessat(session->tree.fd, "metadata", F_OK, 0) == 0)
            return EX_OK;
        if (errno != ENOENT)
            return complain_of_place(model);
        fprintf(
            stderr,
            "ggufs-run: %s: not the tree of a model: it has no metadata directory; mount one with "
            "\"ggufs MODEL DIRECTORY\"\n",
            model);
        return EX_NOINPUT;
    }
    if (!S_ISREG(status.st_mode)) {
        fprintf(stderr, "ggufs-run: %s: neither a directory nor a model file\n", model);
        return EX_NOINPUT;
    }
    result = run_private_mount_open(model, &session->options->mount_options, &session->mount);
    if (result == EX_OK) {
        session->tree.fd = session->mount.fd;
        session->mount.fd = -1;
    }
    return result;
}

static bool needs_engine(enum run_task task)
{
    return task != RUN_TASK_TOKENIZE && task != RUN_TASK_DETOKENIZE;
}

static bool needs_tokenizer(enum run_task task)
{
    return task != RUN_TASK_LOGITS && task != RUN_TASK_BENCH;
}

static void list_architectures(const char *unknown)
{
    const char *name;

    for (size_t i = 0; (name = run_architecture_name(i)); i++)
        if (strcmp(name, unknown) == 0)
            return;
    fprintf(stderr, "ggufs-run: architectures that are known:");
    for (size_t i = 0; (name = run_architecture_name(i)); i++)
        fprintf(stderr, " %s", name);
    fputc('\n', stderr);
}

static int choose_context(const struct run_session *session, uint32_t n_wanted, uint32_t *n_context,
                          struct run_failure *failure)
{
    const int64_t n_given = session->options->n_context;
    uint32_t n_trained = 0;
    int code;

    if (n_given < 0 && n_wanted > 0) {
        *n_context = n_wanted;
        return 0;
    }
    code = run_metadata_u32(session->tree.metadata, ".context_length", UINT32_MAX, &n_trained,
                            failure);
    if (code < 0)
        return code;
    if (n_given < 0)
        *n_context = n_trained > 0 && n_trained < USUAL_CONTEXT ? n_trained : USUAL_CONTEXT;
    else
        *n_context = (uint32_t)n_given;
    if (n_given > n_trained && n_trained > 0)
        fprintf(stderr,
                "ggufs-run: the model was trained for %u tokens; what it does behind them may make "
                "no sense\n",
                n_trained);
    return 0;
}

static int open_engine(struct run_session *session, uint32_t n_context, struct run_failure *failure)
{
    const struct run_options *options = session->options;
    struct run_engine_options engine = {.n_batch = options->n_batch,
                                        .is_cache_f16 = options->is_cache_f16};
    int code = choose_context(session, n_context, &engine.n_context, failure);

    if (options->n_threads > 0)
        omp_set_num_threads((int)options->n_threads);
    if (code == 0)
        code = run_weights_open(session->tree.fd, &session->tree.weights, failure);
    if (code == 0) {
        run_signals_watch(session->tree.weights);
        code = run_engine_open(session->tree.metadata, session->tree.weights, &engine,
                               &session->engine, failure);
    }
    if (code < 0)
        return code;
    session->n_vocab = run_engine_n_vocab(session->engine);
    session->n_context = run_engine_n_context(session->engine);
    session->logits = calloc(session->n_vocab, sizeof *session->logits);
    if (!session->logits)
        return run_fail_memory(failure);
    if (options->is_warmed_up)
        run_progress_touch(session->tree.weights);
    return 0;
}

static int open_tokenizer(struct run_session *session, struct run_failure *failure)
{
    int code = run_tokenizer_open(session->tree.metadata, &session->tokenizer, failure);

    /* Models of bytes do without a vocabulary. */
    if (code == -ENOENT && session->engine && session->n_vocab == 256)
        code = run_tokenizer_open_bytes(&session->tokenizer, failure);
    if (code == 0 && *run_tokenizer_note(session->tokenizer) != '\0')
        fprintf(stderr, "ggufs-run: %s\n", run_tokenizer_note(session->tokenizer));
    return code;
}

int run_session_open(const struct run_options *options, uint32_t n_context,
                     struct run_session *session)
{
    struct run_failure failure;
    int status, code;

    *session = (struct run_session){.options = options,
                                    .mount = {.fd = -1, .messages = -1},
                                    .tree = {.fd = -1},
                                    .started = run_seconds()};
    status = find_tree(session);
    if (status != EX_OK)
        return status;
    code = run_metadata_open(session->tree.fd, &session->tree.metadata, &failure);
    if (code == 0 && needs_engine(options->task))
        code = open_engine(session, n_context, &failure);
    if (code == 0 && needs_tokenizer(options->task))
        code = open_tokenizer(session, &failure);
    if (code == 0)
        code = run_metadata_status(session->tree.metadata, &failure);
    session->load_seconds = run_seconds() - session->started;
    if (code == 0)
        return EX_OK;
    status = run_session_complain(session, code, &failure);
    if (code == -ENOTSUP && session->tree.metadata && needs_engine(options->task))
        list_architectures(run_metadata_architecture(session->tree.metadata));
    return status;
}

void run_session_close(struct run_session *session)
{
    run_signals_watch(NULL);
    free(session->logits);
    run_tokenizer_close(session->tokenizer);
    run_engine_close(session->engine);
    run_private_mount_close(&session->mount);
    run_tree_close(&session->tree);
}

int run_session_feed(struct run_session *session, const int32_t *tokens, size_t n,
                     struct run_failure *failure)
{
    for (size_t at = 0; at < n;) {
        const size_t n_left = n - at;
        const size_t n_now =
            n_left < session->options->n_batch ? n_left : session->options->n_batch;
        const bool is_last = n_now == n_left;
        int code;

        if (run_signals_is_asked())
            return run_fail(failure, -EINTR, "interrupted");
        code = run_engine_feed(session->engine, tokens + at, n_now,
                               is_last ? RUN_LOGITS_LAST : RUN_LOGITS_NONE,
                               is_last ? session->logits : NULL, failure);
        if (code < 0)
            return code;
        at += n_now;
    }
    return 0;
}

int run_session_encode(const struct run_session *session, const char *text, size_t length,
                       bool is_special, struct run_ids *ids, struct run_failure *failure)
{
    const struct run_special_ids *special = run_tokenizer_special(session->tokenizer);
    const unsigned flags = (session->options->adds_bos ? RUN_ENCODE_BOS_EOS : 0U) |
                           (is_special ? RUN_ENCODE_SPECIAL : 0U);
    const int code = run_tokenizer_encode(session->tokenizer, text, length, flags, ids, failure);

    if (code < 0)
        return code;
    /* The text is to go on. */
    if (session->options->adds_bos && special->is_eos_added && ids->n > 0 &&
        ids->list[ids->n - 1] == special->eos)
        ids->n--;
    return 0;
}

int run_read_file(const char *path, struct gguf_buffer *text, struct run_failure *failure)
{
    const bool is_stdin = strcmp(path, "-") == 0;
    const char *name = is_stdin ? "stdin" : path;
    const int fd = is_stdin ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
    char bytes[65536];
    ssize_t n = 0;
    int code = 0;

    if (fd < 0)
        return run_fail(failure, -errno, "%s: %s", name, strerror(errno));
    while (code == 0 && (n = read(fd, bytes, sizeof bytes)) > 0)
        if (gguf_buffer_add(text, bytes, (size_t)n) < 0)
            code = run_fail_memory(failure);
    if (n < 0)
        code = run_fail(failure, -errno, "%s: %s", name, strerror(errno));
    if (!is_stdin)
        close(fd);
    return code;
}
