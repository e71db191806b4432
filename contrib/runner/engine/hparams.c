#include "contrib/runner/engine/hparams.h"

#include "contrib/runner/engine/key_reader.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Above what any model has. */
enum {
    MAX_LAYERS = 4096,
    MAX_WIDTH = 1 << 20,
    MAX_HEADS = 1 << 14,
    MAX_HEAD_WIDTH = 1 << 16,
    MAX_EXPERTS = 1 << 16,
};

/* The gating functions by their numbers in expert_gating_func; 0 means that none is named. */
enum { GATING_SOFTMAX = 1, GATING_SIGMOID = 2, GATING_SOFTMAX_CHOSEN = 3 };

static void read_layers(struct run_key_reader *reader, struct run_hparams *hparams)
{
    for (size_t i = 0; i < hparams->n_layer; i++) {
        struct run_layer_shape *layer = &hparams->layers[i];
        const size_t stored = i % hparams->n_stored;

        run_read_u32_at(reader, ".attention.head_count", stored, MAX_HEADS, &layer->n_head);
        layer->n_head_kv = layer->n_head;
        run_read_u32_at(reader, ".attention.head_count_kv", stored, MAX_HEADS, &layer->n_head_kv);
        run_read_u32_at(reader, ".feed_forward_length", stored, MAX_WIDTH, &layer->n_ff);
        layer->kv_layer = (uint32_t)i;
        if (layer->n_head > 0 && layer->n_head_kv > 0 && layer->n_head % layer->n_head_kv != 0)
            run_read_refuse(reader,
                            "attention.head_count is no multiple of attention.head_count_kv");
        if (layer->n_head == 0 || layer->n_head_kv == 0)
            layer->n_head = layer->n_head_kv = 0;
    }
}

/* The heads of the first layer that has any; hybrids begin with layers that have none. */
static uint32_t some_n_head(const struct run_hparams *hparams)
{
    for (size_t i = 0; i < hparams->n_layer; i++)
        if (hparams->layers[i].n_head > 0)
            return hparams->layers[i].n_head;
    return 0;
}

static void read_heads(struct run_key_reader *reader, struct run_hparams *hparams)
{
    const struct run_architecture *row = hparams->architecture;
    const uint32_t n_head = some_n_head(hparams);
    const char *layout = run_metadata_string(reader->metadata, ".tensor_data_layout");

    hparams->attention_scale = 1;
    if (n_head == 0)
        return;
    hparams->dim_k = hparams->dim_v = hparams->n_embd / n_head;
    run_read_u32(reader, ".attention.key_length", MAX_HEAD_WIDTH, &hparams->dim_k);
    run_read_u32(reader, ".attention.value_length", MAX_HEAD_WIDTH, &hparams->dim_v);
    if (hparams->dim_k == 0 || hparams->dim_v == 0)
        run_read_refuse(reader, "heads without width");
    hparams->n_rot = hparams->dim_k;
    run_read_u32(reader, ".rope.dimension_count", MAX_HEAD_WIDTH, &hparams->n_rot);
    hparams->n_rot_windowed = hparams->n_rot;
    if (row->has_window_dims)
        run_read_u32(reader, ".rope.dimension_count_swa", MAX_HEAD_WIDTH, &hparams->n_rot_windowed);
    if (hparams->n_rot % 2 != 0 || hparams->n_rot_windowed % 2 != 0)
        run_read_refuse(reader, "rope.dimension_count is odd");
    if (row->halves_rotation)
        hparams->n_rot = hparams->n_rot / 4 * 2;
    hparams->attention_scale =
        row->attention_scale != 0 ? row->attention_scale : 1 / sqrtf((float)hparams->dim_k);
    if (row->head_scale_layers > 0 && row->head_scale_layers == hparams->n_layer)
        hparams->attention_scale = 1 / sqrtf((float)hparams->n_embd / (float)n_head);
    if (row->scale_is_inverse)
        hparams->attention_scale = 1 / (float)hparams->dim_k;
    if (row->has_attention_scale)
        hparams->attention_scale =
            run_read_scale(reader, ".attention.scale", hparams->attention_scale);
    if (row->has_output_scale)
        hparams->attention_scale =
            run_read_scale(reader, ".attention.output_scale", hparams->attention_scale);
    hparams->value_scale = 1;
    if (row->has_value_scale)
        hparams->value_scale = run_read_scale(reader, ".attention.value_scale", 1);
    hparams->attention_softcap = row->attention_softcap;
    if (row->has_softcap)
        run_read_float(reader, ".attn_logit_softcapping", &hparams->attention_softcap);
    if (row->has_clamp)
        run_read_float(reader, ".attention.clamp_kqv", &hparams->clamp_kqv);
    if (row->alibi_layers == 0 || row->alibi_layers == hparams->n_layer)
        hparams->max_alibi = row->alibi;
    if (row->has_alibi)
        run_read_float(reader, ".attention.max_alibi_bias", &hparams->max_alibi);
    hparams->qkv_in_groups = layout && strcmp(layout, "reference") == 0;
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
    if (hparams->architecture->log_multiplier == RUN_MULTIPLIER_SCALES)
        run_read_float(reader, ".rope.scaling.yarn_log_multiplier", &multiplier);
    run_read_float(reader, ".rope.scaling.factor", &factor);
    magnitude = factor > 1 ? 1 + multiplier * logf(factor) : 1;
    hparams->attention_scale = magnitude * magnitude / sqrtf((float)hparams->latent_k);
}

