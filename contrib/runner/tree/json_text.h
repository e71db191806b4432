/* The characters of strings in JSON. */
#ifndef GGUFS_RUNNER_JSON_TEXT_H
#define GGUFS_RUNNER_JSON_TEXT_H

#include <stddef.h>
#include <stdint.h>

/*
 * Return the number of bytes from `at` on, before `end`, that belong to a string as they are: up to
 * a quote, a backslash or a control character.
 */
size_t run_plain_length(const unsigned char *at, const unsigned char *end);

/* Write a code point in UTF-8. Returns the number of bytes. */
size_t run_encode_utf8(uint32_t point, uint8_t bytes[4]);

#endif
