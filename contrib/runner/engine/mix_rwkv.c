/* The time mixing of RWKV 4, 5 and 6, and of RWKV6-Qwen2, around compute/recurrences.h. */
#include "contrib/runner/compute/thread_pool.h"
#include "contrib/runner/engine/mixer.h"
#include "contrib/runner/engine/recurrent_parts.h"

#include <math.h>
#include <string.h>

/* The inputs interpolated between a token and the one before it, in the order of the weights. */
enum rwkv_input { RWKV_DECAY, RWKV_KEY, RWKV_VALUE, RWKV_RECEPTANCE, RWKV_GATE, RWKV_INPUTS };

static const struct {
    const char *name, *own_name;
} lerp_names[RWKV_INPUTS] = {
    {"time_mix_lerp_w.weight", NULL},
    {"time_mix_lerp_k.weight", "att.time_mix_k"},
    {"time_mix_lerp_v.weight", "att.time_mix_v"},
    {"time_mix_lerp_r.weight", "att.time_mix_r"},
    {"time_mix_lerp_g.weight", "att.time_mix_g"},
};

struct rwkv_layer {
    float *last;                     /* [n_embd]: the token before the first */
    const float *lerps[RWKV_INPUTS]; /* [n_embd] each, before version 6 */
    const float *mix_lerp;           /* [n_embd]: makes the input of `mix` … */
    struct run_low_rank mix;         /* … which makes the lerps of a token, in version 6 */
    struct run_linear key, value, receptance, output;
    struct run_linear gate; /* 5.1 and versions before have none */
    size_t n_head_kv; /* fewer than heads in RWKV6-Qwen2, where neighbours share keys and values */
    const float *constant_decay; /* [n_embd], before version 6 */
    struct run_low_rank decay;   /* of a token, of version 6 */
    const float *bonus;          /* [n_embd]; RWKV6-Qwen2, gated linear attention, has none */
    struct run_norm_layer norm;  /* of each head's result; not in version 4 */
    struct run_wkv4 wkv4;        /* of version 4, or … */
    struct run_wkv wkv;          /* … later ones */
};

/* Epsilons of the norm of heads, from rwkv.cpp (5) and from the models' own code (6). */
static const float head_epsilon_5 = 1e-5f, head_epsilon_6 = 64e-5f;

/* Elements of the decay in a piece of work. */
#define PIECE_ELEMENTS 1024

/* The constant parts of the lerps; newer files have them in one tensor. */
static const float *load_mix_bias(struct run_loader *loader, uint64_t n_embd)
{
    float *all;

    if (run_loader_has(loader, "time_mix_lerp_fused.weight"))
        return run_load_vector(loader, "time_mix_lerp_fused.weight", RWKV_INPUTS * n_embd);
    all = run_load_memory(loader, RWKV_INPUTS, n_embd);
    for (size_t i = 0; i < RWKV_INPUTS; i++) {
        const float *one = run_load_vector(loader, lerp_names[i].name, n_embd);

        if (one && all)
            memcpy(all + i * n_embd, one, n_embd * sizeof *one);
    }
    return all;
}

static void load_inputs(struct run_loader *loader, uint32_t version, uint64_t n_embd,
                        struct rwkv_layer *layer)
{
    for (size_t i = RWKV_KEY; i < RWKV_INPUTS && version < 6; i++)
        if (i != RWKV_GATE || layer->gate.weight.data)
            layer->lerps[i] =
                run_load_rwkv_lerp(loader, lerp_names[i].name, lerp_names[i].own_name, n_embd);
    if (version < 6)
        return;
    layer->mix_lerp = run_load_vector(loader, "time_mix_lerp_x.weight", n_embd);
    run_low_rank_load(loader, "time_mix_w", '1', n_embd, n_embd, RWKV_INPUTS, RUN_TANH,
                      load_mix_bias(loader, n_embd), &layer->mix);
    run_low_rank_load(loader, "time_mix_decay_w", '1', n_embd, n_embd, 1, RUN_TANH,
                      run_load_rwkv(loader, "time_mix_decay.weight", "att.time_decay", n_embd),
                      &layer->decay);
}

