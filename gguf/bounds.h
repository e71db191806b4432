/* The rules for the places of tensor data in the files of a model. */
#pragma once

#include "gguf/model.h"

/*
 * Check that the data of all tensors, whose sizes must be known, lie inside their files and, unless
 * `report` has errors, that none overlap; and set the extents of tensors of unknown type, whose
 * data must start inside the file. A growing file may lack data. Notes report bytes that belong to
 * no tensor. Returns 0 even after errors in the file, or -ENOMEM, reported as well.
 */
int gguf_check_bounds(struct gguf_model *model, struct gguf_report *report);
