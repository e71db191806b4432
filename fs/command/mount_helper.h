/*
 * The calling convention of mount(8), which runs /sbin/mount.ggufs for "mount -t ggufs":
 *
 *     mount.ggufs MODEL MOUNTPOINT [-fnsv] [-N NAMESPACE] [-o OPTIONS] [-t TYPE]
 *
 * mount.ggufs is a link to ggufs.
 */
#pragma once

#include "fs/command/options.h"

#include <stdbool.h>

/* Return true if the program was called as mount.ggufs; `program` is argv[0], or NULL. */
bool fs_is_mount_helper(const char *program);

/*
 * Parse the arguments of mount.ggufs into *options, like fs_options_parse(). With -f, mount's
 * option for a trial run, options->is_trial is set.
 */
int fs_mount_helper_parse(int argc, char **argv, struct fs_options *options);

/* Return the exit status that mount(8) documents for one of sysexits.h. */
int fs_mount_helper_status(int status);
