/*
 * The list of a model's tensors, tensors.json of its tree: names, types, shapes, and where the
 * bytes are.
 */
#pragma once

#include "contrib/runner/compute/tensor.h"
#include "contrib/runner/tree/failure.h"

#include <limits.h>
#include <stdbool.h>

/* Size of names, with the NUL; longer ones are cut. */
enum { RUN_LISTED_NAME_BYTES = NAME_MAX + 1 };

/* A tensor of the list as read, unchecked: the members that the runner uses. */
struct run_listed_tensor {
    bool has_shape;
    bool is_big_endian;
    double type,
        era; /* NaN: no number; era: DEQUANT_ERA if the list has none, NaN if it is unknown */
    char type_name[32];
    double ne[RUN_MAX_DIMS];
    size_t n_dims; /* RUN_MAX_DIMS + 1: more than that */
    double offset; /* in its file; NaN if missing */
};

/* Names of a listed tensor; "": none. */
struct run_listed_names {
    char name[RUN_LISTED_NAME_BYTES];      /* of its directory in tensors/ */
    char gguf_name[RUN_LISTED_NAME_BYTES]; /* its GGUF name, if that differs */
    char file[RUN_LISTED_NAME_BYTES];      /* of the model file, without directory */
};

/* Called for each tensor of the list. Returns 0, or a negative errno with the failure filled in. */
typedef int run_tensor_listed(void *context, const struct run_listed_names *names,
                              const struct run_listed_tensor *tensor, struct run_failure *failure);

/*
 * Reads tensors.json below the directory `tree_fd` and calls on_tensor for each tensor in order.
 * Returns 0, what on_tensor returned, -EINVAL if the file is not a list of tensors, or the negative
 * errno of reading it.
 */
int run_tensor_list_read(int tree_fd, run_tensor_listed *on_tensor, void *context,
                         struct run_failure *failure);

/*
 * Fill in type and shape of the tensor tensor->name. -EINVAL for wrong values, -ENOTSUP for a type
 * without decoder or big-endian data.
 */
int run_listed_tensor_take(const struct run_listed_tensor *listed, struct run_tensor *tensor,
                           struct run_failure *failure);
