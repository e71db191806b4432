/*
 * JSON for other programs: one object, printed to stdout. Errors of stdout stay to be checked with
 * fflush() and ferror().
 */
#pragma once

#include "contrib/runner/tokenizer/token_ids.h"

#include <stddef.h>
#include <stdint.h>

/* A nested object has a name; for the outermost one pass NULL. */
void run_json_begin(const char *name);
void run_json_end(void);

/* Write a member. Strings are UTF-8 and may contain NUL bytes; NaN and infinities become null. */
void run_json_string(const char *name, const char *bytes, size_t length);
void run_json_number(const char *name, double number);
void run_json_integer(const char *name, uint64_t number);
void run_json_ids(const char *name, const struct run_ids *ids);
