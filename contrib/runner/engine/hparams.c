#include "contrib/runner/engine/hparams.h"

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

/* Reading stops to have an effect after the first failure. */
struct reader {
    const struct run_metadata *metadata;
    struct run_failure *failure;
    int code;
};

static void read_u32(struct reader *reader, const char *key, uint32_t max, uint32_t *value)
{
    if (reader->code == 0)
        reader->code = run_metadata_u32(reader->metadata, key, max, value, reader->failure);
}

static void need_u32(struct reader *reader, const char *key, uint32_t max, uint32_t *value)
{
    if (reader->code == 0)
        reader->code = run_metadata_need_u32(reader->metadata, key, 1, max, value, reader->failure);
}

static void read_u32_at(struct reader *reader, const char *key, size_t layer, uint32_t max,
                        uint32_t *value)
{
    if (reader->code == 0)
        reader->code =
            run_metadata_u32_at(reader->metadata, key, layer, max, value, reader->failure);
}

static void read_float(struct reader *reader, const char *key, float *value)
{
    if (reader->code == 0)
        reader->code = run_metadata_float(reader->metadata, key, value, reader->failure);
}

static void read_float_at(struct reader *reader, const char *key, size_t layer, float *value)
{
    if (reader->code == 0)
        reader->code = run_metadata_float_at(reader->metadata, key, layer, value, reader->failure);
}

static void refuse(struct reader *reader, const char *text)
{
    if (reader->code == 0)
        reader->code = run_fail(reader->failure, -EINVAL, "metadata.json: %s", text);
}

/* A scale of 0 stands for none, as one that is missing does. */
static float read_scale(struct reader *reader, const char *key, float otherwise)
{
    float scale = 0;

    read_float(reader, key, &scale);
    return scale == 0 ? otherwise : scale;
}

