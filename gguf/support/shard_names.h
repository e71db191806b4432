/* Names of shards, the files of a split model: NAME-00001-of-00003.gguf, as llama.cpp writes them.
 */
#ifndef GGUFS_GGUF_SHARD_NAMES_H
#define GGUFS_GGUF_SHARD_NAMES_H

#include <stdbool.h>

/* Return true if both paths name shards and differ in nothing but the number of the shard. */
bool gguf_are_shards_of_one_model(const char *a, const char *b);

#endif
