/* A summary: its lines as text for a terminal, or the same facts as members of a JSON object. */
#pragma once

#include "fs/tree/output/sink.h"
#include "gguf/model.h"

#include <stdbool.h>

struct fs_tree;

/* The cache of keys and values whose memory the summary states. */
struct fs_cache_choice {
    uint32_t n_context; /* tokens; 0: the context that the model was trained for */
    uint32_t type;      /* id */
};

struct fs_summary {
    const struct fs_tree *tree;
    struct fs_sink *sink;
    bool is_json;
    const struct fs_cache_choice *cache; /* NULL: F16, for the default of tokens */
};

/*
 * Write `text` in a text; in JSON, begin the member after a comma, or write nothing if `member` is
 * NULL. What follows is the value: a call of one of the functions below.
 */
void fs_summary_part(const struct fs_summary *summary, const char *text, const char *member);

/* The same for the start of a line: the label, of at most 15 bytes, is padded. */
void fs_summary_label(const struct fs_summary *summary, const char *label, const char *member);

/* Write a text that the program wrote, which is printable; in JSON, in quotes. */
void fs_summary_text(const struct fs_summary *summary, const char *text);

/* Write a line with a text, after `before` in a text; nothing if the text is NULL. */
void fs_summary_line(const struct fs_summary *summary, const char *label, const char *before,
                     const char *member, const char *text);

/*
 * Divide a number by a power of `base` so that it is below `base`. Returns the exponent, up to 4.
 */
unsigned fs_summary_scale(double *number, double base);

/* Write a number of bytes; in a text with a unit, and then in full as well if `is_exact`. */
void fs_summary_bytes(const struct fs_summary *summary, uint64_t n_bytes, bool is_exact);

/* Write a string of the model; in a text escaped and, if it is long, cut. */
void fs_summary_string(const struct fs_summary *summary, struct gguf_string string);

/*
 * Return the value of a key, or NULL. If `key` begins with '.', the architecture's name precedes
 * it.
 */
const struct gguf_value *fs_summary_find(const struct gguf_model *model, const char *key);

/* The same, or NULL if the value is not a string. */
const struct gguf_value *fs_summary_find_string(const struct gguf_model *model, const char *key);

/* Return true if the value is an integer or an array of 1 to 65536 integers. */
bool fs_summary_has_integers(const struct gguf_value *value);

/* Write an integer; of an array the smallest and the largest one, but in JSON the array. */
void fs_summary_range(const struct fs_summary *summary, const struct gguf_value *value);

/*
 * Write a value. In a text: a number, text, "yes" or "no", or the elements of an array, if it is
 * long only the first ones. Arrays of arrays are not allowed.
 */
void fs_summary_value(const struct fs_summary *summary, const struct gguf_value *value);

/* Return true if a value is worth a line: it is neither 0 nor empty, nor an array of arrays. */
bool fs_summary_shows(const struct gguf_value *value);

/*
 * The tensors of one type. Tensors may overlap, so a sum may be larger than any file, and wrap; a
 * wrong figure does no harm.
 */
struct fs_share {
    const struct dequant_type *type; /* NULL: all unknown types */
    uint64_t n_tensors, n_elements, n_bytes;
};

/* Add a tensor; there is room for another share. Sort shares, the one with most bytes first. */
void fs_shares_add(struct fs_share *shares, size_t *n_shares, const struct gguf_tensor *tensor);
void fs_shares_sort(struct fs_share *shares, size_t n_shares);
struct fs_share fs_shares_sum(const struct fs_share *shares, size_t n_shares);
