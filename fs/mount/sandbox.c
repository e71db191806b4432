#include "fs/mount/sandbox.h"

#include "gguf/support/confine.h"

#include <errno.h>
#include <seccomp.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static bool confine(const struct gguf_confinement *confinement)
{
    const char *step;
    const int result = gguf_confine(confinement, &step);

    if (result < 0)
        fprintf(stderr, "ggufs: cannot enter the sandbox: %s: %s; %s\n", step, strerror(-result),
                result == -EMFILE ? "raise the limit of open files (ulimit -n)"
                                  : "-o nosandbox mounts without it");
    return result == 0;
}

bool fs_sandbox_enter_server(void)
{
    /* The server receives the mount's descriptors. */
    static const int calls[] = {SCMP_SYS(recvmsg)};

    return confine(&(struct gguf_confinement){
        .threads = true, .system_calls = calls, .n_system_calls = sizeof calls / sizeof *calls});
}

bool fs_sandbox_enter_opener(void)
{
    static const int calls[] = {SCMP_SYS(openat2),  SCMP_SYS(newfstatat),   SCMP_SYS(getdents64),
                                SCMP_SYS(recvfrom), SCMP_SYS(memfd_create), SCMP_SYS(sendmsg)};

    return confine(&(struct gguf_confinement){
        .opens = true, .system_calls = calls, .n_system_calls = sizeof calls / sizeof *calls});
}

bool fs_sandbox_enter_keeper(pid_t server)
{
    /* The keeper waits for signals and the server, and checks if the mount is dead. */
    static const int calls[] = {SCMP_SYS(sendmsg), SCMP_SYS(wait4), SCMP_SYS(statx),
                                SCMP_SYS(prctl)};

    if (geteuid() != 0)
        return true;
    return confine(&(struct gguf_confinement){.unmounts = true,
                                              .child = server,
                                              .system_calls = calls,
                                              .n_system_calls = sizeof calls / sizeof *calls});
}
