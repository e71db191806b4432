/* The histogram of a tensor's values, as a picture. */
#ifndef GGUFS_FS_HISTOGRAM_SVG_H
#define GGUFS_FS_HISTOGRAM_SVG_H

#include "fs/tree/core/view_row.h"
#include "fs/tree/core/interrupt.h"

/* tensors/<tensor>/histogram.svg, members of struct fs_view; like stats.json, see stats_json.h. */
int fs_histogram_svg_size(const struct fs_tree *tree, const void *tensor, uint64_t *size_bytes);
int fs_histogram_svg_build(const struct fs_tree *tree, const void *tensor,
                           const struct fs_interrupt *interrupt, struct fs_image *image);

#endif
