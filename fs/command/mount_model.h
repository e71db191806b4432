/* ggufs MODEL MOUNTPOINT. */
#ifndef GGUFS_FS_MOUNT_MODEL_H
#define GGUFS_FS_MOUNT_MODEL_H

#include "fs/command/options.h"

/* Mount options->models[0] on options->directory. Returns the exit status. */
int fs_mount_model(struct fs_options *options);

#endif
