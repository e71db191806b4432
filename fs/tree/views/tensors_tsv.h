/* tensors.tsv: a table of the tensors for awk, sort and spreadsheets. */
#ifndef GGUFS_FS_TENSORS_TSV_H
#define GGUFS_FS_TENSORS_TSV_H

#include "fs/tree/core/text.h"

/* A line with the names of the columns, then one line per tensor. */
fs_text_writer fs_tensors_tsv_write;

#endif
