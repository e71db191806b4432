#include "fs/command/imatrix.h"

#include "fs/command/tensor_choice.h"
#include "fs/tree/decoded.h"
#include "fs/tree/tensor_pairs.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

/* Return the half of the importance matrix that is about a tensor, or NULL. */
static const struct gguf_tensor *find(const struct gguf_model *model, struct gguf_string name,
                                      bool is_second)
{
    for (uint64_t i = 0; i < model->n_tensors; i++) {
        const struct fs_half half = fs_half_of(&model->tensors[i]);

        if (half.kind == FS_IMPORTANCE_PAIR && half.is_second == is_second &&
            gguf_string_compare(half.base, name) == 0)
            return &model->tensors[i];
    }
    return NULL;
}

/* Read numbers that must be finite and not negative. Returns 0, -EDOM, or the error of reading. */
static int read_floats(const struct gguf_model *model, const struct gguf_tensor *tensor, float *out)
{
    const int result = fs_decoded_read(model, tensor, &(struct fs_conversion){.format = FS_F32}, 0,
                                       tensor->n_elements * sizeof *out, (char *)out);

    for (uint64_t i = 0; result == 0 && i < tensor->n_elements; i++)
        if (!isfinite(out[i]) || out[i] < 0)
            return -EDOM;
    return result;
}

/* Return the number of matrices of the tensor that have sums of their own; 0 if they do not fit. */
static uint64_t count_matrices(const struct gguf_tensor *tensor, const struct gguf_tensor *sums,
                               const struct gguf_tensor *counts)
{
    const uint64_t n_matrices = sums->n_elements / tensor->ne[0];

    return fs_importance_fits(sums, counts) && sums->n_elements % tensor->ne[0] == 0 &&
                   n_matrices > 0 && n_matrices % counts->n_elements == 0 &&
                   tensor->ne[2] * tensor->ne[3] % n_matrices == 0
               ? n_matrices
               : 0;
}

int fs_imatrix_get(const struct gguf_model *imatrix, const struct gguf_tensor *tensor,
                   struct fs_column_weights *weights)
{
    const struct gguf_tensor *sums = find(imatrix, gguf_name_of(tensor), false);
    const struct gguf_tensor *counts = find(imatrix, gguf_name_of(tensor), true);
    uint64_t n_matrices;
    float *values, *of_matrix;
    int result;

    *weights = (struct fs_column_weights){0};
    if (!sums || !counts || tensor->n_elements == 0)
        return 0;
    n_matrices = count_matrices(tensor, sums, counts);
    if (n_matrices == 0)
        return -EINVAL;
    values = calloc(sums->n_elements + counts->n_elements, sizeof *values);
    if (!values)
        return -ENOMEM;
    of_matrix = values + sums->n_elements;
    result = read_floats(imatrix, sums, values);
    if (result == 0)
        result = read_floats(imatrix, counts, of_matrix);
    for (uint64_t i = 0; result == 0 && i < sums->n_elements; i++) {
        const uint64_t matrix = i / (sums->n_elements / counts->n_elements);

        values[i] = fs_importance(values[i], of_matrix[matrix], 0);
        if (!isfinite(values[i])) /* it overflows */
            result = -EDOM;
    }
    if (result < 0) {
        free(values);
        return result;
    }
    *weights = (struct fs_column_weights){values, tensor->ne[0], n_matrices, tensor->ne[1]};
    return 0;
}