static void read_layers(struct reader *reader, struct run_hparams *hparams)
{
    for (size_t i = 0; i < hparams->n_layer; i++) {
        struct run_layer_shape *layer = &hparams->layers[i];

        read_u32_at(reader, ".attention.head_count", i, MAX_HEADS, &layer->n_head);
        layer->n_head_kv = layer->n_head;
        read_u32_at(reader, ".attention.head_count_kv", i, MAX_HEADS, &layer->n_head_kv);
        read_u32_at(reader, ".feed_forward_length", i, MAX_WIDTH, &layer->n_ff);
        if (layer->n_head > 0 && layer->n_head_kv > 0 && layer->n_head % layer->n_head_kv != 0)
            refuse(reader, "attention.head_count is no multiple of attention.head_count_kv");
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

static void read_heads(struct reader *reader, struct run_hparams *hparams)
{
    const struct run_architecture *row = hparams->architecture;
    const uint32_t n_head = some_n_head(hparams);
    const char *layout = run_metadata_string(reader->metadata, ".tensor_data_layout");

    hparams->attention_scale = 1;
    if (n_head == 0)
        return;
    hparams->dim_k = hparams->dim_v = hparams->n_embd / n_head;
    read_u32(reader, ".attention.key_length", MAX_HEAD_WIDTH, &hparams->dim_k);
    read_u32(reader, ".attention.value_length", MAX_HEAD_WIDTH, &hparams->dim_v);
    if (hparams->dim_k == 0 || hparams->dim_v == 0)
        refuse(reader, "heads without width");
    hparams->n_rot = hparams->dim_k;
    read_u32(reader, ".rope.dimension_count", MAX_HEAD_WIDTH, &hparams->n_rot);
    if (hparams->n_rot % 2 != 0)
        refuse(reader, "rope.dimension_count is odd");
    hparams->attention_scale = 1 / sqrtf((float)hparams->dim_k);
    if (row->head_scale_layers > 0 && row->head_scale_layers == hparams->n_layer)
        hparams->attention_scale = 1 / sqrtf((float)hparams->n_embd / (float)n_head);
    if (row->scale_is_inverse)
        hparams->attention_scale = 1 / (float)hparams->dim_k;
    if (row->has_attention_scale)
        hparams->attention_scale = read_scale(reader, ".attention.scale", hparams->attention_scale);
    if (row->has_softcap)
        read_float(reader, ".attn_logit_softcapping", &hparams->attention_softcap);
    if (row->has_clamp)
        read_float(reader, ".attention.clamp_kqv", &hparams->clamp_kqv);
    if (row->alibi_layers == 0 || row->alibi_layers == hparams->n_layer)
        hparams->max_alibi = row->alibi;
    if (row->has_alibi)
        read_float(reader, ".attention.max_alibi_bias", &hparams->max_alibi);
    hparams->qkv_in_groups = layout && strcmp(layout, "reference") == 0;
}

static void read_latent(struct reader *reader, struct run_hparams *hparams)
{
    float factor = 1, multiplier = 0, magnitude;

    read_u32(reader, ".attention.kv_lora_rank", MAX_WIDTH, &hparams->latent_rank);
    if (hparams->latent_rank == 0)
        return;
    hparams->latent_k = hparams->dim_k;
    hparams->latent_v = hparams->dim_v;
    read_u32(reader, ".attention.key_length_mla", MAX_HEAD_WIDTH, &hparams->latent_k);
    read_u32(reader, ".attention.value_length_mla", MAX_HEAD_WIDTH, &hparams->latent_v);
    /* DeepSeek's YaRN multiplies queries and keys by the same factor, rotated or not. */
    if (hparams->architecture->has_log_multiplier)
        read_float(reader, ".rope.scaling.yarn_log_multiplier", &multiplier);
    read_float(reader, ".rope.scaling.factor", &factor);
    magnitude = factor > 1 ? 1 + multiplier * logf(factor) : 1;
    hparams->attention_scale = magnitude * magnitude / sqrtf((float)hparams->latent_k);
}

static void read_window(struct reader *reader, struct run_hparams *hparams)
{
    const struct run_architecture *row = hparams->architecture;
    const char *key = ".attention.sliding_window_pattern";
    const cJSON *pattern = run_metadata_find(reader->metadata, key);
    uint32_t period = row->window_period;

    hparams->window = row->window_default;
    if (row->window != RUN_WINDOW_NONE)
        read_u32(reader, ".attention.sliding_window", INT32_MAX, &hparams->window);
    if (hparams->window > 0 && pattern && !cJSON_IsArray(pattern))
        read_u32(reader, key, MAX_LAYERS, &period);
    for (uint32_t i = 0; i < hparams->n_layer && reader->code == 0; i++) {
        uint32_t is_windowed = period == 0 || i % period < period - 1;

        if (hparams->window > 0 && cJSON_IsArray(pattern))
            read_u32_at(reader, key, i, 1, &is_windowed);
        hparams->layers[i].is_windowed = hparams->window > 0 && is_windowed;
        hparams->layers[i].is_rotated =
            row->rotary_layers == RUN_ROTARY_ALL ||
            (row->rotary_layers == RUN_ROTARY_WINDOWED &&
             (hparams->window == 0 || hparams->layers[i].is_windowed)) ||
            (row->rotary_layers == RUN_ROTARY_SKIPPING && (i + 1) % 4 != 0);
    }
}

static void read_experts(struct reader *reader, struct run_hparams *hparams)
{
    const struct run_architecture *row = hparams->architecture;
    struct run_experts_shape *experts = &hparams->experts;
    uint32_t gating = 0;

    experts->weights_scale = 1;
    hparams->norms_rotated = row->norms_rotated;
    read_u32(reader, ".expert_count", MAX_EXPERTS, &experts->n);
    if (experts->n == 0)
        return;
    need_u32(reader, ".expert_used_count", experts->n, &experts->n_used);
    read_u32(reader, ".expert_group_count", MAX_EXPERTS, &experts->n_groups);
    if (experts->n_groups > 1) {
        need_u32(reader, ".expert_group_used_count", experts->n_groups, &experts->n_groups_used);
        if (experts->n % experts->n_groups != 0)
            refuse(reader, "expert_count is no multiple of expert_group_count");
        else if (reader->code == 0 &&
                 experts->n / experts->n_groups * experts->n_groups_used < experts->n_used)
            refuse(reader, "the groups that are used have less than expert_used_count experts");
    }
    hparams->norms_rotated = row->norms_rotated && experts->n != 128;
    experts->gating = row->gating;
    if (row->gating_by_key)
        read_u32(reader, ".expert_gating_func", GATING_SOFTMAX_CHOSEN, &gating);
    if (gating != 0)
        experts->gating = gating == GATING_SIGMOID          ? RUN_GATE_SIGMOID
                          : gating == GATING_SOFTMAX_CHOSEN ? RUN_GATE_SOFTMAX_CHOSEN
                                                            : RUN_GATE_SOFTMAX;
    experts->weights_normed = row->weights_norm == RUN_WEIGHTS_NORMED ||
                              (row->weights_norm == RUN_WEIGHTS_BY_KEY &&
                               run_metadata_is_true(reader->metadata, ".expert_weights_norm"));
    if (row->has_weights_scale)
        experts->weights_scale = read_scale(reader, ".expert_weights_scale", 1);
}

static void read_scales(struct reader *reader, struct run_hparams *hparams)
{
    const struct run_architecture *row = hparams->architecture;
    float embedding = 1, residual = 1, logit = 1;

    if (row->has_minicpm_scales) {
        embedding = 12;
        residual = 1.4f / sqrtf((float)hparams->n_layer);
        logit = (float)hparams->n_embd / 256;
    }
    if (row->embedding_scale == RUN_EMBEDDING_BY_ROOT)
        embedding = sqrtf((float)hparams->n_embd);
    else if (row->embedding_scale == RUN_EMBEDDING_BY_KEY)
        embedding = read_scale(reader, ".embedding_scale", embedding);
    if (row->has_residual_scale)
        residual = read_scale(reader, ".residual_scale", residual);
    if (row->logit_scale != RUN_LOGITS_PLAIN)
        logit = read_scale(reader, ".logit_scale", logit);
    hparams->embedding_scale = embedding;
    hparams->residual_scale = residual;
    hparams->logit_scale = row->logit_scale == RUN_LOGITS_DIVIDED ? 1 / logit : logit;
    if (row->has_softcap)
        read_float(reader, ".final_logit_softcapping", &hparams->final_softcap);
}

static void read_rwkv(struct reader *reader, struct run_hparams *hparams)
{
    const struct run_architecture *row = hparams->architecture;

    if (row->rwkv_version == 0)
        return;
    hparams->rwkv_version = row->rwkv_version;
    read_u32(reader, ".architecture_version", 7, &hparams->rwkv_version);
    if (hparams->rwkv_version < 4)
        refuse(reader, "architecture_version is below 4");
    if (hparams->rwkv_version > 4)
        need_u32(reader, ".wkv.head_size", hparams->n_embd, &hparams->wkv_head_size);
    if (hparams->wkv_head_size > 0 && hparams->n_embd % hparams->wkv_head_size != 0)
        refuse(reader, "embedding_length is no multiple of wkv.head_size");
    if (row->has_layer_rescaling)
        read_u32(reader, ".rescale_every_n_layers", INT32_MAX, &hparams->rescaling_period);
}

static void read_recurrent(struct reader *reader, struct run_hparams *hparams)
{
    read_u32(reader, ".ssm.group_count", MAX_HEADS, &hparams->ssm_groups);
    hparams->ssm_norms = run_metadata_is_true(reader->metadata, ".ssm.dt_b_c_rms");
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

static void leave_out_predictions(struct reader *reader, struct run_hparams *hparams)
{
    uint32_t n = 0;

    if (hparams->architecture->has_prediction_layers)
        read_u32(reader, ".nextn_predict_layers", hparams->n_layer - 1, &n);
    hparams->n_layer -= n;
}

static void read_xielu(struct reader *reader, struct run_hparams *hparams)
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
        read_float_at(reader, "xielu.alpha_n", i, &xielu->alpha_n);
        read_float_at(reader, "xielu.alpha_p", i, &xielu->alpha_p);
        read_float_at(reader, "xielu.beta", i, &xielu->beta);
        read_float_at(reader, "xielu.eps", i, &xielu->epsilon);
        xielu->alpha_p = run_softplus(xielu->alpha_p);
        xielu->alpha_n = xielu->beta + run_softplus(xielu->alpha_n);
    }
}

int run_hparams_read(const struct run_metadata *metadata, struct run_hparams *hparams,
                     struct run_failure *failure)
{
    struct reader reader = {.metadata = metadata, .failure = failure};
    const struct run_architecture *row;

    memset(hparams, 0, sizeof *hparams);
    reader.code = find_architecture(metadata, hparams, failure);
    need_u32(&reader, ".block_count", MAX_LAYERS, &hparams->n_layer);
    need_u32(&reader, ".embedding_length", MAX_WIDTH, &hparams->n_embd);
    read_u32(&reader, ".context_length", INT32_MAX, &hparams->n_context);
    if (reader.code < 0)
        return reader.code;
    row = hparams->architecture;
    leave_out_predictions(&reader, hparams);
    hparams->layers = calloc(hparams->n_layer, sizeof *hparams->layers);
    if (!hparams->layers)
        return run_fail_memory(failure);
    hparams->norm_epsilon = 1e-5f;
    read_float(&reader,
               row->norm == RUN_NORM_RMS ? ".attention.layer_norm_rms_epsilon"
                                         : ".attention.layer_norm_epsilon",
               &hparams->norm_epsilon);
    hparams->is_parallel = row->residual == RUN_PARALLEL ||
                           (row->residual == RUN_PARALLEL_BY_KEY &&
                            (!run_metadata_find(metadata, ".use_parallel_residual") ||
                             run_metadata_is_true(metadata, ".use_parallel_residual")));
    read_layers(&reader, hparams);
    read_heads(&reader, hparams);
    read_latent(&reader, hparams);
    read_window(&reader, hparams);
    read_experts(&reader, hparams);
    read_scales(&reader, hparams);
    read_rwkv(&reader, hparams);
    read_recurrent(&reader, hparams);
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

/* YaRN's factor for queries and keys, section 3.4 of its paper. */
static float yarn_magnitude(float factor, float multiplier)
{
    return factor <= 1 ? 1 : 0.1f * multiplier * logf(factor) + 1;
}

static void read_yarn(struct reader *reader, const struct run_hparams *hparams,
                      struct run_rotary *rotary, struct run_rotary_scaling *scaling)
{
    float mix = -1, multiplier = 0;

    scaling->yarn_mix = 1;
    read_float(reader, ".rope.scaling.yarn_ext_factor", &mix);
    if (mix >= 0)
        scaling->yarn_mix = mix;
    read_float(reader, ".rope.scaling.yarn_beta_fast", &scaling->beta_fast);
    read_float(reader, ".rope.scaling.yarn_beta_slow", &scaling->beta_slow);
    if (hparams->architecture->has_log_multiplier)
        read_float(reader, ".rope.scaling.yarn_log_multiplier", &multiplier);
    if (scaling->yarn_mix == 0)
        return;
    /* With a multiplier the factor is the attention's, see read_latent(). */
    if (multiplier == 0)
        rotary->magnitude *= yarn_magnitude(scaling->factor, 1);
}

int run_hparams_rotary(const struct run_hparams *hparams, const struct run_metadata *metadata,
                       bool is_windowed, struct run_rotary *rotary,
                       struct run_rotary_scaling *scaling, struct run_failure *failure)
{
    const struct run_architecture *row = hparams->architecture;
    struct reader reader = {.metadata = metadata, .failure = failure};
    const char *type = run_metadata_string(metadata, ".rope.scaling.type");
    const char *layout = run_metadata_string(metadata, ".tensor_data_layout");
    float factor = 0;

    *rotary = (struct run_rotary){.kind = row->rotary, .n_rot = hparams->n_rot, .magnitude = 1};
    *scaling =
        (struct run_rotary_scaling){.base = 10000, .factor = 1, .beta_fast = 32, .beta_slow = 1};
    if (row->alibi_layers > 0 && hparams->max_alibi > 0)
        rotary->kind = RUN_ROTARY_NONE;
    if (row->rotary_by_key && run_metadata_find(metadata, ".rope.scaling.finetuned") &&
        !run_metadata_is_true(metadata, ".rope.scaling.finetuned"))
        rotary->kind = RUN_ROTARY_NONE;
    /* Rows of q and k in the order of the original: its pairs are half a head apart. */
    if (rotary->kind == RUN_ROTARY_NORMAL && layout && strcmp(layout, "reference") == 0)
        rotary->kind = RUN_ROTARY_NEOX;
    read_float(&reader, ".rope.freq_base", &scaling->base);
    if (is_windowed) {
        if (row->window_base != 0)
            scaling->base = row->window_base;
        read_float(&reader, ".rope.freq_base_swa", &scaling->base);
    }
    if (!(scaling->base > 1))
        refuse(&reader, "rope.freq_base is not above 1");
    scaling->n_original = hparams->n_context;
    read_u32(&reader, ".rope.scaling.original_context_length", INT32_MAX, &scaling->n_original);
    if ((type && strcmp(type, "none") == 0) || (is_windowed && row->window_is_unscaled))
        return reader.code;
    read_float(&reader, ".rope.scale", &factor);
    read_float(&reader, ".rope.scale_linear", &factor);
    read_float(&reader, ".rope.scaling.factor", &factor);
    if (factor < 0)
        refuse(&reader, "rope.scaling.factor is negative");
    if (factor > 0)
        scaling->factor = factor;
    if (run_metadata_find(metadata, ".rope.scaling.attn_factor"))
        read_float(&reader, ".rope.scaling.attn_factor", &rotary->magnitude);
    if (type && strcmp(type, "yarn") == 0)
        read_yarn(&reader, hparams, rotary, scaling);
    return reader.code;
}
