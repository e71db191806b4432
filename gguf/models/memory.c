#include "gguf/models/memory.h"

#include "gguf/models/tensor_names.h"

#include <stdio.h>

enum gguf_role gguf_role_of(struct gguf_string name)
{
    static const struct {
        bool is_in_layer;
        const char *part; /* of the name */
        enum gguf_role role;
    } parts[] = {
        {true, "ffn_norm", GGUF_ROLE_FEED_FORWARD}, /* also the norm of experts */
        {true, "exps", GGUF_ROLE_EXPERTS},          {true, "ffn_", GGUF_ROLE_FEED_FORWARD},
        {true, "ffw_", GGUF_ROLE_FEED_FORWARD},     {true, "channel_mix_", GGUF_ROLE_FEED_FORWARD},
        {true, "attn_", GGUF_ROLE_ATTENTION},       {true, "attention_", GGUF_ROLE_ATTENTION},
        {true, "ssm_", GGUF_ROLE_ATTENTION},        {true, "time_mix_", GGUF_ROLE_ATTENTION},
        {true, "shortconv.", GGUF_ROLE_ATTENTION},  {true, "indexer.", GGUF_ROLE_ATTENTION},
        {false, "_embd.", GGUF_ROLE_EMBEDDINGS},    {false, "token_types.", GGUF_ROLE_EMBEDDINGS},
        {false, "output", GGUF_ROLE_OUTPUT},
    };
    struct gguf_string layer, rest;
    const bool is_in_layer = gguf_tensor_name_split(name, &layer, &rest);

    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (parts[i].is_in_layer == is_in_layer && gguf_string_contains(name, parts[i].part))
            return parts[i].role;
    return GGUF_ROLE_OTHER;
}

uint64_t gguf_token_bytes(struct gguf_string name, bool is_tied, uint64_t n_bytes,
                          const uint64_t ne[], uint32_t n_dims, uint32_t n_used)
{
    const enum gguf_role role = gguf_role_of(name);
    uint64_t n = 1;

    for (uint32_t i = 0; i < n_dims; i++)
        n = ne[i] > 1 ? ne[i] : n;
    if (role == GGUF_ROLE_EMBEDDINGS)
        return is_tied && gguf_string_equals(name, "token_embd.weight") ? n_bytes : n_bytes / n;
    return role == GGUF_ROLE_EXPERTS && n > n_used ? n_bytes / n * n_used : n_bytes;
}

/* A layer, and what it takes to look at its tensors and keys. */
struct layer {
    const struct gguf_shape_keys *keys;
    const struct gguf_layer_shape *shape;
    uint32_t index; /* in the file */
};

/* The elements of a tensor, its rows, and the elements of a row; all 0 without a tensor. */
struct size {
    uint64_t n, rows, row;
};

static struct size size_of(const struct layer *layer, const char *name)
{
    struct size size = {0};
    char full[64];

    snprintf(full, sizeof full, "blk.%u.%s", layer->index, name);
    if (!layer->keys->find(layer->keys->user, full, &size.n, &size.row) || size.row == 0)
        return (struct size){0};
    size.rows = size.n / size.row;
    return size;
}

static uint64_t n_elements(const struct layer *layer, const char *name)
{
    return size_of(layer, name).n;
}

static uint32_t number(const struct layer *layer, const char *key)
{
    uint32_t value = 0;

    layer->keys->read(layer->keys->user, key, SIZE_MAX, UINT32_MAX, &value);
    return value;
}

/* Return a · b / c if it is a whole number, else 0. */
static uint64_t ratio(uint64_t a, uint64_t b, uint64_t c)
{
    uint64_t product;

    return c > 0 && !__builtin_mul_overflow(a, b, &product) && product % c == 0 ? product / c : 0;
}

