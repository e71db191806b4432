/* ggufs --check: what is wrong with a model file, without a mount. */
#ifndef GGUFS_FS_CHECK_H
#define GGUFS_FS_CHECK_H

#include "fs/options.h"
#include "gguf/report.h"

/*
 * Checks the models named on the command line and prints a line per finding, or one that says OK,
 * to stdout. Returns the exit status: that of the first model with an error, else EX_OK.
 */
int fs_check_models(const struct fs_options *options);

/* For messages: prints a path on one line, its control characters as \xNN. */
void fs_print_path(FILE *stream, const char *path);

/* For messages: prints a finding after "PREFIX PATH: ". */
void fs_print_finding(FILE *stream, const char *prefix, const char *path,
                      const struct gguf_finding *finding);

/* The exit status (sysexits.h) for an error of gguf/ or fs/, a negative errno. */
int fs_exit_status(int code);

#endif
