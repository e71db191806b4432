/*
 * The files that are open, of which each has one image, however often it was opened: an image can
 * take some memory, and a reader could open a file very often. Any thread may call these functions.
 */
#ifndef GGUFS_FS_OPEN_FILES_H
#define GGUFS_FS_OPEN_FILES_H

#include "fs/tree/tree.h"

#include <pthread.h>

struct fs_open_file {
    fs_node_index index;
    struct fs_image image;
    uint64_t n_users;
    struct fs_open_file *next; /* in the bucket */
};

#define FS_OPEN_FILES_BUCKETS 256

struct fs_open_files {
    struct fs_open_file *buckets[FS_OPEN_FILES_BUCKETS];
    pthread_mutex_t lock;
};

/*
 * Opens the file of a node, to be given back with fs_open_files_put(). Returns 0 or what
 * fs_tree_open() does.
 */
int fs_open_files_get(struct fs_open_files *files, struct fs_tree *tree, fs_node_index index,
                      struct fs_open_file **file);

void fs_open_files_put(struct fs_open_files *files, struct fs_open_file *file);

/* Frees what is still open. */
void fs_open_files_end(struct fs_open_files *files);

#endif
