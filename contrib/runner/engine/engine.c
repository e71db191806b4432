#include "contrib/runner/engine/engine.h"

#include "contrib/runner/engine/nextn.h"
#include "gguf/models/memory.h"
#include "gguf/support/cache_rows.h"
#include "gguf/support/limits.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>

enum { DEFAULT_BATCH = 512, MAX_BATCH = 1 << 16, DEFAULT_CONTEXT = 4096 };
enum { LEAST_REWIND = 64 }; /* tokens that layers with a window can forget in any case */

struct run_engine {
    struct run_weights *weights;
    struct run_hparams hparams;
    struct run_arena arena;
    struct run_scratch scratch;
    struct run_selection selection;
    struct run_rotary rotary[2]; /* [0]: layers without a window, [1]: layers with one */
    struct run_linear embedding; /* rows are tokens */
    struct run_linear positions; /* [context][n_embd], added to embeddings; or empty */
    struct run_norm_layer embedding_norm, output_norm;
    struct run_linear output;
    struct run_altup_ends altup;
    struct run_per_layer_source per_layer;
    struct run_layer *layers;
    struct run_mixers *mixers; /* of each layer */
    struct run_nextn nextn;
    struct run_failure nextn_failure;
    struct run_engine_options options; /* without zeros */
    uint32_t n_vocab, n_past;
    uint32_t n_last;         /* tokens of the last pass */
    uint32_t n_most;         /* tokens fed at most since the last reset */
    uint32_t n_window_batch; /* of caches, see struct run_cache */
    uint64_t token_bytes;    /* see struct run_engine_counts */
};

static void load_ends(struct run_engine *engine, struct run_loader *loader)
{
    struct run_hparams *hparams = &engine->hparams;
    const uint64_t n_embd = hparams->n_embd;

    /* Tied embeddings: one tensor serves as both. CodeShell has it as `output`. */
    const char *embedding = run_loader_has(loader, "token_embd.weight") ? "token_embd" : "output";
    char name[32];
    uint64_t n_vocab;

    run_require_ends(loader, hparams);
    snprintf(name, sizeof name, "%s.weight", embedding);
    n_vocab = run_load_n_rows(loader, name);
    if (n_vocab > GGUF_MAX_TOKENS) { /* limits the memory for logits and candidates */
        run_loader_refuse(loader, "tensors/%s: %llu rows; a vocabulary may have %u tokens", name,
                          (unsigned long long)n_vocab, GGUF_MAX_TOKENS);
        return;
    }
    engine->n_vocab = (uint32_t)n_vocab;
    run_load_linear(loader, embedding, n_embd, engine->n_vocab, &engine->embedding);
    run_load_stream_norm_if(loader, hparams, "token_embd_norm", &engine->embedding_norm);
    run_load_linear_if(loader, "position_embd", n_embd,
                       run_load_n_rows(loader, "position_embd.weight"), &engine->positions);
    run_load_stream_norm_if(loader, hparams, "output_norm", &engine->output_norm);
    if (hparams->architecture->layers & RUN_PLAIN_LAYER_NORMS)
        engine->output_norm.is_there = true;
    if (hparams->architecture->layers & RUN_PLAIN_EMBEDDING_NORM)
        engine->embedding_norm.is_there = true;
    /* LFM2 calls its output norm token_embd_norm. */
    if (!engine->output_norm.is_there) {
        engine->output_norm = engine->embedding_norm;
        engine->embedding_norm.is_there = false;
    }
    run_altup_load_ends(loader, hparams, &engine->altup);
    run_per_layer_load_source(loader, hparams, engine->n_vocab, &engine->per_layer);
    run_load_linear_if(loader, "output", n_embd, engine->n_vocab, &engine->output);
    if (!engine->output.weight.data) {
        engine->output = engine->embedding;
        engine->output.bias = run_load_vector_if(loader, "output.bias", engine->n_vocab);
    }
}

/*
 * Return the divisors of the frequencies of n_rot rotated elements, or NULL if there are none: one
 * tensor for all lengths, or one for short and one for long contexts. If windowed layers rotate
 * more elements than the others, the others use the first divisors only.
 */
