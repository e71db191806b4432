#include "fs/tree/value_text.h"

#include <errno.h>
#include <stdlib.h>

/* A step is taken while a piece is shorter than this, so that it ends below FS_PIECE_BYTES. */
#define FULL_BYTES  (32u << 10)
#define STRING_PART 1024u

_Static_assert(FULL_BYTES + FS_JSON_STRING_BYTES(STRING_PART) + 1 <= FS_PIECE_BYTES,
               "a piece holds its last step");

static bool is_at_end(const struct fs_value_walk *walk)
{
    return walk->is_begun && !walk->in_string && walk->depth == 0;
}

/* What stands around and between values in JSON only. */
static void write_mark(const struct fs_value_walk *walk, const char *mark, struct fs_text *text)
{
    if (walk->form == FS_AS_JSON)
        fs_json_literal(text, mark);
}

/* What stands before a string or an array in GGUF only. */
static void write_head(const struct fs_value_walk *walk, const struct gguf_value *value,
                       struct fs_text *text)
{
    if (walk->form != FS_AS_GGUF)
        return;
    if (value->type == GGUF_ARRAY) {
        fs_gguf_number(text, value->array.element_type, sizeof(uint32_t));
        fs_gguf_number(text, value->array.n_elements, sizeof(uint64_t));
    } else {
        fs_gguf_number(text, value->string.length_bytes, sizeof(uint64_t));
    }
}

static void begin_value(struct fs_value_walk *walk, const struct gguf_value *value,
                        struct fs_text *text)
{
    switch (value->type) {
    case GGUF_STRING:
        write_mark(walk, "\"", text);
        write_head(walk, value, text);
        walk->string = value->string;
        walk->in_string = true;
        break;
    case GGUF_ARRAY:
        write_mark(walk, "[", text);
        write_head(walk, value, text);
        walk->level[walk->depth].cursor = gguf_array_begin(&value->array);
        walk->level[walk->depth].element_type = value->array.element_type;
        walk->level[walk->depth].is_first = true;
        walk->level[walk->depth].n_left = value->array.n_elements;
        walk->depth++;
        break;
    default:
        if (walk->form == FS_AS_JSON)
            fs_json_scalar(text, value);
        else
            fs_gguf_scalar(text, value);
    }
}

/* Returns how many bytes of the part were written. */
static size_t write_part(const struct fs_value_walk *walk, struct gguf_string part,
                         struct fs_text *text)
{
    if (walk->form == FS_AS_JSON)
        return fs_json_string_part(text, part, part.length_bytes == walk->string.length_bytes);
    fs_gguf_bytes(text, part.data, part.length_bytes);
    return part.length_bytes;
}

static void go_on_in_string(struct fs_value_walk *walk, struct fs_text *text)
{
    struct gguf_string part = walk->string;
    size_t done;

    if (part.length_bytes > STRING_PART)
        part.length_bytes = STRING_PART;
    done = write_part(walk, part, text);
    walk->string.data += done;
    walk->string.length_bytes -= done;
    if (walk->string.length_bytes == 0) {
        write_mark(walk, "\"", text);
        walk->in_string = false;
    }
}

static void go_on_in_array(struct fs_value_walk *walk, struct fs_text *text)
{
    unsigned top = walk->depth - 1;
    struct gguf_value element;

    if (walk->level[top].n_left == 0) {
        write_mark(walk, "]", text);
        walk->depth--;
        return;
    }
    gguf_array_next(&walk->level[top].cursor, walk->level[top].element_type, &element);
    if (!walk->level[top].is_first)
        write_mark(walk, ",", text);
    walk->level[top].is_first = false;
    walk->level[top].n_left--;
    begin_value(walk, &element, text);
}

/* Goes on by a step, which writes at least one byte in JSON. */
static void step(struct fs_value_walk *walk, struct fs_text *text)
{
    if (walk->in_string) {
        go_on_in_string(walk, text);
    } else if (walk->depth > 0) {
        go_on_in_array(walk, text);
    } else {
        walk->is_begun = true;
        begin_value(walk, &walk->next, text);
    }
}

static void walk_piece(struct fs_value_walk *walk, struct fs_text *text)
{
    while (!is_at_end(walk) && text->length < FULL_BYTES)
        step(walk, text);
}

static int add_piece(struct fs_value_text *text, struct fs_value_piece piece)
{
    /* Room grows when the number is a power of two. */
    if ((text->n_pieces & (text->n_pieces - 1)) == 0) {
        const size_t room = text->n_pieces ? 2 * text->n_pieces : 1;
        struct fs_value_piece *pieces = realloc(text->pieces, room * sizeof *pieces);

        if (!pieces)
            return -ENOMEM;
        text->pieces = pieces;
    }
    text->pieces[text->n_pieces++] = piece;
    return 0;
}

int fs_value_text_make(const struct gguf_value *value, enum fs_value_form form,
                       struct fs_value_text **text)
{
    struct fs_value_text *made = calloc(1, sizeof *made);
    struct fs_text scratch = {.data = malloc(FS_PIECE_BYTES), .capacity = FS_PIECE_BYTES};
    struct fs_value_walk walk = {.form = form, .next = *value};
    int result = made && scratch.data ? 0 : -ENOMEM;

    while (result == 0 && !is_at_end(&walk)) {
        struct fs_value_piece piece = {.start = walk};

        scratch.length = 0;
        walk_piece(&walk, &scratch);
        piece.length = scratch.length;
        result = add_piece(made, piece);
    }
    free(scratch.data);
    if (result < 0) {
        fs_value_text_free(made);
        made = NULL;
    }
    *text = made;
    return result;
}

void fs_value_text_free(struct fs_value_text *text)
{
    if (!text)
        return;
    free(text->pieces);
    free(text);
}

int fs_value_piece_write(const struct fs_value_piece *piece, struct fs_text *text)
{
    struct fs_value_walk walk = piece->start;
    const size_t start = text->length;
    struct fs_text rest = {text->data + start, 0, text->capacity - start};

    walk_piece(&walk, &rest);
    text->length += rest.length;
    return 0;
}
