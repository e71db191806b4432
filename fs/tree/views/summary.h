/* summary.txt: the main facts about a model, on one screen. */
#ifndef GGUFS_FS_SUMMARY_H
#define GGUFS_FS_SUMMARY_H

#include "fs/tree/core/text.h"

/* Write the summary. It is safe for a terminal. */
fs_text_writer fs_summary_write;

#endif
