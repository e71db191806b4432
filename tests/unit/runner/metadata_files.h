/* Metadata written as one JSON object, as the files metadata/<key>.json of a tree. */
#ifndef GGUFS_TESTS_METADATA_FILES_H
#define GGUFS_TESTS_METADATA_FILES_H

#include <stddef.h>

/*
 * Replaces the files of the directory metadata/ below `root`, which is made, by those of the
 * object's members: each the bytes of the member's value. The first of several members with the
 * same key counts; a key that is no file name is left out. The text need not be JSON: what cannot
 * be divided becomes the value of the last key. Returns 0 or a negative errno.
 */
int metadata_files_write(int root, const char *text, size_t length);

/* Removes the directory. */
void metadata_files_remove(int root);

#endif
