#include "fs/command/status.h"

#include "fs/command/terminal.h"
#include "fs/mount/mount_status.h"
#include "fs/mount/mount_table.h"
#include "fs/mount/requirements.h"
#include "fs/tree/attributes.h"
#include "fs/tree/json.h"
#include "gguf/support/absolute_path.h"
#include "gguf/support/exit_status.h"
#include "gguf/support/safe_print.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <sysexits.h>
#include <time.h>
#include <unistd.h>

/* A daemon that has not answered by then is reported as hanging. */
#define PATIENCE_MS 3000

enum figure { PID, UPTIME, IDLE, TIMEOUT, REQUESTS, READ_BYTES, FAILURES, MEMORY, N_FIGURES };

/* Names in the answer and in JSON. Names that are not here are those of other versions. */
static const char *const names[N_FIGURES] = {
    [PID] = "pid",
    [UPTIME] = "uptime_seconds",
    [IDLE] = "idle_seconds",
    [TIMEOUT] = "timeout_seconds",
    [REQUESTS] = "requests",
    [READ_BYTES] = "read_bytes",
    [FAILURES] = "read_failures",
    [MEMORY] = "memory_bytes",
};

struct answer {
    int error; /* errno of the query; ETIMEDOUT if there is no answer */
    char version[32];
    bool has[N_FIGURES];
    uint64_t figures[N_FIGURES];
};

struct query {
    const struct fs_mount_entry *mount;
    pid_t child;
    struct answer answer;
};

/* A child writes one message. It is shorter than PIPE_BUF, so messages do not mix in the pipe. */
struct message {
    size_t number; /* of the query */
    struct answer answer;
};

/* ---- asking ---- */

static void parse(char *text, struct answer *answer)
{
    char *rest = NULL;

    for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        char *value = strchr(line, ' ');
        char *end;

        if (!value)
            continue;
        *value++ = '\0';
        if (strcmp(line, "version") == 0)
            snprintf(answer->version, sizeof answer->version, "%s", value);
        for (int i = 0; i < N_FIGURES; i++) {
            if (strcmp(line, names[i]) == 0) {
                answer->figures[i] = strtoull(value, &end, 10);
                answer->has[i] = end != value && *end == '\0';
            }
        }
    }
}

/* Runs in a process of its own, which may hang. */
static void ask(const char *path, size_t number, int pipe)
{
    char text[FS_ATTRIBUTES_BYTES + 1];
    struct message message = {.number = number};
    const ssize_t length = getxattr(path, FS_STATUS_ATTRIBUTE, text, sizeof text - 1);

    if (length >= 0) {
        text[length] = '\0';
        parse(text, &message.answer);
    } else {
        message.answer.error = errno;
    }
    (void)!write(pipe, &message, sizeof message);
    _exit(0);
}

static int64_t now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * (int64_t)1000 + now.tv_nsec / 1000000;
}

/*
 * Ask all mounts at once, each by a child, and wait until all have answered or the time is over.
 * One pipe serves all children, so that the limit of open files does not limit the mounts. Returns
 * 0 or a negative errno.
 */
static int ask_all(struct query *queries, size_t n)
{
    const int64_t deadline = now_ms() + PATIENCE_MS;
    struct message message;
    size_t n_asked = 0;
    int ends[2];

    if (pipe(ends) != 0)
        return -errno;
    for (size_t i = 0; i < n; i++) {
        queries[i].child = fork();
        if (queries[i].child == 0)
            ask(queries[i].mount->path, i, ends[1]);
        queries[i].answer.error = queries[i].child < 0 ? errno : ETIMEDOUT;
        n_asked += queries[i].child > 0;
    }
    close(ends[1]);
    for (; n_asked > 0; n_asked--) {
        struct pollfd answers = {.fd = ends[0], .events = POLLIN};
        const int64_t left = deadline - now_ms();

        if (poll(&answers, 1, left > 0 ? (int)left : 0) != 1 ||
            read(ends[0], &message, sizeof message) != sizeof message)
            break;
        queries[message.number].answer = message.answer;
    }
    close(ends[0]);
    for (size_t i = 0; i < n; i++) {
        if (queries[i].child <= 0)
            continue;
        kill(queries[i].child, SIGKILL);
        waitpid(queries[i].child, NULL, queries[i].answer.error == ETIMEDOUT ? WNOHANG : 0);
    }
    return 0;
}

/* ---- printing ---- */

static const char *state_of(const struct answer *answer)
{
    switch (answer->error) {
    case 0:
        return "serving";
    case ENOTCONN:
    case ECONNABORTED:
        return "dead";
    case ETIMEDOUT:
        return "hanging";
    case EACCES:
    case EPERM:
        return "private";
    case ENODATA:
    case EOPNOTSUPP:
        return "other version";
    default:
        return "failing";
    }
}

struct printed {
    const struct query *query;
    bool is_first;
};

