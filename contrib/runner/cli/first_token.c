#include "contrib/runner/cli/first_token.h"

#include "contrib/runner/cli/messages.h"
#include "contrib/runner/cli/session.h"
#include "gguf/support/shard_names.h"

#include <dirent.h>
#include <fcntl.h>
#include <libgen.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sysexits.h>
#include <unistd.h>

/* Pages whose state is requested at once. */
#define N_PAGES 65536

/* ---- the page cache ---- */

/* Return the number of bytes of a file that are in memory. */
static uint64_t resident_bytes(int fd, uint64_t n_bytes)
{
    static unsigned char states[N_PAGES];
    const uint64_t page_bytes = (uint64_t)sysconf(_SC_PAGESIZE), step = N_PAGES * page_bytes;
    uint64_t n_resident = 0;
    uint8_t *data = mmap(NULL, n_bytes, PROT_READ, MAP_SHARED, fd, 0);

    if (data == MAP_FAILED)
        return n_bytes;
    for (uint64_t at = 0; at < n_bytes; at += step) {
        const uint64_t length = n_bytes - at < step ? n_bytes - at : step;

        memset(states, 1, sizeof states);
        mincore(data + at, length, states);
        for (uint64_t i = 0; i * page_bytes < length; i++)
            n_resident += states[i] & 1;
    }
    munmap(data, n_bytes);
    return n_resident * page_bytes;
}

/* Drop a file's pages. Returns true if less than one percent of them is left. */
static bool drop_file(int directory, const char *name)
{
    const int fd = openat(directory, name, O_RDONLY | O_CLOEXEC);
    struct stat status;
    bool is_dropped = false;

    if (fd < 0)
        return false;
    /* Pages that are not yet written cannot be dropped. */
    if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && status.st_size > 0 &&
        fdatasync(fd) == 0 && posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED) == 0) {
        const uint64_t n_bytes = (uint64_t)status.st_size;

        is_dropped = resident_bytes(fd, n_bytes) <= n_bytes / 100;
    }
    close(fd);
    return is_dropped;
}

/* Drop the pages of the shards next to the model. */
static bool drop_shards(const char *folder, const char *name)
{
    DIR *directory = opendir(folder);
    const struct dirent *entry;
    bool is_dropped = directory;

    while (is_dropped && (entry = readdir(directory)))
        if (gguf_are_shards_of_one_model(entry->d_name, name))
            is_dropped = drop_file(dirfd(directory), entry->d_name);
    if (directory)
        closedir(directory);
    return is_dropped;
}

static bool drop_model(const char *model)
{
    char *folder = strdup(model), *name = strdup(model);
    const bool is_dropped = folder && name && drop_file(AT_FDCWD, model) &&
                            drop_shards(dirname(folder), basename(name));

    free(folder);
    free(name);
    return is_dropped;
}

/* ---- loading ---- */

/* Load the model, feed a token, and write the seconds to `out`. */
static int load(const struct run_options *options, int out)
{
    const double started = run_seconds();
    const int32_t token = 0;
    struct run_session session;
    struct run_failure failure;
    double seconds;
    int status = run_session_open(options, 1, &session);

    if (status == EX_OK && run_session_feed(&session, &token, 1, &failure) == 0) {
        seconds = run_seconds() - started;
        if (write(out, &seconds, sizeof seconds) != sizeof seconds)
            status = EX_IOERR;
    }
    return run_session_close(&session, status);
}

/* A failure shows up, with its message, when the parent loads the model itself. */
static double load_in_child(const struct run_options *options)
{
    const pid_t parent = getpid();
    double seconds = NAN;
    int ends[2];
    pid_t child;

    if (pipe2(ends, O_CLOEXEC) != 0)
        return NAN;
    child = fork();
    if (child == 0) {
        const int null = open("/dev/null", O_WRONLY | O_CLOEXEC);

        if (null < 0 || prctl(PR_SET_PDEATHSIG, SIGTERM) != 0 || getppid() != parent)
            _exit(EX_OSERR);
        dup2(null, STDERR_FILENO);
        _exit(load(options, ends[1]));
    }
    close(ends[1]);
    if (child > 0) {
        if (read(ends[0], &seconds, sizeof seconds) != sizeof seconds)
            seconds = NAN;
        waitpid(child, NULL, 0);
    }
    close(ends[0]);
    return seconds;
}

void run_first_token_measure(const struct run_options *options, struct run_first_token *result)
{
    const bool is_cold = drop_model(options->model);
    double first_seconds;

    run_message_progress("bench: first token, %s", is_cold ? "cold" : "load");
    first_seconds = load_in_child(options);

    result->cold_seconds = is_cold ? first_seconds : NAN;
    run_message_progress("bench: first token, warm");
    result->warm_seconds = isnan(first_seconds) ? NAN : load_in_child(options);
    run_message_progress("%s", "");
}
