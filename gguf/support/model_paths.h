/* Paths by which users name models: files, folders with a model, and names that are not local. */
#pragma once

#include <stdbool.h>

/* Room for the reason of a refusal. */
#define GGUF_FOLDER_REASON_BYTES 700

/*
 * Find the only GGUF file in `folder`; the shards of one model count as one, and hidden files do
 * not count. On success *model is its path, which the caller frees. Otherwise returns -EISDIR or
 * another negative errno, with the reason and the remedy in `reason`, to follow the folder's name
 * and a colon: several models, or a store of Hugging Face or Ollama, or a checkpoint.
 */
int gguf_model_folder_find(const char *folder, char **model, char reason[GGUF_FOLDER_REASON_BYTES]);

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
