/* The table of views: a new kind of file, directory or link is a row in views.c. */
#pragma once

#include "fs/tree/core/view_row.h"

extern const struct fs_table fs_views;
