/*
 * A cache of decoded tiles, for arrays that are read in another order than they are stored in: a
 * read then needs little of what must be decoded for it, and the next reads need the rest. All
 * images of the process share it. It has a fixed number of slots and takes at most
 * FS_TILE_CACHE_BYTES of memory. Any thread may call these functions.
 */
#ifndef GGUFS_FS_TILE_CACHE_H
#define GGUFS_FS_TILE_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FS_TILE_BYTES       ((size_t)256 << 10)
#define FS_TILE_CACHE_BYTES ((size_t)24 << 20)

struct fs_tile_key {
    const void *owner;   /* the array */
    uint64_t number;     /* of the tile in it */
    uint64_t generation; /* of the files that it is decoded from, or of the read if they grow */
};

/* A tile in use, of FS_TILE_BYTES. */
struct fs_tile;

enum fs_tile_state {
    FS_TILE_BUSY,    /* another thread fills it, or no slot is free: there is no tile to be put */
    FS_TILE_MISSING, /* the caller must fill it and call fs_tile_filled() */
    FS_TILE_FULL,
};

/*
 * Get a tile, to be given back with fs_tile_put(). With `wait`, waits while it is busy; the caller
 * must not have another tile then. Returns an enum fs_tile_state, or -ENOMEM.
 */
int fs_tile_get(const struct fs_tile_key *key, bool wait, struct fs_tile **tile);

/* The bytes of a tile; only who fills it may write them. */
char *fs_tile_bytes(const struct fs_tile *tile);

/*
 * End the filling of a tile with n_bytes. With 0 it has failed, and the next to get it must fill
 * it.
 */
void fs_tile_filled(struct fs_tile *tile, size_t n_bytes);

/*
 * Give a tile back of which n_bytes were used. Once all have been, it is the first to be replaced:
 * sequential reads thus keep to few slots, which the CPU caches.
 */
void fs_tile_put(struct fs_tile *tile, size_t n_bytes);

/* Free the tiles of an array that nobody reads any more. */
void fs_tiles_drop(const void *owner);

#endif
