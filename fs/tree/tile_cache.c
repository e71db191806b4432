#include "fs/tree/tile_cache.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* A slot of the cache. Without a number of users, its tile may be replaced. */
struct fs_tile {
    struct fs_tile_key key; /* all zero: empty */
    char *bytes;            /* NULL until it is used */
    unsigned n_users;
    bool is_full;          /* otherwise its one user fills it */
    uint64_t unused_bytes; /* that nobody has read yet */
    uint64_t last_use;     /* 0 if all have been read */
};

#define N_SLOTS (FS_TILE_CACHE_BYTES / FS_TILE_BYTES)

static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed; /* a tile was filled or put back */
    struct fs_tile slots[N_SLOTS];
    uint64_t n_uses;
} cache = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

/* Return the slot of that tile, else the unused one whose last use is oldest, or NULL. */
static struct fs_tile *find_slot(const struct fs_tile_key *key)
{
    struct fs_tile *oldest = NULL;

    for (size_t i = 0; i < N_SLOTS; i++) {
        struct fs_tile *slot = &cache.slots[i];

        if (slot->key.owner == key->owner && slot->key.number == key->number &&
            slot->key.generation == key->generation)
            return slot;
        if (slot->n_users == 0 && (!oldest || slot->last_use < oldest->last_use))
            oldest = slot;
    }
    return oldest;
}

static int take(struct fs_tile *slot, const struct fs_tile_key *key)
{
    const bool is_there = memcmp(&slot->key, key, sizeof *key) == 0;

    if (!slot->bytes) {
        slot->bytes = aligned_alloc(64, FS_TILE_BYTES);
        if (!slot->bytes)
            return -ENOMEM;
    }
    slot->key = *key;
    slot->is_full = slot->is_full && is_there;
    slot->n_users++;
    slot->last_use = ++cache.n_uses;
    return slot->is_full ? FS_TILE_FULL : FS_TILE_MISSING;
}

int fs_tile_get(const struct fs_tile_key *key, bool wait, struct fs_tile **tile)
{
    int result = FS_TILE_BUSY;

    pthread_mutex_lock(&cache.lock);
    for (;;) {
        struct fs_tile *slot = find_slot(key);

        if (slot && (slot->n_users == 0 || slot->is_full)) {
            result = take(slot, key);
            *tile = slot;
            break;
        }
        if (!wait)
            break;
        pthread_cond_wait(&cache.changed, &cache.lock);
    }
    pthread_mutex_unlock(&cache.lock);
    return result;
}

char *fs_tile_bytes(const struct fs_tile *tile)
{
    return tile->bytes;
}

void fs_tile_filled(struct fs_tile *tile, size_t n_bytes)
{
    pthread_mutex_lock(&cache.lock);
    tile->is_full = n_bytes > 0;
    tile->unused_bytes = n_bytes;
    if (!tile->is_full)
        tile->key = (struct fs_tile_key){0};
    pthread_cond_broadcast(&cache.changed);
    pthread_mutex_unlock(&cache.lock);
}

void fs_tile_put(struct fs_tile *tile, size_t n_bytes)
{
    pthread_mutex_lock(&cache.lock);
    tile->unused_bytes -= n_bytes < tile->unused_bytes ? n_bytes : tile->unused_bytes;
    if (tile->unused_bytes == 0)
        tile->last_use = 0;
    if (--tile->n_users == 0)
        pthread_cond_broadcast(&cache.changed);
    pthread_mutex_unlock(&cache.lock);
}

void fs_tiles_drop(const void *owner)
{
    pthread_mutex_lock(&cache.lock);
    for (size_t i = 0; i < N_SLOTS; i++) {
        struct fs_tile *slot = &cache.slots[i];

        if (slot->key.owner != owner)
            continue;
        free(slot->bytes);
        *slot = (struct fs_tile){0};
    }
    pthread_mutex_unlock(&cache.lock);
}
