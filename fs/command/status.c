#include "fs/command/commands.h"

#include "fs/command/terminal.h"
#include "fs/mount/mount_table.h"
#include "fs/mount/requests.h"
#include "fs/mount/requirements.h"
#include "fs/tree/output/json.h"
#include "gguf/support/exit_status.h"
#include "gguf/support/model_paths.h"
#include "gguf/support/safe_print.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <sysexits.h>
#include <time.h>
#include <unistd.h>

/* Time for all daemons to answer. */
#define PATIENCE_MS 2000

/* Room for an answer, which has some hundred bytes. */
#define ANSWER_BYTES 2048

struct query {
    const char *path, *source; /* of the mount */
    int error;                 /* errno of the query; ETIMEDOUT if the daemon did not answer */
    char text[ANSWER_BYTES];   /* the answer: lines "NAME VALUE" */
    pid_t child;               /* asks for it */
};

/* Set *name and *value, parts of `rest`, to the name and value of the next line. Returns false at
 * the end. */
static bool next_line(char **rest, struct gguf_string *name, struct gguf_string *value)
{
    const char *line = strsep(rest, "\n");
    const size_t length = line ? strcspn(line, " ") : 0;

    if (!line || line[length] != ' ')
        return false;
    *name = (struct gguf_string){line, length};
    *value = gguf_string_of(line + length + 1);
    return true;
}

/* ---- asking ---- */

/* A process writes one message. It is shorter than PIPE_BUF, so messages do not mix in the pipe. */
struct message {
    size_t number; /* of the query */
    int error;
    char text[ANSWER_BYTES];
};

_Static_assert(sizeof(struct message) <= PIPE_BUF, "messages are written at once");

/*
 * Runs in a process of its own, which may stay: it cannot always be killed while it waits for a
 * daemon. So it holds nothing that the user waits for. Does not return.
 */
static _Noreturn void ask(const char *path, size_t number, int pipe)
{
    struct message message = {.number = number};
    const int null = open("/dev/null", O_RDWR);

    for (int i = STDIN_FILENO; i <= STDERR_FILENO; i++)
        dup2(null, i);
    if (getxattr(path, FS_STATUS_ATTRIBUTE, message.text, sizeof message.text - 1) < 0)
        message.error = errno;
    (void)!write(pipe, &message, sizeof message);
    _exit(EX_OK);
}

static int64_t now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * (int64_t)1000 + now.tv_nsec / 1000000;
}

/* Ask all mounts at once, each in a child. Returns 0 or a negative errno. */
static int ask_all(struct query *queries, size_t n)
{
    const int64_t deadline = now_ms() + PATIENCE_MS;
    size_t n_asked = 0;
    int ends[2], result = 0;

    if (pipe(ends) != 0)
        return -errno;
    for (; result == 0 && n_asked < n; n_asked += result == 0) {
        queries[n_asked].child = fork();
        if (queries[n_asked].child == 0)
            ask(queries[n_asked].path, n_asked, ends[1]);
        result = queries[n_asked].child < 0 ? -errno : 0;
    }
    close(ends[1]);
    for (size_t i = 0; result == 0 && i < n; i++) {
        struct pollfd answers = {.fd = ends[0], .events = POLLIN};
        const int64_t left = deadline - now_ms();
        struct message message;

        if (poll(&answers, 1, left > 0 ? (int)left : 0) != 1 ||
            read(ends[0], &message, sizeof message) != sizeof message)
            break;
        queries[message.number].error = message.error;
        memcpy(queries[message.number].text, message.text, sizeof message.text);
    }
    close(ends[0]);
    for (size_t i = 0; i < n_asked; i++) {
        kill(queries[i].child, SIGKILL);
        waitpid(queries[i].child, NULL, WNOHANG);
    }
    return result;
}

/* ---- printing ---- */

static const struct {
    int error; /* the last row is for all others */
    const char *state;
    const char *explanation; /* with the remedy; NULL: none */
    const char *command;     /* of the remedy, before the path; NULL: none */
} states[] = {
    {0, "serving", NULL, NULL},
    {ENOTCONN, "dead", "its daemon is gone; remove the mount", "fusermount3 -u"},
    {ECONNABORTED, "dead", "its daemon is gone; remove the mount", "fusermount3 -u"},
    {ETIMEDOUT, "does not answer",
     "no answer within 2 seconds; the daemon is stopped, or its disk stalls; to remove the mount",
     "fusermount3 -uz"},
    {EACCES, "private",
     "only the user who mounted it can see it, unless it is mounted with -o allow_other", NULL},
    {ENODATA, "other version", "its daemon is of a version that gives no figures", NULL},
    {-1, "failing", NULL, NULL},
};

/* Return the index of the row of an error. */
static size_t state_of(const struct query *query)
{
    size_t i = 0;

    while (states[i].error >= 0 && states[i].error != query->error)
        i++;
    return i;
}

