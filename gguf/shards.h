/*
 * Models that were split into several files. Source: llama.cpp's gguf-split and llama_split_path().
 *
 *   NAME-00001-of-00003.gguf, …     the numbers start at 1
 *   split.no              u16       of the file, starts at 0
 *   split.count           u16       files
 *   split.tensors.count   i32       tensors in all files
 *
 * Each is a whole GGUF file with tensors of its own. The metadata of the model are those of the
 * first; the other files have little more than the keys above, and nobody reads what they have.
 */
#ifndef GGUFS_GGUF_SHARDS_H
#define GGUFS_GGUF_SHARDS_H

#include "gguf/model.h"

/*
 * If the model, of which one file is parsed, says that it is a shard: opens the others, which lie
 * beside it and are found by its name, and makes a model of all, in place of *model. Its files are
 * in the order of their numbers. Does nothing if it is no shard. Returns 0, or a negative errno
 * with the reason in `report`; *model is then what it was.
 */
int gguf_shards_join(struct gguf_model **model, const struct gguf_open_options *options,
                     struct gguf_report *report);

#endif
