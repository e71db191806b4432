/* The table of views: a new kind of file, directory or link is a row in views.c. */
#ifndef GGUFS_FS_VIEWS_H
#define GGUFS_FS_VIEWS_H

#include "fs/tree/core/view_row.h"

extern const struct fs_table fs_views;

#endif
