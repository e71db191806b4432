#include "contrib/runner/engine/hparams.h"

#include "contrib/runner/engine/key_reader.h"

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
    float mix = -1, multiplier = 0;

    scaling->yarn_mix = 1;
    run_read_float(reader, ".rope.scaling.yarn_ext_factor", &mix);
    if (mix >= 0)
        scaling->yarn_mix = mix;
    run_read_float(reader, ".rope.scaling.yarn_beta_fast", &scaling->beta_fast);
    run_read_float(reader, ".rope.scaling.yarn_beta_slow", &scaling->beta_slow);
    if (hparams->architecture->has_log_multiplier)
        run_read_float(reader, ".rope.scaling.yarn_log_multiplier", &multiplier);
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
    struct run_key_reader reader = {.metadata = metadata, .failure = failure};
    const char *type = run_metadata_string(metadata, ".rope.scaling.type");
    const char *layout = run_metadata_string(metadata, ".tensor_data_layout");
    float factor = 0;

    *rotary = (struct run_rotary){.kind = row->rotary, .n_rot = hparams->n_rot, .magnitude = 1};
    *scaling =
        (struct run_rotary_scaling){.base = 10000, .factor = 1, .beta_fast = 32, .beta_slow = 1};
    if (row->alibi_layers > 0 && hparams->max_alibi > 0)
        rotary->kind = RUN_ROTARY_NONE;
    /* Rows of q and k in the order of the original: its pairs are half a head apart. */
    if (rotary->kind == RUN_ROTARY_NORMAL && layout && strcmp(layout, "reference") == 0)
        rotary->kind = RUN_ROTARY_NEOX;
    run_read_float(&reader, ".rope.freq_base", &scaling->base);
    if (is_windowed) {
        if (row->window_base != 0)
            scaling->base = row->window_base;
        run_read_float(&reader, ".rope.freq_base_swa", &scaling->base);
    }
    if (!(scaling->base > 1))
        run_read_refuse(&reader, "rope.freq_base is not above 1");
    scaling->n_original = hparams->n_context;
    run_read_u32(&reader, ".rope.scaling.original_context_length", INT32_MAX, &scaling->n_original);
    if ((type && strcmp(type, "none") == 0) || (is_windowed && row->window_is_unscaled))
        return reader.code;
    run_read_float(&reader, ".rope.scale", &factor);
    run_read_float(&reader, ".rope.scale_linear", &factor);
    run_read_float(&reader, ".rope.scaling.factor", &factor);
    if (factor < 0)
        run_read_refuse(&reader, "rope.scaling.factor is negative");
    if (factor > 0)
        scaling->factor = factor;
    if (run_metadata_find(metadata, ".rope.scaling.attn_factor"))
        run_read_float(&reader, ".rope.scaling.attn_factor", &rotary->magnitude);
    if (type && strcmp(type, "yarn") == 0)
        read_yarn(&reader, hparams, rotary, scaling);
    return reader.code;
}
