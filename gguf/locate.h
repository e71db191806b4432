/* Finds the model inside a larger file, such as a llamafile. */
#ifndef GGUFS_GGUF_LOCATE_H
#define GGUFS_GGUF_LOCATE_H

#include "gguf/formats.h"

/*
 * If the user says where the model is, make it the source's. Returns 0, or a negative errno with
 * the reason in `report`. Call it before anything of the source's header is copied.
 */
int gguf_locate_range(struct gguf_source *source, const struct gguf_open_options *options,
                      struct gguf_report *report);

/* Note that the user's size may be why data are missing, if it is given and some are. */
void gguf_note_range(const struct gguf_open_options *options, struct gguf_report *report);

/*
 * Find the model in a ZIP file, which may follow a program: the only member that is stored without
 * compression and has the start of a model. Make it the source's, and drop the copy of the header.
 * Returns 1, 0 if the source does not end with a ZIP file, or a negative errno with the reason in
 * `report`. A note lists each model if there are several.
 */
int gguf_locate_in_zip(struct gguf_source *source, struct gguf_report *report);

#endif
