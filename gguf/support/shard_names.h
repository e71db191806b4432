/*
 * Names of model files, and of shards: the files of a split model. Source: llama.cpp's
 * llama_split_path().
 *
 *     NAME-00001-of-00003.gguf, …     numbers start at 1
 *
 * The parts of a llama model from before GGUF. Source: llama_model_load() in llama.cpp of March
 * 2023, which knew models in 1, 2, 4 and 8 parts.
 *
 *     NAME.bin, NAME.bin.1, …         the first part has no number
 */
#pragma once

#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>

/* A printf format of the part between NAME and the ending, for two uint32_t: number and count. */
#define GGUF_SHARD_NUMBERS "-%05" PRIu32 "-of-%05" PRIu32

/* Return true if the path ends in .gguf or .bin, as names of model files do. */
bool gguf_has_model_ending(const char *path);

/* Return the bytes of a path before its ending and, if it has them, before a shard's numbers. */
size_t gguf_stem_bytes(const char *path);

/* Read the numbers of a shard's path. Returns false, with zeros, if it does not name a shard. */
bool gguf_read_shard_numbers(const char *path, uint32_t *number, uint32_t *count);

/*
 * Return the path of another shard of the same model, or NULL if out of memory. `path` must name a
 * shard, and `number` must be at most 99999. The caller frees it.
 */
char *gguf_shard_path(const char *path, uint32_t number);

#define GGUF_MAX_PARTS 8u

/*
 * Read the number of a part, 0 for the first, from its path. Returns false, with zero, if it does
 * not name a part.
 */
bool gguf_read_part_number(const char *path, uint32_t *number);

/*
 * Return the path of another part of the same model, or NULL if out of memory. `path` must name a
 * part, and `number` must be below GGUF_MAX_PARTS. The caller frees it.
 */
char *gguf_part_path(const char *path, uint32_t number);

/* Return true if both paths name shards, or parts, and differ in nothing but the number. */
bool gguf_are_shards_of_one_model(const char *a, const char *b);
