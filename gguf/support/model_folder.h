/* Finds the model in a folder, and names folders of other programs. */
#ifndef GGUFS_GGUF_MODEL_FOLDER_H
#define GGUFS_GGUF_MODEL_FOLDER_H

#include <stddef.h>

/* Room for the reason of a refusal. */
#define GGUF_FOLDER_REASON_BYTES 700

/*
 * Find the only GGUF file in `folder`; the shards of one model count as one, and hidden files do
 * not count. On success *model is its path, which the caller frees. Otherwise returns -EISDIR or
 * another negative errno, with the reason and the remedy in `reason`, to follow the folder's name
 * and a colon: several models, or a store of Hugging Face or Ollama, or a checkpoint.
 */
int gguf_model_folder_find(const char *folder, char **model, char reason[GGUF_FOLDER_REASON_BYTES]);

#endif
