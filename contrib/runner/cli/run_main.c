/* ggufs-run: runs a model from its tree. */

#include "contrib/runner/cli/messages.h"
#include "contrib/runner/cli/private_mount.h"
#include "contrib/runner/cli/run_options.h"
#include "contrib/runner/cli/run_signals.h"
#include "contrib/runner/cli/session.h"
#include "dequant/kernels.h"
#include "gguf/support/exit_status.h"
#include "gguf/support/option_rows.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sysexits.h>
#include <unistd.h>

/* The exit status of a program ended by Ctrl-C. */
#define STATUS_INTERRUPTED 130

/* Choose the kernels for this CPU, or those that GGUFS_CPU names. */
static int choose_kernels(void)
{
    const char *name = getenv("GGUFS_CPU");
    const int code = dequant_choose_kernels(name && *name ? name : NULL);
    const struct dequant_kernel_set *set;
    char names[200] = "";

    if (code == 0)
        return EX_OK;
    for (size_t i = 0; (set = dequant_kernel_set_at(i)) != NULL; i++)
        if (set->is_supported())
            run_list_add(names, sizeof names, " ", set->name);
    run_message("GGUFS_CPU=%s: %s; available: %s", name,
                code == -ENOTSUP ? "this CPU cannot run these kernels" : "no such kernels", names);
    return EX_USAGE;
}

/* A missing prompt at a terminal is an error: do not wait for input. */
static int check_prompt(const struct run_options *options)
{
    if (options->task != RUN_TASK_GENERATE || options->prompt || options->prompt_file ||
        !isatty(STDIN_FILENO))
        return EX_OK;
    run_message("PROMPT is missing; -i chats, - reads it from the terminal");
    fputs(run_command_line.usage, stderr);
    return EX_USAGE;
}

/* Return the number of tokens in a file; 0 if it is unknown before reading. */
static uint32_t count_tokens(const char *path)
{
    struct stat status;

    if (stat(path, &status) != 0 || !S_ISREG(status.st_mode) ||
        (uint64_t)status.st_size / sizeof(int32_t) > INT32_MAX)
        return 0;
    return (uint32_t)((uint64_t)status.st_size / sizeof(int32_t));
}

/*
 * Return the context that a task needs; 0: the default. It is as short as possible, because models
 * with rotary factors for short and for long contexts choose by its length.
 */
static uint32_t context_of(const struct run_options *options)
{
    return options->task == RUN_TASK_LOGITS
               ? count_tokens(options->tokens_file)
               : options->bench_depth + options->bench_prompt + options->bench_predict;
}

static int run_task(struct run_session *session)
{
    static run_task_function *const tasks[] = {
        [RUN_TASK_GENERATE] = run_task_generate, [RUN_TASK_CHAT] = run_task_chat,
        [RUN_TASK_TOKENIZE] = run_task_tokenize, [RUN_TASK_LOGITS] = run_task_logits,
        [RUN_TASK_BENCH] = run_task_bench,
    };
    struct run_failure failure;
    const int code = tasks[session->options->task](session, &failure);

    if (code == -EINTR)
        return STATUS_INTERRUPTED;
    return code < 0 ? run_session_complain(session, code, &failure) : EX_OK;
}

static int run(struct run_options *options)
{
    struct run_session session;
    int status = check_prompt(options);

    if (status != EX_OK)
        return status;
    if (!options->has_seed && getrandom(&options->sampling.seed, 4, 0) != 4)
        options->sampling.seed = (uint64_t)getpid();
    run_message_start();
    run_signals_start();
    status = run_session_open(options, context_of(options), &session);
    if (status == EX_OK)
        status = run_task(&session);
    run_session_close(&session);
    return status;
}

/* See option_rows.h; words[0] is the index. */
static int complete(int n_words, char **words)
{
    const int at = atoi(words[0]);
    const int expected = gguf_options_complete(&run_command_line, n_words, words, at, stdout);

    if (expected == 2 && at > 0 && at < n_words) /* a model, in a store or a file */
        run_become_ggufs((char *[]){"ggufs", "--complete", "1", words[at], NULL});
    return expected > 0;
}

int main(int argc, char **argv)
{
    struct run_options options;
    int status = EX_OK;
    int code;

    if (gguf_fill_standard_files() < 0)
        return EX_OSERR;
    if (choose_kernels() != EX_OK)
        return EX_USAGE;
    if (argc > 2 && strcmp(argv[1], "--complete") == 0)
        return complete(argc - 2, argv + 2);
    code = run_options_parse(argc, argv, &options);
    if (code == -ENOMEM) {
        status = EX_OSERR;
    } else if (code < 0) {
        status = EX_USAGE;
    } else if (options.task == RUN_TASK_HELP) {
        gguf_options_print_help(&run_command_line, stdout);
    } else if (options.task == RUN_TASK_VERSION) {
        printf("ggufs-run %s\nkernels %s\n", GGUFS_VERSION, dequant_chosen_kernels()->name);
    } else {
        status = run(&options);
    }
    run_options_free(&options);
    /* A failed task has printed its error, which may have been stdout's. */
    return status == EX_OK ? gguf_finish_stdout("ggufs-run", status) : status;
}