static const float *load_rope_factors(struct run_loader *loader, const struct run_hparams *hparams,
                                      bool is_long, uint32_t n_rot)
{
    static const char *const places[] = {"", "blk.0."};
    const char *name = is_long ? "rope_factors_long.weight" : "rope_factors_short.weight";

    for (size_t i = 0; i < 2; i++) {
        snprintf(loader->prefix, sizeof loader->prefix, "%s", places[i]);
        if (run_loader_has(loader, "rope_freqs.weight"))
            name = "rope_freqs.weight";
        if (run_loader_has(loader, name)) {
            const uint32_t n_windowed = hparams->n_rot_windowed / 2;
            const bool is_wider = run_load_n_elements(loader, name) == n_windowed;

            return run_load_vector(loader, name,
                                   is_wider && n_windowed > n_rot / 2 ? n_windowed : n_rot / 2);
        }
    }
    return NULL;
}

static void load_rotary(struct run_engine *engine, const struct run_metadata *metadata,
                        struct run_loader *loader)
{
    for (int is_windowed = 0; is_windowed < 2 && loader->code == 0; is_windowed++) {
        struct run_rotary *rotary = &engine->rotary[is_windowed];
        struct run_rotary_scaling scaling;

        loader->code = run_hparams_rotary(&engine->hparams, metadata, is_windowed, rotary, &scaling,
                                          loader->failure);
        if (loader->code < 0)
            return;
        if (!is_windowed || !(engine->hparams.architecture->attention & RUN_UNSCALED_WINDOWS))
            scaling.factors =
                load_rope_factors(loader, &engine->hparams,
                                  engine->options.n_context > scaling.n_original, rotary->n_rot);
        if (run_rotary_make(rotary, &scaling) < 0)
            loader->code = run_fail_memory(loader->failure);
    }
    loader->prefix[0] = '\0';
}

static uint64_t count_token_bytes(const struct run_engine *engine)
{
    const bool is_tied = engine->embedding.weight.data == engine->output.weight.data;
    const struct run_tensor *tensor;
    uint64_t n_bytes = 0;

    for (size_t i = 0; (tensor = run_weights_mapping(engine->weights, i)); i++) {
        const struct gguf_string name = {tensor->name, strlen(tensor->name)};

        n_bytes += gguf_token_bytes(name, is_tied, run_tensor_bytes(tensor), tensor->ne,
                                    RUN_MAX_DIMS, engine->hparams.experts.n_used);
    }
    return n_bytes;
}

static struct run_mixer_place place_of(const struct run_engine *engine, uint32_t index)
{
    return (struct run_mixer_place){
        .hparams = &engine->hparams,
        .index = index,
        .cache_type = engine->options.cache_type,
        .n_batch = engine->n_window_batch,
        .layers = engine->mixers,
    };
}

/* A failure leaves the model as it is, without drafts. */
static void load_nextn(struct run_engine *engine, const struct run_loader *of,
                       struct run_layer_kinds *kinds)
{
    const struct run_mixer_place place = place_of(engine, engine->hparams.n_layer);
    const struct run_nextn_model model = {
        .embedding = &engine->embedding,
        .output = &engine->output,
        .output_norm = &engine->output_norm,
        .n_vocab = engine->n_vocab,
        .n_batch = engine->options.n_batch,
    };
    struct run_loader loader = *of;

    if (engine->hparams.n_nextn == 0 || !run_engine_can_rewind(engine) ||
        !(engine->hparams.architecture->layers & (RUN_NEXTN_NORMED | RUN_NEXTN_RAW)))
        return;
    loader.failure = &engine->nextn_failure;
    run_nextn_load(&loader, &place, &model, kinds, &engine->nextn);
}

static void load_layers(struct run_engine *engine, struct run_loader *loader)
{
    const struct run_hparams *hparams = &engine->hparams;
    const uint32_t n = hparams->n_layer;
    struct run_layer_kinds kinds = {0};

    engine->layers = run_load_alloc(loader, n, sizeof *engine->layers);
    engine->mixers = run_load_alloc(loader, n, sizeof *engine->mixers);
    for (uint32_t i = 0; i < n && loader->code == 0; i++) {
        const struct run_mixer_place place = place_of(engine, i);

        run_require_layer(loader, hparams, i);
        run_layer_load(loader, &place, &engine->mixers[i], &engine->layers[i]);
        run_check_layer(loader, hparams, i, &kinds);
    }
    if (loader->code == 0)
        engine->token_bytes = count_token_bytes(engine);
    if (loader->code == 0 && engine->options.has_nextn)
        load_nextn(engine, loader, &kinds);
}

