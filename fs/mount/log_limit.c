#include "fs/mount/log_limit.h"

bool fs_log_limit_take(struct fs_log_limit *limit, time_t now, uint64_t *n_lost)
{
    if (now - limit->start >= FS_LOG_LIMIT_SECONDS) {
        limit->start = now;
        limit->n = 0;
    }
    if (limit->n >= FS_LOG_LIMIT_RECORDS) {
        limit->n_lost++;
        return false;
    }
    limit->n++;
    *n_lost = limit->n_lost;
    limit->n_lost = 0;
    return true;
}

void fs_log_limit_lose(struct fs_log_limit *limit, uint64_t n)
{
    limit->n_lost += n;
}
