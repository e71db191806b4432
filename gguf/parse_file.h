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
 * Parse and check all files but `named`, and report those that were not opened. Returns the first
 * error, after at most GGUF_MAX_BAD_SHARDS. Call gguf_close_parsed() in any case.
 */
int gguf_parse_other_files(struct gguf_parsed_files *parsed, struct gguf_model *named,
                           struct gguf_files *files, const struct gguf_open_options *options,
                           struct gguf_report *report);

/* Close the models but for one. */
void gguf_close_parsed(const struct gguf_parsed_files *parsed, uint32_t kept);

/*
 * If a parsed file is a shard, by its keys, or its tensors are slices, parse the other shards or
 * parts, which were opened with it, and replace *model with one model of all. Its files are the
 * shards in the order of their numbers, or one file that joins the parts. Does nothing if the file
 * is a whole model. Returns 0, or a negative errno with the reason in `report`; *model is then
 * still to be freed.
 */
int gguf_shards_join(struct gguf_model **model, struct gguf_files *files,
                     const struct gguf_open_options *options, struct gguf_report *report);
int gguf_parts_join(struct gguf_model **model, struct gguf_files *files,
                    const struct gguf_open_options *options, struct gguf_report *report);
