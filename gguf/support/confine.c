#include "gguf/support/confine.h"

#include <asm/termbits.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <sched.h>
#include <seccomp.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/param.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define IS_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) ||                         \
    __has_feature(leak_sanitizer)
#define IS_SANITIZED 1
#endif
#endif
#ifndef IS_SANITIZED
#define IS_SANITIZED 0
#endif

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

/* ---- Landlock ---- */

/*
 * struct landlock_ruleset_attr of the newest kernel; older kernels accept it if the members that
 * they do not know are zero. Here and below: include/uapi/linux/landlock.h of Linux 6.12, more than
 * Debian 12's header has.
 */
struct ruleset {
    uint64_t handled_access_fs;
    uint64_t handled_access_net;
    uint64_t scoped;
};

#define CREATE_RULESET_VERSION 1u /* LANDLOCK_CREATE_RULESET_VERSION */
#define RULE_PATH_BENEATH      1  /* LANDLOCK_RULE_PATH_BENEATH */

/* All rights of versions 1 to 6 of the ABI. One that is handled and not granted is denied. */
static const struct ruleset landlock_versions[] = {
    {.handled_access_fs = (1u << 13) - 1}, /* LANDLOCK_ACCESS_FS_EXECUTE to _MAKE_SYM */
    {(1u << 14) - 1, 0, 0},                /* _REFER */
    {(1u << 15) - 1, 0, 0},                /* _TRUNCATE */
    {(1u << 15) - 1, 3, 0},                /* LANDLOCK_ACCESS_NET_BIND_TCP, _CONNECT_TCP */
    {(1u << 16) - 1, 3, 0},                /* LANDLOCK_ACCESS_FS_IOCTL_DEV */
    {(1u << 16) - 1, 3, 3},                /* LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET, _SIGNAL */
};

/*
 * Rights below a writable directory: write, read and remove files, list directories, make
 * directories, files and symbolic links, and truncate. Bits of LANDLOCK_ACCESS_FS_*.
 */
#define WRITABLE_ACCESS                                                                            \
    (1u << 1 | 1u << 2 | 1u << 3 | 1u << 5 | 1u << 7 | 1u << 8 | 1u << 12 | 1u << 14)

struct __attribute__((packed)) path_rule {
    uint64_t allowed_access;
    int32_t parent_fd;
};

/* Deny all that the kernel's Landlock knows, except some rights below the directory. */
static int enforce_landlock(const int *writable_directory)
{
    const long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, CREATE_RULESET_VERSION);
    const struct ruleset *rules;
    int descriptor, result = 0;

    if (abi <= 0)
        return errno == ENOSYS || errno == EOPNOTSUPP ? 0 : -errno;
    rules = &landlock_versions[MIN((size_t)abi, COUNT(landlock_versions)) - 1];
    descriptor = (int)syscall(SYS_landlock_create_ruleset, rules, sizeof *rules, 0);
    if (descriptor < 0)
        return -errno;
    if (writable_directory) {
        const struct path_rule rule = {WRITABLE_ACCESS & rules->handled_access_fs,
                                       *writable_directory};

        if (syscall(SYS_landlock_add_rule, descriptor, RULE_PATH_BENEATH, &rule, 0) != 0)
            result = -errno;
    }
    if (result == 0 && syscall(SYS_landlock_restrict_self, descriptor, 0) != 0)
        result = -errno;
    close(descriptor);
    return result;
}

/* ---- capabilities ---- */

/*
 * Drop all capabilities. A process that unmounts keeps CAP_SYS_ADMIN and, to find mount points in
 * directories that only their owner may search, CAP_DAC_READ_SEARCH.
 */
static int drop_capabilities(const struct gguf_confinement *confinement)
{
    static const int needed[] = {CAP_DAC_READ_SEARCH, CAP_SYS_ADMIN};
    const size_t n_needed = confinement->unmounts ? 2 : confinement->opens ? 1 : 0;
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct had[_LINUX_CAPABILITY_U32S_3] = {0};
    struct __user_cap_data_struct kept[_LINUX_CAPABILITY_U32S_3] = {0};

    /* If this fails, all are dropped. */
    (void)!syscall(SYS_capget, &header, had);
    for (size_t i = 0; i < n_needed; i++) {
        const int index = CAP_TO_INDEX(needed[i]);
        const uint32_t bit = CAP_TO_MASK(needed[i]) & had[index].permitted;

        kept[index].effective |= bit;
        kept[index].permitted |= bit;
    }
    return syscall(SYS_capset, &header, kept) == 0 ? 0 : -errno;
}

/* ---- seccomp ---- */

static const int common_calls[] = {
    /* descriptors that are open */
    SCMP_SYS(read),
    SCMP_SYS(readv),
    SCMP_SYS(pread64),
    SCMP_SYS(write),
    SCMP_SYS(writev),
    SCMP_SYS(lseek),
    SCMP_SYS(fstat),
    SCMP_SYS(close),
    SCMP_SYS(dup2),
    SCMP_SYS(dup3),
    SCMP_SYS(poll),
    SCMP_SYS(ppoll),
    /* memory */
    SCMP_SYS(brk),
    SCMP_SYS(munmap),
    SCMP_SYS(mremap),
    SCMP_SYS(madvise),
    /* threads and signals */
    SCMP_SYS(futex),
    SCMP_SYS(set_robust_list),
    SCMP_SYS(rseq),
    SCMP_SYS(sched_getaffinity),
    SCMP_SYS(sched_yield),
    SCMP_SYS(rt_sigaction),
    SCMP_SYS(rt_sigprocmask),
    SCMP_SYS(rt_sigreturn),
    SCMP_SYS(restart_syscall),
    SCMP_SYS(sigaltstack),
    SCMP_SYS(getpid),
    SCMP_SYS(gettid),
    SCMP_SYS(exit),
    SCMP_SYS(exit_group),
    /* time and random numbers */
    SCMP_SYS(clock_gettime),
    SCMP_SYS(clock_nanosleep),
    SCMP_SYS(getrandom),
    /* the size of memory: glibc's qsort() is slow if it cannot get it */
    SCMP_SYS(sysinfo),
};

