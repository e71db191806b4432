/*
 * Answers requests about the folders of many models, and about the directories of models, as far as
 * these need not be open for them.
 */
#pragma once

#include "fs/mount/requests.h"
#include "fs/mount/server.h"

#include <stdbool.h>

/* Return true if they have replied: the inode is not the tree's. */
bool fs_set_lookup(fuse_req_t request, fuse_ino_t parent, const char *name);
bool fs_set_getattr(fuse_req_t request, fuse_ino_t inode);
bool fs_set_opendir(fuse_req_t request, fuse_ino_t inode, struct fuse_file_info *info);

/* Return true if a directory was opened by fs_set_opendir(). */
bool fs_is_set_folder(const struct fuse_file_info *info);

/*
 * Add the entry at a position or, if that has gone, the next one, as fuse_add_direntry() does.
 * Returns 0 at the end.
 */
size_t fs_set_add_entry(fuse_req_t request, const struct fuse_file_info *info, off_t *position,
                        bool plus, char *out, size_t room);
void fs_set_on_releasedir(fuse_req_t request, fuse_ino_t inode, struct fuse_file_info *info);

/* Seconds. The kernel's cache stays valid until fs/mount/changes.c invalidates it. */
#define FS_FOREVER 1e9

/* Defined in requests.c. */
mode_t fs_mode_of(const struct fs_server *server, const struct fs_node *node);
