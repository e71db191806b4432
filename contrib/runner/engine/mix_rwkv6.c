/* The time mixing of RWKV 5 and 6, and of RWKV6-Qwen2, around compute/wkv.h. */
#include "contrib/runner/compute/thread_pool.h"
#include "contrib/runner/compute/wkv.h"
#include "contrib/runner/engine/mixer.h"
#include "contrib/runner/engine/rwkv_parts.h"

#include <math.h>
#include <string.h>

/* The inputs interpolated between a token and the one before it, in the order of the weights. */
enum rwkv6_input {
    RWKV6_DECAY,
    RWKV6_KEY,
    RWKV6_VALUE,
    RWKV6_RECEPTANCE,
    RWKV6_GATE,
    RWKV6_INPUTS
};

struct rwkv6_layer {
    struct run_token_shift shift;
    const float *lerps[RWKV6_INPUTS]; /* [n_embd] each, of version 5 */
    const float *mix_lerp;            /* [n_embd]: makes the input of `mix` … */
    struct run_low_rank mix;          /* … which makes the lerps of a token, in version 6 */
    struct run_linear key, value, receptance, gate, output; /* 5.1 has no gate */
    size_t n_head_kv; /* fewer than heads in RWKV6-Qwen2, where neighbours share keys and values */
    const float *constant_decay; /* [n_embd], of version 5 */
    struct run_low_rank decay;   /* of a token, of version 6 */
    const float *bonus;          /* [n_embd]; RWKV6-Qwen2, gated linear attention, has none */
    struct run_norm_layer norm;  /* of each head's result */
    struct run_wkv wkv;
};

/* Epsilons of the norm of heads, from rwkv.cpp (5) and from the models' own code (6). */
static const float head_epsilon_5 = 1e-5f, head_epsilon_6 = 64e-5f;

/* Elements of the decay in a piece of work. */
#define PIECE_ELEMENTS 1024

static void load_inputs_5(struct run_loader *loader, uint64_t n_embd, struct rwkv6_layer *layer)
{
    layer->lerps[RWKV6_KEY] =
        run_load_rwkv_lerp(loader, "time_mix_lerp_k.weight", "att.time_mix_k", n_embd);
    layer->lerps[RWKV6_VALUE] =
        run_load_rwkv_lerp(loader, "time_mix_lerp_v.weight", "att.time_mix_v", n_embd);
    layer->lerps[RWKV6_RECEPTANCE] =
        run_load_rwkv_lerp(loader, "time_mix_lerp_r.weight", "att.time_mix_r", n_embd);
    if (layer->gate.weight.data)
        layer->lerps[RWKV6_GATE] =
            run_load_rwkv_lerp(loader, "time_mix_lerp_g.weight", "att.time_mix_g", n_embd);
}

/* The constant parts of the lerps; newer files have them in one tensor. */
static const float *load_mix_bias(struct run_loader *loader, uint64_t n_embd)
{
    static const char *const names[RWKV6_INPUTS] = {
        "time_mix_lerp_w.weight", "time_mix_lerp_k.weight", "time_mix_lerp_v.weight",
        "time_mix_lerp_r.weight", "time_mix_lerp_g.weight"};
    float *all;

    if (run_loader_has(loader, "time_mix_lerp_fused.weight"))
        return run_load_vector(loader, "time_mix_lerp_fused.weight", RWKV6_INPUTS * n_embd);
    all = run_load_memory(loader, RWKV6_INPUTS, n_embd);
    for (size_t i = 0; i < RWKV6_INPUTS; i++) {
        const float *one = run_load_vector(loader, names[i], n_embd);

        if (one && all)
            memcpy(all + i * n_embd, one, n_embd * sizeof *one);
    }
    return all;
}

static void load_inputs_6(struct run_loader *loader, uint64_t n_embd, struct rwkv6_layer *layer)
{
    layer->mix_lerp = run_load_vector(loader, "time_mix_lerp_x.weight", n_embd);
    run_low_rank_load(loader, "time_mix_w", '1', n_embd, n_embd, RWKV6_INPUTS, RUN_TANH,
                      load_mix_bias(loader, n_embd), &layer->mix);
    run_low_rank_load(loader, "time_mix_decay_w", '1', n_embd, n_embd, 1, RUN_TANH,
                      run_load_rwkv(loader, "time_mix_decay.weight", "att.time_decay", n_embd),
                      &layer->decay);
}

