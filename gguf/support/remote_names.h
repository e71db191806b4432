/* Recognises names of models that are not local files. */
#ifndef GGUFS_GGUF_REMOTE_NAMES_H
#define GGUFS_GGUF_REMOTE_NAMES_H

/*
 * Return advice on how to get a local file, if the path looks like a URL or like a name in a
 * registry (Hugging Face, ollama); else NULL. Static text, one line.
 */
const char *gguf_remote_remedy(const char *path);

#endif
