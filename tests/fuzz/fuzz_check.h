/*
 * What the fuzz targets share. A target is a LLVMFuzzerTestOneInput() that aborts when a property
 * does not hold; libFuzzer calls it, and so does replay.c, which needs no fuzzer.
 */
#ifndef GGUFS_TESTS_FUZZ_CHECK_H
#define GGUFS_TESTS_FUZZ_CHECK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Ends the process with a message unless the property holds. */
#define FUZZ_CHECK(property, ...)                                                                  \
    do {                                                                                           \
        if (!(property))                                                                           \
            fuzz_fail(__VA_ARGS__);                                                                \
    } while (0)

_Noreturn void fuzz_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Numbers that look random and depend on nothing but the input. */
struct fuzz_random {
    uint64_t state;
};

struct fuzz_random fuzz_random_seed(const uint8_t *data, size_t size);

/* From 0 up to but not including `limit`, which is over 0. */
uint64_t fuzz_random_below(struct fuzz_random *random, uint64_t limit);

/* malloc() that never fails, so that the sanitizer knows where the memory ends. */
void *fuzz_alloc(size_t n_bytes);

/* The length of the UTF-8 character that starts here (RFC 3629); 0 if none does. */
size_t fuzz_utf8_length(const uint8_t *bytes, size_t n_bytes);

bool fuzz_is_utf8(const char *text, size_t length);

/*
 * Checks that the text is one JSON value for a strict reader's eyes: UTF-8, no control character
 * but newlines, no escape but those of JSON, nothing behind the value. Lone surrogates are taken.
 */
void fuzz_check_json(const char *text, size_t length);

/* Whether it can name a file of its own in a directory. */
void fuzz_check_file_name(const char *name);

#endif
