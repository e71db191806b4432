/* ggufs --status: the mounts of ggufs, and what their daemons have done. */
#ifndef GGUFS_FS_STATUS_H
#define GGUFS_FS_STATUS_H

#include "fs/command/options.h"

/*
 * Print a table, or JSON with options->json, of the mounts at options->paths, or of all with the
 * type fuse.ggufs. A daemon that does not answer in time is reported as such. Returns an exit
 * status: EX_OK if all of them serve, EX_UNAVAILABLE if one does not, EX_NOINPUT if there is no
 * mount at a path.
 */
int fs_status(const struct fs_options *options);

#endif
