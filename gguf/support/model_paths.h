/* Paths by which users name models. */
#pragma once

#include <stdbool.h>

#define GGUF_REMEDY_BYTES 300

/*
 * Return true if the path looks like a URL or like a name in a registry (Hugging Face, ollama), and
 * write advice on how to get a local file: one line that is safe to copy into a shell.
 */
bool gguf_remote_remedy(const char *path, char remedy[GGUF_REMEDY_BYTES]);

/*
 * Return `path` as an absolute path, without resolving symbolic links, or NULL with errno set. The
 * caller frees it.
 */
char *gguf_absolute_path(const char *path);
