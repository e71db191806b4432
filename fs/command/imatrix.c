#include "fs/command/imatrix.h"

#include "fs/tree/data/elements.h"
#include "fs/tree/facts/tensor_pairs.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>

/* Read numbers that must be finite and not negative. Returns 0, -EDOM, or the error of reading. */
static int read_floats(const struct gguf_model *model, const struct gguf_tensor *tensor, float *out)
{
    const int result = fs_elements_read(
        &(struct fs_elements){
            .model = model, .tensor = tensor, .type = dequant_type_by_id(DEQUANT_F32)},
        0, tensor->n_elements * sizeof *out, (char *)out);

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

int fs_imatrix_get(const struct gguf_model *imatrix, const struct gguf_tensor *const *by_name,
                   const struct gguf_tensor *tensor, struct fs_column_weights *weights)
{
    const struct gguf_string name = gguf_name_of(tensor);
    const struct gguf_tensor *sums =
        fs_find_half(by_name, imatrix->n_tensors, name, FS_SUMS_SUFFIX);
    const struct gguf_tensor *counts =
        fs_find_half(by_name, imatrix->n_tensors, name, FS_COUNTS_SUFFIX);
    uint64_t n_matrices, matrix_elements;
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
    matrix_elements = sums->n_elements / counts->n_elements;
    assert(matrix_elements > 0); /* count_matrices() */
    result = read_floats(imatrix, sums, values);
    if (result == 0)
        result = read_floats(imatrix, counts, of_matrix);
    for (uint64_t i = 0; result == 0 && i < sums->n_elements; i++) {
        const uint64_t matrix = i / matrix_elements;

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
