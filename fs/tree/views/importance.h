/*
 * Importance matrices of llama-imatrix: the importance of each column of a tensor. A file has, for
 * each tensor NAME, the sums of squares of a column's inputs, NAME.in_sum2, and the number of
 * inputs, NAME.counts: one number for all, or one for each matrix (expert). Source:
 * IMatrixCollector::save_imatrix() in tools/imatrix/imatrix.cpp of llama.cpp.
 */
#pragma once

#include "fs/tree/core/view_row.h"
#include "fs/tree/core/interrupt.h"
#include "gguf/model.h"

#include <stdbool.h>
#include <stdint.h>

/* Return true if a model is an importance matrix. */
bool fs_is_imatrix(const struct gguf_model *model);

/*
 * Return true if the halves fit each other: both can be decoded, and the number of sums is a
 * multiple of the counts.
 */
bool fs_importance_fits(const struct gguf_tensor *sums, const struct gguf_tensor *counts);

/* Return the importance of a column, the mean of squares, or `without_inputs` if there are none. */
static inline float fs_importance(float sum, float count, float without_inputs)
{
    return count <= 0 ? without_inputs : sum / count;
}

/*
 * Write bytes `offset` to `offset + length` of the importances, which are little-endian floats in
 * the order of the sums, to `out`. Columns without inputs have 1, as in load_imatrix() of
 * tools/quantize/quantize.cpp. Returns 0 or the error of gguf_elements_read().
 */
int fs_importance_read(const struct gguf_model *model, const struct gguf_tensor *sums,
                       const struct gguf_tensor *counts, uint64_t offset, size_t length, char *out);
