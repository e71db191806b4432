/*
 * Turns the models on the command line into trees, in three steps: open the files of all models,
 * confine the process, then parse the models and make the trees.
 */
#pragma once

#include "fs/command/options.h"
#include "fs/tree/tree.h"
#include "gguf/files.h"
#include "gguf/stores/stores.h"
#include "gguf/support/confine.h"

/* A model on the command line. */
struct fs_input {
    const char *path; /* of the model's file or, if it was not found, as named by the user */
    struct gguf_listed_model listed, stored; /* for --info: as its store has it, or empty */
    char *store_name;                        /* for --info: its name there; or NULL */
    struct gguf_files files;
    struct fs_extra *extras; /* files to show beside the model's */
    size_t n_extras;
    int error;               /* 0, or the negative errno of the opening; `files` is then empty */
    struct gguf_finding why; /* the reason, if error is set */
};

/*
 * Open the files of all options->models; a folder stands for the only model in it. `listed` is the
 * model if it is known, or NULL. If a model cannot be opened, its input holds the error. Unless the
 * model is mounted, standard output may not be one of the files. Prints other errors to stderr.
 * Returns an exit status; after EX_OK, free *inputs with fs_close_inputs().
 */
int fs_open_inputs(const struct fs_options *options, const struct gguf_listed_model *listed,
                   struct fs_input **inputs);
void fs_close_inputs(const struct fs_options *options, struct fs_input *inputs);

/*
 * Confine the process unless the user has forbidden it. Prints to stderr if that fails. Returns an
 * exit status; unless it is EX_OK, the process should end.
 */
int fs_confine(const struct fs_options *options, const struct gguf_confinement *confinement);

/*
 * Parse a model, apply the edits and make the tree. Prints the first error to stderr, and a warning
 * for each option that does not fit the file. Returns an exit status; after EX_OK, free *tree with
 * fs_close_tree().
 */
int fs_make_tree(const struct fs_options *options, struct fs_input *input, struct fs_tree **tree);

/* Return true if a directory is the tree of a model. */
bool fs_is_tree(const char *path);

/*
 * Open the files of a listed model: the part of fs_make_tree() before the process is confined,
 * unless `open` has an opener. Returns 0 or a negative errno with the reason in `report`; then
 * fs_close_input() must be called in any case.
 */
int fs_open_listed(const struct gguf_open_options *open, const struct gguf_listed_model *listed,
                   struct fs_input *input, struct gguf_report *report);
void fs_close_input(struct fs_input *input);

/* The rest of fs_make_tree(), for a report of the caller. Returns 0 or a negative errno. */
int fs_make_tree_of(const struct fs_options *options, struct fs_input *input,
                    const struct fs_findings *findings, struct fs_tree **tree,
                    struct gguf_report *report);

/* Free a tree and its model. */
void fs_close_tree(struct fs_tree *tree);

/*
 * Do all steps for a command that only computes and writes to open descriptors: open the inputs,
 * confine the process, and call `run` for each input. `run` returns an exit status. Returns the
 * first one that is not EX_OK.
 */
int fs_run_for_models(const struct fs_options *options,
                      int (*run)(const struct fs_options *options, struct fs_input *input));

/*
 * Parse a model and report all errors, including the failure to open it, to `report`. Prints the
 * warnings of fs_make_tree(). Returns 0 or a negative errno; after 0, free *model with
 * gguf_close().
 */
int fs_parse_input(const struct fs_options *options, struct fs_input *input,
                   struct gguf_model **model, struct gguf_report *report);

/*
 * Print to stderr that the tree has nothing at `path`, with a similar path if there is one. Returns
 * the exit status.
 */
int fs_refuse_path(const struct fs_tree *tree, const char *model, const char *path);
