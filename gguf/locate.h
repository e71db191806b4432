/* Finds the model inside a larger file, for example a llamafile. */
#pragma once

#include "gguf/formats.h"

/*
 * If the options give the place of the model, make it the range of the file's source. Returns 0, or
 * a negative errno with the reason in `report`. Call it before anything of the file's header is
 * copied.
 */
int gguf_locate_range(struct gguf_file *file, const struct gguf_open_options *options,
                      struct gguf_report *report);

/* If data are missing and the options give a size, note that the size may be the reason. */
void gguf_note_range(const struct gguf_open_options *options, struct gguf_report *report);

/*
 * Find the model in a ZIP file, which may follow a program: the only member that is stored without
 * compression and starts like a model. Make it the range of the file's source, and drop the copy of
 * the header. Returns 1, 0 if the file does not end with a ZIP file, or a negative errno with the
 * reason in `report`. A note lists each model if there are several.
 */
int gguf_locate_in_zip(struct gguf_file *file, struct gguf_report *report);

/* The same for a tar archive, as layers of images are. Returns 0 if none of its members is a model.
 */
int gguf_locate_in_tar(struct gguf_file *file, struct gguf_report *report);
