#include "contrib/runner/engine/hparams_parts.h"

#include <math.h>
#include <string.h>

/*
 * Return true if the file's tensors are in the order of the original checkpoint and the row gives
 * that order the meaning `meaning`.
 */
static bool has_reference(const struct run_key_reader *reader, const struct run_architecture *row,
                          enum run_attention_rules meaning)
{
    const char *layout = run_read_string(reader, ".tensor_data_layout");

    return row->attention & meaning && layout && strcmp(layout, "reference") == 0;
}

static bool has_big_alibi(const struct run_hparams *hparams)
{
    return hparams->is_big && hparams->architecture->attention & RUN_BIG_ALIBI;
}

static void read_key(void *reader, const char *key, size_t layer, uint32_t most, uint32_t *value)
{
    run_read_u32_at(reader, key, layer, most, value);
}

static bool is_array(void *reader, const char *key)
{
    size_t n;

    return run_metadata_is_array(((struct run_key_reader *)reader)->metadata, key, &n);
}

static void read_shapes(struct run_key_reader *reader, struct run_hparams *hparams)
{
    const struct gguf_shape_keys keys = {
        .architecture = hparams->model,
        .n_layer = hparams->n_layer,
        .n_shapes = run_hparams_n_shapes(hparams),
        .n_stored = hparams->n_stored,
        .n_embd = hparams->n_embd,
        .n_context = hparams->n_context,
        .read = read_key,
        .is_array = is_array,
        .user = reader,
    };
    struct gguf_shapes all;
    const char *refusal = gguf_layer_shapes_read(&keys, hparams->layers, &all);

    if (refusal)
        run_read_refuse(reader, refusal);
    hparams->n_head = all.n_head;
    hparams->dim_k = all.dim_k;
    hparams->dim_v = all.dim_v;
    hparams->window = all.window;
}

static void read_rotation(struct run_key_reader *reader, struct run_hparams *hparams)
{
    const struct run_architecture *row = hparams->architecture;

    if (hparams->n_head == 0)
        return;
    hparams->n_rot = hparams->dim_k;
    run_read_u32(reader, ".rope.dimension_count", MAX_HEAD_WIDTH, &hparams->n_rot);
    hparams->n_rot_windowed = hparams->n_rot;
    run_read_u32(reader, ".rope.dimension_count_swa", MAX_HEAD_WIDTH, &hparams->n_rot_windowed);
    if (hparams->n_rot % 2 != 0 || hparams->n_rot_windowed % 2 != 0)
        run_read_refuse(reader, "rope.dimension_count is odd");
    if (row->attention & RUN_HALVES_DENSE)
        hparams->n_rot = hparams->n_rot / 4 * 2;
}

static float read_scale(struct run_key_reader *reader, const struct run_hparams *hparams)
{
    const struct run_architecture *row = hparams->architecture;
    const uint32_t n_head = hparams->n_head;
    float scale = 1;

    if (n_head > 0 && hparams->dim_k > 0)
        scale = row->attention & RUN_SCALE_BY_WIDTH ? 1 / (float)hparams->dim_k
                                                    : 1 / sqrtf((float)hparams->dim_k);
    if (n_head > 0 && hparams->is_big && row->attention & RUN_BIG_SCALE_BY_N_EMBD)
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
    hparams->max_alibi = has_big_alibi(hparams) ? 8 : 0;
    run_read_float(reader, ".attention.max_alibi_bias", &hparams->max_alibi);
    hparams->qk_plain_norm = row->attention & RUN_QK_PLAIN_NORM &&
                             !(hparams->is_big && row->attention & RUN_BIG_WITHOUT_QK_NORM);
    hparams->qkv_in_groups = has_reference(reader, row, RUN_REFERENCE_GROUPS);
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
    if (hparams->architecture->attention & RUN_MULTIPLIER_SCALES)
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
    uint32_t *length = &hparams->temperature_length;

    hparams->temperature_of_unrotated =
        hparams->architecture->attention &
        (RUN_ROTATES_WINDOWED | RUN_ROTATES_NOT_EVERY_FOURTH | RUN_ROTATES_LEADING);
    run_read_float(reader, ".attention.temperature_scale", &hparams->temperature_scale);
    if (hparams->temperature_scale == 0)
        return;
    *length = hparams->n_context;
    run_read_u32(reader, ".rope.scaling.original_context_length", INT32_MAX, length);
    run_read_u32(reader, ".attention.temperature_length", INT32_MAX, length);
    if (*length == 0)
        run_read_refuse(reader, "attention.temperature_scale without a length");
}