/* The states of each kind, as in the runner's mix_*.c; 0 for layers without recurrence. */
static uint64_t state_of(const struct layer *layer)
{
    const uint64_t n_embd = layer->keys->n_embd, n_a = n_elements(layer, "ssm_a");
    const uint64_t n_norm = n_elements(layer, "ssm_norm.weight");
    const uint64_t n_inner = n_elements(layer, "ssm_out.weight") / n_embd;
    const uint64_t n_channels = size_of(layer, "ssm_conv1d.weight").rows;
    const uint64_t groups = number(layer, ".ssm.group_count");
    const uint32_t version = number(layer, ".architecture_version");

    if (version > 0) { /* RWKV, with the last inputs of its one or two mixes */
        const uint64_t n_mixes = 1 + (n_elements(layer, "channel_mix_key.weight") > 0);

        return n_embd * (n_mixes + (version == 4 ? 3 : number(layer, ".wkv.head_size")));
    }
    if (n_elements(layer, "ssm_f_a.weight") > 0) /* Kimi's delta attention */
        return ratio(n_a * n_norm, n_norm, 1);
    if (n_elements(layer, "ssm_ba.weight") + n_elements(layer, "ssm_alpha.weight") > 0)
        return n_channels > n_a * n_norm
                   ? ratio(n_a * n_norm, n_channels - n_a * n_norm, 2 * groups)
                   : 0;
    if (n_elements(layer, "ssm_x.weight") > 0) { /* Mamba, and PLaMo 2, which has heads */
        const uint64_t n_heads = n_elements(layer, "ssm_d");
        const uint64_t n_rank = n_heads ? n_elements(layer, "ssm_dt.weight") / n_heads : 0;

        return n_heads == n_inner ? n_a
                                  : ratio(n_inner, size_of(layer, "ssm_x.weight").rows - n_rank, 2);
    }
    return n_channels > n_inner ? ratio(n_inner, n_channels - n_inner, 2 * groups) : 0;
}

static void add_latent(const struct layer *layer, struct gguf_layer_memory *memory)
{
    const uint64_t n_head = layer->shape->n_head;

    memory->window = 0;
    if (n_elements(layer, "attn_kv_b.weight") == 0) { /* rows that are keys and values */
        memory->width_k = memory->head_k = size_of(layer, "attn_kv_a_mqa.weight").rows;
        memory->width_v = 0;
        return;
    }
    memory->width_k = size_of(layer, "attn_q.weight").rows + size_of(layer, "attn_q_b.weight").rows;
    memory->width_v = size_of(layer, "attn_output.weight").row;
    memory->head_k = memory->width_k / n_head;
    memory->head_v = memory->width_v / n_head;
}

struct gguf_layer_memory gguf_layer_memory_of(const struct gguf_shape_keys *keys,
                                              const struct gguf_shapes *all,
                                              const struct gguf_layer_shape *shape, uint32_t index)
{
    static const char *const convolutions[] = {"ssm_conv1d.weight", "ssm_conv1d_q.weight",
                                               "ssm_conv1d_k.weight", "ssm_conv1d_v.weight",
                                               "shortconv.conv.weight"};
    const struct layer layer = {keys, shape, index % keys->n_stored};
    struct gguf_layer_memory memory = {.n_state = state_of(&layer)};

    for (size_t i = 0; i < sizeof convolutions / sizeof *convolutions; i++) {
        const struct size size = size_of(&layer, convolutions[i]);

        memory.n_state += size.n - size.rows; /* the inputs of earlier taps */
    }
    /* Attention runs beside a recurrence only if the layer has attn_output. */
    if (shape->n_head == 0 || shape->shares_kv ||
        (memory.n_state > 0 && n_elements(&layer, "attn_output.weight") == 0))
        return memory;
    memory.head_k = shape->dim_k;
    memory.head_v = shape->dim_v;
    memory.width_k = (uint64_t)shape->n_head_kv * shape->dim_k;
    memory.width_v = (uint64_t)shape->n_head_kv * shape->dim_v;
    memory.window = shape->is_windowed ? all->window : 0;
    if (n_elements(&layer, "attn_kv_a_mqa.weight") > 0)
        add_latent(&layer, &memory);
    if (shape->has_indexer && n_elements(&layer, "indexer.attn_q_b.weight") +
                                      n_elements(&layer, "indexer.q_proj.weight") >
                                  0) {
        memory.indexer_width = number(&layer, ".attention.indexer.key_length");
        memory.window = 0; /* the selection is of all tokens */
    }
    return memory;
}
