/*
 * The status of a mount, as `ggufs --status` shows it: the extended attribute FS_STATUS_ATTRIBUTE
 * of the root, which no list of attributes has. Its value is a text with lines "NAME VALUE". Other
 * versions may have other names, and leave names out.
 */
#ifndef GGUFS_FS_MOUNT_STATUS_H
#define GGUFS_FS_MOUNT_STATUS_H

#include "fs/mount/requests.h"
#include "fs/tree/sink.h"

#define FS_STATUS_ATTRIBUTE "user.ggufs.status"
/* Write the text, which is shorter than FS_ATTRIBUTES_BYTES. */
void fs_mount_status_write(const struct fs_server *server, struct fs_sink *sink);

#endif
