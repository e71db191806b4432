#include "contrib/runner/engine/nextn.h"

#include "contrib/runner/engine/recurrent_parts.h"

#include <stdio.h>
#include <string.h>

static void load_ends(struct run_loader *loader, const struct run_hparams *hparams,
                      const struct run_nextn_model *model, struct run_nextn *nextn)
{
    const uint64_t n_embd = hparams->n_embd;

    run_load_stream_norm_if(loader, hparams, "nextn.enorm", &nextn->token_norm);
    run_load_stream_norm_if(loader, hparams, "nextn.hnorm", &nextn->state_norm);
    run_load_linear(loader, "nextn.eh_proj", 2 * n_embd, n_embd, &nextn->projection);
    run_load_stream_norm_if(loader, hparams, "nextn.shared_head_norm", &nextn->head_norm);
    run_load_linear_if(loader, "nextn.embed_tokens", n_embd, model->n_vocab, &nextn->embedding);
    if (!nextn->embedding.weight.data)
        nextn->embedding = *model->embedding;
    run_load_linear_if(loader, "nextn.shared_head_head", n_embd, model->n_vocab, &nextn->head);
    if (!nextn->head.weight.data)
        nextn->head = *model->output;
    nextn->output_norm = *model->output_norm;
    nextn->logits = run_load_alloc(loader, model->n_vocab, sizeof *nextn->logits);
    nextn->states = run_load_alloc(loader, model->n_batch * n_embd, sizeof *nextn->states);
    nextn->tokens = run_load_alloc(loader, model->n_batch, sizeof *nextn->tokens);
}

/* In some files of MiMo, the norm of the head is called layer_output_norm. */
static void find_head_norm(const struct run_loader *loader, struct run_nextn *nextn)
{
    if (!nextn->head_norm.is_there && run_loader_has(loader, "layer_output_norm.weight")) {
        nextn->head_norm = nextn->layer.ffn_post_norm;
        nextn->layer.ffn_post_norm = (struct run_norm_layer){0};
    }
    if (!nextn->head_norm.is_there)
        nextn->head_norm = nextn->output_norm;
}

void run_nextn_load(struct run_loader *loader, const struct run_mixer_place *place,
                    const struct run_nextn_model *model, struct run_layer_kinds *kinds,
                    struct run_nextn *nextn)
{
    struct run_arena *arena = loader->arena;
    struct run_cache *counted = arena->caches;
    const struct run_states others = arena->states;

    snprintf(loader->prefix, sizeof loader->prefix, "blk.%u.", place->index);
    if (!run_weights_starting(loader->weights, loader->prefix))
        return;
    run_require_layer(loader, place->hparams, place->index);
    load_ends(loader, place->hparams, model, nextn);
    arena->caches = arena->kept;
    run_layer_load(loader, place, &nextn->mixers, &nextn->layer);
    arena->kept = arena->caches;
    arena->caches = counted;
    find_head_norm(loader, nextn);
    run_check_layer(loader, place->hparams, place->index, kinds);
    if (arena->states.newest != others.newest) /* could not forget its drafts */
        run_loader_refuse(loader, "tensors/%s*: a recurrent layer", loader->prefix);
    arena->states = others;
    nextn->most_waiting = model->n_batch;
    nextn->is_there = loader->code == 0;
}

