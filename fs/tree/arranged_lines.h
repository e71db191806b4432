/*
 * How an array in another order is read; only for arranged.c, arranged_lines.c and
 * arranged_tiles.c.
 */
#ifndef GGUFS_FS_ARRANGED_LINES_H
#define GGUFS_FS_ARRANGED_LINES_H

#include "fs/tree/arranged.h"

/*
 * One dimension of the array, in which neighbours are closest in the tensor, is read by lines: its
 * elements for fixed indices of the others. The dimensions before it are counted together as the
 * outer index. Those after it are counted together as the number of the line: elements (outer, i,
 * line) are stored in the file as rows of n_lines elements.
 *
 * If there is one line, rows are decoded straight into the output. Otherwise, the array is read in
 * tiles, each with the elements of some lines for a range of i. A band of tiles with all lines has
 * few enough bytes to stay in the cache while all of it is read from the first row to the last.
 */
struct fs_arranged {
    struct fs_arrangement of; /* without dimensions of size 1, and neighbours joined */
    struct fs_conversion conversion;
    uint64_t n_elements;
    unsigned line_dim;
    uint64_t n_lines;
    uint64_t tile_width; /* elements of a line in a tile */
    uint64_t tile_lines;
    uint64_t n_tiles_across; /* tiles of different lines */
    uint64_t n_tiles_along;  /* tiles of the same lines and outer index */
};

/* The most elements of a line that are decoded at once: a multiple of all block sizes. */
#define FS_PIECE_ELEMENTS 512u

/* A read, and what has been read of each tensor's file. */
struct fs_reading {
    const struct gguf_model *model;
    const struct fs_arranged *arranged;
    uint64_t end_offset[2];
};

/* An element of a line: number `number` of those with this outer index. */
struct fs_line_element {
    uint64_t outer;
    uint64_t number;
    uint64_t at;
};

/*
 * Write bytes `skip` to `skip + length` of the line from an element, converted. Does not check the
 * file. Returns 0 or the error of gguf_source_lend().
 */
int fs_line_read(struct fs_reading *reading, const struct fs_line_element *from, uint64_t skip,
                 size_t length, char *out);

/*
 * The same for whole elements of neighbouring lines, `width` of each, written to `out` one line
 * after the other. After these lines, the n_next ones that follow are read.
 */
int fs_lines_read(struct fs_reading *reading, const struct fs_line_element *from, size_t n_lines,
                  size_t n_next, size_t width, char *out);

static inline uint64_t fs_least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

#endif
