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
 * Opens the file at `path` and parses it, whatever its format, without the rules of
 * gguf/validate.h. On success *model is to be freed with gguf_close(). On failure returns a
 * negative errno with the reason in `report`, and *model is NULL.
 */
int gguf_open_file(const char *path, const struct gguf_open_options *options,
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
