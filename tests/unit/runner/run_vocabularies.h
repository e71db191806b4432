/*
 * Tokenizers for tests, of metadata written here or of the fixtures. What can't be done fails the
 * test that asked for it.
 */
#ifndef GGUFS_TESTS_RUN_VOCABULARIES_H
#define GGUFS_TESTS_RUN_VOCABULARIES_H

#include "contrib/runner/tokenizer/tokenizer.h"

/* run_tokenizer_open() of a tree whose metadata are that JSON object. */
int vocabulary_open(const char *metadata, struct run_tokenizer **tokenizer,
                    struct run_failure *failure);

/* The same, but it must succeed. Free it with run_tokenizer_close(). */
struct run_tokenizer *vocabulary_accept(const char *metadata);

/*
 * Open the tokenizer of tokenizers/<name> in the fixtures; NULL, with a note, if it does not exist.
 */
struct run_tokenizer *vocabulary_fixture(const char *name);

/* The bytes of tokenizers/<name>, to be freed, with a NUL behind; NULL if there is none. */
char *vocabulary_fixture_file(const char *name, size_t *length);

/* Check that the text becomes these ids, "1 2 3", and that their pieces are the text again. */
void vocabulary_expect(const struct run_tokenizer *tokenizer, const char *text, unsigned flags,
                       const char *ids);

/* Check the ids only. */
void vocabulary_expect_ids(const struct run_tokenizer *tokenizer, const char *text, size_t length,
                           unsigned flags, const char *ids);

/* Return true if the text comes back from its ids, whatever they are. */
bool vocabulary_is_kept(const struct run_tokenizer *tokenizer, const char *text, size_t length);

#endif
