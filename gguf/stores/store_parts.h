/* Functions that the stores share. See stores.h. */
#pragma once

#include "gguf/stores/stores.h"

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>

/* A search for a model. */
struct gguf_store_search {
    char **path;
    char *reason;
};

/* Set the reason. Bytes other than printable ASCII become '?'. Returns `code`. */
int gguf_store_fail(const struct gguf_store_search *search, int code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/*
 * Set the reason to a text and the names that follow it, as many as it has room for. `list` has
 * names that end with '\n'. Returns `code`.
 */
int gguf_store_list(const struct gguf_store_search *search, int code, const char *text,
                    const char *list);

/* Write a path. Returns NULL if out of memory; the caller frees it. */
char *gguf_store_path(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Return the value of the first of these variables that is set, followed by `end`, or NULL. */
struct gguf_store_place {
    const char *variable, *end;
};
char *gguf_store_root(const struct gguf_store_place *places);

/* Read a regular file of at most 16 MiB, with a NUL after it. Returns NULL with errno. */
char *gguf_store_read(const char *path);

/* Return the string of a member, or "". */
const char *gguf_store_string(const cJSON *object, const char *name);

/* Return the names in a folder that `fits`, each with '\n', sorted. NULL if it cannot be read. */
char *gguf_store_names(const char *folder, bool (*fits)(const char *name));

/* The stores. `name` is what follows the prefix. */
typedef int gguf_store_finder(const struct gguf_store_search *search, const char *name);
gguf_store_finder gguf_ollama_find, gguf_hub_find, gguf_llama_cache_find, gguf_lm_studio_find;