static void read_temperature(struct run_key_reader *reader, struct run_hparams *hparams)
{
    const struct run_architecture *row = hparams->architecture;
    uint32_t *length = &hparams->temperature_length;

    hparams->temperature_scale = row->temperature_scale;
    hparams->temperature_length = row->temperature_length;
    hparams->temperature_offset = 1;
    if (!row->has_temperature)
        return;
    *length = hparams->n_context;
    run_read_u32(reader, ".rope.scaling.original_context_length", INT32_MAX, length);
    run_read_u32(reader, ".attention.temperature_length", INT32_MAX, length);
    run_read_float(reader, ".attention.temperature_scale", &hparams->temperature_scale);
    if (hparams->temperature_scale != 0 && *length == 0)
        run_read_refuse(reader, "attention.temperature_scale without a length");
    hparams->temperature_offset = 0;
    hparams->heats_rotated = true;
}

static bool is_rotated(const struct run_hparams *hparams, uint32_t index, uint32_t n_leading)
{
    const bool is_windowed = hparams->layers[index].is_windowed;

    switch (hparams->architecture->rotary_layers) {
    case RUN_ROTARY_WINDOWED:
        return hparams->window == 0 || is_windowed;
    case RUN_ROTARY_SKIPPING:
        return (index + 1) % 4 != 0;
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
    const cJSON *pattern = run_metadata_find(reader->metadata, key);
    uint32_t period = row->window_period, n_leading = 0;

    hparams->window = row->window_default;
    if (row->window != RUN_WINDOW_NONE)
        run_read_u32(reader, ".attention.sliding_window", INT32_MAX, &hparams->window);
    if (hparams->window > 0 && pattern && !cJSON_IsArray(pattern))
        run_read_u32(reader, key, MAX_LAYERS, &period);
    if (row->rotary_layers == RUN_ROTARY_LEADING)
        run_read_u32(reader, ".leading_dense_block_count", MAX_LAYERS, &n_leading);
    for (uint32_t i = 0; i < hparams->n_layer && reader->code == 0; i++) {
        struct run_layer_shape *layer = &hparams->layers[i];
        const uint32_t stored = i % hparams->n_stored;
        uint32_t is_windowed =
            period == 0 || stored % period != (row->window_period_leads ? 0 : period - 1);

        if (hparams->window > 0 && cJSON_IsArray(pattern))
            run_read_u32_at(reader, key, stored, 1, &is_windowed);
        layer->is_windowed = hparams->window > 0 && is_windowed;
        layer->is_rotated = is_rotated(hparams, i, n_leading);
    }
}

/* Layers that have their own widths because of their window. */
static void read_dims(struct run_key_reader *reader, struct run_hparams *hparams)
{
    const bool has_window_dims = hparams->architecture->has_window_dims;
    uint32_t dim_k = hparams->dim_k, dim_v = hparams->dim_v;

    if (has_window_dims) {
        run_read_u32(reader, ".attention.key_length_swa", MAX_HEAD_WIDTH, &dim_k);
        run_read_u32(reader, ".attention.value_length_swa", MAX_HEAD_WIDTH, &dim_v);
        if (some_n_head(hparams) > 0 && (dim_k == 0 || dim_v == 0))
            run_read_refuse(reader, "heads without width");
    }
    for (uint32_t i = 0; i < hparams->n_layer; i++) {
        struct run_layer_shape *layer = &hparams->layers[i];

        layer->dim_k = layer->is_windowed ? dim_k : hparams->dim_k;
        layer->dim_v = layer->is_windowed ? dim_v : hparams->dim_v;
    }
}

/* Layers without keys of their own use those of the last one of their kind that has them. */
static void share_kv(struct run_key_reader *reader, struct run_hparams *hparams)
{
    const uint32_t n_layer = hparams->n_layer, own = hparams->architecture->own_kv_layers;
    struct run_layer_shape *layers = hparams->layers;
    uint32_t n = own > 0 && own < n_layer ? n_layer - own : 0;

    if (hparams->architecture->has_shared_kv)
        run_read_u32(reader, ".attention.shared_kv_layers", n_layer - 1, &n);
    for (uint32_t i = n_layer - n; i < n_layer; i++) {
        uint32_t from = n_layer - n;

        while (from > 0 && (layers[from - 1].is_windowed != layers[i].is_windowed ||
                            layers[from - 1].n_head_kv != layers[i].n_head_kv))
            from--;
        if (from == 0)
            run_read_refuse(reader, "attention.shared_kv_layers: no layer of their kind is before");
        else
            layers[i].kv_layer = from - 1;
    }
}

static void read_clamps(struct run_key_reader *reader, struct run_hparams *hparams)
{
    if (!hparams->architecture->has_swiglu_clamp)
        return;
    for (uint32_t i = 0; i < hparams->n_layer; i++) {
        run_read_float_at(reader, ".swiglu_clamp_exp", i, &hparams->layers[i].clamp_experts);
        run_read_float_at(reader, ".swiglu_clamp_shexp", i, &hparams->layers[i].clamp);
    }
}

static void read_indexer(struct run_key_reader *reader, struct run_hparams *hparams)
{
    struct run_indexer_shape *indexer = &hparams->indexer;

    if (hparams->architecture->indexer == RUN_ROTARY_NONE)
        return;
    run_need_u32(reader, ".attention.indexer.head_count", MAX_HEADS, &indexer->n_heads);
    run_need_u32(reader, ".attention.indexer.key_length", MAX_HEAD_WIDTH, &indexer->width);
    run_need_u32(reader, ".attention.indexer.top_k", INT32_MAX, &indexer->n_best);
    run_read_u32(reader, ".attention.indexer.block_size", INT32_MAX, &indexer->block);
    run_read_u32(reader, ".attention.indexer.local_blocks", INT32_MAX, &indexer->n_local_blocks);
    if (hparams->n_rot > indexer->width)
        run_read_refuse(reader, "attention.indexer.key_length is below rope.dimension_count");
    for (uint32_t i = 0; i < hparams->n_layer; i++) {
        uint32_t has_indexer = 1;

        run_read_u32_at(reader, ".attention.indexer.types", i, 1, &has_indexer);
        hparams->layers[i].has_indexer = has_indexer;
    }
}

static void read_experts(struct run_key_reader *reader, struct run_hparams *hparams)
{
    const struct run_architecture *row = hparams->architecture;
    struct run_experts_shape *experts = &hparams->experts;
    uint32_t gating = 0;

    experts->weights_scale = 1;
    hparams->norms_rotated = row->norms_rotated;
    run_read_u32(reader, ".expert_count", MAX_EXPERTS, &experts->n);
    if (experts->n == 0)
        return;
    run_need_u32(reader, ".expert_used_count", experts->n, &experts->n_used);
    run_read_u32(reader, ".expert_group_count", MAX_EXPERTS, &experts->n_groups);
    if (experts->n_groups > 1) {
        run_need_u32(reader, ".expert_group_used_count", experts->n_groups,
                     &experts->n_groups_used);
        if (experts->n % experts->n_groups != 0)
            run_read_refuse(reader, "expert_count is no multiple of expert_group_count");
        else if (reader->code == 0 &&
                 experts->n / experts->n_groups * experts->n_groups_used < experts->n_used)
            run_read_refuse(reader,
                            "the groups that are used have less than expert_used_count experts");
    }
    hparams->norms_rotated = row->norms_rotated && experts->n != 128;
    experts->gating = row->gating;
    if (row->gating_by_key)
        run_read_u32(reader, ".expert_gating_func", GATING_SOFTMAX_CHOSEN, &gating);
    if (gating != 0)
        experts->gating = gating == GATING_SIGMOID          ? RUN_GATE_SIGMOID
                          : gating == GATING_SOFTMAX_CHOSEN ? RUN_GATE_SOFTMAX_CHOSEN
                                                            : RUN_GATE_SOFTMAX;
    experts->weights_normed = row->weights_norm == RUN_WEIGHTS_NORMED ||
                              (row->weights_norm == RUN_WEIGHTS_BY_KEY &&
                               run_metadata_is_true(reader->metadata, ".expert_weights_norm"));
    if (row->has_weights_scale)
        experts->weights_scale = run_read_scale(reader, ".expert_weights_scale", 1);
    if (row->has_chunks) {
        run_need_u32(reader, ".experts_per_group", experts->n, &experts->per_chunk);
        run_read_float(reader, ".expert_group_scale", &experts->chunk_scale);
        if (experts->per_chunk > 0 && experts->n % experts->per_chunk == 0)
            experts->n_chunks = experts->n / experts->per_chunk;
        else
            run_read_refuse(reader, "expert_count is no multiple of experts_per_group");
    }
}

static void read_scales(struct run_key_reader *reader, struct run_hparams *hparams)
{
    const struct run_architecture *row = hparams->architecture;
    float embedding = row->embedding_default != 0 ? row->embedding_default : 1;
    float logit = row->logit_default != 0 ? row->logit_default : 1;
    float residual = 1;

    if (row->has_minicpm_scales) {
        embedding = 12;
        residual = 1.4f / sqrtf((float)hparams->n_layer);
        logit = (float)hparams->n_embd / 256;
    }
    if (row->embedding_scale == RUN_EMBEDDING_BY_ROOT)
        embedding = sqrtf((float)hparams->n_embd);
    else if (row->embedding_scale == RUN_EMBEDDING_BY_KEY)
        embedding = run_read_scale(reader, ".embedding_scale", embedding);
    if (row->has_residual_scale)
        residual = run_read_scale(reader, ".residual_scale", residual);
    if (row->logit_scale != RUN_LOGITS_PLAIN)
        logit = run_read_scale(reader, ".logit_scale", logit);
    hparams->embedding_scale = embedding;
    hparams->residual_scale = residual;
    hparams->logit_scale = row->logit_scale == RUN_LOGITS_DIVIDED ? 1 / logit : logit;
    if (row->has_softcap)
        run_read_float(reader, ".final_logit_softcapping", &hparams->final_softcap);
}

static int find_architecture(const struct run_metadata *metadata, struct run_hparams *hparams,
                             struct run_failure *failure)
{
    const char *name = run_metadata_architecture(metadata);

    if (name[0] == '\0')
        return run_fail(failure, -ENOENT, "metadata.json: no general.architecture");
    hparams->architecture = run_architecture_find(name);
    if (!hparams->architecture)
        return run_fail(failure, -ENOTSUP,
                        "metadata.json: general.architecture: \"%s\" is unknown here", name);
    return 0;
}

static void leave_out_predictions(struct run_key_reader *reader, struct run_hparams *hparams)
{
    uint32_t n = 0;

    if (hparams->architecture->has_prediction_layers)
        run_read_u32(reader, ".nextn_predict_layers", hparams->n_layer - 1, &n);
    hparams->n_layer -= n;
}

static void read_loops(struct run_key_reader *reader, struct run_hparams *hparams)
{
    uint32_t n = 1;

    hparams->n_stored = hparams->n_layer;
    if (!hparams->architecture->has_loops)
        return;
    run_read_u32(reader, ".num_loops", MAX_LAYERS / hparams->n_layer, &n);
    if (n == 0)
        run_read_refuse(reader, "num_loops is 0");
    else
        hparams->n_layer *= n;
    hparams->has_loop_norm = !run_metadata_is_true(reader->metadata, ".skip_loop_final_norm");
}

static void read_xielu(struct run_key_reader *reader, struct run_hparams *hparams)
{
    if (hparams->architecture->activation != RUN_XIELU || reader->code < 0)
        return;
    hparams->xielu = calloc(hparams->n_layer, sizeof *hparams->xielu);
    if (!hparams->xielu) {
        reader->code = run_fail_memory(reader->failure);
        return;
    }
    for (size_t i = 0; i < hparams->n_layer; i++) {
        struct run_xielu *xielu = &hparams->xielu[i];

        /* Stored as they are trained, before softplus. */
        run_read_float_at(reader, "xielu.alpha_n", i, &xielu->alpha_n);
        run_read_float_at(reader, "xielu.alpha_p", i, &xielu->alpha_p);
        run_read_float_at(reader, "xielu.beta", i, &xielu->beta);
        run_read_float_at(reader, "xielu.eps", i, &xielu->epsilon);
        xielu->alpha_p = run_softplus(xielu->alpha_p);
        xielu->alpha_n = xielu->beta + run_softplus(xielu->alpha_n);
    }
}

int run_hparams_read(const struct run_metadata *metadata, struct run_hparams *hparams,
                     struct run_failure *failure)
{
    struct run_key_reader reader = {.metadata = metadata, .failure = failure};
    const struct run_architecture *row;

    memset(hparams, 0, sizeof *hparams);
    reader.code = find_architecture(metadata, hparams, failure);
    run_need_u32(&reader, ".block_count", MAX_LAYERS, &hparams->n_layer);
    run_need_u32(&reader, ".embedding_length", MAX_WIDTH, &hparams->n_embd);
    run_read_u32(&reader, ".context_length", INT32_MAX, &hparams->n_context);
    if (reader.code < 0)
        return reader.code;
    row = hparams->architecture;
    leave_out_predictions(&reader, hparams);
    read_loops(&reader, hparams);
    hparams->layers = calloc(hparams->n_layer, sizeof *hparams->layers);
    if (!hparams->layers)
        return run_fail_memory(failure);
    hparams->norm_epsilon = 1e-5f;
    run_read_float(&reader,
                   row->norm == RUN_NORM_RMS ? ".attention.layer_norm_rms_epsilon"
                                             : ".attention.layer_norm_epsilon",
                   &hparams->norm_epsilon);
    hparams->is_parallel = row->residual == RUN_PARALLEL ||
                           (row->residual == RUN_PARALLEL_BY_KEY &&
                            (!run_metadata_find(metadata, ".use_parallel_residual") ||
                             run_metadata_is_true(metadata, ".use_parallel_residual")));
    hparams->has_swin_norm = row->has_swin_norm && run_metadata_is_true(metadata, ".swin_norm");
    read_layers(&reader, hparams);
    read_heads(&reader, hparams);
    read_latent(&reader, hparams);
    read_temperature(&reader, hparams);
    read_window(&reader, hparams);
    read_dims(&reader, hparams);
    share_kv(&reader, hparams);
    read_clamps(&reader, hparams);
    read_indexer(&reader, hparams);
    read_experts(&reader, hparams);
    read_scales(&reader, hparams);
    read_xielu(&reader, hparams);
    if (reader.code < 0)
        run_hparams_free(hparams);
    return reader.code;
}

void run_hparams_free(struct run_hparams *hparams)
{
    free(hparams->layers);
    free(hparams->xielu);
    hparams->layers = NULL;
    hparams->xielu = NULL;
}
