#include "fs/command/imatrix.h"

#include "fs/command/tensor_choice.h"
#include "fs/tree/decoded.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static bool has_suffix(struct gguf_string name, const char *suffix)
{
    const size_t length = strlen(suffix);

    return name.length_bytes >= length &&
           memcmp(name.data + name.length_bytes - length, suffix, length) == 0;
}

bool fs_is_imatrix(const struct gguf_model *model)
{
    for (uint64_t i = 0; i < model->n_tensors; i++)
        if (has_suffix(model->tensors[i].name, ".in_sum2"))
            return true;
    return false;
}

static const struct gguf_tensor *find(const struct gguf_model *model, struct gguf_string name,
                                      const char *suffix)
{
    for (uint64_t i = 0; i < model->n_tensors; i++) {
        const struct gguf_tensor *tensor = &model->tensors[i];

        if (tensor->name.length_bytes == name.length_bytes + strlen(suffix) &&
            has_suffix(tensor->name, suffix) &&
            memcmp(tensor->name.data, name.data, name.length_bytes) == 0)
            return tensor;
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

int fs_imatrix_get(const struct gguf_model *imatrix, const struct gguf_tensor *tensor,
                   struct fs_column_weights *weights)
{
    const struct gguf_tensor *sums = find(imatrix, fs_gguf_name(tensor), ".in_sum2");
    const struct gguf_tensor *counts = find(imatrix, fs_gguf_name(tensor), ".counts");
    const uint64_t n_matrices = tensor->ne[2] * tensor->ne[3];
    float *values, *of_matrix;
    int result;

    *weights = (struct fs_column_weights){0};
    if (!sums || !counts || tensor->n_elements == 0)
        return 0;
    if (sums->type_id != DEQUANT_F32 || counts->type_id != DEQUANT_F32 ||
        sums->ne[0] != tensor->ne[0] || counts->n_elements == 0 ||
        sums->n_elements / sums->ne[0] != counts->n_elements ||
        n_matrices % counts->n_elements != 0)
        return -EINVAL;
    values = calloc(sums->n_elements + counts->n_elements, sizeof *values);
    if (!values)
        return -ENOMEM;
    of_matrix = values + sums->n_elements;
    result = read_floats(imatrix, sums, values);
    if (result == 0)
        result = read_floats(imatrix, counts, of_matrix);
    for (uint64_t i = 0; result == 0 && i < sums->n_elements; i++) {
        values[i] = of_matrix[i / sums->ne[0]] > 0 ? values[i] / of_matrix[i / sums->ne[0]] : 0;
        if (!isfinite(values[i])) /* it overflows */
            result = -EDOM;
    }
    if (result < 0) {
        free(values);
        return result;
    }
    *weights = (struct fs_column_weights){values, tensor->ne[0], counts->n_elements, tensor->ne[1]};
    return 0;
}
