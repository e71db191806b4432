#include "fs/tree/arranged_tiles.h"

#include "fs/tree/tile_cache.h"
#include "fs/tree/transpose.h"

#include <assert.h>
#include <stdatomic.h>
#include <string.h>

/* A band leaves room for others in the cache. */
#define BAND_BYTES (FS_TILE_CACHE_BYTES / 3 * 2)

/*
 * Tiles as narrow as this, or as a block, are in memory's order long enough, and a band of them
 * stays in the CPU's second-level cache until all of it has been read.
 */
#define LEAST_WIDTH 64u

#define CACHE_LINE 64u /* of the CPU */

/*
 * Bytes from one row of a tile to the next: an odd number of cache lines, since rows that lie a
 * power of two apart would share few places in the CPU's cache.
 */
static size_t row_pitch(const struct fs_arranged *arranged, size_t n_lines)
{
    const size_t n_bytes = n_lines * fs_format_bytes(arranged->conversion.format);

    return (n_bytes + CACHE_LINE - 1) / CACHE_LINE * CACHE_LINE | CACHE_LINE;
}

void fs_arranged_plan_tiles(struct fs_arranged *arranged)
{
    const uint64_t number_bytes = fs_format_bytes(arranged->conversion.format);
    const uint64_t line_elements = arranged->of.size[arranged->line_dim];
    const uint64_t block_elements = arranged->of.tensors[0]->type->block_elements;
    const uint64_t least = block_elements > LEAST_WIDTH ? block_elements : LEAST_WIDTH;
    uint64_t width = least, pitch;

    if (arranged->n_lines < FS_TILE_BYTES / number_bytes / least)
        width = FS_TILE_BYTES / row_pitch(arranged, arranged->n_lines) / least * least;
    width = width < least ? least : fs_least(width, FS_PIECE_ELEMENTS);
    while (width > 1 && arranged->n_lines > BAND_BYTES / number_bytes / width)
        width /= 2;
    arranged->tile_width = fs_least(width, line_elements);
    assert(arranged->tile_width > 0);
    /* The largest that fits. */
    pitch = ((FS_TILE_BYTES / arranged->tile_width / CACHE_LINE - 1) | 1) * CACHE_LINE;
    arranged->tile_lines = fs_least(arranged->n_lines, pitch / number_bytes);
    arranged->n_tiles_across = (arranged->n_lines - 1) / arranged->tile_lines + 1;
    arranged->n_tiles_along = (line_elements - 1) / arranged->tile_width + 1;
}

/* The elements (outer, first + i, first_line + line), i below `width`, line below n_lines. */
struct tile {
    uint64_t outer;
    uint64_t first;
    uint64_t first_line;
    size_t width;
    size_t n_lines;
};

/* Write the tile's elements to `out`: `width` rows of n_lines elements, row_pitch() apart. */
static int read_tile(struct fs_reading *reading, const struct tile *tile, char *out)
{
    /* Lines that fill a line of the CPU's cache in each row. */
    enum { MAX_LINES = CACHE_LINE / sizeof(uint16_t) };
    const size_t number_bytes = fs_format_bytes(reading->arranged->conversion.format);
    const size_t at_once = CACHE_LINE / number_bytes;
    const size_t pitch = row_pitch(reading->arranged, tile->n_lines);
    _Alignas(float) char piece[sizeof(uint16_t) * MAX_LINES * FS_PIECE_ELEMENTS];
    int result = 0;

    for (size_t j = 0; result == 0 && j < tile->n_lines; j += at_once) {
        const size_t n_lines = (size_t)fs_least(tile->n_lines - j, at_once);

        result = fs_lines_read(
            reading, &(struct fs_line_element){tile->outer, tile->first_line + j, tile->first},
            n_lines, tile->n_lines - j - n_lines, tile->width, piece);
        if (result == 0)
            (number_bytes == sizeof(uint16_t) ? fs_transpose16 : fs_transpose32)(
                piece, tile->width * number_bytes, out + j * number_bytes, pitch, n_lines,
                tile->width);
    }
    return result;
}

