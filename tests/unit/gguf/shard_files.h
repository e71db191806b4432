/* Folders with a set of shards, valid unless a test changes them. */
#pragma once

#include "tests/unit/gguf/model_file.h"

#define SHARD_PATH_BYTES 512
#define N_SHARDS         3

/* Keys and contents of a shard. */
struct shard_file {
    uint32_t version;
    bool big_endian;
    bool has_no_keys;
    uint16_t no, count; /* values of split.no and split.count */
    int32_t n_total;
    unsigned n_tensors;
    const char *prefix; /* of the tensor names, followed by a number */
    unsigned char byte; /* value of every data byte */
};

/* Return shard `number`, from 1, of a valid set of N_SHARDS. */
struct shard_file shard_file_good(unsigned number);

/* Store the path FOLDER/model-00001-of-00003.gguf, with this number. */
void shard_file_path(char path[SHARD_PATH_BYTES], const char *folder, unsigned number);

void shard_file_write(const char *folder, unsigned number, const struct shard_file *shard);

/* Make a folder with a valid set and store its path in `folder`. */
void shard_files_make(char folder[SHARD_PATH_BYTES]);

/* Remove the folder and its files. */
void shard_files_remove(const char *folder);
