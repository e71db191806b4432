#include "gguf/support/standard_files.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

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
