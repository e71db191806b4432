/* fs/sandbox: what a compromised server thread could not do. */
#include "fs/mount/sandbox.h"

#include <criterion/criterion.h>

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* ASan and LSan need more than the sandbox leaves. */
#if defined(__SANITIZE_ADDRESS__)
#define IS_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
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

static int ask_about_file(void)
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
    {"open /etc/passwd", open_passwd},
    {"create a file", create_file},
    {"make a socket", make_socket},
    {"start a program", start_program},
    {"make a process", make_process},
    {"trace a process", trace},
    {"map code", map_code},
    {"kill the parent", kill_parent},
    {"signal a thread of the parent", signal_parent},
    {"ask about a file", ask_about_file},
    {"remove a file", remove_file},
};

#define N_ATTEMPTS (sizeof attempts / sizeof *attempts)

/* Returns the number of the first attempt that was not refused, counted from 1; 0 if all were. */
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

/* Runs `routine` in a thread of a sandboxed process; returns that process's exit status. */
static int in_sandbox(void *(*routine)(void *))
{
    const pid_t child = fork();
    int status;

    if (child == 0) {
        pthread_t thread;
        size_t result = 0;

        fs_sandbox_enter();
        if (pthread_create(&thread, NULL, routine, &result) != 0 || pthread_join(thread, NULL) != 0)
            _exit(100);
        _exit((int)result);
    }
    cr_assert_gt(child, 0);
    cr_assert_eq(waitpid(child, &status, 0), child);
    cr_assert(WIFEXITED(status), "the process died of signal %d", WTERMSIG(status));
    return WEXITSTATUS(status);
}

Test(fs_sandbox, refuses)
{
    int allowed;

    if (IS_SANITIZED)
        cr_skip_test("the sanitizers need more than the sandbox leaves");
    allowed = in_sandbox(try_all);
    cr_assert_eq(allowed, 0, "it was possible to: %s",
                 allowed > 0 && (size_t)allowed <= N_ATTEMPTS ? attempts[allowed - 1].name : "?");
}

/* Memory large and small, and pipes, go on working. */
static void *serve_a_little(void *argument)
{
    size_t *failed = argument;

    for (size_t size = 16; size < 64u << 20; size *= 4) {
        char *memory = malloc(size);

        if (!memory) {
            *failed = 1;
            break;
        }
        memset(memory, 1, size);
        free(memory);
    }
    return NULL;
}

Test(fs_sandbox, leaves_what_serving_needs)
{
    if (IS_SANITIZED)
        cr_skip_test("the sanitizers need more than the sandbox leaves");
    cr_assert_eq(in_sandbox(serve_a_little), 0);
}
