/* ggufs --status: the mounts of ggufs, and what their daemons have done. */
#ifndef GGUFS_FS_STATUS_H
#define GGUFS_FS_STATUS_H

#include "fs/command/options.h"

/*
 * Print a table, or JSON with options->json, of the mounts at options->paths, or of all mounts with
 * the type fuse.ggufs. Reports daemons that do not answer in time. Returns an exit status: EX_OK if
 * all mounts serve, EX_UNAVAILABLE if one does not, EX_NOINPUT if nothing is mounted at a path.
 */
int fs_status(const struct fs_options *options);

#endif
