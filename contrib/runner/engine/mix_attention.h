/* The attention of a layer: projections, norms and rotation around compute/attend.h. */
#pragma once

#include "contrib/runner/engine/indexer.h"
#include "contrib/runner/engine/mixer.h"

/* Make a cache for `width` elements of a token, in heads of `dim`. */
void run_attention_cache(struct run_loader *loader, const struct run_mixer_place *place,
                         uint64_t width, uint32_t dim, struct run_cache *cache);

/*
 * Multiply the queries q, [n][width], by a factor that grows with their position, if the
 * architecture does so in this layer; see temperature_scale in struct run_hparams.
 */
void run_scale_queries_by_position(const struct run_pass *pass,
                                   const struct gguf_layer_shape *shape, float *q, size_t width);
