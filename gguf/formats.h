/*
 * The table of file formats, and of files that people take for models.
 *
 * A parser fills in keys and tensors of a model whose first file is mapped. It runs under
 * gguf_map_guard(): it must keep everything that it allocates in the model.
 */
#ifndef GGUFS_GGUF_FORMATS_H
#define GGUFS_GGUF_FORMATS_H

#include "gguf/model.h"

struct gguf_format {
    const char *name;
    bool (*probe)(const struct gguf_file *file);
    /* Returns 0, or a negative errno with the reason in `report`. */
    int (*parse)(struct gguf_model *model, const struct gguf_open_options *options,
                 struct gguf_report *report);
};

/* The format of the file; NULL, with the reason in `report`, if it is none that ggufs reads. */
const struct gguf_format *gguf_format_of(const struct gguf_file *file, struct gguf_report *report);

/*
 * Parse an open file, whatever its format, without the rules of gguf/validate.h. The model takes
 * the file over, also on failure. On success *model must be freed with gguf_close(). On failure
 * return a negative errno with the reason in `report`; *model is NULL.
 */
int gguf_parse_file(struct gguf_file *file, const struct gguf_open_options *options,
                    struct gguf_model **model, struct gguf_report *report);

bool gguf_probe_gguf(const struct gguf_file *file);
int gguf_parse_gguf(struct gguf_model *model, const struct gguf_open_options *options,
                    struct gguf_report *report);

/* Magic ggmf, but versions 100 and 101. */
bool gguf_probe_rwkv(const struct gguf_file *file);
int gguf_parse_rwkv(struct gguf_model *model, const struct gguf_open_options *options,
                    struct gguf_report *report);

/* Magics ggml, ggmf and ggjt. */
bool gguf_probe_ggml(const struct gguf_file *file);
int gguf_parse_ggml(struct gguf_model *model, const struct gguf_open_options *options,
                    struct gguf_report *report);

#endif
