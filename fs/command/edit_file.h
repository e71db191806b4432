/* Edits of metadata read from files. */
#pragma once

#include "gguf/edits.h"
#include "gguf/support/arrays.h"

#include <stdio.h>

/*
 * Append the bytes of an open file, which `name` names in errors; NULL: it could not be opened, and
 * errno says why. Returns 0, or a negative errno with the reason in `report`.
 */
int fs_stream_read(FILE *file, const char *name, struct gguf_buffer *text,
                   struct gguf_report *report);

/*
 * Append the bytes of the file at `path` to `text`, which the caller frees in every case. Returns
 * 0, or a negative errno with the reason in `report`.
 */
int fs_file_read(const char *path, struct gguf_buffer *text, struct gguf_report *report);

/*
 * Add the edits in the JSON file at `path`. Returns 0, or a negative errno with the reason in
 * `report`.
 */
int fs_edit_file_read(const char *path, struct gguf_edits *edits, struct gguf_report *report);

/*
 * Add an edit KEY=VALUE or KEY=TYPE:VALUE in which a VALUE "@FILE" means the contents of FILE, and
 * "@@" at its start means "@". Returns 0, or a negative errno with the reason in `report`.
 */
int fs_edit_set(const char *text, struct gguf_edits *edits, struct gguf_report *report);
