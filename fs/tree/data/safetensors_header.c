#include "fs/tree/data/safetensors_header.h"

#include "fs/tree/output/json.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static void write_entry(struct fs_sink *sink, const struct fs_safetensor *entry, uint64_t *offset)
{
    uint64_t offsets[2];

    fs_sink_literal(sink, ",");
    fs_json_string(sink, entry->name);
    fs_sink_literal(sink, ":{\"dtype\":\"");
    fs_sink_literal(sink, entry->dtype);
    fs_sink_literal(sink, "\",\"shape\":");
    fs_json_integers(sink, entry->shape, entry->n_dims);
    fs_sink_literal(sink, ",\"data_offsets\":");
    offsets[0] = *offset;
    if (__builtin_add_overflow(*offset, entry->size_bytes, offset))
        fs_sink_fail(sink, -EOVERFLOW);
    offsets[1] = *offset;
    fs_json_integers(sink, offsets, 2);
    fs_sink_literal(sink, "}");
}

void fs_safetensors_write(fs_safetensors_list *list, const struct fs_tree *tree,
                          const void *subject, struct fs_sink *sink)
{
    struct fs_safetensor entry;
    uint64_t offset = 0;
    int result = 1;

    fs_sink_literal(sink, "{\"__metadata__\":{\"format\":\"pt\"}");
    for (uint64_t i = 0; sink->error == 0; i++) {
        result = list(tree, subject, i, &entry);
        if (result <= 0)
            break;
        if (entry.dtype)
            write_entry(sink, &entry, &offset);
    }
    if (result < 0)
        fs_sink_fail(sink, result);
    fs_sink_literal(sink, "}");
}

int fs_safetensors_add_header(struct fs_image *image, fs_text_writer *write,
                              const struct fs_tree *tree, const void *subject,
                              const struct fs_interrupt *interrupt)
{
    uint64_t text_bytes, n_bytes;
    char *text, *header;
    const int result = fs_text_make(write, tree, subject, interrupt, &text, &text_bytes);

    if (result < 0)
        return result;
    n_bytes = (text_bytes + 7) & ~(uint64_t)7;
    header =
        n_bytes <= FS_SAFETENSORS_MAX_HEADER_BYTES ? realloc(text, sizeof n_bytes + n_bytes) : NULL;
    if (!header) {
        free(text);
        return n_bytes <= FS_SAFETENSORS_MAX_HEADER_BYTES ? -ENOMEM : -EFBIG;
    }
    memmove(header + sizeof n_bytes, header, text_bytes);
    memcpy(header, &n_bytes, sizeof n_bytes);
    memset(header + sizeof n_bytes + text_bytes, ' ', n_bytes - text_bytes);
    return fs_image_add_made(image, header, sizeof n_bytes + n_bytes);
}
