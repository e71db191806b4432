/*
 * SentencePiece's table of characters that are replaced before a text is cut, as a file has it:
 * https://github.com/google/sentencepiece, src/normalizer.cc. It is a double array in which each
 * unit has 32 bits: whether it is a leaf, the byte that leads to it, and how far its children are.
 */
#ifndef GGUFS_RUNNER_CHARACTERS_MAP_H
#define GGUFS_RUNNER_CHARACTERS_MAP_H

#include "contrib/runner/tree/metadata.h"

/* All zeros is one that replaces nothing. */
struct run_characters_map {
    uint8_t *bytes;
    const uint8_t *units; /* of 4 bytes, little-endian */
    size_t n_units;
    const char *replacements; /* each ends with a NUL, as does the last */
    size_t n_replacement_bytes;
};

/* Reads the array of bytes of that key, if there is one. On failure, as later, it is freed with
 * run_characters_map_free(). */
int run_characters_map_read(const struct run_metadata *metadata, const char *key,
                            struct run_characters_map *map, struct run_failure *failure);

void run_characters_map_free(struct run_characters_map *map);

/* What the beginning of the text is replaced with: the replacement, and how many bytes it takes the
 * place of. False if there is none. */
bool run_characters_map_find(const struct run_characters_map *map, const char *text, size_t length,
                             const char **replacement, size_t *n_bytes, size_t *n_taken);

#endif
