/*
 * Joins models of llama.cpp in several files: all with more than 7 billion parameters, before magic
 * ggjt. Each part has the whole header and vocabulary, and a slice of each matrix; vectors are the
 * same in all. The number of parts follows from the width of the embeddings. Source:
 * llama_model_load() in llama.cpp of March 2023; names are in gguf/support/shard_names.h.
 */
#pragma once

#include "gguf/files.h"
#include "gguf/model.h"

/*
 * If the tensors of a parsed file are slices, parse the other parts, which were opened with it, and
 * replace *model with one model of all. It has one file, which joins the parts. Does nothing if the
 * file is a whole model. Returns 0, or a negative errno with the reason in `report`; *model is then
 * still to be freed.
 */
int gguf_parts_join(struct gguf_model **model, struct gguf_files *files,
                    const struct gguf_open_options *options, struct gguf_report *report);
