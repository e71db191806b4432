#include "contrib/runner/engine/hparams_parts.h"

#include <math.h>
#include <string.h>

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
    float number = 0;
    size_t n;

    run_metadata_is_array(metadata, key, &n);
    for (size_t i = 0; i < n && number == 0; i++)
        run_metadata_float(metadata, key, i, &number, &ignored);
    return number != 0;
}

bool run_has_reference(const struct run_key_reader *reader, const struct run_architecture *row,
                       enum run_attention_rules meaning)
{
    const char *layout = run_read_string(reader, ".tensor_data_layout");

    return row->attention & meaning && layout && strcmp(layout, "reference") == 0;
}

static enum run_rotary_kind choose_kind(struct run_key_reader *reader,
                                        const struct run_hparams *hparams)
{
    const struct run_architecture *row = hparams->architecture;

    if (run_has_big_alibi(hparams))
        return RUN_ROTARY_NONE;
    if (gguf_key_rule(hparams->model, "rope.scaling.finetuned", NULL) != GGUF_KEY_UNUSED &&
        !run_read_bool(reader, ".rope.scaling.finetuned"))
        return RUN_ROTARY_NONE;
    if (run_has_reference(reader, row, RUN_REFERENCE_NEOX))
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