static void choose_sizes(struct run_engine *engine)
{
    struct run_engine_options *options = &engine->options;

    if (options->n_context == 0)
        options->n_context =
            engine->hparams.n_context ? engine->hparams.n_context : DEFAULT_CONTEXT;
    if (options->n_batch == 0)
        options->n_batch = DEFAULT_BATCH;
    if (options->n_batch > MAX_BATCH)
        options->n_batch = MAX_BATCH;
    engine->n_window_batch = options->n_batch > LEAST_REWIND ? options->n_batch : LEAST_REWIND;
}

int run_engine_open(const struct run_metadata *metadata, struct run_weights *weights,
                    const struct run_engine_options *options, struct run_engine **out,
                    struct run_failure *failure)
{
    struct run_engine *engine = calloc(1, sizeof *engine);
    struct run_loader loader = {.weights = weights, .failure = failure};

    *out = NULL;
    if (!engine)
        return run_fail_memory(failure);
    engine->weights = weights;
    engine->options = *options;
    loader.arena = &engine->arena;
    loader.code = run_hparams_read(metadata, &engine->hparams, failure);
    loader.model = engine->hparams.model;
    if (loader.code == 0) {
        choose_sizes(engine);
        load_ends(engine, &loader);
        load_rotary(engine, metadata, &loader);
        load_layers(engine, &loader);
        /* Learned position embeddings limit the context. */
        if (engine->positions.weight.data &&
            engine->options.n_context > engine->positions.weight.ne[1])
            engine->options.n_context = (uint32_t)engine->positions.weight.ne[1];
    }
    if (loader.code < 0) {
        run_engine_close(engine);
        return loader.code;
    }
    *out = engine;
    return 0;
}

void run_engine_close(struct run_engine *engine)
{
    if (!engine)
        return;
    run_selection_free(&engine->selection);
    run_rotary_free(&engine->rotary[0]);
    run_rotary_free(&engine->rotary[1]);
    run_scratch_free(&engine->scratch);
    run_arena_free(&engine->arena);
    run_hparams_free(&engine->hparams);
    free(engine);
}

struct run_engine_counts run_engine_counts(const struct run_engine *engine)
{
    struct run_engine_counts counts = {
        .n_vocab = engine->n_vocab,
        .n_context = engine->options.n_context,
        .n_past = engine->n_past,
        .token_bytes = engine->token_bytes,
    };

    for (const struct run_cache *cache = engine->arena.caches; cache; cache = cache->next)
        counts.cache_bytes += run_cache_bytes(cache);
    for (const struct run_state *state = engine->arena.states.newest; state; state = state->next)
        counts.state_bytes += state->n * sizeof(float);
    return counts;
}

void run_engine_reset(struct run_engine *engine)
{
    engine->n_past = engine->n_most = 0;
    run_nextn_rewind(&engine->nextn, 0);
    for (struct run_state *state = engine->arena.states.newest; state; state = state->next)
        run_state_reset(state);
}

int run_engine_rewind(struct run_engine *engine, uint32_t n_past, struct run_failure *failure)
{
    const uint32_t n_kept = engine->n_last - (engine->n_past - n_past); /* of the last pass */
    jmp_buf out_of_memory;

    engine->scratch.out_of_memory = &out_of_memory;
    if (setjmp(out_of_memory))
        return run_fail_memory(failure);
    for (uint32_t i = 0; i < engine->hparams.n_layer; i++)
        run_mixers_rewind(&engine->mixers[i], &engine->scratch, n_kept);
    engine->n_past = n_past; /* later tokens overwrite the keys and values after it */
    engine->n_last = n_kept;
    run_nextn_rewind(&engine->nextn, n_past);
    return 0;
}

