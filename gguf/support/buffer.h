/* A growable buffer of bytes. */
#ifndef GGUFS_GGUF_BUFFER_H
#define GGUFS_GGUF_BUFFER_H

#include <stddef.h>

/* All zeros is an empty buffer. */
struct gguf_buffer {
    char *bytes; /* owned; followed by a NUL; NULL if nothing was ever added */
    size_t length;
    size_t capacity;
};

/* Append bytes. Returns 0, or -ENOMEM without having added anything. */
int gguf_buffer_add(struct gguf_buffer *buffer, const void *bytes, size_t length);
int gguf_buffer_add_string(struct gguf_buffer *buffer, const char *string);

/* Remove the first `n` bytes, at most `length`. */
void gguf_buffer_drop(struct gguf_buffer *buffer, size_t n);

/* Free the bytes. The buffer is then empty and can be used again. */
void gguf_buffer_free(struct gguf_buffer *buffer);

#endif
