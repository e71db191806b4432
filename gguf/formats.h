/*
 * The table of file formats; gguf/lookalikes.c has the files that users mistake for models.
 *
 * A parser fills in the keys and tensors of a model whose first file is open, and calls
 * gguf_header_finish(). The model owns all memory that the parser allocates; it is freed if the
 * parser fails.
 */
#pragma once

#include "gguf/model.h"

/* The start of a file, or of the model in a larger file. */
struct gguf_start {
    const uint8_t *bytes;
    size_t n_bytes;      /* GGUF_START_BYTES, or the whole file if it is shorter */
    uint64_t file_bytes; /* of the whole file, or of the model */
    uint64_t file_offset;
    const char *path;
};

#define GGUF_START_BYTES ((size_t)512)

struct gguf_format {
    const char *name;
    bool (*probe)(const struct gguf_start *start);
    /* Returns 0, or a negative errno with the reason in `report`. */
    int (*parse)(struct gguf_model *model, const struct gguf_open_options *options,
                 struct gguf_report *report);
};

/* Return the format of a file, or NULL if it is unknown. */
const struct gguf_format *gguf_find_format(const struct gguf_start *start);

/* Report that the format is unknown, and what the file is instead. Returns -EINVAL. */
int gguf_refuse_format(const struct gguf_start *start, struct gguf_report *report);

bool gguf_probe_gguf(const struct gguf_start *start);
int gguf_parse_gguf(struct gguf_model *model, const struct gguf_open_options *options,
                    struct gguf_report *report);

/* rwkv.cpp: magic ggmf, versions 100 and 101. */
bool gguf_probe_rwkv(const struct gguf_start *start);
int gguf_parse_rwkv(struct gguf_model *model, const struct gguf_open_options *options,
                    struct gguf_report *report);

/* Magics ggml, ggmf and ggjt. */
bool gguf_probe_ggml(const struct gguf_start *start);
int gguf_parse_ggml(struct gguf_model *model, const struct gguf_open_options *options,
                    struct gguf_report *report);
