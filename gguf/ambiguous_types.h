/*
 * Resolves ambiguous type ids: ids that several programs assigned to different types. Each type is
 * a candidate, see dequant_candidate_at(); the sizes of the tensors' data distinguish most of them.
 */
#pragma once

#include "gguf/model.h"

/*
 * Set the types of tensors with ambiguous ids. Their elements must be counted. A candidate fits if
 * the data of every tensor of the id, in all files, end where the next tensor starts or the file
 * ends, padding included. A type that the user states is used in any case. Else it is the only
 * candidate that fits, or among several the candidate of the program that wrote other ids of the
 * model, or the first that fits; candidate 0 if none fits. A warning reports a type that the sizes
 * do not determine or contradict, a note a type other than candidate 0. Returns 0 or -ENOMEM,
 * reported as well.
 */
int gguf_resolve_types(struct gguf_model *model, const struct gguf_open_options *options,
                       struct gguf_report *report);

/*
 * Add the choice "ID:NAME", as in -o type=. It replaces an earlier one for the same id. Returns 0,
 * or -EINVAL with a message in `report` that lists the candidates of the id.
 */
int gguf_add_type_choice(struct gguf_open_options *options, const char *text,
                         struct gguf_report *report);
