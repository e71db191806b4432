#include "fs/tree/core/text.h"

#include <stdlib.h>

/* Write a text. Returns 0 or the first error of the sink. */
static int run(struct fs_sink *sink, fs_text_writer *write, const struct fs_tree *tree,
               const void *subject, const struct fs_interrupt *interrupt)
{
    if (interrupt) {
        sink->is_stopped = interrupt->check;
        sink->user = interrupt->user;
    }
    write(tree, subject, sink);
    return sink->error;
}

int fs_text_make(fs_text_writer *write, const struct fs_tree *tree, const void *subject,
                 const struct fs_interrupt *interrupt, char **text, uint64_t *size_bytes)
{
    struct fs_sink sink = fs_sink_that_grows(FS_MAX_TEXT_BYTES);
    const int result = run(&sink, write, tree, subject, interrupt);
    char *trimmed = NULL;

    *text = NULL;
    *size_bytes = sink.position;
    if (result < 0) {
        free(sink.out);
        return result;
    }
    if (sink.position > 0)
        trimmed = realloc(sink.out, sink.position);
    *text = trimmed ? trimmed : sink.out;
    return 0;
}

int fs_text_size(fs_text_writer *write, const struct fs_tree *tree, const void *subject,
                 const struct fs_interrupt *interrupt, uint64_t *size_bytes)
{
    struct fs_sink sink = fs_sink_that_counts();
    const int result = run(&sink, write, tree, subject, interrupt);

    *size_bytes = sink.position;
    return result;
}

int fs_image_add_text(struct fs_image *image, fs_text_writer *write, const struct fs_tree *tree,
                      const void *subject, const struct fs_interrupt *interrupt)
{
    char *text;
    uint64_t size_bytes;
    const int result = fs_text_make(write, tree, subject, interrupt, &text, &size_bytes);

    return result < 0 ? result : fs_image_add_made(image, text, size_bytes);
}
