#include "contrib/runner/cli/session.h"

#include "contrib/runner/cli/default_threads.h"
#include "contrib/runner/cli/messages.h"
#include "contrib/runner/cli/private_mount.h"
#include "contrib/runner/cli/run_signals.h"
#include "contrib/runner/cli/speculation.h"
#include "contrib/runner/compute/multiply.h"
#include "contrib/runner/compute/thread_pool.h"
#include "contrib/runner/engine/architectures.h"
#include "contrib/runner/tokenizer/token_vocabulary.h"
#include "gguf/models/models.h"
#include "gguf/support/arrays.h"
#include "gguf/support/confine.h"
#include "gguf/support/exit_status.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <limits.h>
#include <seccomp.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <time.h>
#include <unistd.h>

/* The default context, unless the model was trained for less. */
#define USUAL_CONTEXT 4096

/* Seconds before the progress of a prompt is shown, and between two updates. */
#define PROGRESS_DELAY    1.0
#define PROGRESS_INTERVAL 0.1

/* Number of unused tensors that are named. */
#define NAMES_SHOWN 3

int run_session_complain(const struct run_session *session, int code,
                         const struct run_failure *failure)
{
    if (failure->is_elsewhere)
        run_message("%s", failure->text);
    else
        run_message("%s: %s", session->options->model, failure->text);
    return gguf_exit_status(code);
}

/*
 * Open the tree at the path that the user gave. Anything other than a tree is passed to ggufs,
 * which resolves names of models and mounts the model. Returns an exit status.
 */
