/*
 * SentencePiece's table of character replacements, applied before a text is split, in the form that
 * files have: https://github.com/google/sentencepiece, src/normalizer.cc. It is a double-array
 * trie. A unit has 32 bits: a leaf flag, the byte on the edge to it, and the distance to its
 * children.
 */
#pragma once

#include "contrib/runner/tree/metadata.h"

/* All zeros is a map without replacements. */
struct run_charsmap {
    uint8_t *bytes;
    const uint8_t *units; /* 4 bytes each, little-endian */
    size_t n_units;
    const char *replacements; /* each ends with a NUL */
    size_t n_replacement_bytes;
};

/*
 * Read the array of bytes of that key, if there is one. Returns 0 or a negative errno; in both
 * cases, free the map with run_charsmap_free().
 */
int run_charsmap_read(const struct run_metadata *metadata, const char *key,
                      struct run_charsmap *map, struct run_failure *failure);

void run_charsmap_free(struct run_charsmap *map);

/*
 * Find the longest replacement for the beginning of a text. Returns false if none fits; else
 * stores the replacement and the number of bytes that it replaces.
 */
bool run_charsmap_find(const struct run_charsmap *map, const char *text, size_t length,
                       const char **replacement, size_t *n_bytes, size_t *n_taken);
