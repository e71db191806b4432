/* The commands of ggufs. Each prints errors to stderr and returns the exit status. */
#pragma once

#include "fs/command/options.h"

typedef int fs_run_command(const struct fs_options *options);

/* Mount options->models[0] on options->directory. */
fs_run_command fs_mount_model;

/* Write summary.txt of every model to stdout; with options->layers, also a line per layer. */
fs_run_command fs_info;

/* Print the size in bytes and the path of all files and links, or of those in options->paths. */
fs_run_command fs_list;

/* Write the files that options->paths name to stdout, to a terminal with controls escaped. */
fs_run_command fs_cat;

/*
 * Write the files that options->paths name into options->directory, at the same paths as in the
 * tree. Makes the directory if it does not exist. Without paths, writes the metadata and all
 * tensors as stored, which is enough for ggufs-run. Writes nothing outside the directory and
 * follows no symbolic link in it. A file that exists already must have the same contents, unless
 * options->force is set. A file gets its name only when it is complete.
 */
fs_run_command fs_extract;

/* Print a line of statistics for each tensor that options->paths choose, as a table or as JSON. */
fs_run_command fs_stats;

/*
 * Compare the two options->models and print what differs. Returns, like diff(1), 0 if nothing
 * differs, 1 if something does, more if something cannot be read.
 */
fs_run_command fs_diff;

/*
 * Print the prompt that the model's chat template makes of options->variables. Returns EX_NOINPUT
 * for a missing file, EX_DATAERR for a missing template and for an error of the template.
 */
fs_run_command fs_render;

/*
 * Print a line for each finding in the models, or one that says OK. Returns the exit status of the
 * first model with an error, or EX_OK.
 */
fs_run_command fs_check_models;

/*
 * Print the state of the mounts at options->paths, or of all mounts of ggufs. Returns EX_OK if all
 * serve, EX_UNAVAILABLE if one does not, EX_NOINPUT if nothing is mounted at a path.
 */
fs_run_command fs_status;

/* Return true if the command line is one for fs_complete(). */
bool fs_is_completion(int argc, char **argv);

/*
 * ggufs --complete, which the scripts in contrib/completion/ call. Print completions as
 * option_rows.h describes: options, their values, and paths in the tree of the model that the
 * words name.
 */
int fs_complete(int argc, char **argv);
