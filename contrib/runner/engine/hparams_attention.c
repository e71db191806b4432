#include "contrib/runner/engine/hparams_parts.h"

#include <math.h>

/* Return the number of heads of the first layer that has any; hybrids begin with layers without. */
static uint32_t first_n_head(const struct run_hparams *hparams)
{
    for (size_t i = 0; i < hparams->n_layer; i++)
        if (hparams->layers[i].n_head > 0)
            return hparams->layers[i].n_head;
    return 0;
}

static void read_widths(struct run_key_reader *reader, struct run_hparams *hparams)
{
    const struct run_architecture *row = hparams->architecture;
    const uint32_t n_head = first_n_head(hparams);

    if (n_head == 0)
        return;
    hparams->dim_k = hparams->dim_v = hparams->n_embd / n_head;
    run_read_u32(reader, ".attention.key_length", MAX_HEAD_WIDTH, &hparams->dim_k);
    run_read_u32(reader, ".attention.value_length", MAX_HEAD_WIDTH, &hparams->dim_v);
    hparams->n_rot = hparams->dim_k;
    run_read_u32(reader, ".rope.dimension_count", MAX_HEAD_WIDTH, &hparams->n_rot);
    hparams->n_rot_windowed = hparams->n_rot;
    run_read_u32(reader, ".rope.dimension_count_swa", MAX_HEAD_WIDTH, &hparams->n_rot_windowed);
    if (hparams->n_rot % 2 != 0 || hparams->n_rot_windowed % 2 != 0)
        run_read_refuse(reader, "rope.dimension_count is odd");
    if (row->rotary.halves_dense)
        hparams->n_rot = hparams->n_rot / 4 * 2;
}

static float read_scale(struct run_key_reader *reader, const struct run_hparams *hparams)
{
    const struct run_architecture *row = hparams->architecture;
    const uint32_t n_head = first_n_head(hparams);
    float scale = 1;

    if (n_head > 0 && hparams->dim_k > 0)
        scale = row->attention.scale_is_inverse_width ? 1 / (float)hparams->dim_k
                                                      : 1 / sqrtf((float)hparams->dim_k);
    if (n_head > 0 && hparams->big.scale_by_n_embd)
        scale = 1 / sqrtf((float)hparams->n_embd / (float)n_head);
    scale = run_read_scale(reader, ".attention.scale", scale);
    return run_read_scale(reader, ".attention.output_scale", scale);
}

/* Read the constants that change the scores and the result of attention. */
static void read_scores(struct run_key_reader *reader, struct run_hparams *hparams)
{
    const struct run_architecture *row = hparams->architecture;

    hparams->attention_scale = read_scale(reader, hparams);
    hparams->value_scale = run_read_scale(reader, ".attention.value_scale", 1);
    run_read_float(reader, ".attn_logit_softcapping", &hparams->attention_softcap);
    run_read_float(reader, ".attention.clamp_kqv", &hparams->clamp_kqv);
    hparams->max_alibi = hparams->big.alibi_bias;
    run_read_float(reader, ".attention.max_alibi_bias", &hparams->max_alibi);
    hparams->qk_plain_norm = row->norms.qk_plain_after_rotary && !hparams->big.no_qk_plain_norm;
    hparams->qkv_in_groups = run_has_reference(reader, row, RUN_REFERENCE_GROUPS);
}

