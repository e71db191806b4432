/* Reads an array with several lines per outer index in tiles; see arranged_lines.h. */
#ifndef GGUFS_FS_ARRANGED_TILES_H
#define GGUFS_FS_ARRANGED_TILES_H

#include "fs/tree/arranged_lines.h"

/* Choose the size of the tiles. All other members must be set. */
void fs_arranged_plan_tiles(struct fs_arranged *arranged);

/*
 * Write bytes `offset` to `offset + length`, which is not 0, and check the files; see
 * fs_arranged_read().
 */
int fs_arranged_read_tiles(struct fs_reading *reading, uint64_t offset, size_t length, char *out);

#endif
