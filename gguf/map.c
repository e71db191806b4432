#include "gguf/map.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static _Thread_local sigjmp_buf *fault_exit;

/* Returns `path` as seen from "/"; NULL with errno set if that can't be had. The caller frees. */
static char *absolute_path(const char *path)
{
    char *folder, *absolute;

    if (path[0] == '/')
        return strdup(path);
    while (path[0] == '.' && path[1] == '/')
        path += 1 + strspn(path + 1, "/");
    folder = getcwd(NULL, 0);
    if (!folder)
        return NULL;
    if (asprintf(&absolute, "%s/%s", strcmp(folder, "/") == 0 ? "" : folder, path) < 0)
        absolute = NULL;
    free(folder);
    return absolute;
}

static int map_descriptor(struct gguf_file *file, struct gguf_report *report)
{
    struct stat status;
    void *data;

    if (fstat(file->descriptor, &status) < 0)
        return gguf_error(report, -errno, GGUF_NO_OFFSET, "%s", strerror(errno));
    if (S_ISDIR(status.st_mode))
        return gguf_error(report, -EISDIR, GGUF_NO_OFFSET,
                          "is a directory; name the model file in it (the model comes first)");
    if (!S_ISREG(status.st_mode))
        return gguf_error(report, -EINVAL, GGUF_NO_OFFSET,
                          "is not a regular file, so it can't be mapped into memory");

    file->size_bytes = (uint64_t)status.st_size;
    file->modified = status.st_mtim;
    if (file->size_bytes == 0)
        return 0;
    data = mmap(NULL, file->size_bytes, PROT_READ, MAP_PRIVATE, file->descriptor, 0);
    if (data == MAP_FAILED)
        return gguf_error(report, -errno, GGUF_NO_OFFSET, "can't map %ju bytes into memory: %s",
                          (uintmax_t)file->size_bytes, strerror(errno));
    file->data = data;
    return 0;
}

int gguf_map_open(const char *path, struct gguf_file *file, struct gguf_report *report)
{
    int result;

    *file = (struct gguf_file){.descriptor = -1};
    /* O_NONBLOCK: a FIFO by that name must not hang us before fstat tells what it is. */
    file->descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (file->descriptor < 0)
        return gguf_error(report, -errno, GGUF_NO_OFFSET, "%s", strerror(errno));
    result = map_descriptor(file, report);
    if (result == 0) {
        file->path = absolute_path(path);
        if (!file->path)
            result = gguf_error(report, -errno, GGUF_NO_OFFSET, "%s", strerror(errno));
    }
    if (result < 0)
        gguf_map_close(file);
    return result;
}

void gguf_map_close(struct gguf_file *file)
{
    if (file->data)
        munmap((void *)(uintptr_t)file->data, file->size_bytes);
    if (file->descriptor >= 0)
        close(file->descriptor);
    free(file->path);
    *file = (struct gguf_file){.descriptor = -1};
}

/* The C library's fstat() makes another call of it, which can name a path: the sandbox does not
   allow that. */
static bool get_status(const struct gguf_file *file, struct stat *status)
{
    return syscall(SYS_fstat, file->descriptor, status) == 0;
}

int gguf_map_check(const struct gguf_file *file, uint64_t end_offset)
{
    struct stat status;

    if (!get_status(file, &status) || (uint64_t)status.st_size < end_offset)
        return -EIO;
    if (!file->is_growing && (uint64_t)status.st_size >= file->size_bytes &&
        (status.st_mtim.tv_sec != file->modified.tv_sec ||
         status.st_mtim.tv_nsec != file->modified.tv_nsec))
        return -ESTALE;
    return 0;
}

bool gguf_map_has(const struct gguf_file *file, uint64_t offset, uint64_t n_bytes)
{
    struct stat status;
    off_t hole;

    if (!get_status(file, &status) || n_bytes > (uint64_t)status.st_size ||
        offset > (uint64_t)status.st_size - n_bytes)
        return false;
    if (n_bytes == 0)
        return true;
    /* Nobody uses the descriptor's own position. */
    hole = lseek(file->descriptor, (off_t)offset, SEEK_HOLE);
    return hole < 0 || (uint64_t)hole >= offset + n_bytes;
}

int gguf_map_read(const struct gguf_file *file, uint64_t offset, size_t n_bytes, void *out)
{
    char *to = out;

    /* Before it is read: a hole may become data meanwhile, but data never a hole. */
    if (file->is_growing && !gguf_map_has(file, offset, n_bytes))
        return -EIO;
    while (n_bytes > 0) {
        const ssize_t n = pread(file->descriptor, to, n_bytes, (off_t)offset);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return -EIO; /* whatever its medium or its file system said */
        to += n;
        offset += (uint64_t)n;
        n_bytes -= (size_t)n;
    }
    return gguf_map_check(file, offset);
}

/* The process's share of mapped pages stays about below this. */
#define RESIDENT_BYTES (32u << 20)
/* What the kernel may map around a page that is touched: of a large folio all of it. */
#define FAULT_AROUND_BYTES (2u << 20)

void gguf_map_touched(struct gguf_file *file, uint64_t n_bytes)
{
    const uint64_t touched =
        atomic_fetch_add_explicit(&file->touched_bytes, n_bytes + FAULT_AROUND_BYTES,
                                  memory_order_relaxed) +
        n_bytes + FAULT_AROUND_BYTES;

    if (touched < RESIDENT_BYTES)
        return;
    atomic_store_explicit(&file->touched_bytes, 0, memory_order_relaxed);
    /* Private and never written: what is touched again comes from the file again. */
    madvise((void *)(uintptr_t)file->data, file->size_bytes, MADV_DONTNEED);
}

static void on_fault(int signal_number)
{
    if (fault_exit) {
        /* The jump does not restore the signal mask, which ThreadSanitizer fills. */
        sigset_t faults;

        sigemptyset(&faults);
        sigaddset(&faults, signal_number);
        pthread_sigmask(SIG_UNBLOCK, &faults, NULL);
        siglongjmp(*fault_exit, 1);
    }
    /* Not ours: die of it as without a handler. */
    signal(signal_number, SIG_DFL);
    raise(signal_number);
}

int gguf_map_catch_faults(void)
{
    /* SA_NODEFER: we leave the handler by a jump that does not restore the signal mask. */
    struct sigaction action = {.sa_handler = on_fault, .sa_flags = SA_NODEFER};

    sigemptyset(&action.sa_mask);
    return sigaction(SIGBUS, &action, NULL) < 0 ? -errno : 0;
}

int gguf_map_guard(int (*touch)(void *argument), void *argument)
{
    sigjmp_buf here;
    int result;

    if (sigsetjmp(here, 0)) {
        fault_exit = NULL;
        return -EIO;
    }
    fault_exit = &here;
    result = touch(argument);
    fault_exit = NULL;
    return result;
}
