/*
 * fs/mount/sandbox and gguf/support/confine: system calls that a compromised process cannot make.
 */
#include "fs/mount/sandbox.h"
#include "gguf/support/confine.h"
#include "gguf/support/file_status.h"

#include <criterion/criterion.h>

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <seccomp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

/* gguf_confine() does nothing in builds with these sanitizers. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define IS_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define IS_SANITIZED 1
#endif
#endif
#ifndef IS_SANITIZED
#define IS_SANITIZED 0
#endif

static int open_passwd(void)
{
    return open("/etc/passwd", O_RDONLY);
}

static int create_file(void)
{
    return open("/tmp/ggufs-sandbox-test", O_WRONLY | O_CREAT, 0600);
}

static int make_socket(void)
{
    return socket(AF_INET, SOCK_STREAM, 0);
}

static int open_socket = -1; /* like the server's socket to syslog */

static int send_to_address(void)
{
    const struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = "/dev/log"};

    return (int)sendto(open_socket, "", 1, 0, (const struct sockaddr *)&address, sizeof address);
}

static int start_program(void)
{
    return execl("/bin/true", "true", (char *)NULL);
}

static int make_process(void)
{
    return fork();
}

static int trace(void)
{
    return (int)ptrace(PTRACE_ATTACH, getppid(), NULL, NULL);
}

static int map_code(void)
{
    return mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1,
                0) == MAP_FAILED
               ? -1
               : 0;
}

static int kill_parent(void)
{
    return kill(getppid(), SIGKILL);
}

static int signal_parent(void)
{
    return (int)syscall(SYS_tgkill, getppid(), getppid(), SIGTERM);
}

static int stat_file(void)
{
    struct stat status;

    return fstatat(AT_FDCWD, "/etc/passwd", &status, AT_EMPTY_PATH);
}

static int remove_file(void)
{
    return unlink("/tmp/ggufs-sandbox-test");
}

static const struct {
    const char *name;
    int (*attempt)(void);
} attempts[] = {
    {"open /etc/passwd", open_passwd},  {"create a file", create_file},
    {"create a socket", make_socket},   {"send to an address", send_to_address},
    {"start a program", start_program}, {"fork", make_process},
    {"trace a process", trace},         {"map executable memory", map_code},
    {"kill the parent", kill_parent},   {"signal a thread of the parent", signal_parent},
    {"stat a file", stat_file},         {"remove a file", remove_file},
};

#define N_ATTEMPTS (sizeof attempts / sizeof *attempts)

/* Make all attempts. Store the number, from 1, of the first one that was not refused. */
static void *try_all(void *argument)
{
    size_t *allowed = argument;

    for (size_t i = 0; i < N_ATTEMPTS; i++) {
        if (attempts[i].attempt() >= 0 || (errno != EPERM && errno != EACCES)) {
            *allowed = i + 1;
            break;
        }
    }
    return NULL;
}

static int exit_status_of(pid_t child)
{
    int status;

    cr_assert_gt(child, 0);
    cr_assert_eq(waitpid(child, &status, 0), child);
    cr_assert(WIFEXITED(status), "the process was killed by signal %d", WTERMSIG(status));
    return WEXITSTATUS(status);
}

/* Run `routine` in a thread of a sandboxed server. Returns the exit status of that process. */
static int in_sandbox(void *(*routine)(void *))
{
    const pid_t child = fork();

    if (child == 0) {
        pthread_t thread;
        size_t result = 0;

        open_socket = socket(AF_UNIX, SOCK_DGRAM, 0);
        if (!fs_sandbox_enter_server())
            _exit(101);
        if (pthread_create(&thread, NULL, routine, &result) != 0 || pthread_join(thread, NULL) != 0)
            _exit(100);
        _exit((int)result);
    }
    return exit_status_of(child);
}

/* Run `routine` in a confined process. Returns its exit status. */
static int in_confinement(const struct gguf_confinement *confinement, int (*routine)(void))
{
    const pid_t child = fork();

    if (child == 0) {
        const char *step;

        _exit(gguf_confine(confinement, &step) == 0 ? routine() : 101);
    }
    return exit_status_of(child);
}

static void skip_if_sanitized(void)
{
    if (IS_SANITIZED)
        cr_skip_test("builds with sanitizers are not confined");
}

Test(fs_sandbox, refuses_system_calls)
{
    int allowed;

    skip_if_sanitized();
    allowed = in_sandbox(try_all);
    cr_assert_eq(allowed, 0, "not refused: %s",
                 allowed > 0 && (size_t)allowed <= N_ATTEMPTS ? attempts[allowed - 1].name : "?");
}

