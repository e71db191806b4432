#include "gguf/support/exit_status.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

int gguf_exit_status(int code)
{
    switch (-code) {
    case 0:
        return EX_OK;
    case ENOENT:
    case ENOTDIR:
    case EISDIR:
    case ELOOP:
    case ENAMETOOLONG:
        return EX_NOINPUT;
    case EACCES:
    case EPERM:
        return EX_NOPERM;
    case EIO:
    case ESTALE:
    case ENOTCONN:
    case ECONNABORTED:
        return EX_IOERR;
    case ENOMEM:
    case EMFILE:
    case ENFILE:
        return EX_OSERR;
    default:
        return EX_DATAERR;
    }
}

int gguf_fail_stdout(const char *program, int code)
{
    if (code == -EPIPE)
        return 128 + SIGPIPE;
    fprintf(stderr, "%s: cannot write to standard output: %s\n", program,
            code < 0 ? strerror(-code) : "an earlier write failed");
    return EX_IOERR;
}

int gguf_finish_stdout(const char *program, int status)
{
    errno = 0;
    if (fflush(stdout) == 0 && !ferror(stdout))
        return status;
    return gguf_fail_stdout(program, -errno);
}

int gguf_fill_standard_files(void)
{
    for (int i = STDIN_FILENO; i <= STDERR_FILENO; i++) {
        const int flags = i == STDOUT_FILENO ? O_RDONLY : O_RDWR;

        if (fcntl(i, F_GETFD) >= 0)
            continue;
        if (open("/dev/null", flags) < 0)
            return -errno;
    }
    return 0;
}
