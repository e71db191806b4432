/*
 * A metadata value as JSON text or in the bytes of a GGUF file, written in small steps that can be
 * taken up again from a copy of the walk at any time.
 */
#ifndef GGUFS_FS_VALUE_WALK_H
#define GGUFS_FS_VALUE_WALK_H

#include "fs/tree/sink.h"
#include "gguf/values.h"

#include <stdbool.h>
#include <stdint.h>

enum fs_value_form {
    FS_AS_JSON,
    FS_AS_GGUF, /* little-endian, lengths of 64 bits, whatever the source has */
};

/* An array of which some elements are written. */
struct fs_array_walk {
    struct gguf_cursor cursor;
    uint64_t n_left; /* elements */
    enum gguf_value_type element_type;
    bool is_first; /* no element is written yet */
};

struct fs_value_walk {
    enum fs_value_form form;
    unsigned depth;            /* of the arrays that are being written */
    bool in_string;            /* a string is being written */
    struct gguf_string string; /* the rest of it */
    struct fs_array_walk level[GGUF_MAX_ARRAY_DEPTH];
};

/* Start to write a value, without its type and key. */
void fs_value_begin(struct fs_value_walk *walk, enum fs_value_form form,
                    const struct gguf_value *value, struct fs_sink *sink);

/*
 * Write some more, up to some tens of KiB. Returns true if there may be more to write, false if the
 * value was complete already.
 */
bool fs_value_continue(struct fs_value_walk *walk, struct fs_sink *sink);

#endif
