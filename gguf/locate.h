/* Finds the model in an archive, for example a llamafile. */
#pragma once

#include "gguf/formats.h"

/*
 * Find the model in a ZIP file, which may follow a program, or in a tar archive, as layers of
 * images are: the only member that is stored without compression and starts like a model. Returns 1
 * and its place in the file; 0 if the file does not end with a ZIP file, and no member of a tar
 * archive is a model; or a negative errno with the reason in `report`. A note lists each model if
 * there are several.
 */
int gguf_locate_in_archive(const struct gguf_source *source, uint64_t *offset, uint64_t *size_bytes,
                           struct gguf_report *report);
