#include "fs/tree/views/memory_lines.h"

#include "fs/tree/core/tree_core.h"
#include "fs/tree/output/json.h"
#include "gguf/models/key_lists.h"
#include "gguf/models/tensor_lists.h"
#include "gguf/models/tensor_names.h"
#include "gguf/support/arrays.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Tokens without -c in models that do not say their context; tokens that are computed at once. */
enum { DEFAULT_CONTEXT = 4096, BATCH = 512 };

/* The model, with the keys and tensors that decide. */
struct sized {
    const struct gguf_model *model;
    const struct gguf_tensor **by_name;
    struct gguf_shape_keys keys;
    struct gguf_shapes all;
    struct gguf_layer_shape *shapes;
    uint32_t n_used;       /* experts */
    uint64_t output_bytes; /* of the output's weights, also if the embeddings are used */
};

static void add(uint64_t *sum, uint64_t n)
{
    if (__builtin_add_overflow(*sum, n, sum))
        *sum = UINT64_MAX;
}

static uint64_t times(uint64_t a, uint64_t b)
{
    uint64_t product;

    return __builtin_mul_overflow(a, b, &product) ? UINT64_MAX : product;
}

static void read_key(void *user, const char *key, size_t layer, uint32_t most, uint32_t *value)
{
    const struct sized *sized = user;
    const struct gguf_value *found = fs_summary_find(sized->model, key);
    double number = 0;
    const enum gguf_key_rule rule = gguf_key_rule(sized->keys.architecture, key + 1, &number);

    if (rule == GGUF_KEY_UNUSED)
        return;
    if (found && rule != GGUF_KEY_FIXED) {
        const struct gguf_value one = gguf_value_of_layer(found, layer);

        if (!gguf_value_to_double(&one, &number))
            return;
    } else if (rule != GGUF_KEY_FIXED && rule != GGUF_KEY_HAS_DEFAULT) {
        return;
    }
    if (number >= 0 && number <= most)
        *value = (uint32_t)number;
}

static bool is_array(void *user, const char *key)
{
    const struct gguf_value *found = fs_summary_find(((const struct sized *)user)->model, key);

    return found && found->type == GGUF_ARRAY;
}

static const struct gguf_tensor *find_tensor(const struct sized *sized, const char *name)
{
    return gguf_find_gguf_tensor(sized->by_name, sized->model->n_tensors, gguf_string_of(name));
}

static bool find_size(void *user, const char *name, uint64_t *n_elements, uint64_t *row_elements)
{
    const struct gguf_tensor *tensor = find_tensor(user, name);

    if (!tensor)
        return false;
    *n_elements = tensor->n_elements;
    *row_elements = tensor->ne[0];
    return true;
}

/* Read the sizes of a model. Returns false if some are missing or memory runs out. */
static bool find_sizes(struct sized *sized)
{
    struct gguf_shape_keys *keys = &sized->keys;
    uint32_t n_nextn = 0, n_loops = 1;

    read_key(sized, ".block_count", SIZE_MAX, GGUF_MAX_LAYERS, &keys->n_shapes);
    read_key(sized, ".embedding_length", SIZE_MAX, INT32_MAX, &keys->n_embd);
    read_key(sized, ".context_length", SIZE_MAX, INT32_MAX, &keys->n_context);
    read_key(sized, ".expert_used_count", SIZE_MAX, UINT32_MAX, &sized->n_used);
    if (keys->n_shapes == 0 || keys->n_embd == 0)
        return false;
    read_key(sized, ".nextn_predict_layers", SIZE_MAX, keys->n_shapes - 1, &n_nextn);
    keys->n_stored = keys->n_shapes;
    keys->n_layer = keys->n_shapes - n_nextn;
    read_key(sized, ".num_loops", SIZE_MAX, GGUF_MAX_LAYERS / keys->n_layer, &n_loops);
    keys->n_layer *= n_loops > 0 ? n_loops : 1;
    keys->n_shapes = keys->n_layer + n_nextn;
    sized->shapes = calloc(keys->n_shapes, sizeof *sized->shapes);
    sized->by_name = gguf_tensors_by_gguf_name(sized->model);
    if (!sized->shapes || !sized->by_name)
        return false;
    return !gguf_layer_shapes_read(keys, sized->shapes, &sized->all);
}

/* ---- weights ---- */

static bool is_listed(const struct sized *sized, struct gguf_string name)
{
    char text[GGUF_LIST_NAME_BYTES];

    snprintf(text, sizeof text, "%.*s", (int)name.length_bytes, name.data);
    return name.length_bytes < sizeof text && gguf_lists_have(sized->keys.architecture, text);
}

