#include "contrib/runner/engine/hparams.h"

#include "contrib/runner/engine/hparams_parts.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* RUN_SPARSE_GATES: in the first N_SPARSE_LAYERS, gates below mean + SPARSITY * deviation are 0. */
#define SPARSITY 1.6448533535003662f
enum { N_SPARSE_LAYERS = 10 };

/* The key of the epsilon that the lists require says which norms the architecture has. */
static void read_norms(struct run_key_reader *reader, struct run_hparams *hparams)
{
    const bool is_layer =
        gguf_key_rule(hparams->model, "attention.layer_norm_epsilon", NULL) != GGUF_KEY_UNUSED;
    const char *key = is_layer && run_read_has(reader, ".attention.layer_norm_epsilon")
                          ? ".attention.layer_norm_epsilon"
                          : ".attention.layer_norm_rms_epsilon";

    hparams->norm_kind = is_layer ? RUN_NORM_LAYER : RUN_NORM_RMS;
    run_read_float(reader, key, &hparams->norm_epsilon);
    if (!(hparams->norm_epsilon >= 0))
        run_read_refuse(reader, "the epsilon of norms is negative");
    hparams->has_swin_norm = run_read_bool(reader, ".swin_norm");
}

static void read_layers(struct run_key_reader *reader, struct run_hparams *hparams)
{
    for (size_t i = 0; i < run_hparams_n_shapes(hparams); i++) {
        struct gguf_layer_shape *layer = &hparams->layers[i];

        if (hparams->architecture->layers & RUN_SPARSE_GATES && i < N_SPARSE_LAYERS)
            layer->sparsity = SPARSITY;
        run_read_float_at(reader, ".swiglu_clamp_exp", i, &layer->clamp_experts);
        run_read_float_at(reader, ".swiglu_clamp_shexp", i, &layer->clamp);
    }
}

static void read_experts(struct run_key_reader *reader, struct run_hparams *hparams)
{
    struct run_experts_shape *experts = &hparams->experts;
    uint32_t gating = 0;

    experts->weights_scale = 1;
    if (experts->n == 0)
        return;
    run_need_u32(reader, ".expert_used_count", experts->n, &experts->n_used);
    run_read_u32(reader, ".expert_group_count", MAX_EXPERTS, &experts->n_groups);
    if (experts->n_groups > 1) {
        run_need_u32(reader, ".expert_group_used_count", experts->n_groups,
                     &experts->n_groups_used);
        if (experts->n % experts->n_groups != 0)
            run_read_refuse(reader, "expert_count is not a multiple of expert_group_count");
        else if (reader->code == 0 &&
                 experts->n / experts->n_groups * experts->n_groups_used < experts->n_used)
            run_read_refuse(
                reader, "expert_group_used_count groups have fewer than expert_used_count experts");
    }
    run_read_u32(reader, ".expert_gating_func", RUN_GATE_SOFTMAX_WEIGHT, &gating);
    experts->gating = gating == 0 ? RUN_GATE_SOFTMAX : gating;
    experts->weights_normed = run_read_bool(reader, ".expert_weights_norm");
    experts->weights_scale = run_read_scale(reader, ".expert_weights_scale", 1);
    if (run_read_has(reader, ".experts_per_group")) {
        run_need_u32(reader, ".experts_per_group", experts->n, &experts->per_chunk);
        run_read_float(reader, ".expert_group_scale", &experts->chunk_scale);
        if (experts->per_chunk > 0 && experts->n % experts->per_chunk == 0)
            experts->n_chunks = experts->n / experts->per_chunk;
        else
            run_read_refuse(reader, "expert_count is not a multiple of experts_per_group");
    }
}

static void read_scales(struct run_key_reader *reader, struct run_hparams *hparams)
{
    const struct run_architecture *row = hparams->architecture;
    float embedding = 1, logit = 1, residual = 1;

    if (row->layers & RUN_MINICPM_DEFAULTS) {
        embedding = 12;
        residual = 1.4f / sqrtf((float)hparams->n_layer);
        logit = (float)hparams->n_embd / 256;
    }
    if (row->layers & RUN_EMBEDDING_BY_ROOT)
        embedding = sqrtf((float)hparams->n_embd);
    hparams->embedding_scale = run_read_scale(reader, ".embedding_scale", embedding);
    hparams->residual_scale = run_read_scale(reader, ".residual_scale", residual);
    logit = run_read_scale(reader, ".logit_scale", logit);
    hparams->logit_scale = row->layers & RUN_LOGITS_DIVIDED ? 1 / logit : logit;
    run_read_float(reader, ".final_logit_softcapping", &hparams->final_softcap);
}