bool run_engine_keeps(const struct run_engine *engine, uint32_t n_past)
{
    const uint32_t window = engine->hparams.window;
    const uint64_t n_rows = gguf_cache_rows(engine->n_most, window, engine->n_window_batch);

    return !engine->arena.states.newest && (window == 0 || engine->n_most <= n_rows ||
                                            n_past + n_rows >= engine->n_most + (uint64_t)window);
}

bool run_engine_can_rewind(const struct run_engine *engine)
{
    const struct run_states *states = &engine->arena.states;

    return !states->newest || (engine->options.can_rewind && !states->are_final);
}

static void embed(const struct run_engine *engine, const struct run_pass *pass, float *x)
{
    const size_t n_embd = engine->hparams.n_embd;
    const float scale = engine->hparams.embedding_scale;
    float *position =
        engine->positions.weight.data ? run_scratch_take(pass->scratch, n_embd) : NULL;

    for (size_t i = 0; i < pass->n; i++) {
        float *row = x + i * n_embd;

        run_tensor_decode_row(&engine->embedding.weight, (uint64_t)pass->tokens[i], row);
        for (size_t j = 0; j < n_embd; j++)
            row[j] *= scale;
        if (position) {
            run_tensor_decode_row(&engine->positions.weight, pass->first + i, position);
            for (size_t j = 0; j < n_embd; j++)
                row[j] += position[j];
        }
    }
    run_norm_apply(&engine->embedding_norm, x, pass->n, n_embd, x);
}

/* Compute the logits of n rows of x. */
static void predict(const struct run_engine *engine, float *x, size_t n, float *logits)
{
    const struct run_hparams *hparams = &engine->hparams;
    const size_t n_logits = n * engine->n_vocab;

    run_norm_apply(&engine->output_norm, x, n, hparams->n_embd, x);
    run_linear_apply(&engine->output, 0, x, n, logits);
    if (hparams->logit_scale != 1)
        for (size_t i = 0; i < n_logits; i++)
            logits[i] *= hparams->logit_scale;
    if (hparams->final_softcap > 0)
        for (size_t i = 0; i < n_logits; i++)
            logits[i] = hparams->final_softcap * tanhf(logits[i] / hparams->final_softcap);
}

/* Fill in x, the input of the first layer, and the parts of the pass that depend on it. */
static void begin(const struct run_engine *engine, struct run_pass *pass, float *x)
{
    const size_t size = pass->n * engine->hparams.n_embd;

    embed(engine, pass, x);
    if (engine->hparams.architecture->layers & RUN_SCALES_EMBEDDINGS)
        pass->embeddings = memcpy(run_scratch_take(pass->scratch, size), x, size * sizeof *x);
    if (engine->per_layer.tokens.weight.data)
        pass->per_layer = run_per_layer_make(&engine->per_layer, pass, x);
    run_altup_begin(&engine->altup, pass, x);
}

static struct run_pass pass_of(struct run_engine *engine)
{
    return (struct run_pass){
        .hparams = &engine->hparams,
        .scratch = &engine->scratch,
        .rotary = engine->rotary,
        .selection = &engine->selection,
    };
}

/* `n_before`: the tokens of the call before the batch. */
static void feed_batch(struct run_engine *engine, const int32_t *tokens, size_t n_before, size_t n,
                       enum run_logits which, float *logits)
{
    struct run_pass pass = pass_of(engine);
    const size_t n_embd = engine->hparams.n_embd;
    float *x = run_scratch_take(&engine->scratch, n * n_embd * engine->hparams.n_streams);

    pass.n = n;
    pass.first = engine->n_past;
    pass.tokens = tokens;
    pass.is_draft = engine->options.can_rewind && which == RUN_LOGITS_ALL && n > 1;
    begin(engine, &pass, x);
    if (engine->hparams.rwkv_version == 7)
        pass.first_values = run_scratch_take(&engine->scratch, n * n_embd);
    for (uint32_t i = 0; i < engine->hparams.n_layer; i++) {
        if (engine->options.on_layer && i > 0)
            engine->options.on_layer(engine->options.user,
                                     n_before + n * i / engine->hparams.n_layer);
        if (i > 0 && i % engine->hparams.n_stored == 0 && engine->hparams.has_loop_norm)
            run_norm_apply(&engine->output_norm, x, n, n_embd, x);
        run_layer_apply(&engine->layers[i], &pass, x);
    }
    run_altup_end(&engine->altup, &pass, x);
    if (engine->nextn.is_there)
        run_nextn_keep(&engine->nextn, &pass, x);
    if (which == RUN_LOGITS_ALL)
        predict(engine, x, n, logits);
    else if (which == RUN_LOGITS_LAST)
        predict(engine, x + (n - 1) * n_embd, 1, logits);
    engine->n_past += (uint32_t)n;
    engine->n_last = (uint32_t)n;
    if (engine->n_most < engine->n_past)
        engine->n_most = engine->n_past;
}