static void add_weights(struct sized *sized, const struct gguf_tensor *tensor, bool is_tied,
                        struct fs_memory *memory)
{
    const struct gguf_string name = gguf_name_of(tensor);
    struct gguf_string digits, rest;
    const uint32_t layer =
        gguf_tensor_name_split(name, &digits, &rest) ? gguf_layer_number(digits) : UINT32_MAX;
    const uint32_t n_main = sized->keys.n_layer;
    const uint64_t n_bytes = tensor->type ? tensor->size_bytes : tensor->extent_bytes;
    const bool is_nextn = layer < UINT32_MAX && layer >= n_main && n_main <= sized->keys.n_stored;
    const enum gguf_role role = is_nextn ? GGUF_ROLE_OTHER : gguf_role_of(name);
    const bool is_both = is_tied && gguf_string_equals(name, "token_embd.weight");

    if (!is_nextn && is_listed(sized, name))
        add(&memory->token_bytes,
            gguf_token_bytes(name, is_tied, n_bytes, tensor->ne, tensor->n_dims, sized->n_used));
    add(&memory->role_bytes[role], n_bytes);
    add(&memory->weight_bytes, n_bytes);
    if (layer < memory->n_layers) {
        add(&memory->layers[layer].weight_bytes, n_bytes);
        if (role == GGUF_ROLE_EXPERTS)
            add(&memory->layers[layer].expert_bytes, n_bytes);
    }
    if (role == GGUF_ROLE_OUTPUT || is_both)
        add(&sized->output_bytes, n_bytes);
}

/* ---- caches ---- */

/* Return the bytes of a token's keys or values: elements in heads of `head`. */
static uint64_t row_bytes(const struct dequant_type *type, uint64_t width, uint64_t head)
{
    if (head % type->block_elements != 0)
        type = dequant_type_by_id(DEQUANT_F16);
    return times(width / type->block_elements, type->block_bytes);
}

/* Return the bytes of the keys and values of a token. */
static uint64_t token_bytes(const struct fs_memory *memory, const struct gguf_layer_memory *layer)
{
    uint64_t n_bytes = row_bytes(memory->cache_type, layer->width_k, layer->head_k);

    add(&n_bytes, row_bytes(memory->cache_type, layer->width_v, layer->head_v));
    return n_bytes;
}

/* Add what a layer keeps of the tokens. `kept` has the layers so far. */
static void add_cache(const struct sized *sized, uint32_t index, struct gguf_layer_memory *kept,
                      struct fs_memory *memory)
{
    const struct gguf_layer_shape *shape = &sized->shapes[index];
    const struct gguf_layer_memory own =
        gguf_layer_memory_of(&sized->keys, &sized->all, shape, index);
    /* Layers without keys and values of their own read another layer's. */
    const struct gguf_layer_memory *read = &kept[shape->shares_kv ? shape->kv_layer : index];
    struct fs_layer_memory *layer = &memory->layers[index];
    const uint64_t n = memory->n_context, index_bytes = times(own.indexer_width, sizeof(float));

    kept[index] = own;
    if (own.head_k % memory->cache_type->block_elements != 0 ||
        own.head_v % memory->cache_type->block_elements != 0)
        memory->has_narrow_heads = true;
    layer->cache_bytes = times(gguf_cache_rows(n, own.window, BATCH), token_bytes(memory, &own));
    add(&layer->cache_bytes, times(gguf_cache_rows(n, 0, 0), index_bytes));
    layer->state_bytes = times(own.n_state, sizeof(float));
    add(&memory->cache_bytes, layer->cache_bytes);
    add(&memory->state_bytes, layer->state_bytes);
    add(&memory->token_cache_bytes,
        times(read->window > 0 && read->window < n ? read->window : n, token_bytes(memory, read)));
    add(&memory->token_cache_bytes, times(n, index_bytes));
    add(&memory->token_cache_bytes, layer->state_bytes);
}

static void add_caches(const struct sized *sized, struct fs_memory *memory)
{
    struct gguf_layer_memory kept[GGUF_MAX_LAYERS];
    uint64_t rest = sized->output_bytes;

    for (uint32_t i = 0; i < sized->keys.n_layer; i++)
        add_cache(sized, i, kept, memory);
    for (uint32_t i = memory->n_layers; i-- > 0;) {
        struct fs_layer_memory *layer = &memory->layers[i];

        add(&rest, layer->weight_bytes);
        add(&rest, layer->cache_bytes);
        add(&rest, layer->state_bytes);
        layer->rest_bytes = rest;
    }
}

