/* The rules that every model keeps, whatever format it came from. */
#ifndef GGUFS_GGUF_VALIDATE_H
#define GGUFS_GGUF_VALIDATE_H

#include "gguf/model.h"

/*
 * Check the value of key general.alignment, if there is one, and set the model's alignment. It must
 * be a power of two, as in ggml, and at most GGUF_MAX_ALIGNMENT. Returns 0, or -EINVAL with the
 * reason in `report`.
 */
int gguf_validate_alignment(struct gguf_model *model, struct gguf_report *report);

/*
 * Computes n_elements and size_bytes, which stay 0 if they can't be right or the type is unknown.
 * Returns 0, or a negative errno with the reason in `report`.
 */
int gguf_validate_size(struct gguf_tensor *tensor, struct gguf_report *report);

/*
 * Computes the size of every tensor and checks everything else: names that occur twice, sizes that
 * overflow, rows that are no whole blocks, data that lie outside the file or over another tensor's.
 * Goes on after an error to report all. Bytes that belong to nothing are notes, and so is a key
 * that is repeated with the same value; the repetition is dropped. A growing file may lack data.
 * Returns 0, or the first error as a negative errno.
 */
int gguf_validate(struct gguf_model *model, struct gguf_report *report);

#endif
