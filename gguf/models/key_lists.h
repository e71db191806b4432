/* Looks up keys in the lists of an architecture. See models.h for the lists. */
#pragma once

#include "gguf/models/models.h"
#include "gguf/support/strings.h"

/*
 * Prefix of the keys that describe the Hadamard transform of weights that are stored rotated. A
 * program must transform the activations as well, or its results are wrong. Source: PrismML's fork
 * of llama.cpp, pull request 121.
 */
#define GGUF_ROTATION_KEYS "prism.hadamard."

/* The rule of a list for a key. */
enum gguf_key_rule {
    GGUF_KEY_UNUSED, /* not in the lists: files may have it, but it is without effect */
    GGUF_KEY_REQUIRED,
    GGUF_KEY_OPTIONAL,
    GGUF_KEY_HAS_DEFAULT,
    GGUF_KEY_FIXED, /* the key is not read: all models have one value */
};

/*
 * Return the rule for a key, which is written without "ARCHITECTURE.". Stores the default or
 * the fixed value at *value, which may be NULL; the other rules leave it as it is.
 */
enum gguf_key_rule gguf_key_rule(const struct gguf_architecture *architecture, const char *key,
                                 double *value);

/* The types that values of keys have. llama.cpp refuses another type, and so another width. */
enum gguf_key_type { GGUF_KEY_UINT32, GGUF_KEY_FLOAT32, GGUF_KEY_BOOL, GGUF_KEY_STRING };

/* Return the type of a key, which is written without "ARCHITECTURE."; uint32 for unknown keys. */
enum gguf_key_type gguf_key_type(const char *key);

/* Return true if the key may be an array with a value for each layer. */
bool gguf_key_may_be_array(const char *key);

enum { GGUF_KEY_NAME_BYTES = 64 };

/*
 * Return true if a file has a key, which is written without "ARCHITECTURE.". A key that begins with
 * a slash belongs to no architecture: its name follows the slash.
 */
typedef bool gguf_key_finder(const void *user, const char *key);

/*
 * Return true if all required keys are there. If not, *missing is the first word of the lists
 * without a key in the file: a key, or alternatives separated by '|'.
 */
bool gguf_check_keys(const struct gguf_architecture *architecture, gguf_key_finder *has,
                     const void *user, struct gguf_string *missing);
