/* config.json and generation_config.json. */
#pragma once

#include "fs/tree/hf/hf_rows.h"

/*
 * Write config.json of the model. fs_hf_factors_read() must have succeeded, unless only
 * config->problem is used.
 */
void fs_hf_write_config(struct fs_hf_config *config, const struct fs_hf_row *row,
                        const char *dtype);

/*
 * Return the member of the row that gives the class its biases of this name, "attn_output" for
 * example, or NULL.
 */
const struct fs_hf_entry *fs_hf_switch_of(const struct fs_hf_row *row, const char *bias);

/* Return true if a member of the row has the value of this key. */
bool fs_hf_row_reads(const struct fs_hf_row *row, const char *key);

/* Write generation_config.json. */
void fs_hf_write_generation_config(struct fs_hf_config *config);
