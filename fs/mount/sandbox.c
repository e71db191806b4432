#include "fs/mount/sandbox.h"

#include <dlfcn.h>
#include <linux/capability.h>
#include <linux/landlock.h>
#include <sched.h>
#include <seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

static void warn(const char *what, int code)
{
    fprintf(stderr, "ggufs: the sandbox is not complete: %s: %s\n", what, strerror(code));
}

static void drop_capabilities(void)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    const struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {0};

    if (syscall(SYS_capset, &header, none) != 0)
        warn("capabilities", errno);
}

/* Rules on files with none that allows anything. No word where the kernel does not know them. */
static void close_file_system(void)
{
    const struct landlock_ruleset_attr rules = {
        /* What Landlock's first version knows: all of it, up to making symbolic links. */
        .handled_access_fs = (LANDLOCK_ACCESS_FS_MAKE_SYM << 1) - 1,
    };
    const long descriptor = syscall(SYS_landlock_create_ruleset, &rules, sizeof rules, 0);

    if (descriptor < 0) {
        if (errno != ENOSYS && errno != EOPNOTSUPP)
            warn("Landlock", errno);
        return;
    }
    if (syscall(SYS_landlock_restrict_self, (int)descriptor, 0) != 0)
        warn("Landlock", errno);
    close((int)descriptor);
}

/* What libfuse's loop and glibc's threads and malloc call. */
static const int allowed[] = {
    SCMP_SYS(read),
    SCMP_SYS(readv),
    SCMP_SYS(pread64),
    SCMP_SYS(lseek),
    SCMP_SYS(write),
    SCMP_SYS(writev),
    SCMP_SYS(close),
    SCMP_SYS(fstat),
    SCMP_SYS(dup2),
    SCMP_SYS(dup3),
    SCMP_SYS(poll),
    SCMP_SYS(ppoll),
    SCMP_SYS(munmap),
    SCMP_SYS(mremap),
    SCMP_SYS(madvise),
    SCMP_SYS(brk),
    SCMP_SYS(futex),
    SCMP_SYS(set_robust_list),
    SCMP_SYS(rseq),
    SCMP_SYS(exit),
    SCMP_SYS(exit_group),
    SCMP_SYS(rt_sigaction),
    SCMP_SYS(rt_sigprocmask),
    SCMP_SYS(rt_sigreturn),
    SCMP_SYS(restart_syscall),
    SCMP_SYS(sigaltstack),
    SCMP_SYS(getpid),
    SCMP_SYS(gettid),
    SCMP_SYS(sched_getaffinity),
    SCMP_SYS(clock_gettime),
    SCMP_SYS(clock_nanosleep),
    SCMP_SYS(getrandom),
};

/* Memory may be mapped, but not to run code in it. Returns 0 or a negative errno. */
static int add_memory_rules(scmp_filter_ctx filter)
{
    int result = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(mmap), 1,
                                  SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0));

    if (result == 0)
        result = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(mprotect), 1,
                                  SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0));
    return result;
}

/* Signals to threads of the process itself, with which libfuse ends them. */
static int add_signal_rule(scmp_filter_ctx filter)
{
    return seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(tgkill), 1,
                            SCMP_A0(SCMP_CMP_EQ, (scmp_datum_t)getpid(), 0));
}

/* Threads, but no processes. clone3 hides its flags from filters; without it glibc takes clone. */
static int add_thread_rules(scmp_filter_ctx filter)
{
    int result = seccomp_rule_add(filter, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0);

    if (result == 0)
        result = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(clone), 1,
                                  SCMP_A0(SCMP_CMP_MASKED_EQ, CLONE_THREAD, CLONE_THREAD));
    return result;
}

static int load_filter(scmp_filter_ctx filter)
{
    int result = 0;

    for (size_t i = 0; result == 0 && i < sizeof allowed / sizeof *allowed; i++)
        result = seccomp_rule_add(filter, SCMP_ACT_ALLOW, allowed[i], 0);
    if (result == 0)
        result = add_memory_rules(filter);
    if (result == 0)
        result = add_signal_rule(filter);
    if (result == 0)
        result = add_thread_rules(filter);
    return result == 0 ? seccomp_load(filter) : result;
}

static void filter_system_calls(void)
{
    const scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ERRNO(EPERM));
    int result = -ENOMEM;

    if (filter) {
        result = load_filter(filter);
        seccomp_release(filter);
    }
    if (result < 0)
        warn("seccomp", -result);
}

/* glibc loads this when a thread is first cancelled, as libfuse does in the end. */
static void load_unwinder(void)
{
    if (!dlopen("libgcc_s.so.1", RTLD_NOW))
        warn("libgcc_s.so.1", ENOENT);
}

void fs_sandbox_enter(void)
{
    load_unwinder();
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
        warn("no_new_privs", errno);
    close_file_system();
    drop_capabilities();
    filter_system_calls();
}