static void read_latent(struct run_key_reader *reader, struct run_hparams *hparams)
{
    float factor = 1, multiplier = 0, magnitude;

    run_read_u32(reader, ".attention.kv_lora_rank", MAX_WIDTH, &hparams->latent_rank);
    if (hparams->latent_rank == 0)
        return;
    hparams->latent_k = hparams->dim_k;
    hparams->latent_v = hparams->dim_v;
    run_read_u32(reader, ".attention.key_length_mla", MAX_HEAD_WIDTH, &hparams->latent_k);
    run_read_u32(reader, ".attention.value_length_mla", MAX_HEAD_WIDTH, &hparams->latent_v);
    /* DeepSeek's YaRN multiplies queries and keys by the same factor, rotated or not. */
    if (hparams->architecture->rotary.log_multiplier == RUN_MULTIPLIER_SCALES)
        run_read_float(reader, ".rope.scaling.yarn_log_multiplier", &multiplier);
    run_read_float(reader, ".rope.scaling.factor", &factor);
    magnitude = factor > 1 ? 1 + multiplier * logf(factor) : 1;
    hparams->latent_scale = magnitude * magnitude / sqrtf((float)hparams->latent_k);
}

/*
 * Queries are multiplied by 1 + scale · ln(1 + ⌊position / length⌋). If some layers are not
 * rotated, those are multiplied, and position + 1 counts.
 */
static void read_temperature(struct run_key_reader *reader, struct run_hparams *hparams)
{
    const bool is_of_unrotated = hparams->architecture->rotary.layers != RUN_ROTARY_ALL;
    uint32_t *length = &hparams->temperature_length;

    run_read_float(reader, ".attention.temperature_scale", &hparams->temperature_scale);
    if (hparams->temperature_scale == 0)
        return;
    *length = hparams->n_context;
    run_read_u32(reader, ".rope.scaling.original_context_length", INT32_MAX, length);
    run_read_u32(reader, ".attention.temperature_length", INT32_MAX, length);
    if (*length == 0)
        run_read_refuse(reader, "attention.temperature_scale without a length");
    hparams->temperature_offset = is_of_unrotated;
    hparams->temperature_in_rotated = !is_of_unrotated;
}

static bool is_rotated(const struct run_hparams *hparams, uint32_t index, uint32_t n_leading)
{
    const bool is_windowed = hparams->layers[index].is_windowed;

    switch (hparams->architecture->rotary.layers) {
    case RUN_ROTARY_WINDOWED:
        return hparams->window == 0 || is_windowed;
    case RUN_ROTARY_NOT_EVERY_FOURTH:
        return (index + 1) % 4 != 0 ||
               (hparams->architecture->window.is_chunked && hparams->window == 0);
    case RUN_ROTARY_LEADING:
        return is_windowed || index < n_leading;
    case RUN_ROTARY_ALL:
        break;
    }
    return true;
}

static void read_window(struct run_key_reader *reader, struct run_hparams *hparams)
{
    const struct run_architecture *row = hparams->architecture;
    const char *key = ".attention.sliding_window_pattern";
    size_t n;
    const bool is_pattern = run_metadata_numbers(reader->metadata, key, &n) != NULL;
    uint32_t period = hparams->model->window.period, n_leading = 0;

    run_read_u32(reader, ".attention.sliding_window", INT32_MAX, &hparams->window);
    if (hparams->window > 0 && !is_pattern)
        run_read_u32(reader, key, GGUF_MAX_LAYERS, &period);
    if (row->rotary.layers == RUN_ROTARY_LEADING)
        run_read_u32(reader, ".leading_dense_block_count", GGUF_MAX_LAYERS, &n_leading);
    for (uint32_t i = 0; i < run_hparams_n_shapes(hparams) && reader->code == 0; i++) {
        struct run_layer_shape *layer = &hparams->layers[i];
        const uint32_t stored = i % hparams->n_stored;
        uint32_t is_windowed = gguf_is_windowed(hparams->model, stored, period);

        if (hparams->window > 0 && is_pattern)
            run_read_u32_at(reader, key, stored, 1, &is_windowed);
        layer->is_windowed = hparams->window > 0 && is_windowed;
        layer->is_rotated = is_rotated(hparams, i, n_leading);
    }
}