/* Bytes of the array to be written. */
struct slice {
    uint64_t offset, end;
    char *out;
    uint64_t first_row, end_row;
    uint64_t generation; /* of the files */
    bool is_growing;     /* one of them is: the tiles are of no use to another read */
};

static uint64_t first_row_of(const struct fs_arranged *arranged, const struct tile *tile)
{
    return tile->outer * arranged->of.size[arranged->line_dim] + tile->first;
}

/* Bytes from `from` to `to` of the array, in a row of a tile that starts at `start`. */
struct overlap {
    uint64_t start, from, to;
};

/* Get the part of row i of a tile that lies in the slice. Returns false if there is none. */
static bool get_overlap(const struct fs_arranged *arranged, const struct tile *tile, uint64_t i,
                        const struct slice *slice, struct overlap *part)
{
    const size_t number_bytes = fs_format_bytes(arranged->conversion.format);
    const uint64_t row = first_row_of(arranged, tile) + i;

    part->start = (row * arranged->n_lines + tile->first_line) * number_bytes;
    part->from = part->start > slice->offset ? part->start : slice->offset;
    part->to = fs_least(part->start + tile->n_lines * number_bytes, slice->end);
    return part->from < part->to;
}

/* The rows of a tile that lie in the slice, at least in part: from `begin` to `end`. */
struct rows {
    uint64_t begin, end;
};

static struct rows rows_in(const struct fs_arranged *arranged, const struct tile *tile,
                           const struct slice *slice)
{
    const uint64_t first = first_row_of(arranged, tile);

    return (struct rows){
        slice->first_row > first ? slice->first_row - first : 0,
        fs_least(tile->width, slice->end_row - first),
    };
}

/* Returns the number of bytes. */
static size_t copy_tile(const struct fs_arranged *arranged, const struct tile *tile,
                        const struct slice *slice, const char *numbers)
{
    const size_t pitch = row_pitch(arranged, tile->n_lines);
    const struct rows rows = rows_in(arranged, tile, slice);
    struct overlap part;
    size_t n_bytes = 0;

    for (uint64_t i = rows.begin; i < rows.end; i++) {
        if (!get_overlap(arranged, tile, i, slice, &part))
            continue;
        memcpy(slice->out + (part.from - slice->offset),
               numbers + i * pitch + (part.from - part.start), (size_t)(part.to - part.from));
        n_bytes += (size_t)(part.to - part.from);
    }
    return n_bytes;
}

/* Only the first and the last row of a slice may miss the tile. */
static bool has_overlap(const struct fs_arranged *arranged, const struct tile *tile,
                        const struct slice *slice)
{
    const struct rows rows = rows_in(arranged, tile, slice);
    struct overlap part;

    return rows.end - rows.begin > 2 || get_overlap(arranged, tile, rows.begin, slice, &part) ||
           get_overlap(arranged, tile, rows.end - 1, slice, &part);
}

/*
 * Copy the bytes of a tile that lie in the slice. Returns 0, 1 if another thread is reading the
 * tile and the caller does not wait for it, or a negative errno.
 */
static int use_tile(struct fs_reading *reading, const struct tile *tile, const struct slice *slice,
                    bool wait)
{
    const struct fs_arranged *arranged = reading->arranged;
    const uint64_t band =
        tile->outer * arranged->n_tiles_along + tile->first / arranged->tile_width;
    const struct fs_tile_key key = {
        .owner = arranged,
        .number = band * arranged->n_tiles_across + tile->first_line / arranged->tile_lines,
        .generation = slice->generation,
    };
    const size_t tile_bytes =
        tile->width * tile->n_lines * fs_format_bytes(arranged->conversion.format);
    struct fs_tile *cached;
    size_t n_bytes = 0;
    int result = fs_tile_get(&key, wait, &cached);

    if (result < 0 || result == FS_TILE_BUSY)
        return result < 0 ? result : 1;
    if (result == FS_TILE_MISSING) {
        result = read_tile(reading, tile, fs_tile_bytes(cached));
        fs_tile_filled(cached, result == 0 ? tile_bytes : 0);
    } else {
        result = 0;
    }
    if (result == 0)
        n_bytes = copy_tile(arranged, tile, slice, fs_tile_bytes(cached));
    fs_tile_put(cached, slice->is_growing ? tile_bytes : n_bytes);
    return result;
}