/* Write an object on a line. Values that are numbers stay numbers. */
static void write_object(const void *subject, struct fs_sink *sink)
{
    const struct query *query = subject;
    char text[ANSWER_BYTES], *rest = strcpy(text, query->text);
    struct gguf_string name, value;

    fs_json_begin(sink, "mountpoint", query->path);
    fs_json_text_member(sink, "source", query->source);
    fs_json_text_member(sink, "state", states[state_of(query)].state);
    while (next_line(&rest, &name, &value)) {
        fs_sink_literal(sink, ",");
        fs_json_string(sink, name);
        fs_sink_literal(sink, ":");
        fs_json_digits(sink, value);
    }
    fs_sink_literal(sink, "}\n");
}

/* Print "STATE: MOUNTPOINT: SOURCE, NAME VALUE, …" on a line. */
static void print_line(const struct query *query)
{
    char text[ANSWER_BYTES], *rest = strcpy(text, query->text);
    struct gguf_string name, value;

    printf("%s: ", states[state_of(query)].state);
    gguf_print_safe_string(stdout, query->path);
    fputs(": ", stdout);
    gguf_print_safe_string(stdout, query->source);
    while (next_line(&rest, &name, &value)) {
        fputs(", ", stdout);
        gguf_print_safe(stdout, name.data, name.length_bytes + 1 + value.length_bytes);
    }
    putchar('\n');
}

/* Print the remedy for a mount that does not serve. */
static void explain(const struct query *query)
{
    const size_t state = state_of(query);

    if (states[state].command)
        fs_print_error("%s: %s: %s %s", query->path, states[state].explanation,
                       states[state].command, query->path);
    else if (states[state].explanation)
        fs_print_error("%s: %s", query->path, states[state].explanation);
    else if (query->error != 0)
        fs_print_error("%s: %s", query->path, strerror(query->error));
}

/* ---- the command ---- */

/* Return the mount at a path that the user named, or NULL. Looks the path up only if it must. */
static const struct fs_mount_entry *find(const struct fs_mount_table *table, const char *named)
{
    char *path = gguf_absolute_path(named);
    const struct fs_mount_entry *mount = path ? fs_mount_table_find(table, path) : NULL;

    if (!mount) {
        free(path);
        path = realpath(named, NULL);
        mount = path ? fs_mount_table_find(table, path) : NULL;
    }
    free(path);
    return mount && gguf_text_starts_with(mount->type, "fuse") ? mount : NULL;
}

static void add(struct query *queries, size_t *n, const struct fs_mount_entry *mount)
{
    queries[*n].path = mount->path;
    queries[*n].source = mount->source;
    queries[(*n)++].error = ETIMEDOUT;
}

/* Choose the mounts to ask. Returns their number; *status is EX_NOINPUT if a path has none. */
static size_t choose(const struct fs_options *options, const struct fs_mount_table *table,
                     struct query *queries, int *status)
{
    const struct fs_mount_entry *mount;
    size_t n = 0;

    for (int i = 0; i < options->n_paths; i++) {
        mount = find(table, options->paths[i]);
        if (mount) {
            add(queries, &n, mount);
        } else {
            fs_print_error("%s: no mount of ggufs is here", options->paths[i]);
            *status = EX_NOINPUT;
        }
    }
    for (size_t i = 0; options->n_paths == 0 && i < table->count; i++) {
        mount = &table->list[i];
        /* Another mount may hide it. */
        if (strcmp(mount->type, "fuse.ggufs") == 0 &&
            fs_mount_table_find(table, mount->path) == mount)
            add(queries, &n, mount);
    }
    return n;
}

/* Returns an exit status. */
static int print_all(const struct fs_options *options, const struct query *queries, size_t n)
{
    int status = EX_OK;

    for (size_t i = 0; i < n; i++) {
        int result = 0;

        if (options->json)
            result = fs_print_written(write_object, &queries[i]);
        else
            print_line(&queries[i]);
        if (result < 0)
            status = gguf_exit_status(result);
        else if (queries[i].error != 0)
            status = EX_UNAVAILABLE;
    }
    if (fflush(stdout) != 0)
        return gguf_fail_stdout("ggufs", -errno);
    for (size_t i = 0; i < n; i++)
        explain(&queries[i]);
    return status;
}

int fs_status(const struct fs_options *options)
{
    struct fs_mount_table table;
    struct query *queries = NULL;
    int status = EX_OK, result = fs_mount_table_read(&table);
    size_t n = 0;

    if (result == -ENOENT)
        return fs_requirements_refuse_no_path(ENOENT);
    if (result == 0) {
        queries = calloc(table.count + (size_t)options->n_paths + 1, sizeof *queries);
        result = queries ? 0 : -ENOMEM;
    }
    if (result == 0) {
        n = choose(options, &table, queries, &status);
        result = ask_all(queries, n);
    }
    if (result == 0) {
        const int answered = print_all(options, queries, n);

        if (status == EX_OK)
            status = answered;
    } else {
        fs_print_error("the mounts cannot be listed: %s%s", strerror(-result),
                       result == -EMFILE ? "; raise the limit of open files (ulimit -n)" : "");
        status = EX_OSERR;
    }
    free(queries);
    fs_mount_table_free(&table);
    return status;
}