static void write_object(const void *subject, struct fs_sink *sink)
{
    const struct printed *printed = subject;
    const struct query *query = printed->query;
    const struct answer *answer = &query->answer;
    const char *texts[] = {query->mount->path, query->mount->source, state_of(answer),
                           answer->version};
    static const char *const members[] = {"mountpoint", "source", "state", "version"};

    fs_sink_literal(sink, printed->is_first ? "{" : ",\n{");
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        const struct gguf_string text = {texts[i], strlen(texts[i])};

        if (text.length_bytes == 0)
            continue;
        fs_json_member(sink, members[i], i == 0);
        fs_json_string(sink, text);
    }
    for (int i = 0; i < N_FIGURES; i++) {
        if (!answer->has[i])
            continue;
        fs_json_member(sink, names[i], false);
        fs_sink_unsigned(sink, answer->figures[i]);
    }
    fs_sink_literal(sink, "}");
}

static void print_time(const struct answer *answer, enum figure figure)
{
    const uint64_t seconds = answer->figures[figure];

    if (answer->has[figure])
        printf(" %4" PRIu64 "d%02u:%02u:%02u", seconds / 86400, (unsigned)(seconds / 3600 % 24),
               (unsigned)(seconds / 60 % 60), (unsigned)(seconds % 60));
    else
        printf(" %13s", "-");
}

static void print_figure(const struct answer *answer, enum figure figure, int columns)
{
    if (answer->has[figure])
        printf(" %*" PRIu64, columns, answer->figures[figure]);
    else
        printf(" %*s", columns, "-");
}

static void print_heading(void)
{
    printf("%-13s %8s %13s %13s %10s %15s %8s %12s  %s\n", "state", "pid", "up", "idle", "requests",
           "read bytes", "failures", "memory bytes", "mountpoint: source");
}

static void print_line(const struct query *query)
{
    const struct answer *answer = &query->answer;

    printf("%-13s", state_of(answer));
    print_figure(answer, PID, 8);
    print_time(answer, UPTIME);
    print_time(answer, IDLE);
    print_figure(answer, REQUESTS, 10);
    print_figure(answer, READ_BYTES, 15);
    print_figure(answer, FAILURES, 8);
    print_figure(answer, MEMORY, 12);
    fputs("  ", stdout);
    gguf_print_safe_string(stdout, query->mount->path);
    fputs(": ", stdout);
    gguf_print_safe_string(stdout, query->mount->source);
    putchar('\n');
}

/* Print the remedy for a mount that does not serve. */
static void explain(const struct query *query)
{
    const char *path = query->mount->path;

    switch (query->answer.error) {
    case 0:
        break;
    case ENOTCONN:
    case ECONNABORTED:
        fs_print_error("%s: its daemon is gone; remove the mount: fusermount3 -u %s", path, path);
        break;
    case ETIMEDOUT:
        fs_print_error(
            "%s: no answer within %d seconds; the daemon is stopped, or its disk stalls; "
            "to remove the mount: fusermount3 -uz %s",
            path, PATIENCE_MS / 1000, path);
        break;
    case EACCES:
    case EPERM:
        fs_print_error("%s: only the user who mounted it can see it, unless it is mounted with "
                       "-o allow_other",
                       path);
        break;
    case ENODATA:
    case EOPNOTSUPP:
        fs_print_error("%s: its daemon is of a version that gives no figures", path);
        break;
    default:
        fs_print_error("%s: %s", path, strerror(query->answer.error));
    }
}

/* ---- the command ---- */

/* Return the mount at a path that the user named, or NULL. The path is not looked up if possible.
 */
static const struct fs_mount_entry *find(const struct fs_mount_table *table, const char *named)
{
    char *path = gguf_absolute_path(named);
    const struct fs_mount_entry *entry = path ? fs_mount_table_find(table, path) : NULL;

    if (!entry) {
        free(path);
        path = realpath(named, NULL);
        entry = path ? fs_mount_table_find(table, path) : NULL;
    }
    free(path);
    return entry && strncmp(entry->type, "fuse", 4) == 0 ? entry : NULL;
}

/* Choose the mounts to ask. Returns their number; *status is EX_NOINPUT if a path has none. */
static size_t choose(const struct fs_options *options, const struct fs_mount_table *table,
                     struct query *queries, int *status)
{
    size_t n = 0;

    for (int i = 0; i < options->n_paths; i++) {
        queries[n].mount = find(table, options->paths[i]);
        if (queries[n].mount) {
            n++;
        } else {
            fs_print_error("%s: no mount of ggufs is here", options->paths[i]);
            *status = EX_NOINPUT;
        }
    }
    for (size_t i = 0; options->n_paths == 0 && i < table->count; i++) {
        const struct fs_mount_entry *entry = &table->list[i];

        /* Another mount may hide it. */
        if (strcmp(entry->type, "fuse.ggufs") == 0 &&
            fs_mount_table_find(table, entry->path) == entry)
            queries[n++].mount = entry;
    }
    return n;
}

/* Returns an exit status. */
static int print_all(const struct fs_options *options, const struct query *queries, size_t n)
{
    int status = EX_OK;

    if (options->json)
        putchar('[');
    else if (n > 0)
        print_heading();
    for (size_t i = 0; i < n; i++) {
        int result = 0;

        if (options->json)
            result = fs_print_written(write_object, &(struct printed){&queries[i], i == 0});
        else
            print_line(&queries[i]);
        if (result < 0)
            status = gguf_exit_status(result);
        else if (queries[i].answer.error != 0)
            status = EX_UNAVAILABLE;
    }
    if (options->json)
        fputs("]\n", stdout);
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
