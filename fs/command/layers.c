#include "fs/command/layers.h"

#include "fs/tree/views/placeholders.h"
#include "gguf/models/tensor_names.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Types that a line has room for; the others have fewer bytes. */
enum { TYPES_SHOWN = 6, MAX_TYPES = 16 };

struct layer {
    struct gguf_string number; /* as in the names; empty: tensors of no layer */
    uint64_t n_tensors, n_elements, n_bytes;
    struct type {
        const struct dequant_type *type; /* NULL: unknown */
        uint64_t n_bytes;
    } types[MAX_TYPES];
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

static int compare_types(const void *a, const void *b)
{
    const struct type *first = a, *second = b;

    return (first->n_bytes < second->n_bytes) - (first->n_bytes > second->n_bytes);
}

static void add_tensor(struct layer *layer, const struct gguf_tensor *tensor)
{
    const uint64_t n_bytes = tensor->type ? tensor->size_bytes : tensor->extent_bytes;
    size_t i = 0;

    layer->n_tensors++;
    layer->n_elements += tensor->n_elements;
    layer->n_bytes += n_bytes;
    while (i < layer->n_types && layer->types[i].type != tensor->type)
        i++;
    if (i == MAX_TYPES)
        return;
    if (i == layer->n_types)
        layer->types[layer->n_types++].type = tensor->type;
    layer->types[i].n_bytes += n_bytes;
}

static void print_layer(struct layer *layer)
{
    const bool is_layer = layer->number.length_bytes > 0;

    qsort(layer->types, layer->n_types, sizeof *layer->types, compare_types);
    printf("%8.*s %8" PRIu64 " %15" PRIu64 " %15" PRIu64,
           is_layer ? (int)layer->number.length_bytes : 4, is_layer ? layer->number.data : "none",
           layer->n_tensors, layer->n_elements, layer->n_bytes);
    if (layer->n_elements > 0)
        printf("  %15.2f ", 8 * (double)layer->n_bytes / (double)layer->n_elements);
    else
        printf("  %15s ", "-");
    for (size_t i = 0; i < layer->n_types && i < TYPES_SHOWN; i++)
        printf(" %s", layer->types[i].type ? layer->types[i].type->name : "unknown");
    puts(layer->n_types > TYPES_SHOWN ? " ..." : "");
}

int fs_print_layers(const struct gguf_model *model)
{
    struct member *members = calloc(model->n_tensors + 1, sizeof *members);
    struct layer layer = {0};

    if (!members)
        return -ENOMEM;
    for (uint64_t i = 0; i < model->n_tensors; i++) {
        struct gguf_string rest;

        members[i].tensor = &model->tensors[i];
        if (!gguf_tensor_name_split(gguf_name_of(&model->tensors[i]), &members[i].layer, &rest))
            members[i].layer = (struct gguf_string){0};
    }
    qsort(members, model->n_tensors, sizeof *members, compare_members);
    printf("%8s %8s %15s %15s  %15s  %s\n", "layer", "tensors", "elements", "bytes",
           "bits per weight", "types");
    for (uint64_t i = 0; i < model->n_tensors; i++) {
        if (i > 0 && compare_members(&members[i - 1], &members[i]) != 0) {
            print_layer(&layer);
            layer = (struct layer){0};
        }
        layer.number = members[i].layer;
        add_tensor(&layer, members[i].tensor);
    }
    if (model->n_tensors > 0)
        print_layer(&layer);
    free(members);
    return 0;
}