static void load_products(struct run_loader *loader, const struct run_hparams *hparams,
                          struct rwkv6_layer *layer)
{
    const uint64_t n_embd = hparams->n_embd, width = hparams->wkv_head_size;
    const uint64_t n_k = run_load_n_rows(loader, "time_mix_key.weight");

    layer->n_head_kv = n_k / width;
    if (layer->n_head_kv == 0 || n_k % width != 0 || n_embd / width % layer->n_head_kv != 0)
        run_loader_refuse(loader,
                          "tensors/%stime_mix_key.weight: %llu rows are not heads of %llu rows "
                          "whose number divides the %llu heads",
                          loader->prefix, (unsigned long long)n_k, (unsigned long long)width,
                          (unsigned long long)(n_embd / width));
    run_load_linear(loader, "time_mix_key", n_embd, n_k, &layer->key);
    run_load_linear(loader, "time_mix_value", n_embd, n_k, &layer->value);
    run_load_linear(loader, "time_mix_receptance", n_embd, n_embd, &layer->receptance);
    run_load_linear_if(loader, "time_mix_gate", n_embd, n_embd, &layer->gate);
    run_load_linear(loader, "time_mix_output", n_embd, n_embd, &layer->output);
}

static void load(struct run_loader *loader, const struct run_mixer_place *place, void *mixer)
{
    const struct run_hparams *hparams = place->hparams;
    struct rwkv6_layer *layer = mixer;
    const uint64_t n_embd = hparams->n_embd, width = hparams->wkv_head_size;
    const uint64_t n_head = n_embd / width;
    const bool is_5 = hparams->rwkv_version == 5;

    load_products(loader, hparams, layer);
    if (is_5) {
        load_inputs_5(loader, n_embd, layer);
        layer->constant_decay =
            run_load_rwkv_heads(loader, "time_mix_decay.weight", "att.time_decay", n_head, width);
    } else {
        load_inputs_6(loader, n_embd, layer);
    }
    run_load_rwkv_norm(loader, hparams, is_5 ? head_epsilon_5 : head_epsilon_6, &layer->norm);
    /* RWKV 5.1 uses another name for the bonus. RWKV6-Qwen2 has neither norm nor bonus. */
    if (is_5 || layer->norm.is_there)
        layer->bonus = run_load_rwkv_heads(
            loader, "time_mix_first.weight",
            layer->gate.weight.data ? "att.time_faaaa" : "att.time_first", n_head, width);
    run_token_shift_load(loader, n_embd, &layer->shift);
    layer->wkv = (struct run_wkv){
        .n_head = n_head, .width = width, .state = run_load_state(loader, width, n_embd, 0)};
}

/* The inputs of the products, [n][n_embd] each. */
struct inputs {
    const float *x, *difference;
    float *mixed; /* the input of the lerps */
    float *lerp, *input;
};

/* Interpolates between each token and the one before it, for one kind of product. */
static void make_input(const struct rwkv6_layer *layer, const struct run_pass *pass,
                       const struct inputs *in, enum rwkv6_input which)
{
    const size_t n_embd = pass->hparams->n_embd;
    const float *lerp = layer->lerps[which] ? layer->lerps[which] : in->lerp;

    if (!layer->lerps[which])
        run_low_rank_apply(&layer->mix, pass, which, in->mixed, in->lerp);
    run_lerp(in->x, in->difference, lerp, lerp == in->lerp ? n_embd : 0, pass->n, n_embd,
             in->input);
}

static void multiply(const struct rwkv6_layer *layer, const struct run_pass *pass,
                     const struct inputs *in, enum rwkv6_input which,
                     const struct run_linear *linear, float *out)
{
    make_input(layer, pass, in, which);
    run_linear_apply(linear, 0, in->input, pass->n, out);
}

/* decay = exp(-exp(decay)) */
static void finish_decay(void *context, size_t first, size_t end)
{
    float *decay = context;

    for (size_t i = first; i < end; i++)
        decay[i] = expf(-expf(decay[i]));
}

