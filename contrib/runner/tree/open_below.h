/* Opens files of a tree, which may come from an untrusted source. */
#pragma once

#include <stdbool.h>

/*
 * Open a file below the directory `tree_fd`, as openat(2) does with O_CLOEXEC. Symbolic links may
 * lead anywhere in the tree, but not out of it. Returns a descriptor or a negative errno: -EXDEV
 * for a link out of the tree.
 */
int run_open_below(int tree_fd, const char *path, int flags);

/* Return the text for an error of run_open_below(). */
const char *run_open_below_error(int code);

/*
 * Return true if an open file is on a mount of ggufs that the caller or root has made. Another
 * user's FUSE server may answer anything.
 */
bool run_is_on_own_mount(int fd);
