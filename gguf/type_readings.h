/*
 * The choice between the readings of type ids that several programs took, see dequant_reading_at().
 */
#ifndef GGUFS_GGUF_TYPE_READINGS_H
#define GGUFS_GGUF_TYPE_READINGS_H

#include "gguf/model.h"

/*
 * Set the types of the tensors, whose elements must be counted. A reading fits if the data of every
 * tensor of the id, in all files, end where the next tensor starts or the file ends, padding
 * included. The choice among several that fit is the one that the user stated, that of a program
 * which other ids of the model show, or reading 0. If none fits, it is reading 0. A warning reports
 * a choice that the sizes do not settle, a note one other than reading 0. Returns 0 or -ENOMEM,
 * reported as well.
 */
int gguf_choose_type_readings(struct gguf_model *model, const struct gguf_open_options *options,
                              struct gguf_report *report);

/*
 * Add the choice "ID:NAME", as in -o type=. It replaces an earlier one of the same id. Returns 0,
 * or -EINVAL with a message in `report` that lists what the id can be.
 */
int gguf_add_type_choice(struct gguf_open_options *options, const char *text,
                         struct gguf_report *report);

#endif
