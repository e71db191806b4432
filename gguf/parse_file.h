/* Parses one file of a model. */
#ifndef GGUFS_GGUF_PARSE_FILE_H
#define GGUFS_GGUF_PARSE_FILE_H

#include "gguf/files.h"
#include "gguf/model.h"

/*
 * Parse an open file, whatever its format, without the rules of gguf/validate.h. The model takes
 * the file over, also on failure. On success *model must be freed with gguf_close(). On failure
 * returns a negative errno with the reason in `report`, and *model is NULL.
 */
int gguf_parse_file(struct gguf_file *file, const struct gguf_open_options *options,
                    struct gguf_model **model, struct gguf_report *report);

/*
 * Parse another file of a model in several, or report why it was not opened. The headers of all
 * files share their limits: *usage is the usage of the files before, and is increased. Otherwise
 * like gguf_parse_file().
 */
int gguf_parse_other_file(struct gguf_opened_file *opened, const struct gguf_open_options *options,
                          struct gguf_usage *usage, struct gguf_model **model,
                          struct gguf_report *report);

#endif