bool fs_memory_compute(const struct fs_tree *tree, const struct fs_cache_choice *choice,
                       struct fs_memory *memory)
{
    struct sized sized = {.model = tree->model,
                          .keys = {.read = read_key, .is_array = is_array, .find = find_size}};
    char architecture[64];
    bool is_known;

    *memory =
        (struct fs_memory){.cache_type = dequant_type_by_id(choice ? choice->type : DEQUANT_F16)};
    gguf_get_text(tree->model, "general.architecture", architecture, sizeof architecture);
    sized.keys.user = &sized;
    sized.keys.architecture = gguf_architecture_find(architecture);
    is_known = sized.keys.architecture && find_sizes(&sized);
    if (is_known) {
        const bool is_tied = !find_tensor(&sized, "output.weight");
        const uint32_t n_trained = sized.keys.n_context;

        memory->n_context = choice && choice->n_context ? choice->n_context
                            : n_trained                 ? n_trained
                                                        : DEFAULT_CONTEXT;
        memory->n_layers = sized.keys.n_shapes;
        memory->layers = calloc(memory->n_layers, sizeof *memory->layers);
        is_known = memory->layers;
        for (uint64_t i = 0; is_known && i < tree->model->n_tensors; i++)
            add_weights(&sized, &tree->model->tensors[i], is_tied, memory);
    }
    if (is_known)
        add_caches(&sized, memory);
    free((void *)sized.by_name);
    free(sized.shapes);
    return is_known;
}

/* ---- lines ---- */

static void write_part(const struct fs_summary *summary, const char *before, const char *member,
                       uint64_t n_bytes, const char *after)
{
    fs_summary_part(summary, before, member);
    fs_summary_bytes(summary, n_bytes, false);
    fs_summary_part(summary, after, NULL);
}

static void write_weights(const struct fs_summary *summary, const struct fs_memory *memory)
{
    static const struct {
        const char *name, *member;
    } roles[GGUF_N_ROLES] = {
        [GGUF_ROLE_ATTENTION] = {"attention", "attention_bytes"},
        [GGUF_ROLE_FEED_FORWARD] = {"feed-forward", "feed_forward_bytes"},
        [GGUF_ROLE_EXPERTS] = {"experts", "expert_bytes"},
        [GGUF_ROLE_EMBEDDINGS] = {"embeddings", "embedding_bytes"},
        [GGUF_ROLE_OUTPUT] = {"output", "output_bytes"},
        [GGUF_ROLE_OTHER] = {"other", "other_bytes"},
    };
    const char *before = "";

    fs_summary_label(summary, "weights", NULL);
    for (size_t i = 0; i < GGUF_N_ROLES; i++) {
        if (!summary->is_json && memory->role_bytes[i] == 0)
            continue;
        fs_summary_part(summary, before, NULL);
        fs_summary_part(summary, roles[i].name, NULL);
        write_part(summary, " ", roles[i].member, memory->role_bytes[i], "");
        before = ", ";
    }
    fs_summary_part(summary, "\n", NULL);
}

void fs_memory_write(const struct fs_summary *summary)
{
    struct fs_memory memory;

    if (fs_memory_compute(summary->tree, summary->cache, &memory)) {
        uint64_t all = memory.weight_bytes;

        add(&all, memory.cache_bytes);
        add(&all, memory.state_bytes);
        write_weights(summary, &memory);
        fs_summary_label(summary, "memory", "memory_bytes");
        fs_summary_bytes(summary, all, false);
        fs_summary_part(summary, " with ", "n_context");
        fs_sink_unsigned(summary->sink, memory.n_context);
        fs_summary_part(summary, " tokens: keys and values in ", "cache_type");
        fs_summary_text(summary, memory.cache_type->name);
        if (!summary->is_json && memory.has_narrow_heads)
            fs_summary_part(summary, " and F16", NULL);
        write_part(summary, " ", "cache_bytes", memory.cache_bytes, "");
        if (summary->is_json || memory.state_bytes > 0)
            write_part(summary, ", states ", "state_bytes", memory.state_bytes, "");
        if (!summary->is_json && memory.role_bytes[GGUF_ROLE_EXPERTS] > 0)
            write_part(summary, "; without experts ", NULL,
                       all - memory.role_bytes[GGUF_ROLE_EXPERTS], "");
        fs_summary_part(summary, "\n", NULL);
        fs_summary_label(summary, "a token reads", NULL);
        write_part(summary, "", "token_bytes", memory.token_bytes, " of weights");
        write_part(summary, ", at most ", "token_cache_bytes", memory.token_cache_bytes,
                   " of keys, values and states\n");
    }
    free(memory.layers);
}
