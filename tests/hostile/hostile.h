/*
 * Hostile model files: one for each error, and one for each odd but legal case, with the expected
 * result. These tables are the only list of them: the unit tests open the files in memory,
 * make_hostile.c writes them to a folder for the mount tests.
 *
 * Classes:
 *    1 counts × size wrap                    13 unknown and negative tensor types
 *    2 lengths near 2^64 in tiny files       14 unknown value types, deep arrays
 *    3 too many dimensions                   15 a bool of 2
 *    4 the product of dimensions wraps       16 key names
 *    5 elements fit, bytes wrap              17 tensor names
 *    6 sums of sizes wrap                    18 strings
 *    7 padding wraps                         19 numbers at their limits
 *    8 dimensions of 0                       20 empty strings in version 1
 *    9 alignments                            21 shards (several files: tests/unit)
 *   10 offsets                               22 versions and byte orders
 *   11 missing data                          23 cut headers (all: test_gguf_damage.c)
 *   12 rows of incomplete blocks             24 old files: test_gguf_old_damage.c
 *   25 metadata above the limits of size    26 ZIP files with a model
 *   27 type ids of several programs         28 old models in parts: test_gguf_parts.c
 */
#pragma once

#include "tests/unit/gguf/model_file.h"

#define P(exponent) (1ull << (exponent))

/* Offsets and sizes in files of version 3. */
enum {
    HEADER_END = 24,
    AT_VALUE_K = HEADER_END + 8 + 1 + 4, /* start of the value of a first key "k" */
    AFTER_NAME_T = HEADER_END + 8 + 1,   /* end of the name of a first tensor "t" */
    INFO_BYTES = 8 + 1 + 4 + 8 + 4 + 8,  /* an info with one dimension and a one-byte name */
    ALIGNMENT_KEY_BYTES = 8 + 17 + 4 + 4 /* the key general.alignment and its u32 */
};

struct hostile_row {
    unsigned class_number;
    const char *breaks; /* what is wrong; also the file's name, so unique in its class */
    struct model_bytes (*build)(uint64_t argument);
    uint64_t argument;
    int code;             /* negative errno of the first error, or 0 if the file mounts */
    uint64_t file_offset; /* of the first error, or GGUF_NO_OFFSET */
    /*
     * Words that the first error's message must contain. If the file mounts: paths that its tree
     * must have or, after a '!', must not have.
     */
    const char *words[5];
};

struct hostile_table {
    const struct hostile_row *rows;
    size_t n_rows;
    size_t n_errors; /* per file; 0 if the files mount */
};

extern const struct hostile_table hostile_header_table, hostile_keys_table, hostile_tensors_table,
    hostile_many_errors_table, hostile_names_table, hostile_clashes_table, hostile_odd_table,
    hostile_shards_table, hostile_no_shards_table, hostile_limits_table,
    hostile_within_limits_table, hostile_zip_table, hostile_types_table;

/*
 * Return row `number`, counted through all tables, or NULL past the last. Store the number of
 * errors that the file gives.
 */
const struct hostile_row *hostile_row_at(size_t number, size_t *n_errors);

/* Write the row's file name, without folder: the class and what is wrong. */
#define HOSTILE_NAME_BYTES 80
void hostile_file_name(const struct hostile_row *row, char name[HOSTILE_NAME_BYTES]);

/* Finish the file. The caller frees the bytes. Aborts if memory is short. */
struct model_bytes hostile_finish(struct gguf_writer *w);

/* Start a file of version 3. */
struct gguf_writer *hostile_open(void);
