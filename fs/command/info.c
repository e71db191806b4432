#include "fs/command/commands.h"

#include "fs/command/many_models.h"
#include "fs/command/model_input.h"
#include "fs/command/terminal.h"
#include "fs/tree/output/escaped_text.h"
#include "fs/tree/output/json.h"
#include "fs/tree/views/memory_lines.h"
#include "fs/tree/views/view_files.h"
#include "gguf/models/tensor_names.h"
#include "gguf/support/safe_print.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

struct info {
    const struct fs_options *options;
    const struct fs_input *input;
    struct fs_tree *tree;
    const struct gguf_listed_model *stored; /* the model in its folder or store */
};

/* ---- layers ---- */

/* Types that a line has room for; the others have fewer bytes. There are less than MAX_TYPES. */
enum { TYPES_SHOWN = 6, MAX_TYPES = 256 };

struct layer {
    struct gguf_string number; /* as in the names; empty: tensors of no layer */
    struct fs_share types[MAX_TYPES];
    size_t n_types;
};

struct member {
    struct gguf_string layer; /* its number; empty: none */
    const struct gguf_tensor *tensor;
};

/* By number; tensors of no layer come last. */
static int compare_members(const void *a, const void *b)
{
    const struct gguf_string first = ((const struct member *)a)->layer;
    const struct gguf_string second = ((const struct member *)b)->layer;

    if (first.length_bytes == 0 || second.length_bytes == 0)
        return (first.length_bytes == 0) - (second.length_bytes == 0);
    if (first.length_bytes != second.length_bytes)
        return first.length_bytes < second.length_bytes ? -1 : 1;
    return gguf_string_compare(first, second);
}

static void write_layer(struct fs_sink *sink, const struct layer *layer,
                        const struct fs_layer_memory *memory)
{
    const struct gguf_string none = {"none", 4};
    const struct gguf_string name = layer->number.length_bytes > 0 ? layer->number : none;
    const struct fs_share all = fs_shares_sum(layer->types, layer->n_types);

    for (uint64_t n = name.length_bytes; n < 8; n++)
        fs_sink_literal(sink, " ");
    fs_sink_write(sink, name.data, name.length_bytes);
    fs_sink_print(sink, " %8" PRIu64 " %15" PRIu64 " %15" PRIu64, all.n_tensors, all.n_elements,
                  all.n_bytes);
    if (all.n_elements > 0)
        fs_sink_print(sink, "  %15.2f ", 8 * (double)all.n_bytes / (double)all.n_elements);
    else
        fs_sink_print(sink, "  %15s ", "-");
    if (memory)
        fs_sink_print(sink, "%15" PRIu64 "  %15" PRIu64 "  ",
                      memory->cache_bytes + memory->state_bytes, memory->rest_bytes);
    for (size_t i = 0; i < layer->n_types && i < TYPES_SHOWN; i++)
        fs_sink_print(sink, " %s", layer->types[i].type ? layer->types[i].type->name : "unknown");
    fs_sink_literal(sink, layer->n_types > TYPES_SHOWN ? " ...\n" : "\n");
}

static void write_layer_json(struct fs_sink *sink, const struct layer *layer,
                             const struct fs_layer_memory *memory)
{
    const struct fs_share all = fs_shares_sum(layer->types, layer->n_types);

    fs_sink_literal(sink, "{");
    fs_json_member(sink, "layer", true);
    if (layer->number.length_bytes > 0)
        fs_json_digits(sink, layer->number);
    else
        fs_json_text(sink, NULL);
    fs_json_count(sink, "n_tensors", all.n_tensors);
    fs_json_count(sink, "n_elements", all.n_elements);
    fs_json_count(sink, "n_bytes", all.n_bytes);
    if (memory) {
        fs_json_count(sink, "expert_bytes", memory->expert_bytes);
        fs_json_count(sink, "cache_bytes", memory->cache_bytes);
        fs_json_count(sink, "state_bytes", memory->state_bytes);
        fs_json_count(sink, "rest_bytes", memory->rest_bytes);
    }
    fs_json_member(sink, "types", false);
    for (size_t i = 0; i < layer->n_types; i++) {
        fs_sink_literal(sink, i > 0 ? "," : "[");
        fs_json_text(sink, layer->types[i].type ? layer->types[i].type->name : NULL);
    }
    fs_sink_literal(sink, "]}");
}

/*
 * Write a line or an object for each layer: tensors, elements, bytes, bits per weight, and the
 * types, the one with most bytes first. Tensors outside of layers follow as one.
 */
