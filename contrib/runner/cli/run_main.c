/* ggufs-run: runs a model from its tree. */

#include "contrib/runner/cli/run_options.h"
#include "contrib/runner/cli/run_signals.h"
#include "contrib/runner/cli/tasks.h"
#include "dequant/kernels.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sysexits.h>
#include <unistd.h>

/* What a perplexity is usually told for. */
#define PERPLEXITY_CONTEXT 512

/* Lets no file of ours become descriptor 0, 1 or 2 because the caller closed those. */
static int fill_standard_descriptors(void)
{
    for (int i = STDIN_FILENO; i <= STDERR_FILENO; i++)
        if (fcntl(i, F_GETFD) < 0 && open("/dev/null", O_RDWR) != i)
            return -1;
    return 0;
}

/* For this CPU, or those that the user wants to see at work. */
static int choose_kernels(void)
{
    const char *name = getenv("GGUFS_CPU");
    const int code = dequant_choose_kernels(name && *name ? name : NULL);
    const struct dequant_kernel_set *set;

    if (code == 0)
        return EX_OK;
    fprintf(stderr, "ggufs-run: GGUFS_CPU=%s: %s; here can be chosen:", name,
            code == -ENOTSUP ? "this CPU can't run these kernels" : "there are no such kernels");
    for (size_t i = 0; (set = dequant_kernel_set_at(i)) != NULL; i++)
        if (set->is_supported())
            fprintf(stderr, " %s", set->name);
    fputc('\n', stderr);
    return EX_USAGE;
}

/* Who has typed a command without a prompt does not want to wait for themselves. */
static int check_prompt(const struct run_options *options)
{
    if (options->task != RUN_TASK_GENERATE || options->prompt || options->prompt_file ||
        !isatty(STDIN_FILENO))
        return EX_OK;
    fprintf(stderr, "ggufs-run: PROMPT is missing; -i chats, - reads it from the terminal\n");
    run_options_print_usage(stderr);
    return EX_USAGE;
}

/* As many as the file has; 0 if that can't be told before it is read. */
static uint32_t count_tokens(const char *path)
{
    struct stat status;

    if (stat(path, &status) != 0 || !S_ISREG(status.st_mode) ||
        (uint64_t)status.st_size / sizeof(int32_t) > INT32_MAX)
        return 0;
    return (uint32_t)((uint64_t)status.st_size / sizeof(int32_t));
}

/*
 * The context that a task will use; 0: what is usual. No longer than it has to be, since models
 * with rotary factors for short and for long contexts choose by it.
 */
static uint32_t context_of(const struct run_options *options)
{
    switch (options->task) {
    case RUN_TASK_LOGITS:
        return count_tokens(options->tokens_file);
    case RUN_TASK_PERPLEXITY:
        return PERPLEXITY_CONTEXT;
    case RUN_TASK_BENCH:
        return options->bench_prompt + options->bench_predict;
    default:
        return 0;
    }
}

static int run_task(struct run_session *session)
{
    switch (session->options->task) {
    case RUN_TASK_CHAT:
        return run_task_chat(session);
    case RUN_TASK_TOKENIZE:
        return run_task_tokenize(session);
    case RUN_TASK_DETOKENIZE:
        return run_task_detokenize(session);
    case RUN_TASK_LOGITS:
        return run_task_logits(session);
    case RUN_TASK_PERPLEXITY:
        return run_task_perplexity(session);
    case RUN_TASK_BENCH:
        return run_task_bench(session);
    default:
        return run_task_generate(session);
    }
}

static int run(struct run_options *options)
{
    struct run_session session;
    int status = check_prompt(options);

    if (status != EX_OK)
        return status;
    if (!options->has_seed && getrandom(&options->sampling.seed, 4, 0) != 4)
        options->sampling.seed = (uint64_t)getpid();
    run_signals_start();
    status = run_session_open(options, context_of(options), &session);
    if (status == EX_OK)
        status = run_task(&session);
    run_session_close(&session);
    return status;
}

int main(int argc, char **argv)
{
    struct run_options options;
    int status = EX_OK;
    int code;

    if (fill_standard_descriptors() < 0)
        return EX_OSERR;
    if (choose_kernels() != EX_OK)
        return EX_USAGE;
    code = run_options_parse(argc, argv, &options);
    if (code == -ENOMEM) {
        status = EX_OSERR;
    } else if (code < 0) {
        run_options_print_usage(stderr);
        status = EX_USAGE;
    } else if (options.task == RUN_TASK_HELP) {
        run_options_print_help(stdout);
    } else if (options.task == RUN_TASK_VERSION) {
        printf("ggufs-run %s\nkernels %s\n", GGUFS_VERSION, dequant_chosen_kernels()->name);
    } else {
        status = run(&options);
    }
    run_options_free(&options);
    if ((fflush(stdout) != 0 || ferror(stdout)) && status == EX_OK) {
        fprintf(stderr, "ggufs-run: stdout: %s\n", strerror(errno));
        status = EX_IOERR;
    }
    return status;
}
