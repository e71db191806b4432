/* Handlers for rows of the option table. */
#ifndef GGUFS_FS_OPTION_HANDLERS_H
#define GGUFS_FS_OPTION_HANDLERS_H

#include "fs/command/option_table.h"

/* Set options->command to the row's. --help and --version override all others. */
fs_option_handler fs_take_command;
/* Set the row's member, a bool, to true. */
fs_option_handler fs_take_flag;
/* Set the row's member, an unsigned, to a decimal number in the row's range. */
fs_option_handler fs_take_number;
/* Add the option to options->fuse_options. */
fs_option_handler fs_take_for_libfuse;
/* Accept an option that has no effect here. */
fs_option_handler fs_take_nothing;

fs_option_handler fs_take_dtype;
fs_option_handler fs_take_export;
fs_option_handler fs_take_set;
fs_option_handler fs_take_unset;
fs_option_handler fs_take_edits;
fs_option_handler fs_take_imatrix;
fs_option_handler fs_take_svg;
fs_option_handler fs_take_size;
fs_option_handler fs_take_family;
fs_option_handler fs_take_era;
fs_option_handler fs_take_type;
fs_option_handler fs_take_ik;
fs_option_handler fs_take_umask;
fs_option_handler fs_take_subdir;
fs_option_handler fs_take_notify_fd;
fs_option_handler fs_take_debug;
fs_option_handler fs_take_auto_unmount;
fs_option_handler fs_take_no_sandbox;
fs_option_handler fs_take_quiet;
fs_option_handler fs_take_verbose;
fs_option_handler fs_take_log;
fs_option_handler fs_take_rw;
fs_option_handler fs_take_remount;

#endif