static bool is_rotated(const struct run_hparams *hparams, uint32_t index, uint32_t n_leading)
{
    const enum run_attention_rules rules = hparams->architecture->attention;
    const bool is_windowed = hparams->layers[index].is_windowed;

    if (rules & RUN_ROTATES_WINDOWED)
        return hparams->window == 0 || is_windowed;
    if (rules & RUN_ROTATES_NOT_EVERY_FOURTH)
        return (index + 1) % 4 != 0 || (rules & RUN_CHUNKED_WINDOWS && hparams->window == 0);
    return !(rules & RUN_ROTATES_LEADING) || is_windowed || index < n_leading;
}

static void read_rotated(struct run_key_reader *reader, struct run_hparams *hparams)
{
    uint32_t n_leading = 0;

    if (hparams->architecture->attention & RUN_ROTATES_LEADING)
        run_read_u32(reader, ".leading_dense_block_count", GGUF_MAX_LAYERS, &n_leading);
    for (uint32_t i = 0; i < run_hparams_n_shapes(hparams); i++)
        hparams->layers[i].is_rotated = is_rotated(hparams, i, n_leading);
}

static void read_indexer(struct run_key_reader *reader, struct run_hparams *hparams)
{
    struct run_index *indexer = &hparams->indexer;

    if (!(hparams->architecture->attention & (RUN_INDEXER_NORMAL | RUN_INDEXER_NEOX)))
        return;
    run_need_u32(reader, ".attention.indexer.head_count", MAX_HEADS, &indexer->n_heads);
    run_need_u32(reader, ".attention.indexer.key_length", MAX_HEAD_WIDTH, &indexer->width);
    run_need_u32(reader, ".attention.indexer.top_k", INT32_MAX, &indexer->n_best);
    run_read_u32(reader, ".attention.indexer.block_size", INT32_MAX, &indexer->block);
    run_read_u32(reader, ".attention.indexer.local_blocks", INT32_MAX, &indexer->n_local_blocks);
    if (hparams->n_rot > indexer->width)
        run_read_refuse(reader, "attention.indexer.key_length is below rope.dimension_count");
}

void run_hparams_read_attention(struct run_key_reader *reader, struct run_hparams *hparams)
{
    read_shapes(reader, hparams);
    read_rotation(reader, hparams);
    read_scores(reader, hparams);
    read_latent(reader, hparams);
    read_temperature(reader, hparams);
    read_rotated(reader, hparams);
    read_indexer(reader, hparams);
}

/* ---- rotation ---- */

/* YaRN's factor for queries and keys, section 3.4 of its paper. */
static float yarn_magnitude(float factor, float multiplier)
{
    return factor <= 1 ? 1 : 0.1f * multiplier * logf(factor) + 1;
}

static void read_yarn(struct run_key_reader *reader, const struct run_hparams *hparams,
                      struct run_rotary *rotary, struct run_rotary_scaling *scaling)
{
    const enum run_attention_rules rules = hparams->architecture->attention;
    float mix = -1, multiplier = 0;

    scaling->yarn_mix = 1;
    run_read_float(reader, ".rope.scaling.yarn_ext_factor", &mix);
    if (mix >= 0)
        scaling->yarn_mix = mix;
    run_read_float(reader, ".rope.scaling.yarn_beta_fast", &scaling->beta_fast);
    run_read_float(reader, ".rope.scaling.yarn_beta_slow", &scaling->beta_slow);
    run_read_float(reader, ".rope.scaling.yarn_log_multiplier", &multiplier);
    if (scaling->yarn_mix == 0)
        return;
    /* The factor may be part of the attention's scale, see read_latent(). */
    if (rules & RUN_MULTIPLIER_SCALES && multiplier != 0)
        return;
    rotary->magnitude *= yarn_magnitude(scaling->factor, 1);
    if (rules & RUN_MULTIPLIER_DIVIDES)
        rotary->magnitude /= yarn_magnitude(scaling->factor, multiplier);
}

