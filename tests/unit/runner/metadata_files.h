/*
 * Metadata for tests: one JSON object, stored as the files metadata/<key>.json of a tree, which
 * tests may change one by one, and as metadata.json, into which run_tree_open() joins them again.
 */
#pragma once

#include "contrib/runner/tree/weights.h"

#include <stddef.h>

/*
 * Replace the files in the directory metadata/ below `root`, which is made if needed. Each member
 * of the object becomes a file with the text of its value. Of several members with the same key,
 * the first is used; keys that are not valid file names are left out. Invalid JSON is allowed: a
 * part that cannot be divided becomes the value of the last key. Returns 0 or a negative errno.
 */
int metadata_files_write(int root, const char *text, size_t length);

/* Write metadata.json alone, with a line for each member. */
void metadata_file_write(int root, const char *text, size_t length);

/*
 * Write metadata.json, if there is a directory metadata, and open the tree at `path`, which
 * run_tree_close() closes. On failure nothing is left open.
 */
int run_tree_open(const char *path, struct run_tree *tree, struct run_failure *failure);
