/*
 * Helpers for the fuzz targets. A target is a LLVMFuzzerTestOneInput() that aborts when a property
 * does not hold. libFuzzer calls it; so does replay.c, which needs no fuzzer.
 */
#pragma once

#include "gguf/model.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* End the process with a message if the property does not hold. */
#define FUZZ_CHECK(property, ...)                                                                  \
    do {                                                                                           \
        if (!(property))                                                                           \
            fuzz_fail(__VA_ARGS__);                                                                \
    } while (0)

_Noreturn void fuzz_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Pseudo-random numbers that depend only on the input. */
struct fuzz_random {
    uint64_t state;
};

struct fuzz_random fuzz_random_seed(const uint8_t *data, size_t size);

/* Return a number from 0 to limit - 1; `limit` must be above 0. */
uint64_t fuzz_random_below(struct fuzz_random *random, uint64_t limit);

/*
 * malloc() that never fails. The block has exactly this size, so that the sanitizer detects any
 * access past its end.
 */
void *fuzz_alloc(size_t n_bytes);

/* Return the length of the UTF-8 character at `bytes` (RFC 3629), or 0 if they are not UTF-8. */
size_t fuzz_utf8_length(const uint8_t *bytes, size_t n_bytes);

bool fuzz_is_utf8(const char *text, size_t length);

/*
 * Check that the text is one JSON value as a strict parser accepts it: UTF-8, no control characters
 * except newlines, only JSON's escapes, nothing after the value. Lone surrogates are allowed.
 */
void fuzz_check_json(const char *text, size_t length);

/*
 * Open a file like gguf_open(). If it is a part of an old model, every part has the same bytes, so
 * that the parts fit together.
 */
int fuzz_open_model(const char *path, struct gguf_model **model, struct gguf_report *report);

/* Check that the name is a valid file name: not empty, not "." or "..", no '/'. */
void fuzz_check_file_name(const char *name);
