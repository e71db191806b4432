/* A private mount of a model file, which ends by itself with the last open file of the tree. */
#pragma once

#include "gguf/support/option_rows.h"

/*
 * Mount a model file with ggufs in a private directory, open the directory of the tree, and detach
 * the mount from the file system at once. ggufs runs until the tree and all its files and mappings
 * are closed, however this process ends. Returns 0 and stores the descriptor, which the caller
 * closes; or prints an error and returns an exit status, ggufs' own if ggufs failed. Call it before
 * starting threads.
 */
int run_private_mount_open(const char *model, const struct gguf_texts *options, int *tree_fd);

/* Execute the ggufs next to this program, or the one in PATH. Returns only if there is neither. */
void run_become_ggufs(char **arguments);