/* x = the layer's output for the states before the pass's tokens, both [n][n_embd]. */
static void apply(struct run_nextn *nextn, const struct run_pass *pass, const float *states,
                  float *x)
{
    const size_t n = pass->n, n_embd = pass->hparams->n_embd;
    float *joined = run_scratch_take(pass->scratch, 2 * n * n_embd);
    float *normed = run_scratch_take(pass->scratch, n * n_embd);

    for (size_t i = 0; i < n; i++)
        run_tensor_decode_row(&nextn->embedding.weight, (uint64_t)pass->tokens[i],
                              normed + i * n_embd);
    for (size_t i = 0; i < n * n_embd; i++)
        normed[i] *= pass->hparams->embedding_scale;
    run_norm_apply(&nextn->token_norm, normed, n, n_embd, normed);
    run_copy_rows(normed, n_embd, n, n_embd, joined, 2 * n_embd);
    run_norm_apply(&nextn->state_norm, states, n, n_embd, normed);
    run_copy_rows(normed, n_embd, n, n_embd, joined + n_embd, 2 * n_embd);
    run_linear_apply(&nextn->projection, 0, joined, n, x);
    run_layer_apply(&nextn->layer, pass, x);
}

/* Compute all that waits, with the token after it. Return the last row of the output. */
static float *catch_up(struct run_nextn *nextn, const struct run_pass *of, int32_t token)
{
    const size_t n = nextn->n_waiting, n_embd = of->hparams->n_embd;
    struct run_pass pass = *of;
    float *x = run_scratch_take(of->scratch, n * n_embd);

    memmove(nextn->tokens, nextn->tokens + 1, (n - 1) * sizeof *nextn->tokens);
    nextn->tokens[n - 1] = token;
    pass.n = n;
    pass.first = nextn->first;
    pass.tokens = nextn->tokens;
    if (of->hparams->architecture->layers & RUN_NEXTN_NORMED)
        run_norm_apply(&nextn->output_norm, nextn->states, n, n_embd, nextn->states);
    apply(nextn, &pass, nextn->states, x);
    nextn->first += (uint32_t)n;
    nextn->n_waiting = 0;
    return x + (n - 1) * n_embd;
}

void run_nextn_keep(struct run_nextn *nextn, const struct run_pass *pass, const float *x)
{
    const size_t n_embd = pass->hparams->n_embd;

    if (nextn->n_waiting + pass->n > nextn->most_waiting) {
        const struct run_scratch_mark mark = run_scratch_mark(pass->scratch);

        if (nextn->n_waiting > 0)
            catch_up(nextn, pass, pass->tokens[0]);
        run_scratch_release(pass->scratch, mark);
    }
    memcpy(nextn->states + nextn->n_waiting * n_embd, x, pass->n * n_embd * sizeof *x);
    memcpy(nextn->tokens + nextn->n_waiting, pass->tokens, pass->n * sizeof *nextn->tokens);
    nextn->n_waiting += pass->n;
}

size_t run_nextn_draft(struct run_nextn *nextn, const struct run_pass *pass, int32_t token,
                       size_t most, int32_t *draft)
{
    const size_t n_embd = pass->hparams->n_embd;
    float *state = run_scratch_take(pass->scratch, n_embd);
    struct run_pass step = *pass;
    float *x;
    size_t n = 0;

    if (nextn->n_waiting == 0 || most == 0)
        return 0;
    x = catch_up(nextn, pass, token);
    for (step.n = 1, step.first = nextn->first;; step.first++) {
        const struct run_scratch_mark mark = run_scratch_mark(pass->scratch);

        run_norm_apply(&nextn->head_norm, x, 1, n_embd, state);
        run_linear_apply(&nextn->head, 0, state, 1, nextn->logits);
        draft[n++] = (int32_t)run_find_highest(nextn->logits, nextn->head.weight.ne[1]);
        if (n == most)
            return n;
        if (pass->hparams->architecture->layers & RUN_NEXTN_RAW)
            memcpy(state, x, n_embd * sizeof *state);
        step.tokens = &draft[n - 1];
        apply(nextn, &step, state, x);
        run_scratch_release(pass->scratch, mark);
    }
}

void run_nextn_rewind(struct run_nextn *nextn, uint32_t n_past)
{
    if (n_past < nextn->first)
        nextn->first = n_past; /* the pair before is of a token that may be another now */
    nextn->n_waiting = nextn->is_there ? n_past - nextn->first : 0;
}