/* Return true if the key's array has a number that is not 0. */
static bool has_sections(const struct run_metadata *metadata)
{
    static const char key[] = ".rope.dimension_sections";
    struct run_failure ignored;
    double number = 0;
    size_t n;

    run_metadata_is_array(metadata, key, &n);
    for (size_t i = 0; i < n && number == 0; i++)
        run_metadata_number(metadata, key, i, NULL, &number, &ignored);
    return number != 0;
}

static enum run_rotary_kind choose_kind(struct run_key_reader *reader,
                                        const struct run_hparams *hparams)
{
    const struct run_architecture *row = hparams->architecture;

    if (has_big_alibi(hparams))
        return RUN_ROTARY_NONE;
    if (gguf_key_rule(hparams->model, "rope.scaling.finetuned", NULL) != GGUF_KEY_UNUSED &&
        !run_read_bool(reader, ".rope.scaling.finetuned"))
        return RUN_ROTARY_NONE;
    if (has_reference(reader, row, RUN_REFERENCE_NEOX))
        return RUN_ROTARY_NEOX;
    return row->attention & RUN_SECTIONS_MEAN_NEOX && has_sections(reader->metadata)
               ? RUN_ROTARY_NEOX
               : row->rotary;
}

static void read_base(struct run_key_reader *reader, const struct run_hparams *hparams,
                      bool is_windowed, float *base)
{
    float alpha = 0;

    run_read_float(reader, ".rope.freq_base", base);
    run_read_float(reader, ".rope.scaling.alpha", &alpha);
    if (alpha > 0 && hparams->dim_k > 2)
        *base *= powf(alpha, (float)hparams->dim_k / (float)(hparams->dim_k - 2));
    if (is_windowed)
        run_read_float(reader, ".rope.freq_base_swa", base);
    if (!(*base > 1))
        run_read_refuse(reader, "rope.freq_base is not above 1");
}

int run_hparams_rotary(const struct run_hparams *hparams, const struct run_metadata *metadata,
                       bool is_windowed, struct run_rotary *rotary,
                       struct run_rotary_scaling *scaling, struct run_failure *failure)
{
    const struct run_architecture *row = hparams->architecture;
    struct run_key_reader reader = {
        .metadata = metadata, .model = hparams->model, .failure = failure};
    const char *type = run_read_string(&reader, ".rope.scaling.type");
    float factor = 0;

    *rotary = (struct run_rotary){
        .kind = choose_kind(&reader, hparams),
        .n_rot = is_windowed ? hparams->n_rot_windowed : hparams->n_rot,
        .magnitude = 1,
    };
    *scaling = (struct run_rotary_scaling){
        .factor = 1,
    };
    read_base(&reader, hparams, is_windowed, &scaling->base);
    scaling->n_original = hparams->n_context;
    run_read_u32(&reader, ".rope.scaling.original_context_length", INT32_MAX, &scaling->n_original);
    if ((type && strcmp(type, "none") == 0) ||
        (is_windowed && row->attention & RUN_UNSCALED_WINDOWS))
        return reader.code;
    run_read_float(&reader, ".rope.scale_linear", &factor);
    run_read_float(&reader, ".rope.scaling.factor", &factor);
    if (factor < 0)
        run_read_refuse(&reader, "rope.scaling.factor is negative");
    if (factor > 0)
        scaling->factor = factor;
    run_read_float(&reader, ".rope.scaling.attn_factor", &rotary->magnitude);
    if (type && strcmp(type, "yarn") == 0)
        read_yarn(&reader, hparams, rotary, scaling);
    return reader.code;
}
