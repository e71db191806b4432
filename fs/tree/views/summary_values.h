/* Values of keys in a summary, which is text for a terminal. */
#ifndef GGUFS_FS_SUMMARY_VALUES_H
#define GGUFS_FS_SUMMARY_VALUES_H

#include "fs/tree/output/sink.h"
#include "gguf/model.h"

#include <stdbool.h>

/* Write the start of a line: the label, of at most 15 bytes, padded. */
void fs_summary_label(struct fs_sink *sink, const char *label);

/* Write a string of the model, escaped and, if it is long, cut. */
void fs_summary_string(struct fs_sink *sink, struct gguf_string string);

/*
 * Return the value of a key, or NULL. If `key` begins with '.', the architecture's name precedes
 * it.
 */
const struct gguf_value *fs_summary_find(const struct gguf_model *model, const char *key);

/* The same, or NULL if the value is not a string. */
const struct gguf_value *fs_summary_find_string(const struct gguf_model *model, const char *key);

/* Return true if the value is an integer or an array of 1 to 65536 integers. */
bool fs_summary_has_integers(const struct gguf_value *value);

/* Write an integer, or the smallest and the largest integer of an array. */
void fs_summary_range(struct fs_sink *sink, const struct gguf_value *value);

/*
 * Write a value: a number, text, "yes" or "no", or the elements of an array, if it is long only the
 * first ones. Arrays of arrays are not allowed.
 */
void fs_summary_value(struct fs_sink *sink, const struct gguf_value *value);

/* Return true if a value is worth a line: it is neither 0 nor empty, nor an array of arrays. */
bool fs_summary_shows(const struct gguf_value *value);

#endif
