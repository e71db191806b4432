#include "fs/tree/text.h"

#include "gguf/support/grow.h"

#include <errno.h>
#include <stdlib.h>

/* Distance of marks: a read writes at most this much before its slice. */
#define MARK_BYTES (64u << 10)

struct mark {
    uint64_t position;
    struct fs_place place;
};

struct fs_text {
    fs_text_writer *write;
    const struct fs_tree *tree;
    const void *subject;
    uint64_t size_bytes;
    struct mark *marks; /* in order; none for the start */
    size_t n_marks;
    size_t room;
};

static int add_mark(struct fs_text *text, uint64_t position, const struct fs_place *place)
{
    struct mark *marks =
        gguf_grow(text->marks, &text->room, text->n_marks + 1, sizeof *text->marks);

    if (!marks)
        return -ENOMEM;
    text->marks = marks;
    marks[text->n_marks++] = (struct mark){position, *place};
    return 1;
}

static int find_marks(struct fs_text *text, const struct fs_interrupt *interrupt)
{
    struct fs_sink sink = fs_sink_that_counts(0);
    struct fs_place place = {0};
    uint64_t last_mark = 0;
    int result;

    do {
        result = text->write(text->tree, text->subject, &place, &sink);
        if (result > 0 && fs_is_interrupted(interrupt))
            result = -EINTR;
        if (result > 0 && sink.position - last_mark >= MARK_BYTES) {
            last_mark = sink.position;
            result = add_mark(text, last_mark, &place);
        }
    } while (result > 0);
    text->size_bytes = sink.position;
    return result;
}

static void give_back_room(struct fs_text *text)
{
    struct mark *marks = NULL;

    if (text->n_marks > 0)
        marks = reallocarray(text->marks, text->n_marks, sizeof *marks);
    if (marks) {
        text->marks = marks;
        text->room = text->n_marks;
    }
}

int fs_text_make(fs_text_writer *write, const struct fs_tree *tree, const void *subject,
                 const struct fs_interrupt *interrupt, struct fs_text **text)
{
    struct fs_text *made = calloc(1, sizeof *made);
    int result;

    *text = NULL;
    if (!made)
        return -ENOMEM;
    made->write = write;
    made->tree = tree;
    made->subject = subject;
    result = find_marks(made, interrupt);
    if (result < 0) {
        fs_text_free(made);
        return result;
    }
    give_back_room(made);
    *text = made;
    return 0;
}

void fs_text_free(struct fs_text *text)
{
    if (!text)
        return;
    free(text->marks);
    free(text);
}

uint64_t fs_text_size(const struct fs_text *text)
{
    return text->size_bytes;
}

size_t fs_text_memory(const struct fs_text *text)
{
    return sizeof *text + text->room * sizeof *text->marks;
}

/* Return the last mark at or before `offset`, or NULL for the start of the text. */
static const struct mark *mark_before(const struct fs_text *text, uint64_t offset)
{
    size_t low = 0, high = text->n_marks;

    while (low < high) {
        const size_t middle = low + (high - low) / 2;

        if (text->marks[middle].position <= offset)
            low = middle + 1;
        else
            high = middle;
    }
    return low > 0 ? &text->marks[low - 1] : NULL;
}

int fs_text_read(const struct fs_text *text, uint64_t offset, size_t length, char *out)
{
    const struct mark *mark = mark_before(text, offset);
    struct fs_place place = {0};
    struct fs_sink sink = {.from = offset, .to = offset + length, .out = out};
    int result = 1;

    if (mark) {
        place = mark->place;
        sink.position = mark->position;
    }
    while (result > 0 && sink.position < sink.to)
        result = text->write(text->tree, text->subject, &place, &sink);
    if (result < 0)
        return result;
    return sink.position < sink.to ? -EIO : 0;
}
