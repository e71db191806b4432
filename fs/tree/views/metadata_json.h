/* Metadata as JSON. */
#ifndef GGUFS_FS_METADATA_JSON_H
#define GGUFS_FS_METADATA_JSON_H

#include "fs/tree/core/text.h"

/* metadata/<key>.json: the value. `subject` is the struct gguf_key. */
fs_text_writer fs_value_json_write;

/* metadata.json: all keys and values in file order, one key per line. */
fs_text_writer fs_metadata_json_write;

#endif
