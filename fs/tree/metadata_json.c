#include "fs/tree/metadata_json.h"

#include "fs/tree/json.h"
#include "fs/tree/tree.h"

/* Write a piece of a key's value. Returns true if there may be more. */
static bool write_value(const struct gguf_key *key, struct fs_place *place, struct fs_sink *sink)
{
    if (place->in_value)
        return fs_value_continue(&place->value, sink);
    fs_value_begin(&place->value, FS_AS_JSON, &key->value, sink);
    place->in_value = true;
    return true;
}

int fs_value_json_write(const struct fs_tree *tree, const void *subject, struct fs_place *place,
                        struct fs_sink *sink)
{
    (void)tree;
    if (write_value(subject, place, sink))
        return 1;
    fs_sink_literal(sink, "\n");
    return 0;
}

int fs_metadata_json_write(const struct fs_tree *tree, const void *subject, struct fs_place *place,
                           struct fs_sink *sink)
{
    const struct gguf_model *model = tree->model;
    const struct gguf_key *key;

    (void)subject;
    if (place->item == 0 && !place->in_value)
        fs_sink_literal(sink, "{\n");
    if (place->item == model->n_keys) {
        fs_sink_literal(sink, "}\n");
        return 0;
    }
    key = &model->keys[place->item];
    if (!place->in_value) {
        fs_json_string(sink, key->name);
        fs_sink_literal(sink, ": ");
    }
    if (write_value(key, place, sink))
        return 1;
    place->in_value = false;
    fs_sink_literal(sink, ++place->item < model->n_keys ? ",\n" : "\n");
    return 1;
}
