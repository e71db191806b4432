/* The mounts that the process can see: /proc/self/mountinfo. */
#pragma once

#include <stddef.h>

/* A mount. The texts have no escapes. */
struct fs_mount_entry {
    char *line;            /* owned; the texts are parts of it */
    unsigned major, minor; /* its st_dev */
    const char *path;
    const char *type; /* "fuse.ggufs" */
    const char *source;
};

struct fs_mount_table {
    struct fs_mount_entry *list; /* in the order in which they were mounted */
    size_t count;
};

/*
 * Read the table. Looks no path up, so it can neither wait for a file system nor trigger an
 * automount. Returns 0 or a negative errno. Call fs_mount_table_free() in any case.
 */
int fs_mount_table_read(struct fs_mount_table *table);
void fs_mount_table_free(struct fs_mount_table *table);

/* Return the topmost mount on an absolute path without symbolic links, or NULL. */
const struct fs_mount_entry *fs_mount_table_find(const struct fs_mount_table *table,
                                                 const char *path);
