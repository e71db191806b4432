/* Files of edits, for option --edits. */
#ifndef GGUFS_FS_EDIT_FILE_H
#define GGUFS_FS_EDIT_FILE_H

#include "gguf/edits.h"

/*
 * Adds the edits in the JSON file at `path`. Returns 0, or a negative errno with the reason in
 * `report`.
 */
int fs_edit_file_read(const char *path, struct gguf_edits *edits, struct gguf_report *report);

#endif