/* The widths of heads, which may differ in layers with a window. */
static void read_dims(struct run_key_reader *reader, struct run_hparams *hparams)
{
    uint32_t dim_k = hparams->dim_k, dim_v = hparams->dim_v;

    run_read_u32(reader, ".attention.key_length_swa", MAX_HEAD_WIDTH, &dim_k);
    run_read_u32(reader, ".attention.value_length_swa", MAX_HEAD_WIDTH, &dim_v);
    if (first_n_head(hparams) > 0 && (dim_k == 0 || dim_v == 0))
        run_read_refuse(
            reader, "attention.key_length or attention.value_length is 0, a head without width");
    for (uint32_t i = 0; i < run_hparams_n_shapes(hparams); i++) {
        struct run_layer_shape *layer = &hparams->layers[i];

        layer->dim_k = layer->is_windowed ? dim_k : hparams->dim_k;
        layer->dim_v = layer->is_windowed ? dim_v : hparams->dim_v;
    }
}

/* Make layers without keys and values use the last layer of the same kind that has them. */
static void share_kv(struct run_key_reader *reader, struct run_hparams *hparams)
{
    const uint32_t n_layer = hparams->n_layer,
                   own = hparams->architecture->attention.n_layer_kv_from_start;
    struct run_layer_shape *layers = hparams->layers;
    uint32_t n = own > 0 && own < n_layer ? n_layer - own : 0;

    run_read_u32(reader, ".attention.shared_kv_layers", n_layer - 1, &n);
    for (uint32_t i = n_layer - n; i < n_layer; i++) {
        uint32_t from = n_layer - n;

        while (from > 0 && (layers[from - 1].is_windowed != layers[i].is_windowed ||
                            layers[from - 1].n_head_kv != layers[i].n_head_kv))
            from--;
        if (from == 0) {
            run_read_refuse(reader,
                            "attention.shared_kv_layers: no earlier layer of the same kind");
            return;
        }
        layers[i].shares_kv = true;
        layers[i].kv_layer = from - 1;
    }
}

/*
 * Return true if a layer has an indexer by default. GLM 5.2 has the longest context of its
 * architecture and an indexer in layers 0, 1, 2, 6, 10, …, as in llama.cpp's
 * src/models/glm-dsa.cpp.
 */
static bool is_indexed(const struct run_hparams *hparams, uint32_t layer)
{
    const uint32_t context = hparams->architecture->attention.full_indexer_context;

    return context == 0 || hparams->n_context <= context || layer < 2 || layer % 4 == 2;
}

static void read_indexer(struct run_key_reader *reader, struct run_hparams *hparams)
{
    struct run_indexer_shape *indexer = &hparams->indexer;

    if (hparams->architecture->attention.indexer == RUN_ROTARY_NONE)
        return;
    run_need_u32(reader, ".attention.indexer.head_count", MAX_HEADS, &indexer->n_heads);
    run_need_u32(reader, ".attention.indexer.key_length", MAX_HEAD_WIDTH, &indexer->width);
    run_need_u32(reader, ".attention.indexer.top_k", INT32_MAX, &indexer->n_best);
    run_read_u32(reader, ".attention.indexer.block_size", INT32_MAX, &indexer->block);
    run_read_u32(reader, ".attention.indexer.local_blocks", INT32_MAX, &indexer->n_local_blocks);
    if (hparams->n_rot > indexer->width)
        run_read_refuse(reader, "attention.indexer.key_length is below rope.dimension_count");
    for (uint32_t i = 0; i < run_hparams_n_shapes(hparams); i++) {
        uint32_t has_indexer = is_indexed(hparams, i);

        run_read_u32_at(reader, ".attention.indexer.types", i, 1, &has_indexer);
        hparams->layers[i].has_indexer = has_indexer;
    }
}

void run_hparams_read_attention(struct run_key_reader *reader, struct run_hparams *hparams)
{
    read_widths(reader, hparams);
    read_scores(reader, hparams);
    read_latent(reader, hparams);
    read_temperature(reader, hparams);
    read_window(reader, hparams);
    read_dims(reader, hparams);
    share_kv(reader, hparams);
    read_indexer(reader, hparams);
}
