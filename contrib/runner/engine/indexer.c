#include "contrib/runner/engine/indexer.h"

/* The epsilon of the indexer's norm of keys if it has biases, which make it a layer norm. */
#define LAYER_EPSILON 1e-6f

static void load_norms(struct run_loader *loader, const struct run_hparams *hparams,
                       struct run_indexer *indexer)
{
    const bool is_layer = run_loader_has(loader, "indexer.k_norm.bias");

    run_load_norm_if(loader, "indexer.q_norm", RUN_NORM_RMS, hparams->norm_epsilon,
                     hparams->indexer.width, &indexer->q_norm);
    run_load_norm_if(loader, "indexer.k_norm", is_layer ? RUN_NORM_LAYER : RUN_NORM_RMS,
                     is_layer ? LAYER_EPSILON : hparams->norm_epsilon, hparams->indexer.width,
                     &indexer->k_norm);
}

void run_indexer_load(struct run_loader *loader, const struct run_hparams *hparams,
                      const struct gguf_layer_shape *shape, bool is_required, uint64_t q_in,
                      uint32_t n_head_kv, struct run_indexer *indexer)
{
    const struct run_index *sizes = &hparams->indexer;
    const bool has_blocks = sizes->block > 0;
    const char *q = has_blocks ? "indexer.q_proj" : "indexer.attn_q_b";
    const char *k = has_blocks ? "indexer.k_proj" : "indexer.attn_k";

    if (sizes->n_heads == 0 || !shape->has_indexer ||
        (!is_required &&
         !run_loader_has(loader, has_blocks ? "indexer.q_proj.weight" : "indexer.attn_q_b.weight")))
        return;
    if (has_blocks && sizes->n_heads != n_head_kv)
        run_loader_refuse(loader,
                          "metadata: attention.indexer.head_count %u is not "
                          "attention.head_count_kv, %u",
                          sizes->n_heads, n_head_kv);
    run_load_linear(loader, q, q_in, (uint64_t)sizes->n_heads * sizes->width, &indexer->q);
    run_load_linear(loader, k, hparams->n_embd, sizes->width, &indexer->k);
    if (!has_blocks)
        run_load_linear(loader, "indexer.proj", hparams->n_embd, sizes->n_heads, &indexer->weights);
    load_norms(loader, hparams, indexer);
    indexer->keys = (struct run_cache){.width = sizes->width, .dim = sizes->width};
    run_load_cache(&loader->arena->caches, &indexer->keys);
}

void run_indexer_apply(struct run_indexer *indexer, const struct run_pass *pass, const float *x,
                       const float *q_from)
{
    struct run_index index = pass->hparams->indexer;
    const size_t n = pass->n, n_heads = index.n_heads, width = index.width;
    struct run_rotary rotary = pass->rotary[0];
    float *queries = run_scratch_take(pass->scratch, n * n_heads * width);
    float *keys = run_scratch_take(pass->scratch, n * width);
    float *weights = run_scratch_take(pass->scratch, n * n_heads);

    rotary.kind = pass->hparams->architecture->attention & RUN_INDEXER_NEOX ? RUN_ROTARY_NEOX
                                                                            : RUN_ROTARY_NORMAL;
    run_linear_apply(&indexer->q, 0, q_from, n, queries);
    run_linear_apply(&indexer->k, 0, x, n, keys);
    if (indexer->weights.weight.data)
        run_linear_apply(&indexer->weights, 0, x, n, weights);
    run_norm_apply(&indexer->q_norm, queries, n * n_heads, width, queries);
    run_norm_apply(&indexer->k_norm, keys, n, width, keys);
    run_rotate(&rotary, queries, n, n_heads, width, n_heads * width, pass->first);
    run_rotate(&rotary, keys, n, 1, width, width, pass->first);
    run_pass_store(pass, &indexer->keys, keys);
    index.keys = indexer->keys.rows;
    if (run_select(&index, queries, weights, n, pass->first, pass->selection) < 0)
        run_scratch_fail(pass->scratch);
}
