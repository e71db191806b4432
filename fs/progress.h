/* A progress bar on a terminal; nothing elsewhere. */
#ifndef GGUFS_FS_PROGRESS_H
#define GGUFS_FS_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

struct fs_progress {
    bool is_shown;
    int columns; /* of the terminal */
    const char *path;
    struct timespec started, drawn;
};

/* Begins a bar on stderr for work on the file at `path`, which must stay valid. */
void fs_progress_start(struct fs_progress *progress, const char *path);

/* Draws how far the work is, if the last time is a while ago. */
void fs_progress_draw(struct fs_progress *progress, uint64_t done_bytes, uint64_t total_bytes);

/* Makes room for other output. */
void fs_progress_erase(const struct fs_progress *progress);

#endif
