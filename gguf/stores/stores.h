/*
 * Models by their names in the stores of other programs, without copies:
 *
 *   ollama:NAME[:TAG]               Ollama's models, as `ollama list` names them
 *   hf:ORG/NAME[@REVISION][:TAG]    the cache of Hugging Face's hub, or llama.cpp's
 *   llamacpp:ORG/NAME[:TAG]         the cache of llama.cpp
 *   lmstudio:PUBLISHER/REPOSITORY[/FILE][:TAG]
 *
 * A store is looked for where its program keeps it. TAG is a part of the name of a file, "Q4_K_M".
 */
#pragma once

enum { GGUF_STORE_REASON_BYTES = 700 };

/*
 * Find the first or only file of a model. Returns 0 with *path, which the caller frees; 1 if `name`
 * does not begin with the name of a store; or a negative errno with the reason and the remedy in
 * `reason`, to follow the name and a colon.
 */
int gguf_store_find(const char *name, char **path, char reason[GGUF_STORE_REASON_BYTES]);
