/*
 * Tokenizers for tests, from metadata written in the test or from the fixtures. A function that
 * cannot do its task fails the test.
 */
#pragma once

#include "contrib/runner/tokenizer/tokenizer.h"

/* Call run_tokenizer_open() for a tree with these metadata, a JSON object. */
int vocabulary_open(const char *metadata, struct run_tokenizer **tokenizer,
                    struct run_failure *failure);

/* Open a tokenizer from valid metadata. Free it with run_tokenizer_close(). */
struct run_tokenizer *vocabulary_accept(const char *metadata);

/*
 * Open the tokenizer of tokenizers/<name> in the fixtures. Returns NULL, with a note, if the file
 * does not exist.
 */
struct run_tokenizer *vocabulary_fixture(const char *name);

/*
 * Read tokenizers/<name> and append a NUL. Returns NULL if the file does not exist. The caller
 * frees the bytes.
 */
char *vocabulary_fixture_file(const char *name, size_t *length);

/* Check the ids of a text, like "1 2 3", and that their pieces give the text. */
void vocabulary_expect(const struct run_tokenizer *tokenizer, const char *text, unsigned flags,
                       const char *ids);

/* Check the ids only. */
void vocabulary_expect_ids(const struct run_tokenizer *tokenizer, const char *text, size_t length,
                           unsigned flags, const char *ids);

/* Return true if the pieces of the text's ids give the text. */
bool vocabulary_is_kept(const struct run_tokenizer *tokenizer, const char *text, size_t length);
