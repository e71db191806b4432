#include "contrib/runner/cli/task_files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* No context holds the tokens of a longer text. */
#define PROMPT_LIMIT_BYTES ((size_t)64 << 20)

static bool is_stdio(const char *path)
{
    return !path || strcmp(path, "-") == 0;
}

static const char *input_path(const struct run_options *options)
{
    switch (options->task) {
    case RUN_TASK_GENERATE:
        return options->prompt_file;
    case RUN_TASK_LOGITS:
        return options->tokens_file;
    case RUN_TASK_PERPLEXITY:
        return options->perplexity_file;
    case RUN_TASK_BENCH:
        return "/proc/self/status"; /* how much memory is used */
    default:
        return NULL;
    }
}

/* Write to a device or pipe directly instead of replacing it, and keep symbolic links. */
static int open_output(const char *path, struct run_task_files *files, struct run_failure *failure)
{
    struct stat status;

    if (is_stdio(path)) {
        files->output = STDOUT_FILENO;
        return 0;
    }
    if (stat(path, &status) != 0)
        files->target = strdup(path);
    else if (S_ISREG(status.st_mode))
        files->target = realpath(path, NULL);
    else
        files->output = open(path, O_WRONLY | O_CLOEXEC);
    return files->target || files->output >= 0
               ? 0
               : run_fail(failure, -errno, "%s: cannot be written: %s", path, strerror(errno));
}

int run_task_files_open(const struct run_options *options, struct run_task_files *files,
                        struct run_failure *failure)
{
    const char *path = input_path(options);

    *files = (struct run_task_files){.input = STDIN_FILENO, .input_name = "stdin", .output = -1};
    files->limit_bytes = options->task == RUN_TASK_GENERATE ? PROMPT_LIMIT_BYTES : SIZE_MAX;
    if (!is_stdio(path)) {
        files->input_name = path;
        files->input = open(path, O_RDONLY | O_CLOEXEC);
        if (files->input < 0)
            return run_fail(failure, -errno, "%s: %s", path, strerror(errno));
    }
    return options->logits_file ? open_output(options->logits_file, files, failure) : 0;
}

void run_task_files_close(struct run_task_files *files)
{
    if (files->input > STDERR_FILENO)
        close(files->input);
    if (files->output > STDERR_FILENO)
        close(files->output);
    free(files->target);
    *files = (struct run_task_files){.input = -1, .output = -1};
}

int run_task_files_read(const struct run_task_files *files, struct gguf_buffer *bytes,
                        struct run_failure *failure)
{
    char piece[65536];
    ssize_t n;

    while ((n = read(files->input, piece, sizeof piece)) > 0) {
        if (bytes->length + (size_t)n > files->limit_bytes)
            return run_fail_elsewhere(failure, -EFBIG,
                                      "%s: more than %zu MiB, the limit of a prompt",
                                      files->input_name, files->limit_bytes >> 20);
        if (gguf_buffer_add(bytes, piece, (size_t)n) < 0)
            return run_fail_memory(failure);
    }
    return n < 0 ? run_fail_elsewhere(failure, -errno, "%s: %s", files->input_name, strerror(errno))
                 : 0;
}
