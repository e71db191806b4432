/* The kinds of sources that are files of their own. */
#ifndef GGUFS_GGUF_FILE_SOURCES_H
#define GGUFS_GGUF_FILE_SOURCES_H

#include "gguf/source.h"

/* A complete file, mapped as a whole. Fits every path. */
extern const struct gguf_source_kind gguf_mapped_file;

/*
 * A file that is still being written, read with pread(): a mapping would end where the file ends
 * now.
 */
extern const struct gguf_source_kind gguf_growing_file;

#endif