/* The decay of version 6: exp(-exp(low-rank product of the token)). */
static void make_decay(const struct rwkv6_layer *layer, const struct run_pass *pass,
                       const struct inputs *in, float *decay)
{
    make_input(layer, pass, in, RWKV6_DECAY);
    run_low_rank_apply(&layer->decay, pass, 0, in->input, decay);
    run_parallel_for(pass->n * pass->hparams->n_embd, PIECE_ELEMENTS, finish_decay, decay);
}

/* Repeats keys or values for the heads that share them, in place: [n][n_head_kv] to [n][n_head],
 * from the end. */
static void repeat_heads(const struct rwkv6_layer *layer, size_t n, float *rows)
{
    const size_t width = layer->wkv.width, n_shared = layer->wkv.n_head / layer->n_head_kv;

    for (size_t i = n * layer->wkv.n_head; n_shared > 1 && i-- > 0;)
        memmove(rows + i * width, rows + i / n_shared * width, width * sizeof *rows);
}

/* Gated linear attention: keys are multiplied by 1 - decay. */
static void scale_keys(const float *decay, size_t n, float *keys)
{
    for (size_t i = 0; i < n; i++)
        keys[i] *= 1 - decay[i];
}

static void find(const struct rwkv6_layer *layer, const struct run_pass *pass,
                 const struct inputs *in, float *found)
{
    const size_t n = pass->n, n_embd = pass->hparams->n_embd;
    float *r = run_scratch_take(pass->scratch, n * n_embd);
    float *k = run_scratch_take(pass->scratch, n * n_embd);
    float *v = run_scratch_take(pass->scratch, n * n_embd);
    float *w = run_scratch_take(pass->scratch, n * n_embd);
    struct run_wkv_input input = {
        .r = r, .k = k, .v = v, .w = w, .w_stride = n_embd, .u = layer->bonus};

    multiply(layer, pass, in, RWKV6_RECEPTANCE, &layer->receptance, r);
    multiply(layer, pass, in, RWKV6_KEY, &layer->key, k);
    multiply(layer, pass, in, RWKV6_VALUE, &layer->value, v);
    if (layer->constant_decay) {
        input.w = layer->constant_decay;
        input.w_stride = 0;
    } else {
        make_decay(layer, pass, in, w);
    }
    repeat_heads(layer, n, k);
    repeat_heads(layer, n, v);
    if (layer->bonus) {
        run_wkv6(&layer->wkv, &input, n, found);
    } else {
        scale_keys(w, n * n_embd, k);
        run_gated_linear_attention(&layer->wkv, &input, n, found);
    }
    run_norm_apply(&layer->norm, found, n * layer->wkv.n_head, layer->wkv.width, found);
}

static void apply(void *mixer, const struct run_pass *pass, const float *x, float *out)
{
    const struct rwkv6_layer *layer = mixer;
    const size_t n = pass->n, n_embd = pass->hparams->n_embd;
    float *difference = run_scratch_take(pass->scratch, n * n_embd);
    float *found = run_scratch_take(pass->scratch, n * n_embd);
    float *gate = run_scratch_take(pass->scratch, n * n_embd);
    const struct inputs in = {
        .x = x,
        .difference = difference,
        .mixed = run_scratch_take(pass->scratch, n * n_embd),
        .lerp = run_scratch_take(pass->scratch, n * n_embd),
        .input = run_scratch_take(pass->scratch, n * n_embd),
    };

    run_token_shift(&layer->shift, x, n, difference);
    if (layer->mix_lerp)
        run_lerp(x, difference, layer->mix_lerp, 0, n, n_embd, in.mixed);
    find(layer, pass, &in, found);
    if (layer->gate.weight.data) {
        multiply(layer, pass, &in, RWKV6_GATE, &layer->gate, gate);
        run_activate_gated(layer->bonus ? RUN_SILU : RUN_SIGMOID, gate, found, n * n_embd);
        found = gate;
    }
    run_linear_apply(&layer->output, 0, found, n, out);
}

const struct run_mixer_ops run_rwkv6_mixer = {
    .n_bytes = sizeof(struct rwkv6_layer),
    .load = load,
    .apply = apply,
};
