/* The kinds of sources that are files of their own. */
#ifndef GGUFS_GGUF_FILE_SOURCES_H
#define GGUFS_GGUF_FILE_SOURCES_H

#include "gguf/source.h"

/* A file as it is; fits every path. It is mapped if it is complete, else read with pread(). */
extern const struct gguf_source_kind gguf_whole_file;

#endif
