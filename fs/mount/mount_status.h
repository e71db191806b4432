/*
 * The status of a mount, as `ggufs --status` shows it: the extended attribute FS_STATUS_ATTRIBUTE
 * of the root, which listxattr(2) does not list. Its value is text with lines "NAME VALUE". Other
 * versions may add, rename or omit lines.
 */
#ifndef GGUFS_FS_MOUNT_STATUS_H
#define GGUFS_FS_MOUNT_STATUS_H

#include "fs/mount/server.h"
#include "fs/tree/output/sink.h"

#define FS_STATUS_ATTRIBUTE "user.ggufs.status"
/* Write the text, which is shorter than FS_ATTRIBUTES_BYTES. */
void fs_mount_status_write(const struct fs_server *server, struct fs_sink *sink);

#endif