static void load_products(struct run_loader *loader, const struct run_hparams *hparams,
                          struct rwkv_layer *layer)
{
    const bool has_heads = hparams->rwkv_version > 4;
    const uint64_t n_embd = hparams->n_embd, width = has_heads ? hparams->wkv_head_size : n_embd;
    const uint64_t n_k = has_heads ? run_load_n_rows(loader, "time_mix_key.weight") : n_embd;

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
    if (has_heads)
        run_load_linear_if(loader, "time_mix_gate", n_embd, n_embd, &layer->gate);
    run_load_linear(loader, "time_mix_output", n_embd, n_embd, &layer->output);
}

static void load_recurrence_4(struct run_loader *loader, uint64_t n_embd, struct rwkv_layer *layer)
{
    layer->constant_decay =
        run_load_rwkv(loader, "time_mix_decay.weight", "att.time_decay", n_embd);
    layer->bonus = run_load_rwkv(loader, "time_mix_first.weight", "att.time_first", n_embd);
    layer->wkv4 = (struct run_wkv4){
        .width = n_embd,
        .sums = run_load_state(loader, 2, n_embd, 0),
        .exponents = run_load_state(loader, 1, n_embd, RUN_WKV4_LEAST_EXPONENT),
    };
}

static void load_recurrence(struct run_loader *loader, const struct run_hparams *hparams,
                            struct rwkv_layer *layer)
{
    const uint64_t width = hparams->wkv_head_size, n_head = hparams->n_embd / width;
    const bool is_5 = hparams->rwkv_version == 5;

    if (is_5)
        layer->constant_decay =
            run_load_rwkv_heads(loader, "time_mix_decay.weight", "att.time_decay", n_head, width);
    run_load_rwkv_norm(loader, hparams, is_5 ? head_epsilon_5 : head_epsilon_6, &layer->norm);
    /* RWKV 5.1 uses another name for the bonus. RWKV6-Qwen2 has neither norm nor bonus. */
    if (is_5 || layer->norm.is_there)
        layer->bonus = run_load_rwkv_heads(
            loader, "time_mix_first.weight",
            layer->gate.weight.data ? "att.time_faaaa" : "att.time_first", n_head, width);
    layer->wkv = (struct run_wkv){
        .rule = layer->bonus ? RUN_WKV6 : RUN_GATED_LINEAR,
        .n_head = n_head,
        .width = width,
        .state = run_load_state(loader, width, hparams->n_embd, 0),
    };
}

static void load(struct run_loader *loader, const struct run_mixer_place *place, void *mixer)
{
    const struct run_hparams *hparams = place->hparams;
    struct rwkv_layer *layer = mixer;

    load_products(loader, hparams, layer);
    load_inputs(loader, hparams->rwkv_version, hparams->n_embd, layer);
    if (hparams->rwkv_version == 4)
        load_recurrence_4(loader, hparams->n_embd, layer);
    else
        load_recurrence(loader, hparams, layer);
    layer->last = run_load_state(loader, 1, hparams->n_embd, 0);
}

/* The inputs of the products, [n][n_embd] each. */
struct inputs {
    const float *x, *difference;
    float *mixed; /* the input of the lerps */
    float *lerp, *input;
};

/* Interpolates between each token and the one before it, for one kind of product. */
static void make_input(const struct rwkv_layer *layer, const struct run_pass *pass,
                       const struct inputs *in, enum rwkv_input which)
{
    const float *lerp = layer->lerps[which];

    if (!lerp)
        run_low_rank_apply(&layer->mix, pass, which, in->mixed, in->lerp);
    run_lerp(pass, in->x, in->difference, lerp ? lerp : in->lerp, !lerp, in->input);
}

