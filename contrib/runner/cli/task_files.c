#include "contrib/runner/cli/task_files.h"

#include "contrib/runner/chat/conversation.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
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
    case RUN_TASK_BENCH:
        return "/proc/self/status"; /* how much memory is used */
    default:
        return NULL;
    }
}

/* Read a file, or stdin, as a whole. */
static int read_text(const char *option, const char *path, struct gguf_buffer *text,
                     struct run_failure *failure)
{
    struct run_task_files file = {.input_name = is_stdio(path) ? "stdin" : path,
                                  .limit_bytes = PROMPT_LIMIT_BYTES};
    int code;

    file.input = is_stdio(path) ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
    if (file.input < 0)
        return run_fail_elsewhere(failure, -errno, "%s %s: %s", option, path, strerror(errno));
    code = run_task_files_read(&file, text, failure);
    if (file.input != STDIN_FILENO)
        close(file.input);
    if (code == 0 && text->length == 0)
        return run_fail_elsewhere(failure, -EINVAL, "%s: %s is empty", option, file.input_name);
    return code;
}

/* Read the files that a chat needs. --chat-template may be a name instead. */
static int read_texts(const struct run_options *options, struct run_task_files *files,
                      struct run_failure *failure)
{
    const char *template = options->chat_template;
    int code = 0;

    if (options->variables.messages)
        code = read_text("--messages", options->variables.messages, &files->messages, failure);
    if (code == 0 && options->variables.tools)
        code = read_text("--tools", options->variables.tools, &files->tools, failure);
    if (code == 0 && template && !run_chat_template_find(template))
        code = read_text("--chat-template", template, &files->chat_template, failure);
    return code;
}

int run_task_files_open(const struct run_options *options, struct run_task_files *files,
                        struct run_failure *failure)
{
    const char *path = input_path(options);
    int code;

    *files = (struct run_task_files){.input = STDIN_FILENO, .input_name = "stdin", .output = -1};
    files->sums = open("/proc/self/smaps_rollup", O_RDONLY | O_CLOEXEC);
    code = read_texts(options, files, failure);
    if (code < 0)
        return code;
    files->limit_bytes = options->task == RUN_TASK_GENERATE ? PROMPT_LIMIT_BYTES : SIZE_MAX;
    if (!is_stdio(path)) {
        files->input_name = path;
        files->input = open(path, O_RDONLY | O_CLOEXEC);
        if (files->input < 0)
            return run_fail(failure, -errno, "%s: %s", path, strerror(errno));
    }
    if (!options->logits_file)
        return 0;
    files->output = is_stdio(options->logits_file)
                        ? STDOUT_FILENO
                        : open(options->logits_file, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
    return files->output >= 0 ? 0
                              : run_fail(failure, -errno, "%s: cannot be written: %s",
                                         options->logits_file, strerror(errno));
}

void run_task_files_close(struct run_task_files *files)
{
    if (files->input > STDERR_FILENO)
        close(files->input);
    if (files->output > STDERR_FILENO)
        close(files->output);
    gguf_buffer_free(&files->messages);
    gguf_buffer_free(&files->tools);
    gguf_buffer_free(&files->chat_template);
    if (files->sums >= 0)
        close(files->sums);
    *files = (struct run_task_files){.input = -1, .output = -1, .sums = -1};
}

/* Return true if an open file is a regular one that begins as GGUF and ggml's files do. */
static bool is_model_file(int fd)
{
    static const char magics[] = "GGUF lmgg fmgg tjgg";
    char path[32], magic[5] = "";
    struct stat status;
    int copy;

    if (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode))
        return false;
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd); /* to read what is open for writing */
    copy = open(path, O_RDONLY | O_CLOEXEC);
    if (copy < 0)
        return false;
    (void)!read(copy, magic, 4);
    close(copy);
    return strlen(magic) == 4 && strstr(magics, magic);
}

uint64_t run_proc_bytes(int fd, const char *name)
{
    char text[4096];
    const ssize_t n = pread(fd, text, sizeof text - 1, 0);
    const char *line;
    uint64_t kib = 0;

    text[n > 0 ? n : 0] = '\0';
    line = strstr(text, name);
    if (line)
        sscanf(line + strlen(name), "%" SCNu64, &kib);
    return kib * 1024;
}

int run_task_files_check(const struct run_options *options, const struct run_task_files *files,
                         struct run_failure *failure)
{
    struct stat input, output;

    if (fstat(files->input, &input) == 0 && S_ISREG(input.st_mode) &&
        fstat(files->output, &output) == 0 && input.st_dev == output.st_dev &&
        input.st_ino == output.st_ino)
        return run_fail(failure, -EINVAL,
                        "%s: --logits would overwrite the ids of --tokens; write to another file",
                        options->logits_file);
    if (files->output > STDERR_FILENO && is_model_file(files->output))
        return run_fail(failure, -EINVAL,
                        "%s: --logits would overwrite a model file; write to another file",
                        options->logits_file);
    if (is_model_file(STDOUT_FILENO))
        return run_fail(failure, -EINVAL,
                        "standard output is a model file, which would be damaged; write to another "
                        "file");
    return 0;
}

bool run_is_line_cut(const char *line, ssize_t n_bytes)
{
    return n_bytes > 0 && n_bytes - (line[n_bytes - 1] == '\n') >= RUN_TERMINAL_LINE_BYTES;
}

int run_task_files_read(const struct run_task_files *files, struct gguf_buffer *bytes,
                        struct run_failure *failure)
{
    const bool is_terminal = isatty(files->input);
    char piece[65536];
    ssize_t n;

    while ((n = read(files->input, piece, sizeof piece)) > 0) {
        if (is_terminal && run_is_line_cut(piece, n)) /* read() gives a line at a time */
            return run_fail_elsewhere(failure, -EMSGSIZE,
                                      "%s: a terminal cuts lines after %d bytes; give the text in "
                                      "a file, with -f, or by a pipe",
                                      files->input_name, RUN_TERMINAL_LINE_BYTES);
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
