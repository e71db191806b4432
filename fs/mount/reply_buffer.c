#include "fs/mount/reply_buffer.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>

/*
 * A thread's buffer for replies. It is kept, because mapping memory for every read takes time. The
 * kernel looks up each page of a reply, so a large buffer consists of huge pages.
 */
struct buffer {
    char *data;
    size_t size;
};

static pthread_key_t buffer_key;
static pthread_once_t buffer_once = PTHREAD_ONCE_INIT;

static void free_buffer(void *data)
{
    struct buffer *buffer = data;

    free(buffer->data);
    free(buffer);
}

static void make_buffer_key(void)
{
    if (pthread_key_create(&buffer_key, free_buffer) != 0)
        abort(); /* the first of 1024 keys of the process */
}

#define HUGE_PAGE_BYTES ((size_t)2 << 20)
/* From this size on, huge pages pay off. */
#define LARGE_BYTES ((size_t)64 << 10)

static void resize_buffer(struct buffer *buffer, size_t size)
{
    free(buffer->data);
    if (size >= LARGE_BYTES) {
        size = (size + HUGE_PAGE_BYTES - 1) / HUGE_PAGE_BYTES * HUGE_PAGE_BYTES;
        buffer->data = aligned_alloc(HUGE_PAGE_BYTES, size);
        if (buffer->data)
            madvise(buffer->data, size, MADV_HUGEPAGE); /* if it fails, pages are small */
    } else {
        buffer->data = malloc(size);
    }
    buffer->size = buffer->data ? size : 0;
}

char *fs_reply_buffer(size_t size)
{
    struct buffer *buffer;

    pthread_once(&buffer_once, make_buffer_key);
    buffer = pthread_getspecific(buffer_key);
    if (!buffer) {
        buffer = calloc(1, sizeof *buffer);
        if (!buffer || pthread_setspecific(buffer_key, buffer) != 0) {
            free(buffer);
            return NULL;
        }
    }
    if (buffer->size < size)
        resize_buffer(buffer, size);
    return buffer->data;
}
