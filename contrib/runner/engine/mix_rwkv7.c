/* The time mixing of RWKV 7, and of ARWKV 7, around compute/recurrences.h. */
#include "contrib/runner/compute/thread_pool.h"
#include "contrib/runner/engine/mixer.h"
#include "contrib/runner/engine/recurrent_parts.h"

#include <math.h>
#include <string.h>

/* The inputs interpolated between a token and the one before it, in the order of the weights. */
enum rwkv7_input {
    RWKV7_RECEPTANCE,
    RWKV7_DECAY,
    RWKV7_KEY,
    RWKV7_VALUE,
    RWKV7_RATE,
    RWKV7_GATE,
    RWKV7_INPUTS
};

struct rwkv7_layer {
    bool is_first;      /* the first layer: the others mix its values with theirs */
    float *last;        /* [n_embd]: the token before the first */
    const float *lerps; /* [5 or 6][n_embd] */
    struct run_linear receptance, key, value, output;
    struct run_low_rank decay, rate;
    struct run_low_rank
        residual;             /* the share of the first layer's values; the first layer has none */
    struct run_low_rank gate; /* may be empty */
    const float *key_removal; /* [n_embd]: makes the removal key */
    const float *key_rate;    /* [n_embd]: the influence of the rate on keys */
    const float *bonus;       /* [n_embd] */
    struct run_norm_layer norm; /* of each head's result; may be absent */
    struct run_wkv wkv;
};

/* The epsilon of the norm of heads, and the least length of a key, from the models' own code. */
static const float head_epsilon = 64e-5f, least_length = 1e-12f;

/* Elements in a piece of work, and of the decay, which needs expf(). */
enum { PIECE_ELEMENTS = 8192, PIECE_EXPONENTIALS = 1024 };

static void load_gate(struct run_loader *loader, uint64_t n_embd, struct rwkv7_layer *layer)
{
    const bool has_gate = run_loader_has(loader, "time_mix_g1.weight");

    if (has_gate)
        run_low_rank_load(loader, "time_mix_g", '1', n_embd, n_embd, 1, RUN_SIGMOID, NULL,
                          &layer->gate);
    layer->lerps = run_load_rwkv(loader, "time_mix_lerp_fused.weight", "att.x_rwkvag",
                                 (has_gate ? RWKV7_INPUTS : RWKV7_GATE) * n_embd);
}

static void load_low_rank(struct run_loader *loader, const char *name, const char *bias_name,
                          uint64_t n_embd, enum run_activation activation,
                          struct run_low_rank *low_rank)
{
    run_low_rank_load(loader, name, '1', n_embd, n_embd, 1, activation,
                      run_load_vector(loader, bias_name, n_embd), low_rank);
}

static void load(struct run_loader *loader, const struct run_mixer_place *place, void *mixer)
{
    const struct run_hparams *hparams = place->hparams;
    struct rwkv7_layer *layer = mixer;
    const uint64_t n_embd = hparams->n_embd, width = hparams->wkv_head_size;

    run_load_linear(loader, "time_mix_receptance", n_embd, n_embd, &layer->receptance);
    run_load_linear(loader, "time_mix_key", n_embd, n_embd, &layer->key);
    run_load_linear(loader, "time_mix_value", n_embd, n_embd, &layer->value);
    run_load_linear(loader, "time_mix_output", n_embd, n_embd, &layer->output);
    load_gate(loader, n_embd, layer);
    load_low_rank(loader, "time_mix_w", "time_mix_w0.weight", n_embd, RUN_TANH, &layer->decay);
    load_low_rank(loader, "time_mix_a", "time_mix_a0.weight", n_embd, RUN_IDENTITY, &layer->rate);
    layer->is_first = place->index == 0;
    if (!layer->is_first)
        load_low_rank(loader, "time_mix_v", "time_mix_v0.weight", n_embd, RUN_IDENTITY,
                      &layer->residual);
    layer->key_removal = run_load_vector(loader, "time_mix_k_k.weight", n_embd);
    layer->key_rate = run_load_vector(loader, "time_mix_k_a.weight", n_embd);
    layer->bonus = run_load_rwkv(loader, "time_mix_r_k.weight", "att.r_k", n_embd);
    run_load_rwkv_norm(loader, hparams, head_epsilon, &layer->norm);
    layer->last = run_load_state(loader, 1, n_embd, 0);
    layer->wkv = (struct run_wkv){.rule = RUN_WKV7,
                                  .n_head = n_embd / width,
                                  .width = width,
                                  .state = run_load_state(loader, width, n_embd, 0)};
}

/* Intermediate results, [n][n_embd] each. */
struct work {
    const struct rwkv7_layer *layer;
    const struct run_pass *pass;
    const float *x;
    float *difference, *input;
    float *r, *w, *k, *v;
    float *removal, *replacement; /* of the state: -κ̂ and κ̂ · rate in the paper's words */
    float *found, *gate;
};

static const float *make_input(const struct work *work, enum rwkv7_input which)
{
    run_lerp(work->pass, work->x, work->difference,
             work->layer->lerps + which * work->pass->hparams->n_embd, false, work->input);
    return work->input;
}

/* w = exp(-sigmoid(…) / √e): never below 0.545. */
static void finish_decay(void *context, size_t first, size_t end)
{
    float *w = context;

    for (size_t i = first; i < end; i++)
        w[i] = expf(-run_sigmoid(w[i]) / sqrtf((float)M_E));
}

