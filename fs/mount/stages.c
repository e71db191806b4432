#include "fs/mount/stages.h"

#include "fs/mount/log.h"
#include "fs/mount/notify.h"
#include "gguf/support/safe_print.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <sysexits.h>
#include <time.h>
#include <unistd.h>

static const char *model_path, *mountpoint_path;
static int end_signal;
static unsigned idle_seconds; /* 0: not the reason of the end */
static bool is_mounted;

/* Send assignments with a status that names the model and the mount point. */
static void notify(const char *assignments, const char *verb)
{
    const size_t model_length = strlen(model_path), mountpoint_length = strlen(mountpoint_path);
    char *model = malloc(model_length * GGUF_ESCAPED_BYTES + 1);
    char *mountpoint = malloc(mountpoint_length * GGUF_ESCAPED_BYTES + 1);

    if (model && mountpoint) {
        model[gguf_escape(model_path, model_length, model)] = '\0';
        mountpoint[gguf_escape(mountpoint_path, mountpoint_length, mountpoint)] = '\0';
        fs_notify("%sSTATUS=%s %s on %s", assignments, verb, model, mountpoint);
    }
    free(model);
    free(mountpoint);
}

void fs_stage_loading(const char *model, const char *mountpoint)
{
    model_path = model;
    mountpoint_path = mountpoint;
    if (fs_notify_is_open())
        notify("", "Loading");
}

static void notify_ready(void)
{
    if (fs_notify_is_open())
        notify("READY=1\n", "Serving");
}

void fs_stage_mounted(void)
{
    is_mounted = true;
    fs_log(&(struct fs_log_about){.event = FS_LOG_MOUNTED}, "mounted %s", model_path);
    notify_ready();
}

static bool has_terminal(void)
{
    const int terminal = open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY);

    if (terminal >= 0)
        close(terminal);
    return terminal >= 0;
}

bool fs_stage_reloads(bool foreground)
{
    return !foreground || ((fs_notify_is_open() || fs_log_is_reopenable()) && !has_terminal());
}

void fs_stage_reload(pid_t server)
{
    struct timespec now;

    /* systemd needs the time to match the answer with its request. */
    clock_gettime(CLOCK_MONOTONIC, &now);
    fs_notify("RELOADING=1\nMONOTONIC_USEC=%" PRIu64,
              (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000);
    fs_log_reopen(server);
    notify_ready();
}

void fs_stage_stopping(int signal_number)
{
    end_signal = signal_number;
    fs_notify("STOPPING=1\nSTATUS=Unmounting");
}

void fs_stage_idle(unsigned seconds)
{
    idle_seconds = seconds;
}

int fs_stage_ended(int status)
{
    const struct fs_log_about died = {.event = FS_LOG_DIED}, ended = {.event = FS_LOG_ENDED};

    if (WIFSIGNALED(status)) {
        fs_log(&died, "the server died of signal %d (%s)", WTERMSIG(status),
               strsignal(WTERMSIG(status)));
        return EX_SOFTWARE;
    }
    if (is_mounted && WEXITSTATUS(status) != EX_OK)
        fs_log(&died, "the server ended with status %d", WEXITSTATUS(status));
    else if (is_mounted && end_signal > 0)
        fs_log(&ended, "ended by signal %d (%s)", end_signal, strsignal(end_signal));
    else if (is_mounted && idle_seconds > 0)
        fs_log(&ended, "unmounted: not used for %u seconds (-o timeout)", idle_seconds);
    else if (is_mounted)
        fs_log(&ended, "unmounted");
    return WEXITSTATUS(status);
}