static void write_layers(struct fs_sink *sink, const struct info *info, bool is_json)
{
    const struct gguf_model *model = info->tree->model;
    struct fs_memory memory;
    const bool has_memory = fs_memory_compute(info->tree, &info->options->cache, &memory);
    const struct fs_layer_memory none = {0};
    struct member *members = calloc(model->n_tensors + 1, sizeof *members);
    struct layer layer = {0};

    if (!is_json)
        fs_sink_print(sink, "\n%8s %8s %15s %15s  %15s  %s%s\n", "layer", "tensors", "elements",
                      "bytes", "bits per weight",
                      has_memory ? "          cache     from here on  " : "", "types");
    if (!members) {
        free(memory.layers);
        fs_sink_fail(sink, -ENOMEM);
        return;
    }
    for (uint64_t i = 0; i < model->n_tensors; i++) {
        struct gguf_string rest;

        members[i].tensor = &model->tensors[i];
        if (!gguf_tensor_name_split(gguf_name_of(&model->tensors[i]), &members[i].layer, &rest))
            members[i].layer = (struct gguf_string){0};
    }
    qsort(members, model->n_tensors, sizeof *members, compare_members);
    for (uint64_t i = 0; i < model->n_tensors; i++) {
        uint32_t index;
        const bool is_last =
            i + 1 == model->n_tensors || compare_members(&members[i], &members[i + 1]) != 0;

        layer.number = members[i].layer;
        assert(layer.n_types < MAX_TYPES);
        fs_shares_add(layer.types, &layer.n_types, members[i].tensor);
        if (!is_last)
            continue;
        fs_shares_sort(layer.types, layer.n_types);
        index = gguf_layer_number(layer.number);
        (is_json ? write_layer_json : write_layer)(sink, &layer,
                                                   !has_memory               ? NULL
                                                   : index < memory.n_layers ? &memory.layers[index]
                                                                             : &none);
        fs_sink_literal(sink, is_json && i + 1 < model->n_tensors ? "," : "");
        layer = (struct layer){0};
    }
    free(members);
    free(memory.layers);
}

/* ---- the command ---- */

static void write_text(const void *subject, struct fs_sink *sink)
{
    const struct info *info = subject;
    const struct gguf_listed_model *stored = info->stored;

    fs_summary_print(info->tree, &info->options->cache, false, sink);
    if (info->input->store_name) {
        fs_sink_literal(sink, "store           ");
        fs_escaped_write(sink, info->input->store_name, strlen(info->input->store_name), false);
        fs_sink_literal(sink, "\n");
    }
    for (size_t i = 0; i < stored->n_extras; i++) {
        fs_sink_print(sink, "%-15s ", stored->extras[i].name);
        fs_escaped_write(sink, stored->extras[i].path, strlen(stored->extras[i].path), false);
        fs_sink_literal(sink, "\n");
    }
    if (info->options->layers)
        write_layers(sink, info, false);
}

static void write_json(const void *subject, struct fs_sink *sink)
{
    const struct info *info = subject;
    const struct gguf_listed_model *stored = info->stored;

    fs_json_begin(sink, "file", info->input->path);
    fs_summary_print(info->tree, &info->options->cache, true, sink);
    if (info->input->store_name)
        fs_json_text_member(sink, "store", info->input->store_name);
    for (size_t i = 0; i < stored->n_extras; i++) {
        fs_sink_literal(sink, i == 0 ? ",\"stored_with\":{" : "");
        fs_json_member(sink, stored->extras[i].name, i == 0);
        fs_json_text(sink, stored->extras[i].path);
        fs_sink_literal(sink, i + 1 == stored->n_extras ? "}" : "");
    }
    if (info->options->layers) {
        fs_json_member(sink, "layers", false);
        fs_sink_literal(sink, "[");
        write_layers(sink, info, true);
        fs_sink_literal(sink, "]");
    }
    fs_sink_literal(sink, "}\n");
}

static int print_info(const struct fs_options *options, struct fs_input *input)
{
    static bool is_first = true;
    struct info info = {.options = options,
                        .input = input,
                        .stored = input->store_name ? &input->stored : &input->listed};
    int status = fs_make_tree(options, input, &info.tree);

    if (status != EX_OK)
        return status;
    if (options->n_models > 1 && !options->json) {
        printf("%sfile            ", is_first ? "" : "\n");
        is_first = false;
        gguf_print_safe_string(stdout, input->path);
        putchar('\n');
    }
    if (fs_print_written(options->json ? write_json : write_text, &info) < 0)
        status = fs_refuse_memory();
    fs_close_tree(info.tree);
    return status;
}

int fs_info(const struct fs_options *options)
{
    int status;

    if (fs_print_many(options, &status))
        return status;
    return fs_run_for_models(options, print_info);
}
