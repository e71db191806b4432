#include "fs/tree/arranged_tiles.h"

#include "fs/tree/tile_cache.h"
#include "fs/tree/transpose.h"

#include <stdatomic.h>
#include <string.h>

/* A band leaves room for others in the cache. */
#define BAND_BYTES (FS_TILE_CACHE_BYTES / 3 * 2)
void fs_arranged_plan_tiles(struct fs_arranged *arranged)
{
    const uint64_t number_bytes = fs_format_bytes(arranged->conversion.format);
    const uint64_t tile_elements = FS_TILE_BYTES / number_bytes;
    const uint64_t line_elements = arranged->of.size[arranged->line_dim];
    const bool is_quantized = arranged->of.tensors[0]->type->block_elements > 1;
    /* The time for plain numbers depends more on the number of pieces than on their size. */
    const uint64_t piece = is_quantized ? FS_PIECE_ELEMENTS / 2 : FS_PIECE_ELEMENTS;
    uint64_t width = piece;

    if (arranged->n_lines < tile_elements / piece)
        width = tile_elements / arranged->n_lines / piece * piece;
    while (width > 1 && arranged->n_lines > BAND_BYTES / number_bytes / width)
        width /= 2;
    arranged->tile_width = fs_least(width, line_elements);
    arranged->tile_lines = fs_least(arranged->n_lines, tile_elements / arranged->tile_width);
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

/*
 * Lines lie far apart, so that the processor does not foresee which come next: ask for those that
 * are decoded this many lines later.
 */
#define LINES_AHEAD 32u

/* Write the tile's elements to `out`: `width` rows of n_lines elements. */
static int read_tile(struct fs_reading *reading, const struct tile *tile, char *out)
{
    /* Lines that fill a whole line of the CPU's cache in each row. */
    enum { ROW_BYTES = 64, MAX_LINES = ROW_BYTES / sizeof(uint16_t) };
    const size_t number_bytes = fs_format_bytes(reading->arranged->conversion.format);
    const size_t at_once = ROW_BYTES / number_bytes, pitch = FS_PIECE_ELEMENTS * number_bytes;
    _Alignas(float) char piece[sizeof(uint16_t) * MAX_LINES * FS_PIECE_ELEMENTS];

    /* All pieces of some lines: they lie in the same pages. */
    for (size_t j = 0; j < tile->n_lines; j += at_once) {
        const size_t n_lines = (size_t)fs_least(tile->n_lines - j, at_once);

        for (size_t i = 0; i < tile->width; i += FS_PIECE_ELEMENTS) {
            const size_t width = (size_t)fs_least(tile->width - i, FS_PIECE_ELEMENTS);

            for (size_t line = 0; line < n_lines; line++) {
                struct fs_line_element from = {tile->outer, tile->first_line + j + line,
                                               tile->first + i};
                int result;

                result =
                    fs_line_read(reading, &from, 0, width * number_bytes, piece + line * pitch);
                if (result < 0)
                    return result;
                from.number += LINES_AHEAD;
                if (from.number < tile->first_line + tile->n_lines)
                    fs_line_load_ahead(reading, &from, width);
            }
            (number_bytes == sizeof(uint16_t) ? fs_transpose16 : fs_transpose32)(
                piece, pitch, out + (i * tile->n_lines + j) * number_bytes,
                tile->n_lines * number_bytes, n_lines, width);
        }
    }
    return 0;
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
    const size_t row_bytes = tile->n_lines * fs_format_bytes(arranged->conversion.format);
    const struct rows rows = rows_in(arranged, tile, slice);
    struct overlap part;
    size_t n_bytes = 0;

    for (uint64_t i = rows.begin; i < rows.end; i++) {
        if (!get_overlap(arranged, tile, i, slice, &part))
            continue;
        memcpy(slice->out + (part.from - slice->offset),
               numbers + i * row_bytes + (part.from - part.start), (size_t)(part.to - part.from));
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
