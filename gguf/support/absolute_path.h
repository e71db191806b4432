/* Paths that stay valid when the working directory changes. */
#ifndef GGUFS_GGUF_ABSOLUTE_PATH_H
#define GGUFS_GGUF_ABSOLUTE_PATH_H

/*
 * Return `path` as an absolute path, without resolving symbolic links, or NULL with errno set. The
 * caller frees it.
 */
char *gguf_absolute_path(const char *path);

#endif
