/* summary.txt: the main facts about a model, on one screen. */
#ifndef GGUFS_FS_SUMMARY_H
#define GGUFS_FS_SUMMARY_H

#include "fs/tree/text.h"

/* Write the summary. It is safe for a terminal. */
int fs_summary_write(const struct fs_tree *tree, const void *subject, struct fs_place *place,
                     struct fs_sink *sink);

#endif