static void multiply(const struct rwkv_layer *layer, const struct run_pass *pass,
                     const struct inputs *in, enum rwkv_input which,
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

/* Repeats keys or values for the heads that share them, in place: [n][n_head_kv] to [n][n_head],
 * from the end. */
static void repeat_heads(const struct rwkv_layer *layer, size_t n, float *rows)
{
    const size_t width = layer->wkv.width, n_shared = layer->wkv.n_head / layer->n_head_kv;

    for (size_t i = n * layer->wkv.n_head; n_shared > 1 && i-- > 0;)
        memmove(rows + i * width, rows + i / n_shared * width, width * sizeof *rows);
}

/* found = the results of the heads, for the receptance r, keys and values. */
static void find(const struct rwkv_layer *layer, const struct run_pass *pass,
                 const struct inputs *in, const float *r, float *k, float *v, float *found)
{
    const size_t n = pass->n, n_embd = pass->hparams->n_embd;
    float *w = run_scratch_take(pass->scratch, n * n_embd);
    struct run_wkv_input input = {
        .r = r, .k = k, .v = v, .w = w, .w_stride = n_embd, .u = layer->bonus};

    if (layer->constant_decay) {
        input.w = layer->constant_decay;
        input.w_stride = 0;
    } else {
        make_input(layer, pass, in, RWKV_DECAY);
        run_low_rank_apply(&layer->decay, pass, 0, in->input, w);
        run_parallel_for(n * n_embd, PIECE_ELEMENTS, finish_decay, w);
    }
    repeat_heads(layer, n, k);
    repeat_heads(layer, n, v);
    /* In gated linear attention, keys are multiplied by 1 - decay. */
    for (size_t i = 0; !layer->bonus && i < n * n_embd; i++)
        k[i] *= 1 - w[i];
    run_wkv(&layer->wkv, &input, n, found);
    run_norm_apply(&layer->norm, found, n * layer->wkv.n_head, layer->wkv.width, found);
}

static void apply(void *mixer, const struct run_pass *pass, const float *x, float *out)
{
    const struct rwkv_layer *layer = mixer;
    const size_t n = pass->n, size = n * pass->hparams->n_embd;
    float *difference = run_scratch_take(pass->scratch, size);
    float *found = run_scratch_take(pass->scratch, size);
    float *r = run_scratch_take(pass->scratch, size);
    float *k = run_scratch_take(pass->scratch, size);
    float *v = run_scratch_take(pass->scratch, size);
    const struct inputs in = {
        .x = x,
        .difference = difference,
        .mixed = run_scratch_take(pass->scratch, size),
        .lerp = run_scratch_take(pass->scratch, size),
        .input = run_scratch_take(pass->scratch, size),
    };

    run_token_shift(pass, layer->last, x, difference);
    if (layer->mix_lerp)
        run_lerp(pass, x, difference, layer->mix_lerp, false, in.mixed);
    multiply(layer, pass, &in, RWKV_RECEPTANCE, &layer->receptance, r);
    multiply(layer, pass, &in, RWKV_KEY, &layer->key, k);
    multiply(layer, pass, &in, RWKV_VALUE, &layer->value, v);
    if (layer->wkv4.sums)
        run_wkv4(&layer->wkv4, layer->constant_decay, layer->bonus, k, v, n, found);
    else
        find(layer, pass, &in, r, k, v, found);
    if (layer->gate.weight.data)
        multiply(layer, pass, &in, RWKV_GATE, &layer->gate, r);
    if (layer->gate.weight.data || layer->wkv4.sums) {
        run_activate_gated(layer->bonus && !layer->wkv4.sums ? RUN_SILU : RUN_SIGMOID, r, found,
                           size);
        found = r;
    }
    run_linear_apply(&layer->output, 0, found, n, out);
}

const struct run_mixer_ops run_rwkv_mixer = {
    .n_bytes = sizeof(struct rwkv_layer),
    .load = load,
    .apply = apply,
};
