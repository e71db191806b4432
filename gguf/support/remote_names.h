/* Names of models that are not files. */
#ifndef GGUFS_GGUF_REMOTE_NAMES_H
#define GGUFS_GGUF_REMOTE_NAMES_H

/*
 * Return how to get a local file for a path that looks like a URL or like a name in a registry
 * (Hugging Face, ollama), or NULL if it looks like a path. Static text, one line.
 */
const char *gguf_remote_remedy(const char *path);

#endif