static int find_tree(struct run_session *session)
{
    const char *model = session->options->model;
    struct run_tree *tree = &session->tree;
    char *original = NULL;
    int status;

    tree->fd = open(model, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (tree->fd >= 0) {
        if (faccessat(tree->fd, "original.gguf", F_OK, 0) == 0) {
            /* The tree shows a file of Ollama as it is; a private mount translates it. */
            if (asprintf(&original, "%s/original.gguf", model) < 0)
                return EX_OSERR;
        } else if (faccessat(tree->fd, "metadata.json", F_OK, 0) == 0) {
            return EX_OK;
        } else if (faccessat(tree->fd, "tensors.json", F_OK, 0) == 0) {
            run_message("%s: not a whole tree of a model: it has no metadata.json", model);
            return EX_NOINPUT;
        }
        close(tree->fd);
    }
    session->is_tree_private = true;
    status = run_private_mount_open(original ? original : model, &session->options->mount_options,
                                    &tree->fd);
    free(original);
    return status;
}

static void list_architectures(const char *unknown)
{
    struct gguf_buffer names = {0};
    const struct gguf_architecture *row;

    for (size_t i = 0; (row = gguf_architecture_at(i)); i++)
        if (strcmp(row->name, unknown) == 0 || gguf_buffer_add_string(&names, " ") < 0 ||
            gguf_buffer_add_string(&names, row->name) < 0)
            break;
    if (!row)
        run_message("supported architectures:%s", names.bytes);
    gguf_buffer_free(&names);
}

static int choose_context(const struct run_session *session, uint32_t n_wanted, uint32_t *n_context,
                          struct run_failure *failure)
{
    const int64_t n_given = session->options->n_context;
    static const struct run_range range = {0, UINT32_MAX, true};
    double n_trained = 0;
    int code;

    code = run_metadata_number(session->tree.metadata, ".context_length", RUN_SCALAR, &range,
                               &n_trained, failure);
    if (code < 0)
        return code;
    if (n_given >= 0)
        *n_context = (uint32_t)n_given;
    else if (n_wanted > 0)
        *n_context = n_wanted;
    else
        *n_context =
            n_trained > 0 && n_trained < USUAL_CONTEXT ? (uint32_t)n_trained : USUAL_CONTEXT;
    if (*n_context > n_trained && n_trained > 0)
        run_message("the model was trained for %.0f tokens; its text beyond them may make no sense",
                    n_trained);
    return 0;
}

/* Report unused tensors: they may belong to a computation that ggufs-run lacks. */
static void report_unused(const struct run_weights *weights)
{
    char list[NAMES_SHOWN * (NAME_MAX + 2) + 1] = "";
    const char *names[NAMES_SHOWN];
    const size_t n = run_weights_unused(weights, names, NAMES_SHOWN);

    if (n == 0)
        return;
    for (size_t i = 0; i < n && i < NAMES_SHOWN; i++)
        run_list_add(list, sizeof list, ", ", names[i]);
    run_message("%zu tensor%s not used: %s%s", n, n == 1 ? " is" : "s are", list,
                n > NAMES_SHOWN ? ", ..." : "");
}

static bool is_text_generated(const struct run_options *options)
{
    return options->task == RUN_TASK_GENERATE || options->task == RUN_TASK_CHAT;
}

bool run_session_progress(void *user, size_t n_done)
{
    struct run_prompt_progress *progress = user;
    const double now = run_seconds();

    if (progress->n_total > 1 && now >= progress->next) {
        progress->next = now + PROGRESS_INTERVAL;
        progress->is_drawn = true;
        run_message_progress("prompt: %zu of %zu tokens", n_done, progress->n_total);
    }
    return !run_signals_is_interrupted();
}

static int open_engine(struct run_session *session, uint32_t n_context, struct run_failure *failure)
{
    const struct run_options *options = session->options;
    struct run_engine_options engine = {
        .n_batch = options->n_batch,
        .cache_type = options->cache_type,
        .can_rewind = is_text_generated(options) && options->n_drafts != 0,
        .has_nextn = is_text_generated(options) && options->n_drafts != 0 &&
                     options->draft_sources != 1U << RUN_DRAFT_LOOKUP,
        .on_layer = run_session_progress,
        .user = &session->progress};
    int code = run_weights_open(session->tree.fd, session->is_tree_private, &session->tree.weights,
                                failure);

    run_multiply_in_floats(options->is_exact);
    if (code == 0 && !run_weights_name(session->tree.weights, 0))
        return run_fail(
            failure, -ENOENT,
            "a vocabulary only: the model has no tensors, so only --tokenize can use it");
    if (code == 0)
        code = choose_context(session, n_context, &engine.n_context, failure);
    if (code == 0) {
        run_signals_watch(session->tree.weights, options->model);
        code = run_engine_open(session->tree.metadata, session->tree.weights, &engine,
                               &session->engine, failure);
    }
    if (code < 0)
        return code;
    report_unused(session->tree.weights);
    session->n_vocab = run_engine_counts(session->engine).n_vocab;
    session->n_context = run_engine_counts(session->engine).n_context;
    if (is_text_generated(options))
        run_drafts_choose(session);
    session->logits =
        calloc((size_t)session->n_vocab * (1 + session->n_drafts), sizeof *session->logits);
    if (!session->logits)
        return run_fail_memory(failure);
    session->reads_ahead = options->is_warmed_up && run_read_ahead_fits(session->tree.weights);
    return 0;
}

/* Every token of the vocabulary has a row, or the files are of two models. */
static int check_rows(const struct run_session *session, size_t n_tokens,
                      struct run_failure *failure)
{
    if (n_tokens <= session->n_vocab)
        return 0;
    return run_fail(failure, -EINVAL,
                    "the weights have rows for %u tokens, but the vocabulary has %zu: they are "
                    "not of the same model",
                    session->n_vocab, n_tokens);
}

/* For tasks without tokenizer. */
static int check_vocabulary(const struct run_session *session, struct run_failure *failure)
{
    const struct gguf_json *tokens;
    struct run_json json;
    size_t n_tokens = 0;
    const int code = run_metadata_array(session->tree.metadata, "tokenizer.ggml.tokens", &json,
                                        &tokens, failure);

    if (code < 0)
        return code;
    for (const struct gguf_json *token = tokens ? tokens->child : NULL; token; token = token->next)
        n_tokens++;
    run_json_free(&json);
    return check_rows(session, n_tokens, failure);
}

static int open_tokenizer(struct run_session *session, struct run_failure *failure)
{
    int code = run_tokenizer_open(session->tree.metadata, &session->tokenizer, failure);

    if (code == 0 && session->engine)
        code = check_rows(session, session->tokenizer->vocabulary.n, failure);
    if (code == 0 && *session->tokenizer->note != '\0')
        run_message("%s", session->tokenizer->note);
    return code;
}

/* Keep the rights that computing needs: memory, threads and open files. */
static int confine(const struct run_options *options)
{
    static const int calls[] = {SCMP_SYS(ftruncate)};
    const struct gguf_confinement confinement = {.threads = true,
                                                 .sets_terminal = options->is_interactive,
                                                 .system_calls = calls,
                                                 .n_system_calls = sizeof calls / sizeof *calls};
    const char *step;
    int code;

    if (!options->is_confined)
        return EX_OK;
    tzset(); /* for templates that write the date */
    code = gguf_confine(&confinement, &step);
    if (code == 0)
        return EX_OK;
    run_message("cannot confine the process: %s: %s; --no-sandbox runs without", step,
                strerror(-code));
    return EX_OSERR;
}

static int load(struct run_session *session, uint32_t n_context, struct run_failure *failure)
{
    const enum run_task task = session->options->task;
    int code = run_metadata_open(session->tree.fd, &session->tree.metadata, failure);

    if (code < 0)
        return code;
    if (task != RUN_TASK_TOKENIZE)
        code = open_engine(session, n_context, failure);
    if (code == 0)
        code = task == RUN_TASK_LOGITS || task == RUN_TASK_BENCH
                   ? check_vocabulary(session, failure)
                   : open_tokenizer(session, failure);
    if (code == 0)
        session->chat_template =
            run_metadata_string(session->tree.metadata, "tokenizer.chat_template");
    session->sampling = session->options->sampling;
    if (code == 0)
        code = run_sampling_complete(&session->sampling, session->tree.metadata, failure);
    return run_metadata_finish(session->tree.metadata, code, failure);
}

int run_session_open(const struct run_options *options, uint32_t n_context,
                     struct run_session *session)
{
    struct run_failure failure;
    int status, code;

    *session =
        (struct run_session){.options = options, .tree = {.fd = -1}, .started = run_seconds()};
    code = run_task_files_open(options, &session->files, &failure);
    if (code < 0) {
        run_message("%s", failure.text);
        return gguf_exit_status(code);
    }
    if (run_task_files_check(options, &session->files, &failure) < 0) {
        run_message("%s", failure.text);
        return EX_USAGE;
    }
    status = find_tree(session);
    if (status != EX_OK)
        return status;
    code = load(session, n_context, &failure);
    session->load_seconds = run_seconds() - session->started;
    if (code == 0) {
        const unsigned n_threads =
            options->n_threads > 0 ? options->n_threads : run_default_threads("");

        session->editor = options->is_interactive ? run_line_editor_open() : NULL;
        status = confine(options);
        if (status == EX_OK && session->engine)
            run_thread_pool_start(n_threads); /* confined as well */
        if (status == EX_OK && session->reads_ahead)
            run_read_ahead_start(&session->read_ahead, session->tree.weights);
        return status;
    }
    if (session->tree.metadata && run_kind_explain(&session->tree, code, &failure))
        return run_session_complain(session, -ENOTSUP, &failure);
    status = run_session_complain(session, code, &failure);
    if (code == -ENOTSUP && session->tree.metadata && options->task != RUN_TASK_TOKENIZE)
        list_architectures(run_metadata_architecture(session->tree.metadata));
    return status;
}

void run_session_close(struct run_session *session)
{
    run_read_ahead_end(&session->read_ahead);
    run_thread_pool_end();
    run_signals_watch(NULL, NULL);
    free(session->logits);
    run_tokenizer_close(session->tokenizer);
    run_engine_close(session->engine);
    run_tree_close(&session->tree);
    run_task_files_close(&session->files);
    run_line_editor_close(session->editor);
}

int run_session_feed(struct run_session *session, const int32_t *tokens, size_t n,
                     struct run_failure *failure)
{
    int code;

    /* A benchmark shows its own progress. */
    session->progress =
        (struct run_prompt_progress){.next = run_seconds() + PROGRESS_DELAY,
                                     .n_total = session->options->task == RUN_TASK_BENCH ? 0 : n};
    code = run_engine_feed(session->engine, tokens, n, RUN_LOGITS_LAST, session->logits, failure);
    if (session->progress.is_drawn)
        run_message_progress("%s", "");
    session->progress.n_total = 0; /* generated tokens are not shown */
    return code;
}
