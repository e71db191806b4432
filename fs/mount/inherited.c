#include "fs/mount/inherited.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Close the descriptors between two. */
static void close_between(int low, int high)
{
    const long most = sysconf(_SC_OPEN_MAX);

    if (high - low <= 1 || syscall(SYS_close_range, low + 1, high - 1, 0) == 0) /* Linux 5.9 */
        return;
    for (int i = low + 1; i < high && i < most; i++)
        close(i);
}

static int compare(const void *a, const void *b)
{
    const int x = *(const int *)a, y = *(const int *)b;

    return (x > y) - (x < y);
}

int fs_close_inherited(const struct gguf_files *files, int other)
{
    const size_t n = (size_t)files->count + 1;
    int *ours = calloc(n, sizeof *ours);
    int low = STDERR_FILENO;

    if (!ours)
        return -ENOMEM;
    for (uint32_t i = 0; i < files->count; i++)
        ours[i] = files->list[i].file.source.descriptor;
    ours[files->count] = other;
    qsort(ours, n, sizeof *ours, compare);
    for (size_t i = 0; i < n; i++) {
        if (ours[i] <= low) /* nothing to close */
            continue;
        close_between(low, ours[i]);
        low = ours[i];
    }
    close_between(low, INT_MAX);
    free(ours);
    return 0;
}