static int check_tokens(const struct run_engine *engine, const int32_t *tokens, size_t n,
                        struct run_failure *failure)
{
    if (n > engine->options.n_context - engine->n_past)
        return run_fail(failure, -ERANGE, "%zu tokens after %u do not fit the context of %u", n,
                        engine->n_past, engine->options.n_context);
    for (size_t i = 0; i < n; i++)
        if (tokens[i] < 0 || (uint32_t)tokens[i] >= engine->n_vocab)
            return run_fail(failure, -EINVAL, "token %zu: id %d is not in the vocabulary of %u", i,
                            tokens[i], engine->n_vocab);
    return 0;
}

/* Logits may be -infinity, which no sampler chooses. */
static int check_logits(const struct run_engine *engine, const float *logits, size_t n,
                        struct run_failure *failure)
{
    size_t n_wrong = 0;

    for (size_t i = 0; i < n * engine->n_vocab; i++)
        n_wrong += !(logits[i] < INFINITY);
    return n_wrong == 0
               ? 0
               : run_fail(
                     failure, -EDOM,
                     "%zu of %zu logits after token %u are NaN or infinite: the weights may be "
                     "damaged, see ggufs --check --data MODEL, or keys are above the largest F16, "
                     "see --cache-type",
                     n_wrong, n * engine->n_vocab, engine->n_past - 1);
}

int run_engine_feed(struct run_engine *engine, const int32_t *tokens, size_t n,
                    enum run_logits which, float *logits, struct run_failure *failure)
{
    jmp_buf out_of_memory;
    int code = check_tokens(engine, tokens, n, failure);

    if (code < 0)
        return code;
    engine->scratch.out_of_memory = &out_of_memory;
    if (setjmp(out_of_memory))
        return run_fail_memory(failure);
    for (size_t i = 0, batch; i < n; i += batch) {
        batch = n - i < engine->options.n_batch ? n - i : engine->options.n_batch;
        if (engine->options.on_layer && !engine->options.on_layer(engine->options.user, i))
            return run_fail(failure, -EINTR, "interrupted");
        run_scratch_release(&engine->scratch, (struct run_scratch_mark){0});
        feed_batch(engine, tokens + i, i, batch,
                   which == RUN_LOGITS_LAST && i + batch < n ? RUN_LOGITS_NONE : which,
                   which == RUN_LOGITS_ALL ? logits + i * engine->n_vocab : logits);
        code = run_weights_check(engine->weights, failure);
        if (code < 0)
            return code;
    }
    if (which == RUN_LOGITS_NONE || n == 0)
        return 0;
    return check_logits(engine, logits, which == RUN_LOGITS_ALL ? n : 1, failure);
}

bool run_engine_can_draft(const struct run_engine *engine, const char **problem)
{
    *problem = engine->nextn_failure.text[0] != '\0' ? engine->nextn_failure.text : NULL;
    return engine->nextn.is_there;
}

int run_engine_draft(struct run_engine *engine, int32_t token, size_t most, int32_t *draft,
                     size_t *n, struct run_failure *failure)
{
    const struct run_pass pass = pass_of(engine);
    jmp_buf out_of_memory;

    *n = 0;
    engine->scratch.out_of_memory = &out_of_memory;
    if (setjmp(out_of_memory))
        return run_fail_memory(failure);
    run_scratch_release(&engine->scratch, (struct run_scratch_mark){0});
    *n = run_nextn_draft(&engine->nextn, &pass, token, most, draft);
    return 0;
}
