/* Parses the files of a model. */
#pragma once

#include "gguf/files.h"
#include "gguf/model.h"

/*
 * Parse an open file, whatever its format, without the rules of gguf/validate.h. The model takes
 * the file over, also on failure. On success *model must be freed with gguf_close(). On failure
 * returns a negative errno with the reason in `report`, and *model is NULL.
 */
int gguf_parse_file(struct gguf_file *file, const struct gguf_open_options *options,
                    struct gguf_model **model, struct gguf_report *report);

/* The files of one model, each parsed as a model. Their headers share their limits. */
struct gguf_parsed_files {
    struct gguf_model **list; /* NULL: not parsed */
    uint32_t count;
    uint32_t named;          /* the one that the user named, which is parsed first */
    struct gguf_usage usage; /* by all that are parsed */
    const char *what;        /* "shards" or "parts", for messages */
    /* Checks a file that has been parsed. Returns 0, or a negative errno after reporting it. */
    int (*check)(const struct gguf_parsed_files *parsed, uint32_t index,
                 struct gguf_report *report);
};

/*
 * Parse and check all files but the named one, and report those that were not opened. Returns the
 * first error, after at most GGUF_MAX_BAD_SHARDS.
 */
int gguf_parse_other_files(struct gguf_parsed_files *parsed, struct gguf_files *files,
                           const struct gguf_open_options *options, struct gguf_report *report);
