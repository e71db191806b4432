/* A signal at any time leaves no directory of the private mount. */
#include "contrib/runner/cli/private_mount.h"
#include "contrib/runner/cli/run_signals.h"

#include <criterion/criterion.h>

#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static int signal_after_mkdtemp;

/* Call the C library's mkdtemp(), then send a signal if the test asked for it. */
char *mkdtemp(char *template)
{
    char *(*next)(char *);
    char *path;

    *(void **)&next = dlsym(RTLD_NEXT, "mkdtemp");
    path = next(template);
    if (signal_after_mkdtemp != 0)
        raise(signal_after_mkdtemp);
    return path;
}

static _Noreturn void mount_and_get_signal(const char *folder, int number)
{
    const int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
    int tree_fd;

    dup2(null, STDERR_FILENO); /* ggufs says that the model is missing, if it is not ended before */
    setenv("XDG_RUNTIME_DIR", folder, 1);
    signal(number, SIG_DFL);
    run_signals_start();
    signal_after_mkdtemp = number;
    run_private_mount_open("/nothing.gguf", &(struct gguf_texts){0}, &tree_fd);
    _exit(EXIT_SUCCESS);
}

Test(run_private_mount, a_signal_leaves_no_directory)
{
    static const int signals[] = {SIGTERM, SIGINT, SIGHUP};
    char folder[] = "/tmp/ggufs-unit-XXXXXX";

    cr_assert_not_null(mkdtemp(folder));
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) {
        const pid_t child = fork();
        int status;

        if (child == 0)
            mount_and_get_signal(folder, signals[i]);
        cr_assert_eq(waitpid(child, &status, 0), child);
        cr_expect(WIFEXITED(status) && WEXITSTATUS(status) == 128 + signals[i], "%d", status);
    }
    cr_assert_eq(rmdir(folder), 0, "a directory is left in %s", folder);
}
