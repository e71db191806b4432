/* config.json and generation_config.json. */
#ifndef GGUFS_FS_HF_CONFIG_FILE_H
#define GGUFS_FS_HF_CONFIG_FILE_H

#include "fs/tree/hf/hf_rows.h"

/*
 * Write config.json of the model. fs_hf_factors_read() must have succeeded, unless only
 * config->problem is used.
 */
void fs_hf_write_config(struct fs_hf_config *config, const struct fs_hf_row *row,
                        const char *dtype);

/* Write generation_config.json. */
void fs_hf_write_generation_config(struct fs_hf_config *config);

#endif