/* Tiles of a slice that are read by other threads, by their number in the slice. */
struct busy_tiles {
    uint64_t bits[16];
};

#define N_BUSY_TILES (sizeof(struct busy_tiles) * 8)

/*
 * Copy the bytes of all tiles in the slice. Threads that read neighbouring slices of a band share
 * its tiles: the first pass leaves out those that others are reading, the second one waits for
 * them.
 */
static int read_tiles(struct fs_reading *reading, const struct slice *slice, bool is_second,
                      struct busy_tiles *busy)
{
    const struct fs_arranged *arranged = reading->arranged;
    const uint64_t line_elements = arranged->of.size[arranged->line_dim];
    uint64_t number = 0;
    int result = 0;

    for (uint64_t row = slice->first_row; result >= 0 && row < slice->end_row;) {
        struct tile tile = {.outer = row / line_elements};

        tile.first = row % line_elements / arranged->tile_width * arranged->tile_width;
        tile.width = (size_t)fs_least(line_elements - tile.first, arranged->tile_width);
        for (; result >= 0 && tile.first_line < arranged->n_lines;
             tile.first_line += tile.n_lines, number++) {
            uint64_t *const word = &busy->bits[number % N_BUSY_TILES / 64];
            const uint64_t bit = (uint64_t)1 << number % 64;

            tile.n_lines =
                (size_t)fs_least(arranged->n_lines - tile.first_line, arranged->tile_lines);
            if ((is_second && (number >= N_BUSY_TILES || !(*word & bit))) ||
                !has_overlap(arranged, &tile, slice))
                continue;
            result = use_tile(reading, &tile, slice, is_second || number >= N_BUSY_TILES);
            if (result > 0)
                *word |= bit;
        }
        row = tile.outer * line_elements + tile.first + tile.width;
    }
    return result < 0 ? result : 0;
}

/*
 * Check that the files still have the tensors, before and after tiles are used that were decoded
 * earlier. Gets the sum of the files' generations, which grows when one changes. Data that arrive
 * in a growing file do not change it, so each read has a generation of its own then.
 */
static int check_files(const struct gguf_model *model, const struct fs_arranged *arranged,
                       struct slice *slice)
{
    static _Atomic uint64_t n_reads;

    slice->generation = 0;
    slice->is_growing = false;
    for (unsigned t = 0; t < 2 && arranged->of.tensors[t]; t++) {
        const struct gguf_tensor *tensor = arranged->of.tensors[t];
        const struct gguf_source *file = &model->files[tensor->file_index];
        const int result = gguf_source_check(file, tensor->file_offset + tensor->size_bytes);

        if (result < 0)
            return result;
        slice->generation += gguf_source_generation(file);
        slice->is_growing = slice->is_growing || file->is_growing;
    }
    if (slice->is_growing)
        slice->generation = UINT64_MAX - atomic_fetch_add(&n_reads, 1);
    return 0;
}

/* A file that changes all the time must not keep a reader for ever. */
#define MAX_TRIES 3u

int fs_arranged_read_tiles(struct fs_reading *reading, uint64_t offset, size_t length, char *out)
{
    const struct fs_arranged *arranged = reading->arranged;
    const uint64_t row_bytes = arranged->n_lines * fs_format_bytes(arranged->conversion.format);
    struct slice slice = {.offset = offset,
                          .end = offset + length,
                          .out = out,
                          .first_row = offset / row_bytes,
                          .end_row = (offset + length - 1) / row_bytes + 1};
    int result = check_files(reading->model, arranged, &slice);

    /* A tile may be older than the check before it was used: another thread decoded it. */
    for (unsigned i = 0; result == 0 && i < MAX_TRIES; i++) {
        const uint64_t generation = slice.generation;
        struct busy_tiles busy = {0};

        result = read_tiles(reading, &slice, false, &busy);
        if (result == 0)
            result = read_tiles(reading, &slice, true, &busy);
        if (result == 0)
            result = check_files(reading->model, arranged, &slice);
        if (slice.is_growing || slice.generation == generation)
            break;
    }
    return result;
}
