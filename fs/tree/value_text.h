/*
 * A metadata value as JSON text or as the bytes of a GGUF file, in pieces that can each be made
 * again at any time. Nothing of the text is kept, only where its pieces begin, so a value of any
 * size costs next to no memory.
 */
#ifndef GGUFS_FS_VALUE_TEXT_H
#define GGUFS_FS_VALUE_TEXT_H

#include "fs/tree/gguf_bytes.h"
#include "fs/tree/json.h"
#include "gguf/model.h"

/* The most text in a piece. */
#define FS_PIECE_BYTES (40u << 10)

enum fs_value_form {
    FS_AS_JSON,
    FS_AS_GGUF, /* little-endian, lengths of 64 bits, whatever the source has */
    FS_N_VALUE_FORMS
};

/* A place in a value from which its text can be written on. */
struct fs_value_walk {
    enum fs_value_form form;
    struct gguf_value next;    /* not yet begun, unless is_begun */
    struct gguf_string string; /* the rest of the string that is being written */
    bool is_begun;             /* `next`, the value itself, is at least partly written */
    bool in_string;
    unsigned depth; /* the arrays that are open */
    struct {
        struct gguf_cursor cursor;
        enum gguf_value_type element_type;
        bool is_first;
        uint64_t n_left; /* elements */
    } level[GGUF_MAX_ARRAY_DEPTH];
};

struct fs_value_piece {
    struct fs_value_walk start;
    size_t length; /* of its text, in bytes */
};

struct fs_value_text {
    struct fs_value_piece *pieces; /* in order */
    size_t n_pieces;
};

/*
 * Find the pieces of the text of a value, which takes a walk over all of it. *text must be freed
 * with fs_value_text_free(). Returns 0 or -ENOMEM.
 */
int fs_value_text_make(const struct gguf_value *value, enum fs_value_form form,
                       struct fs_value_text **text);

void fs_value_text_free(struct fs_value_text *text);

/* Write the text of a piece, which must find room for FS_PIECE_BYTES. Returns 0. */
int fs_value_piece_write(const struct fs_value_piece *piece, struct fs_text *text);

#endif
