/* Parses one file of a model. */
#ifndef GGUFS_GGUF_PARSE_FILE_H
#define GGUFS_GGUF_PARSE_FILE_H

#include "gguf/model.h"

/*
 * Parse an open file, whatever its format, without the rules of gguf/validate.h. The model takes
 * the file over, also on failure. On success *model must be freed with gguf_close(). On failure
 * returns a negative errno with the reason in `report`, and *model is NULL.
 */
int gguf_parse_file(struct gguf_source *file, const struct gguf_open_options *options,
                    struct gguf_model **model, struct gguf_report *report);

#endif
