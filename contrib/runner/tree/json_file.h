/*
 * The JSON files of a mounted tree.
 */
#ifndef GGUFS_RUNNER_JSON_FILE_H
#define GGUFS_RUNNER_JSON_FILE_H

#include "contrib/runner/tree/failure.h"

#include <cjson/cJSON.h>
#include <stddef.h>

/*
 * Reads the file at `path` below the directory `dir_fd`, of at most `limit_bytes`, as a JSON
 * object. The result is freed with cJSON_Delete().
 *
 * The tree writes bytes that are not UTF-8 as the lone surrogates U+DC80 to U+DCFF; strings of the
 * result hold those bytes themselves. A NUL character becomes the two bytes C0 80, since a string
 * of cJSON ends at a NUL.
 */
int run_json_read(int dir_fd, const char *path, size_t limit_bytes, cJSON **out,
                  struct run_failure *failure);

/* Reads the JSON text of `length` bytes, which is changed; for tests and fuzzing. `name` is for
 * messages. */
int run_json_parse(char *text, size_t length, const char *name, cJSON **out,
                   struct run_failure *failure);

#endif
