/*
 * Cache of tensor statistics: 4,096 direct-mapped entries, at most 3 MB. Any thread may call these
 * functions.
 */
#ifndef GGUFS_FS_STATISTICS_CACHE_H
#define GGUFS_FS_STATISTICS_CACHE_H

#include "fs/tree/data/statistics.h"

struct fs_statistics_cache;

/* Return an empty cache, or NULL if out of memory. */
struct fs_statistics_cache *fs_statistics_cache_make(const struct gguf_model *model);
void fs_statistics_cache_free(struct fs_statistics_cache *cache);

/*
 * Get the statistics of a tensor of the model. They are computed, by fs_statistics_compute(),
 * unless the cache has them and the model has not changed since. Statistics of a growing source are
 * never cached, because its generation stays the same while data arrive. Returns the errors of
 * fs_statistics_compute().
 */
int fs_statistics_cache_get(struct fs_statistics_cache *cache, const struct gguf_tensor *tensor,
                            const struct fs_interrupt *interrupt, struct fs_statistics *statistics);

#endif
