#include "fs/mount/reply_buffer.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>

#define HUGE_PAGE_BYTES ((size_t)2 << 20)
/* From this size on, huge pages pay off: the kernel looks up each page of a reply. */
#define LARGE_BYTES ((size_t)64 << 10)

/*
 * The value of the key is a thread's buffer, and `room` is its size. It is kept, because mapping
 * memory for every read takes time.
 */
static pthread_key_t buffer_key;
static pthread_once_t buffer_once = PTHREAD_ONCE_INIT;
static _Thread_local size_t room;

static void make_buffer_key(void)
{
    if (pthread_key_create(&buffer_key, free) != 0)
        abort(); /* the first of 1024 keys of the process */
}

char *fs_reply_buffer(size_t size)
{
    char *data;

    pthread_once(&buffer_once, make_buffer_key);
    data = pthread_getspecific(buffer_key);
    if (size <= room)
        return data;
    free(data);
    if (size >= LARGE_BYTES) {
        size = (size + HUGE_PAGE_BYTES - 1) / HUGE_PAGE_BYTES * HUGE_PAGE_BYTES;
        data = aligned_alloc(HUGE_PAGE_BYTES, size);
        if (data)
            madvise(data, size, MADV_HUGEPAGE); /* if it fails, pages are small */
    } else {
        data = malloc(size);
    }
    if (pthread_setspecific(buffer_key, data) != 0) { /* only with the thread's first buffer */
        free(data);
        data = NULL;
    }
    room = data ? size : 0;
    return data;
}
