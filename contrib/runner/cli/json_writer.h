/*
 * JSON for other programs: one object on a line. If memory runs out, `is_memory_missing` becomes
 * true and stays so; the object is then not printed.
 */
#ifndef GGUFS_RUNNER_JSON_WRITER_H
#define GGUFS_RUNNER_JSON_WRITER_H

#include "gguf/support/buffer.h"
#include "contrib/runner/tokenizer/token_ids.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* All zeros: nothing is written yet. */
struct run_json {
    struct gguf_buffer text;
    bool is_memory_missing;
};

/* A nested object has a name; for the outermost one pass NULL. */
void run_json_begin(struct run_json *json, const char *name);
void run_json_end(struct run_json *json);

/* Write a member. Strings are UTF-8 and may contain NUL bytes; NaN and infinities become null. */
void run_json_string(struct run_json *json, const char *name, const char *bytes, size_t length);
void run_json_number(struct run_json *json, const char *name, double number);
void run_json_integer(struct run_json *json, const char *name, uint64_t number);
void run_json_ids(struct run_json *json, const char *name, const struct run_ids *ids);

void run_json_free(struct run_json *json);

#endif
