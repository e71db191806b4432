#include "fs/tree/views/view_files.h"

#include "fs/tree/core/tree_core.h"
#include "fs/tree/output/json.h"
#include "fs/tree/output/value_writer.h"

void fs_value_json_write(const struct fs_tree *tree, const void *subject, struct fs_sink *sink)
{
    const struct gguf_key *key = subject;

    fs_json_value(sink, &key->value);
    fs_sink_literal(sink, "\n");
}

void fs_metadata_json_write(const struct fs_tree *tree, const void *subject, struct fs_sink *sink)
{
    const struct gguf_model *model = tree->model;

    fs_sink_literal(sink, "{\n");
    for (uint64_t i = 0; i < model->n_keys && sink->error == 0; i++) {
        fs_json_string(sink, model->keys[i].name);
        fs_sink_literal(sink, ": ");
        fs_json_value(sink, &model->keys[i].value);
        fs_sink_literal(sink, i + 1 < model->n_keys ? ",\n" : "\n");
    }
    fs_sink_literal(sink, "}\n");
}
