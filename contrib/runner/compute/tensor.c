#include "contrib/runner/compute/tensor.h"

#include "dequant/kernels.h"
#include "dequant/rows.h"

uint64_t run_tensor_rows(const struct run_tensor *tensor)
{
    return tensor->ne[1] * tensor->ne[2] * tensor->ne[3];
}

uint64_t run_tensor_bytes(const struct run_tensor *tensor)
{
    uint64_t n_bytes = 0;

    dequant_rows_bytes(tensor->type, tensor->ne[0], run_tensor_rows(tensor), &n_bytes);
    return n_bytes;
}

/* If rows are stored in groups, `data` begins at the group of the first row; a tail keeps it. */
struct run_tensor run_tensor_slice(const struct run_tensor *tensor, uint64_t first, uint64_t n)
{
    const uint64_t row = tensor->first_row + first, group_rows = tensor->type->interleave_rows;
    struct run_tensor slice = *tensor;
    uint64_t skipped_bytes = 0;

    slice.first_row = tensor->type->tail_bytes > 0 ? row : row % group_rows;
    if (row > slice.first_row)
        dequant_rows_bytes(tensor->type, tensor->ne[0], row - slice.first_row, &skipped_bytes);
    slice.data += skipped_bytes;
    slice.ne[1] = n;
    slice.ne[2] = slice.ne[3] = 1;
    return slice;
}

void run_tensor_decode(const struct run_tensor *tensor, uint64_t row, uint64_t first, uint64_t n,
                       float *out)
{
    const struct dequant_shape shape = {tensor->ne[0], tensor->stored_rows * tensor->ne[0]};

    dequant_decode_elements(tensor->type, shape, tensor->data,
                            (tensor->first_row + row) * tensor->ne[0] + first, n, out);
}

void run_tensor_decode_row(const struct run_tensor *tensor, uint64_t row, float *out)
{
    run_tensor_decode(tensor, row, 0, tensor->ne[0], out);
}
