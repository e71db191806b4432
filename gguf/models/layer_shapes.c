#include "gguf/models/layer_shapes.h"

#include "gguf/support/limits.h"

static void read_one(const struct gguf_shape_keys *keys, const char *key, uint32_t most,
                     uint32_t *value)
{
    keys->read(keys->user, key, SIZE_MAX, most, value);
}

static const char *read_heads(const struct gguf_shape_keys *keys, struct gguf_layer_shape *layers,
                              struct gguf_shapes *all)
{
    for (uint32_t i = 0; i < keys->n_shapes; i++) {
        struct gguf_layer_shape *layer = &layers[i];
        const uint32_t stored = i % keys->n_stored;

        keys->read(keys->user, ".attention.head_count", stored, GGUF_MAX_HEADS, &layer->n_head);
        layer->n_head_kv = layer->n_head;
        keys->read(keys->user, ".attention.head_count_kv", stored, GGUF_MAX_HEADS,
                   &layer->n_head_kv);
        if (layer->n_head == 0 || layer->n_head_kv == 0)
            layer->n_head = layer->n_head_kv = 0;
        else if (layer->n_head % layer->n_head_kv != 0)
            return "attention.head_count is not a multiple of attention.head_count_kv";
        if (all->n_head == 0 && i < keys->n_layer) /* hybrids begin with layers without heads */
            all->n_head = layer->n_head;
    }
    return NULL;
}

static void read_windows(const struct gguf_shape_keys *keys, struct gguf_layer_shape *layers,
                         struct gguf_shapes *all)
{
    static const char pattern[] = ".attention.sliding_window_pattern";
    const bool has_pattern = keys->is_array(keys->user, pattern);
    uint32_t period = keys->architecture->window.period;

    read_one(keys, ".attention.sliding_window", INT32_MAX, &all->window);
    if (all->window == 0)
        return;
    if (!has_pattern)
        read_one(keys, pattern, GGUF_MAX_LAYERS, &period);
    for (uint32_t i = 0; i < keys->n_shapes; i++) {
        const uint32_t stored = i % keys->n_stored;
        uint32_t is_windowed = gguf_is_windowed(keys->architecture, stored, period);

        if (has_pattern)
            keys->read(keys->user, pattern, stored, 1, &is_windowed);
        layers[i].is_windowed = is_windowed;
    }
}

/* Widths may differ in layers with a window. */
static const char *read_widths(const struct gguf_shape_keys *keys, struct gguf_layer_shape *layers,
                               struct gguf_shapes *all)
{
    uint32_t dim_k, dim_v;

    if (all->n_head > 0) {
        all->dim_k = all->dim_v = keys->n_embd / all->n_head;
        read_one(keys, ".attention.key_length", GGUF_MAX_HEAD_WIDTH, &all->dim_k);
        read_one(keys, ".attention.value_length", GGUF_MAX_HEAD_WIDTH, &all->dim_v);
    }
    dim_k = all->dim_k;
    dim_v = all->dim_v;
    read_one(keys, ".attention.key_length_swa", GGUF_MAX_HEAD_WIDTH, &dim_k);
    read_one(keys, ".attention.value_length_swa", GGUF_MAX_HEAD_WIDTH, &dim_v);
    if (all->n_head > 0 && (dim_k == 0 || dim_v == 0))
        return "attention.key_length or attention.value_length is 0, a head without width";
    for (uint32_t i = 0; i < keys->n_shapes; i++) {
        layers[i].dim_k = layers[i].is_windowed ? dim_k : all->dim_k;
        layers[i].dim_v = layers[i].is_windowed ? dim_v : all->dim_v;
    }
    return NULL;
}

/* Make layers without keys and values use the last layer of the same kind that has them. */
static const char *share_kv(const struct gguf_shape_keys *keys, struct gguf_layer_shape *layers)
{
    const uint32_t n_layer = keys->n_layer, own = keys->architecture->n_layer_kv_from_start;
    uint32_t n = own > 0 && own < n_layer ? n_layer - own : 0;

    read_one(keys, ".attention.shared_kv_layers", n_layer - 1, &n);
    for (uint32_t i = n_layer - n; i < n_layer; i++) {
        uint32_t from = n_layer - n;

        while (from > 0 && (layers[from - 1].is_windowed != layers[i].is_windowed ||
                            layers[from - 1].n_head_kv != layers[i].n_head_kv))
            from--;
        if (from == 0)
            return "attention.shared_kv_layers: no earlier layer of the same kind";
        layers[i].shares_kv = true;
        layers[i].kv_layer = from - 1;
    }
    return NULL;
}

/*
 * By default, each layer has an indexer. GLM 5.2 has the longest context of its architecture and
 * an indexer in layers 0, 1, 2, 6, 10, …, as in llama.cpp's src/models/glm-dsa.cpp.
 */
static void read_indexers(const struct gguf_shape_keys *keys, struct gguf_layer_shape *layers)
{
    const uint32_t longest = keys->architecture->full_indexer_context;

    for (uint32_t i = 0; i < keys->n_shapes; i++) {
        uint32_t has_indexer = longest == 0 || keys->n_context <= longest || i < 2 || i % 4 == 2;

        keys->read(keys->user, ".attention.indexer.types", i, 1, &has_indexer);
        layers[i].has_indexer = has_indexer;
    }
}

const char *gguf_layer_shapes_read(const struct gguf_shape_keys *keys,
                                   struct gguf_layer_shape *layers, struct gguf_shapes *all)
{
    const char *refusal;

    *all = (struct gguf_shapes){0};
    refusal = read_heads(keys, layers, all);
    read_windows(keys, layers, all);
    if (!refusal)
        refusal = read_widths(keys, layers, all);
    if (!refusal)
        refusal = share_kv(keys, layers);
    read_indexers(keys, layers);
    return refusal;
}
