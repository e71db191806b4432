/* The rules for every model, whatever its format. */
#pragma once

#include "gguf/model.h"

/*
 * Check the value of key general.alignment, if there is one, and set the model's alignment. It must
 * be a power of two, as in ggml, and at most GGUF_MAX_ALIGNMENT. Returns 0, or -EINVAL with the
 * reason in `report`.
 */
int gguf_validate_alignment(struct gguf_model *model, struct gguf_report *report);

/*
 * Compute n_elements and size_bytes, which stay 0 after an error or if the type is unknown. Returns
 * 0, or a negative errno with the reason in `report`.
 */
int gguf_validate_size(struct gguf_tensor *tensor, struct gguf_report *report);

/*
 * Finish a parsed model: resolve ambiguous types, see gguf/ambiguous_types.h, compute the size of
 * every tensor and check everything else: duplicate names, sizes that overflow, rows that are not
 * whole blocks, data outside the file or over another tensor's. Continues
 * after an error, to report all of them. Notes report bytes that belong to no tensor and a key that
 * is repeated with the same value; the repetition is removed. A growing file may lack data. Returns
 * 0, or the first error as a negative errno.
 */
int gguf_finish_model(struct gguf_model *model, const struct gguf_open_options *options,
                      struct gguf_report *report);

/* Check names as gguf_finish_model() does. `remedy`: twins_remedy of a composition, else NULL. */
int gguf_validate_names(struct gguf_model *model, const char *remedy, struct gguf_report *report);

/*
 * Check that the data of all tensors, whose sizes must be known, lie inside their files and, unless
 * `report` has errors, that none overlap; and set the extents of tensors of unknown type, whose
 * data must start inside the file. A growing file may lack data. Notes report bytes that belong to
 * no tensor. Returns 0 even after errors in the file, or -ENOMEM, reported as well.
 */
int gguf_check_bounds(struct gguf_model *model, struct gguf_report *report);
