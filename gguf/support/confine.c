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

/*
 * Rights added by each version of the ABI. A right that is handled and not granted by a rule is
 * denied.
 */
static const struct {
    long abi;
    struct ruleset added;
} landlock_versions[] = {
    {1, {.handled_access_fs = (1u << 13) - 1}}, /* LANDLOCK_ACCESS_FS_EXECUTE to _MAKE_SYM */
    {2, {.handled_access_fs = 1u << 13}},       /* LANDLOCK_ACCESS_FS_REFER */
    {3, {.handled_access_fs = 1u << 14}},       /* LANDLOCK_ACCESS_FS_TRUNCATE */
    {4, {.handled_access_net = 3}},             /* LANDLOCK_ACCESS_NET_BIND_TCP, _CONNECT_TCP */
    {5, {.handled_access_fs = 1u << 15}},       /* LANDLOCK_ACCESS_FS_IOCTL_DEV */
    {6, {.scoped = 3}},                         /* LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET, _SIGNAL */
};

/*
 * Rights below a writable directory: write, read and remove files, list directories, make
 * directories, files and symbolic links, and truncate. Bits of LANDLOCK_ACCESS_FS_*.
 */
#define WRITABLE_ACCESS                                                                            \
    (1u << 1 | 1u << 2 | 1u << 3 | 1u << 5 | 1u << 7 | 1u << 8 | 1u << 12 | 1u << 14)
#define RULE_PATH_BENEATH 1 /* LANDLOCK_RULE_PATH_BENEATH */

struct __attribute__((packed)) path_rule {
    uint64_t allowed_access;
    int32_t parent_fd;
};

/*
 * Enforce a ruleset that handles all rights the kernel knows and grants only those below the
 * directory.
 */
static int enforce_landlock(const int *writable_directory)
{
    const long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, CREATE_RULESET_VERSION);
    struct ruleset rules = {0};
    long descriptor;
    int result = 0;

    if (abi < 0)
        return errno == ENOSYS || errno == EOPNOTSUPP ? 0 : -errno;
    for (size_t i = 0; i < COUNT(landlock_versions) && landlock_versions[i].abi <= abi; i++) {
        rules.handled_access_fs |= landlock_versions[i].added.handled_access_fs;
        rules.handled_access_net |= landlock_versions[i].added.handled_access_net;
        rules.scoped |= landlock_versions[i].added.scoped;
    }
    descriptor = syscall(SYS_landlock_create_ruleset, &rules, sizeof rules, 0);
    if (descriptor < 0)
        return -errno;
    if (writable_directory) {
        const struct path_rule rule = {WRITABLE_ACCESS & rules.handled_access_fs,
                                       *writable_directory};

        if (syscall(SYS_landlock_add_rule, (int)descriptor, RULE_PATH_BENEATH, &rule, 0) != 0)
            result = -errno;
    }
    if (result == 0 && syscall(SYS_landlock_restrict_self, (int)descriptor, 0) != 0)
        result = -errno;
    close((int)descriptor);
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

/* Allow a call when one of its arguments is a value. */
static int allow_if(scmp_filter_ctx filter, int call, unsigned argument, uint64_t value)
{
    const struct scmp_arg_cmp equal = {.arg = argument, .op = SCMP_CMP_EQ, .datum_a = value};

    return seccomp_rule_add(filter, SCMP_ACT_ALLOW, call, 1, equal);
}

/* Allow a call when the bits of `mask` in one of its arguments are `bits`. */
static int allow_if_bits(scmp_filter_ctx filter, int call, unsigned argument, uint64_t mask,
                         uint64_t bits)
{
    const struct scmp_arg_cmp equal = {
        .arg = argument, .op = SCMP_CMP_MASKED_EQ, .datum_a = mask, .datum_b = bits};

    return seccomp_rule_add(filter, SCMP_ACT_ALLOW, call, 1, equal);
}

static int allow_all(scmp_filter_ctx filter, const int *calls, size_t n_calls)
{
    int result = 0;

    for (size_t i = 0; result == 0 && i < n_calls; i++)
        result = seccomp_rule_add(filter, SCMP_ACT_ALLOW, calls[i], 0);
    return result;
}

/*
 * Memory without code, questions about descriptors and terminals, data for sockets that are
 * connected (to the system's log), signals to its own threads.
 */
static int allow_harmless_arguments(scmp_filter_ctx filter)
{
    static const struct {
        int call;
        uint64_t request;
    } questions[] = {
        {SCMP_SYS(fcntl), F_GETFD}, {SCMP_SYS(fcntl), F_GETFL},
        {SCMP_SYS(ioctl), TCGETS},  {SCMP_SYS(ioctl), TIOCGWINSZ},
#ifdef TCGETS2
        {SCMP_SYS(ioctl), TCGETS2},
#endif
    };
    int result = allow_if_bits(filter, SCMP_SYS(mmap), 2, PROT_EXEC, 0);

    if (result == 0)
        result = allow_if_bits(filter, SCMP_SYS(mprotect), 2, PROT_EXEC, 0);
    for (size_t i = 0; result == 0 && i < COUNT(questions); i++)
        result = allow_if(filter, questions[i].call, 1, questions[i].request);
    if (result == 0)
        result = allow_if(filter, SCMP_SYS(sendto), 4, 0);
    if (result == 0)
        result = allow_if(filter, SCMP_SYS(tgkill), 0, (uint64_t)getpid());
    return result;
}

/* clone3 hides its flags from filters; without it the C library takes clone. */
static int allow_threads(scmp_filter_ctx filter)
{
    const int result = seccomp_rule_add(filter, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0);

    return result == 0 ? allow_if_bits(filter, SCMP_SYS(clone), 0, CLONE_THREAD, CLONE_THREAD)
                       : result;
}

/* Allow tcsetattr(). */
static int allow_terminal_settings(scmp_filter_ctx filter)
{
    int result = allow_if(filter, SCMP_SYS(ioctl), 1, TCSETSW);

#ifdef TCSETSW2
    if (result == 0)
        result = allow_if(filter, SCMP_SYS(ioctl), 1, TCSETSW2);
#endif
    return result;
}

static int fill_filter(scmp_filter_ctx filter, const struct gguf_confinement *confinement)
{
    int result = allow_all(filter, common_calls, COUNT(common_calls));

    if (result == 0)
        result = allow_all(filter, confinement->system_calls, confinement->n_system_calls);
    if (result == 0)
        result = allow_harmless_arguments(filter);
    if (result == 0 && confinement->threads)
        result = allow_threads(filter);
    if (result == 0 && confinement->sets_terminal)
        result = allow_terminal_settings(filter);
    if (result == 0 && confinement->opens) /* opendir() */
        result = allow_if(filter, SCMP_SYS(fcntl), 1, F_SETFD);
    if (result == 0 && confinement->unmounts)
        result = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(umount2), 0);
    if (result == 0 && confinement->child > 0)
        result = allow_if(filter, SCMP_SYS(kill), 0, (uint64_t)confinement->child);
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
