/*
 * Writes a metadata value, as JSON text or as bytes of a GGUF file, in small steps. Writing can
 * continue at any time from a copy of the walk.
 */
#ifndef GGUFS_FS_VALUE_WALK_H
#define GGUFS_FS_VALUE_WALK_H

#include "fs/tree/sink.h"
#include "gguf/values.h"

#include <stdbool.h>
#include <stdint.h>

enum fs_value_form {
    FS_AS_JSON,
    FS_AS_GGUF, /* little-endian, 64-bit lengths, regardless of the source */
};

/* A partly written array. */
struct fs_array_walk {
    struct gguf_cursor cursor;
    uint64_t n_left; /* elements not yet written */
    enum gguf_value_type element_type;
    bool is_first; /* no element has been written */
};

struct fs_value_walk {
    enum fs_value_form form;
    unsigned depth;            /* number of nested arrays being written */
    bool in_string;            /* a string is being written */
    struct gguf_string string; /* the rest of that string */
    struct fs_array_walk level[GGUF_MAX_ARRAY_DEPTH];
};

/* Start to write a value, without its type and key. */
void fs_value_begin(struct fs_value_walk *walk, enum fs_value_form form,
                    const struct gguf_value *value, struct fs_sink *sink);

/*
 * Write some more, at most some tens of KiB. Returns true if there may be more to write, false once
 * the value is complete.
 */
bool fs_value_continue(struct fs_value_walk *walk, struct fs_sink *sink);

#endif
