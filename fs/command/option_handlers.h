/* Handlers of options that no other kind of row in command_line.c can describe. */
#pragma once

#include "gguf/support/option_rows.h"

/* Add the option to options->mount.fuse. */
gguf_option_handler fs_take_for_libfuse;

gguf_option_handler fs_take_set;
gguf_option_handler fs_take_unset;
gguf_option_handler fs_take_edits;
gguf_option_handler fs_take_template_argument;
gguf_option_handler fs_take_type;
gguf_option_handler fs_take_subdir;
gguf_option_handler fs_take_notify_fd;
gguf_option_handler fs_take_debug;
gguf_option_handler fs_take_auto_unmount;
gguf_option_handler fs_take_rw;
gguf_option_handler fs_take_remount;