static void read_rwkv(struct run_key_reader *reader, struct run_hparams *hparams)
{
    uint32_t version = UINT32_MAX;

    run_read_u32(reader, ".architecture_version", UINT32_MAX - 1, &version);
    if (version == UINT32_MAX || reader->code < 0)
        return; /* not RWKV */
    if (version < 4 || version > 7) {
        reader->code = run_fail(reader->failure, -EINVAL,
                                "metadata: %s.architecture_version: %u is not 4, 5, 6 or 7",
                                hparams->name, version);
        return;
    }
    hparams->rwkv_version = version;
    if (hparams->rwkv_version > 4)
        run_need_u32(reader, ".wkv.head_size", hparams->n_embd, &hparams->wkv_head_size);
    if (hparams->wkv_head_size > 0 && hparams->n_embd % hparams->wkv_head_size != 0)
        run_read_refuse(reader, "embedding_length is not a multiple of wkv.head_size");
    run_read_u32(reader, ".rescale_every_n_layers", INT32_MAX, &hparams->rescaling_period);
}

static int find_architecture(const struct run_metadata *metadata, struct run_hparams *hparams,
                             struct run_failure *failure)
{
    const char *name = run_metadata_architecture(metadata);

    if (name[0] == '\0')
        return run_fail(
            failure, -ENOENT,
            "metadata: no general.architecture, which ggufs-run needs to run the model");
    hparams->name = name;
    hparams->architecture = run_architecture_find(name);
    hparams->model = gguf_architecture_find(name);
    if (!hparams->architecture || !hparams->model)
        return run_fail(failure, -ENOTSUP,
                        "metadata: general.architecture: \"%s\" is not supported", name);
    if (run_metadata_has_group(metadata, GGUF_ROTATION_KEYS))
        return run_fail(failure, -EINVAL,
                        "metadata: " GGUF_ROTATION_KEYS
                        "*: the weights are stored rotated, which ggufs-run does not undo; run the "
                        "model with the program that its publisher names");
    return 0;
}

/* Read the number of layers that only predict further tokens, and of repetitions of the others. */
static void read_n_layers(struct run_key_reader *reader, struct run_hparams *hparams)
{
    uint32_t n = 1;

    hparams->n_stored = hparams->n_layer;
    run_read_u32(reader, ".nextn_predict_layers", hparams->n_layer - 1, &hparams->n_nextn);
    hparams->n_layer -= hparams->n_nextn;
    run_read_u32(reader, ".num_loops", GGUF_MAX_LAYERS / hparams->n_layer, &n);
    if (n == 0)
        run_read_refuse(reader, "num_loops is 0");
    else
        hparams->n_layer *= n;
    hparams->has_loop_norm = !run_read_bool(reader, ".skip_loop_final_norm");
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

        /* Files store them as trained, before softplus. */
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
    reader.model = hparams->model;
    run_read_check(&reader);
    run_need_u32(&reader, ".block_count", GGUF_MAX_LAYERS, &hparams->n_layer);
    run_need_u32(&reader, ".embedding_length", MAX_WIDTH, &hparams->n_embd);
    run_read_u32(&reader, ".context_length", INT32_MAX, &hparams->n_context);
    run_read_u32(&reader, ".expert_count", MAX_EXPERTS, &hparams->experts.n);
    if (reader.code < 0)
        return reader.code;
    row = hparams->architecture;
    read_n_layers(&reader, hparams);
    reader.n_needed = hparams->n_layer;
    hparams->is_big =
        gguf_architecture_is_big(hparams->model, hparams->n_layer, hparams->experts.n);
    hparams->layers = calloc(run_hparams_n_shapes(hparams), sizeof *hparams->layers);
    if (!hparams->layers)
        return run_fail_memory(failure);
    read_norms(&reader, hparams);
    hparams->is_parallel =
        row->layers & RUN_PARALLEL ||
        (row->layers & RUN_PARALLEL_BY_KEY && run_read_bool(&reader, ".use_parallel_residual"));
    read_layers(&reader, hparams);
    run_hparams_read_attention(&reader, hparams);
    read_experts(&reader, hparams);
    read_scales(&reader, hparams);
    read_rwkv(&reader, hparams);
    run_read_u32(&reader, ".ssm.group_count", MAX_HEADS, &hparams->ssm_groups);
    hparams->ssm_norms = run_read_bool(&reader, ".ssm.dt_b_c_rms");
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
