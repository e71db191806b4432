/* Sets of shards in a folder of their own, good unless they are changed. */
#ifndef GGUFS_TESTS_SHARD_FILES_H
#define GGUFS_TESTS_SHARD_FILES_H

#include "tests/unit/gguf/model_file.h"

#define SHARD_PATH_BYTES 512
#define N_SHARDS         3

/* The keys and contents of a shard. */
struct shard_file {
    uint32_t version;
    bool big_endian;
    bool has_no_keys;
    uint16_t no, count; /* as the keys have them */
    int32_t n_total;
    unsigned n_tensors;
    const char *prefix; /* of the names of its tensors, which end in their number */
    unsigned char byte; /* of all data */
};

/* Shard `number` of a good set of N_SHARDS; its number starts at 1. */
struct shard_file shard_file_good(unsigned number);

/* Its bytes: a key "general.name" in the first, "own" in the others, split.*, tensors of type I8.
 */
struct model_bytes shard_file_bytes(const struct shard_file *shard);

/* FOLDER/model-00001-of-00003.gguf and so on. */
void shard_file_path(char path[SHARD_PATH_BYTES], const char *folder, unsigned number);

void shard_file_write(const char *folder, unsigned number, const struct shard_file *shard);

/* Makes a folder with a good set; `folder` gets its path. */
void shard_files_make(char folder[SHARD_PATH_BYTES]);

/* Removes the folder and what is in it. */
void shard_files_remove(const char *folder);

#endif
