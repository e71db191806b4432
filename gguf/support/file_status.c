#include "gguf/support/file_status.h"

#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The kernel's structure; the C library's may differ. */
#define stat kernel_stat
#include <asm/stat.h>
#undef stat

_Static_assert(sizeof(void *) >= sizeof(uint64_t),
               "ggufs maps whole model files into memory: build it for a 64-bit architecture");

int gguf_get_file_status(int descriptor, struct gguf_file_status *status)
{
    struct kernel_stat kernel;

    if (syscall(SYS_fstat, descriptor, &kernel) != 0)
        return -errno;
    *status = (struct gguf_file_status){
        .device = (uint64_t)kernel.st_dev,
        .inode = (uint64_t)kernel.st_ino,
        .size_bytes = (uint64_t)kernel.st_size,
        .modified = {.tv_sec = (time_t)kernel.st_mtime, .tv_nsec = (long)kernel.st_mtime_nsec},
        .status_changed = {.tv_sec = (time_t)kernel.st_ctime,
                           .tv_nsec = (long)kernel.st_ctime_nsec},
    };
    return 0;
}
