/*
 * Models that were split into several files; gguf/files.h has their names. Source: llama.cpp's
 * gguf-split.
 *
 *   split.no              u16   number of the file, starts at 0
 *   split.count           u16   files
 *   split.tensors.count   i32   tensors in all files
 *
 * Each shard is a whole GGUF file with tensors of its own. The first shard has the model's
 * metadata. The other shards have little more than the keys above; their other keys are ignored.
 */
#pragma once

#include "gguf/model.h"

struct gguf_files;

/*
 * If the keys of a parsed file make it a shard, parse the others, which were opened with it, and
 * replace *model with one model of all. Its files are in the order of their numbers. Does nothing
 * if the file is not a shard. Returns 0, or a negative errno with the reason in `report`; *model is
 * then unchanged.
 */
int gguf_shards_join(struct gguf_model **model, struct gguf_files *files,
                     const struct gguf_open_options *options, struct gguf_report *report);