/* The first layer stores its values; the other layers interpolate between their own and those. */
static void make_values(const struct rwkv7_layer *layer, const struct run_pass *pass,
                        const struct work *work)
{
    const size_t n = pass->n * pass->hparams->n_embd;
    const float *input = make_input(work, RWKV7_VALUE);
    float *first = pass->first_values, *share = work->gate;

    run_linear_apply(&layer->value, 0, input, pass->n, work->v);
    if (layer->is_first) {
        memcpy(first, work->v, n * sizeof *first);
        return;
    }
    run_low_rank_apply(&layer->residual, pass, 0, input, share);
    run_activate(RUN_SIGMOID, NULL, share, n);
    for (size_t i = 0; i < n; i++)
        work->v[i] += (first[i] - work->v[i]) * share[i];
}

/*
 * Compute, from the key and rates of one head of a token, the vectors that are removed from the
 * state and that replace them.
 */
static void make_head(void *context, size_t head)
{
    const struct work *work = context;
    const struct rwkv7_layer *layer = work->layer;
    const size_t width = layer->wkv.width, at = head * width;
    const size_t channel = head % layer->wkv.n_head * width;
    const float *rate = work->gate;
    float *removal = work->removal + at, *replacement = work->replacement + at, *k = work->k + at;
    double sum = 0;
    float length;

    for (size_t i = 0; i < width; i++) {
        removal[i] = k[i] * layer->key_removal[channel + i];
        sum += (double)removal[i] * (double)removal[i];
    }
    length = fmaxf((float)sqrt(sum), least_length);
    for (size_t i = 0; i < width; i++) {
        const float direction = removal[i] / length;

        removal[i] = -direction;
        replacement[i] = direction * rate[at + i];
        k[i] *= 1 + (rate[at + i] - 1) * layer->key_rate[channel + i];
    }
}

/* found += v · (sum of r · k · bonus), head by head: the token's own contribution. */
static void add_bonus(void *context, size_t head)
{
    const struct work *work = context;
    const struct rwkv7_layer *layer = work->layer;
    const size_t width = layer->wkv.width, at = head * width;
    const float *bonus = layer->bonus + head % layer->wkv.n_head * width;
    double sum = 0;

    for (size_t i = 0; i < width; i++)
        sum += (double)work->r[at + i] * (double)work->k[at + i] * (double)bonus[i];
    for (size_t i = 0; i < width; i++)
        work->found[at + i] += work->v[at + i] * (float)sum;
}

static void apply(void *mixer, const struct run_pass *pass, const float *x, float *out)
{
    const struct rwkv7_layer *layer = mixer;
    const size_t n = pass->n, n_embd = pass->hparams->n_embd, size = n * n_embd;
    const size_t n_heads = n * layer->wkv.n_head;
    struct work work = {
        .layer = layer,
        .pass = pass,
        .x = x,
        .difference = run_scratch_take(pass->scratch, size),
        .input = run_scratch_take(pass->scratch, size),
        .r = run_scratch_take(pass->scratch, size),
        .w = run_scratch_take(pass->scratch, size),
        .k = run_scratch_take(pass->scratch, size),
        .v = run_scratch_take(pass->scratch, size),
        .removal = run_scratch_take(pass->scratch, size),
        .replacement = run_scratch_take(pass->scratch, size),
        .found = run_scratch_take(pass->scratch, size),
        .gate = run_scratch_take(pass->scratch, size),
    };

    run_token_shift(pass, layer->last, x, work.difference);
    run_linear_apply(&layer->receptance, 0, make_input(&work, RWKV7_RECEPTANCE), n, work.r);
    run_low_rank_apply(&layer->decay, pass, 0, make_input(&work, RWKV7_DECAY), work.w);
    run_parallel_for(size, PIECE_EXPONENTIALS, finish_decay, work.w);
    run_linear_apply(&layer->key, 0, make_input(&work, RWKV7_KEY), n, work.k);
    run_low_rank_apply(&layer->rate, pass, 0, make_input(&work, RWKV7_RATE), work.gate);
    run_activate(RUN_SIGMOID, NULL, work.gate, size);
    run_parallel_for_each(n_heads, run_grain(PIECE_ELEMENTS, layer->wkv.width), make_head, &work);
    make_values(layer, pass, &work);
    if (layer->gate.up.weight.data)
        run_low_rank_apply(&layer->gate, pass, 0, make_input(&work, RWKV7_GATE), work.gate);
    run_wkv(&layer->wkv,
            &(struct run_wkv_input){.r = work.r,
                                    .k = work.k,
                                    .v = work.v,
                                    .w = work.w,
                                    .w_stride = n_embd,
                                    .a = work.removal,
                                    .b = work.replacement},
            n, work.found);
    run_norm_apply(&layer->norm, work.found, n_heads, layer->wkv.width, work.found);
    run_parallel_for_each(n_heads, run_grain(PIECE_ELEMENTS, layer->wkv.width), add_bonus, &work);
    if (layer->gate.up.weight.data)
        run_activate_gated(RUN_IDENTITY, work.found, work.gate, size);
    run_linear_apply(&layer->output, 0, work.found, n, out);
}

const struct run_mixer_ops run_rwkv7_mixer = {
    .n_bytes = sizeof(struct rwkv7_layer),
    .load = load,
    .apply = apply,
};