/* A call that is allowed when the bits of `mask` in one of its arguments are `bits`. */
struct conditional_call {
    int call;
    unsigned argument;
    uint64_t mask, bits;
};

#define WHOLE UINT64_MAX

/*
 * Memory without code, questions about descriptors and terminals, data for sockets that are
 * connected (to the system's log).
 */
static const struct conditional_call harmless_calls[] = {
    {SCMP_SYS(mmap), 2, PROT_EXEC, 0},    {SCMP_SYS(mprotect), 2, PROT_EXEC, 0},
    {SCMP_SYS(fcntl), 1, WHOLE, F_GETFD}, {SCMP_SYS(fcntl), 1, WHOLE, F_GETFL},
    {SCMP_SYS(ioctl), 1, WHOLE, TCGETS},  {SCMP_SYS(ioctl), 1, WHOLE, TIOCGWINSZ},
#ifdef TCGETS2
    {SCMP_SYS(ioctl), 1, WHOLE, TCGETS2},
#endif
    {SCMP_SYS(sendto), 4, WHOLE, 0},
};

static const struct conditional_call thread_calls[] = {
    {SCMP_SYS(clone), 0, CLONE_THREAD, CLONE_THREAD}};

/* tcsetattr() */
static const struct conditional_call terminal_calls[] = {
    {SCMP_SYS(ioctl), 1, WHOLE, TCSETSW},
#ifdef TCSETSW2
    {SCMP_SYS(ioctl), 1, WHOLE, TCSETSW2},
#endif
};

static int allow(scmp_filter_ctx filter, const struct conditional_call *calls, size_t n)
{
    int result = 0;

    for (size_t i = 0; result == 0 && i < n; i++) {
        const struct scmp_arg_cmp equal = {.arg = calls[i].argument,
                                           .op = SCMP_CMP_MASKED_EQ,
                                           .datum_a = calls[i].mask,
                                           .datum_b = calls[i].bits};

        result = seccomp_rule_add(filter, SCMP_ACT_ALLOW, calls[i].call, 1, equal);
    }
    return result;
}

static int allow_all(scmp_filter_ctx filter, const int *calls, size_t n_calls)
{
    int result = 0;

    for (size_t i = 0; result == 0 && i < n_calls; i++)
        result = seccomp_rule_add(filter, SCMP_ACT_ALLOW, calls[i], 0);
    return result;
}

static int fill_filter(scmp_filter_ctx filter, const struct gguf_confinement *confinement)
{
    const struct conditional_call more[] = {
        {SCMP_SYS(tgkill), 0, WHOLE, (uint64_t)getpid()}, /* signals to its own threads */
        {SCMP_SYS(fcntl), 1, WHOLE, F_SETFD},             /* opendir() */
        {SCMP_SYS(kill), 0, WHOLE, (uint64_t)confinement->child},
    };
    int result = allow_all(filter, common_calls, COUNT(common_calls));

    if (result == 0)
        result = allow_all(filter, confinement->system_calls, confinement->n_system_calls);
    if (result == 0)
        result = allow(filter, harmless_calls, COUNT(harmless_calls));
    if (result == 0)
        result = allow(filter, &more[0], 1);
    if (result == 0 && confinement->opens)
        result = allow(filter, &more[1], 1);
    if (result == 0 && confinement->child > 0)
        result = allow(filter, &more[2], 1);
    if (result == 0 && confinement->threads)
        result = allow(filter, thread_calls, COUNT(thread_calls));
    /* clone3 hides its flags from filters; without it the C library takes clone. */
    if (result == 0 && confinement->threads)
        result = seccomp_rule_add(filter, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0);
    if (result == 0 && confinement->sets_terminal)
        result = allow(filter, terminal_calls, COUNT(terminal_calls));
    if (result == 0 && confinement->unmounts)
        result = allow_all(filter, (const int[]){SCMP_SYS(umount2)}, 1);
    return result;
}

static int filter_system_calls(const struct gguf_confinement *confinement)
{
    const scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ERRNO(EPERM));
    int result;

    if (!filter)
        return -ENOMEM;
    /* Return the kernel's error instead of -ECANCELED. */
    result = seccomp_attr_set(filter, SCMP_FLTATR_API_SYSRAWRC, 1);
    if (result == 0)
        result = fill_filter(filter, confinement);
    if (result == 0)
        result = seccomp_load(filter);
    seccomp_release(filter);
    return result;
}

int gguf_confine(const struct gguf_confinement *confinement, const char **step)
{
    int result = 0;

    if (IS_SANITIZED)
        return 0;
    *step = "no_new_privs";
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
        return -errno;
    if (!confinement->unmounts && !confinement->opens) {
        *step = "Landlock";
        result = enforce_landlock(confinement->writable_directory);
    }
    if (result == 0) {
        *step = "dropping capabilities";
        result = drop_capabilities(confinement);
    }
    if (result == 0) {
        *step = "the seccomp filter";
        result = filter_system_calls(confinement);
    }
    return result;
}
