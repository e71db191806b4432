/* Metadata as JSON. */
#ifndef GGUFS_FS_METADATA_JSON_H
#define GGUFS_FS_METADATA_JSON_H

#include "fs/tree/text.h"

/* metadata/<key>.json: the value. `subject` is the struct gguf_key. */
int fs_value_json_write(const struct fs_tree *tree, const void *subject, struct fs_place *place,
                        struct fs_sink *sink);

/* metadata.json: all keys and values in file order, one key per line. */
int fs_metadata_json_write(const struct fs_tree *tree, const void *subject, struct fs_place *place,
                           struct fs_sink *sink);

#endif
