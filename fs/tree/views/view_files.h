/*
 * The files of the tree, for the rows of views.c: a writer or a builder for each, and whether a
 * subject has it. The source file has the name of the file that it makes, or of their kind.
 */
#pragma once

#include "fs/tree/core/view_row.h"
#include "fs/tree/data/statistics.h"
#include "gguf/model.h"

/* The table: a new kind of file, directory or link is a row in views.c. */
extern const struct fs_table fs_views;

/* summary.txt: the main facts about a model, on one screen. It is safe for a terminal. */
fs_text_writer fs_summary_write;

/* The same with another cache than NULL, or as members of a JSON object, each after a comma. */
struct fs_cache_choice;
void fs_summary_print(const struct fs_tree *tree, const struct fs_cache_choice *cache, bool is_json,
                      struct fs_sink *sink);

/* metadata/<key>.json: the value. metadata.json: all keys in file order, one per line. */
fs_text_writer fs_value_json_write;
fs_text_writer fs_metadata_json_write;

/* tensors/<tensor>/info. tensors.json: the infos of all tensors, one per line. */
fs_text_writer fs_tensor_info_write;
fs_text_writer fs_tensor_infos_write;

/* Write the shape of a tensor as a JSON array. */
void fs_tensor_shape_write(const struct fs_tree *tree, const struct gguf_tensor *tensor,
                           struct fs_sink *sink);

/* tensors.tsv: a table of the tensors for awk, sort and spreadsheets, with the names of columns. */
fs_text_writer fs_tensors_tsv_write;

/*
 * A tensor's values for numpy.load(), as numbers of the row's element_type, in version 1.0 of
 * https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html
 */
fs_view_builder fs_npy_build;
fs_view_size fs_npy_size;

/*
 * stats.json: the statistics of a tensor. Each line is padded with blanks: the size does not depend
 * on the statistics, which are computed when the file is opened. Opening can be interrupted, and
 * returns the errors of fs_statistics_compute() and fs_image_add_made().
 */
fs_view_builder fs_stats_json_build;
fs_view_size fs_stats_json_size;

/* Write the members of stats.json on one line, each after a comma. */
void fs_stats_json_write_members(const struct fs_tree *tree, const struct gguf_tensor *tensor,
                                 const struct fs_statistics *statistics, struct fs_sink *sink);

/*
 * The vocabulary as text: one token, score, type or merge per line, if the model has the array.
 *
 * Tokens are the bytes that they stand for. Bytes that would break a line or a terminal are
 * escaped: \n, \r, \t, \\, and \xNN for each byte of other control characters and of invalid UTF-8.
 * Merges stay in the vocabulary's notation, as files merges.txt have them.
 */
fs_view_condition fs_tokens_text_applies;
fs_view_condition fs_scores_text_applies;
fs_view_condition fs_types_text_applies;
fs_view_condition fs_merges_text_applies;
fs_text_writer fs_tokens_text_write;
fs_text_writer fs_scores_text_write;
fs_text_writer fs_types_text_write;
fs_text_writer fs_merges_text_write;

/*
 * model.gguf and split/: the model, or a shard of it, as a little-endian GGUF file of version 3,
 * whatever its source's format; translated for llama.cpp if Ollama wrote the file. Then mmproj.gguf
 * has its encoders, and original.gguf is the file as it is.
 */
fs_view_condition fs_model_gguf_applies;
fs_view_condition fs_mmproj_gguf_applies;
fs_view_condition fs_original_gguf_applies;
fs_view_condition fs_ollama_gguf_applies;
fs_view_builder fs_model_gguf_build;

/* model.unsupported.txt: why llama.cpp does not run this model. */
fs_view_condition fs_model_unsupported_applies;
fs_text_writer fs_model_unsupported_write;

/* Return the reason why the model cannot be written as a GGUF file, in a few words, or NULL. */
const char *fs_model_gguf_obstacle(const struct gguf_model *model);

/* model.safetensors: all tensors under their GGUF names. */
fs_view_condition fs_safetensors_applies;
fs_view_builder fs_safetensors_build;

/* Return the reason why it cannot be written, in a few words, or NULL. */
const char *fs_safetensors_obstacle(const struct fs_tree *tree);

/*
 * SHA256SUMS: a line for each file of the tree whose view `is_summed`, as sha256sum(1) of coreutils
 * writes and checks them. Paths are relative to the root of the tree. Tensors come in their order
 * in the model, files of the whole model after them.
 *
 * The length of a line does not depend on the checksum, so the file's size costs no hashing. A read
 * hashes the files whose lines it touches, in parallel, and the checksums are kept.
 */
fs_view_builder fs_checksums_build;
