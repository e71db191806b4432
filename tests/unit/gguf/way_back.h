/* From a checkpoint to GGUF: the inverse of what the tree does, by the same tables. */
#pragma once

#include "gguf/models/namings.h"
#include "gguf/models/orders.h"

/* Numbers of a model that the shapes elsewhere do not tell. */
struct way_back_sizes {
    uint64_t n_expert;
    uint64_t width_key, width_value; /* of LATENT_KV */
};

/* Find a tensor's rename by its name elsewhere. Returns NULL if none matches. */
const struct gguf_rename *way_back_rename(const struct gguf_names *names, struct gguf_string other,
                                          struct gguf_name_match *match);

/* Find the placement by the shape elsewhere. Returns 0, or -EINVAL if shape and sizes do not fit.
 */
int way_back_placement(enum gguf_order order, const struct gguf_order_sizes *sizes,
                       const struct way_back_sizes *more, const struct gguf_order_shape *there,
                       struct gguf_placement *placement);