/* Allocate small and large memory, and stat an open file. */
static void *serve_a_little(void *argument)
{
    size_t *failed = argument;
    struct gguf_file_status status;

    for (size_t size = 16; size < 64u << 20; size *= 4) {
        char *memory = malloc(size);

        if (!memory) {
            *failed = 1;
            break;
        }
        memset(memory, 1, size);
        free(memory);
    }
    if (gguf_get_file_status(STDIN_FILENO, &status) != 0)
        *failed = 2;
    return NULL;
}

Test(fs_sandbox, allows_what_serving_needs)
{
    skip_if_sanitized();
    cr_assert_eq(in_sandbox(serve_a_little), 0);
}

static int start_thread(void)
{
    pthread_t thread;
    size_t result = 0;

    return pthread_create(&thread, NULL, serve_a_little, &result) == 0 ? 0 : 1;
}

Test(gguf_confine, threads_on_request)
{
    skip_if_sanitized();
    cr_expect_eq(in_confinement(&(struct gguf_confinement){.threads = true}, start_thread), 0);
    cr_expect_eq(in_confinement(&(struct gguf_confinement){0}, start_thread), 1);
}

/* Return the Landlock ABI version, or a number below 1 if the kernel has no Landlock. */
static long landlock_version(void)
{
    return syscall(SYS_landlock_create_ruleset, NULL, 0, 1);
}

/* System calls that seccomp allows in this test, so that only Landlock refuses them. */
static const int let_through[] = {SCMP_SYS(open),   SCMP_SYS(openat),  SCMP_SYS(unlink),
                                  SCMP_SYS(socket), SCMP_SYS(connect), SCMP_SYS(kill),
                                  SCMP_SYS(getppid)};

static int connect_to_discard(void)
{
    const struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons(9), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};

    return connect(make_socket(), (const struct sockaddr *)&address, sizeof address);
}

static int try_through_landlock(void)
{
    const long version = landlock_version();

    if (open_passwd() >= 0 || errno != EACCES)
        return 1;
    if (create_file() >= 0 || errno != EACCES)
        return 2;
    if (version >= 4 && (connect_to_discard() >= 0 || errno != EACCES))
        return 3;
    if (version >= 6 && (kill(getppid(), SIGCONT) >= 0 || errno != EPERM))
        return 4;
    return 0;
}

Test(gguf_confine, landlock_refuses_too)
{
    const struct gguf_confinement confinement = {
        .system_calls = let_through, .n_system_calls = sizeof let_through / sizeof *let_through};

    skip_if_sanitized();
    if (landlock_version() < 1)
        cr_skip_test("this kernel has no Landlock");
    cr_assert_eq(in_confinement(&confinement, try_through_landlock), 0);
}

static pid_t own_child;

static int signal_child_and_parent(void)
{
    if (kill(own_child, SIGTERM) != 0)
        return 1;
    return kill(getppid(), SIGCONT) < 0 && errno == EPERM ? 0 : 2;
}

/* A process that waits for a child may signal that child, but no other process. */
Test(gguf_confine, signals_one_child)
{
    const int wanted[] = {SCMP_SYS(getppid)};
    pid_t process;

    skip_if_sanitized();
    process = fork();
    if (process == 0) {
        const char *step;

        own_child = fork();
        if (own_child == 0) {
            pause();
            _exit(0);
        }
        if (gguf_confine(&(struct gguf_confinement){.unmounts = true,
                                                    .child = own_child,
                                                    .system_calls = wanted,
                                                    .n_system_calls = 1},
                         &step) != 0)
            _exit(101);
        _exit(signal_child_and_parent());
    }
    cr_assert_eq(exit_status_of(process), 0);
}

static int try_capability(void)
{
    return umount2("/proc/self/no such mount", 0) < 0 && errno == EPERM ? 0 : 1;
}

static int try_umount(void)
{
    return umount2("/proc/self/no such mount", 0) < 0 && errno == ENOENT ? 0 : 1;
}

Test(gguf_confine, unmount_on_request)
{
    skip_if_sanitized();
    cr_expect_eq(in_confinement(&(struct gguf_confinement){0}, try_capability), 0);
    if (geteuid() == 0)
        cr_expect_eq(in_confinement(&(struct gguf_confinement){.unmounts = true}, try_umount), 0);
}
