/* Target: the JSON writer. The input serves as a string, as numbers and as a metadata value. */
#include "fs/tree/output/json.h"
#include "fs/tree/output/shortest.h"
#include "fs/tree/output/value_writer.h"
#include "gguf/model.h"
#include "tests/fuzz/fuzz_check.h"

#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Long enough for a buffer that grows several times. */
#define LONG_BYTES 150000

/* ---- strings ---- */

/* Return the length of the escape for `byte` at `text`, or 0 if it is something else. */
static size_t match_escape(const char *text, size_t length, unsigned char byte)
{
    static const char letters[] = "\"\\/bfnrt", meanings[] = "\"\\/\b\f\n\r\t";
    const char *letter;
    char number[7];

    if (length >= 2 && text[0] == '\\' && text[1] && (letter = strchr(letters, text[1])))
        return (unsigned char)meanings[letter - letters] == byte ? 2 : 0;
    snprintf(number, sizeof number, "\\u%02x%02x", byte < 0x80 ? 0 : 0xdc, byte);
    return length >= 6 && strncasecmp(text, number, 6) == 0 ? 6 : 0;
}

/*
 * Check that the text encodes exactly these bytes: each character as itself (ASCII characters may
 * be escaped), each byte that is not part of a character as a lone surrogate.
 */
static void check_stands_for(const char *text, size_t length, const uint8_t *bytes, size_t n_bytes)
{
    size_t at = 0;

    for (size_t done = 0; done < n_bytes;) {
        const size_t n = fuzz_utf8_length(bytes + done, n_bytes - done);
        const bool may_be_plain = n > 0 && bytes[done] >= 0x20 && !strchr("\"\\", bytes[done]);

        if (may_be_plain && n <= length - at && memcmp(text + at, bytes + done, n) == 0) {
            at += n;
        } else {
            const size_t escape_bytes = match_escape(text + at, length - at, bytes[done]);

            FUZZ_CHECK(n <= 1 && escape_bytes > 0, "byte %zu of the string is encoded wrongly",
                       done);
            at += escape_bytes;
        }
        done += n > 1 ? n : 1;
    }
    FUZZ_CHECK(at == length, "the text is longer than the string");
}

/* Return a sink that stores a whole text. */
static struct fs_sink sink_for(uint64_t size_bytes)
{
    return (struct fs_sink){.to = size_bytes, .out = fuzz_alloc((size_t)size_bytes)};
}

/* Return a sink for a string. JSON needs at most six bytes for one byte. */
static struct fs_sink sink_for_string(struct gguf_string string)
{
    return sink_for(6 * string.length_bytes + 2);
}

static struct fs_sink whole_string(struct gguf_string string)
{
    struct fs_sink text = sink_for_string(string), counter = fs_sink_that_counts();

    fs_json_string(&text, string);
    fs_json_string(&counter, string);
    FUZZ_CHECK(text.position == counter.position,
               "%" PRIu64 " bytes were written, but the counter has %" PRIu64, text.position,
               counter.position);
    return text;
}

static void check_same(const struct fs_sink *a, const struct fs_sink *b)
{
    FUZZ_CHECK(a->position == b->position && memcmp(a->out, b->out, (size_t)a->position) == 0,
               "one text has %" PRIu64 " bytes, the other %" PRIu64 ", or they differ", a->position,
               b->position);
}

static void check_string(struct gguf_string string)
{
    struct fs_sink whole = whole_string(string);
    const size_t length = (size_t)whole.position;

    FUZZ_CHECK(length >= 2 && whole.out[0] == '"' && whole.out[length - 1] == '"',
               "the string has no quotes");
    check_stands_for(whole.out + 1, length - 2, (const uint8_t *)string.data, string.length_bytes);
    fuzz_check_json(whole.out, length);
    free(whole.out);
}

/* ---- numbers ---- */

static unsigned significant_digits(const char *number)
{
    unsigned n = 0, zeros = 0;

    for (; *number && *number != 'e'; number++) {
        if (!isdigit((unsigned char)*number) || (n == 0 && *number == '0'))
            continue;
        n++;
        zeros = *number == '0' ? zeros + 1 : 0;
    }
    return n - zeros;
}

static void check_double(uint64_t bits)
{
    char number[FS_NUMBER_BYTES], shorter[64];
    double value, back;
    unsigned digits;

    memcpy(&value, &bits, sizeof value);
    number[fs_write_double(value, number)] = '\0';
    fuzz_check_json(number, strlen(number));
    if (!isfinite(value)) {
        FUZZ_CHECK(strcmp(number, "null") == 0, "%a is written as %s", value, number);
        return;
    }
    back = strtod(number, NULL);
    FUZZ_CHECK(memcmp(&back, &value, sizeof value) == 0, "%a is read back wrongly from %s", value,
               number);
    FUZZ_CHECK(strpbrk(number, ".e"), "%a is written like an integer: %s", value, number);
    digits = significant_digits(number);
    FUZZ_CHECK(digits <= 17, "%a is too long: %s", value, number);
    snprintf(shorter, sizeof shorter, "%.*e", digits > 2 ? (int)digits - 2 : 0, value);
    FUZZ_CHECK(digits < 2 || strtod(shorter, NULL) != value,
               "%a is written as %s, but %s is shorter", value, number, shorter);
}

/* Check that a float parser and a double parser both give the value. */
static bool reads_back(const char *number, float value)
{
    const float direct = strtof(number, NULL), by_double = (float)strtod(number, NULL);

    return memcmp(&direct, &value, sizeof value) == 0 &&
           memcmp(&by_double, &value, sizeof value) == 0;
}

static void check_float(uint32_t bits)
{
    char number[FS_NUMBER_BYTES], shorter[64];
    float value;
    unsigned digits;

    memcpy(&value, &bits, sizeof value);
    number[fs_write_float(value, number)] = '\0';
    fuzz_check_json(number, strlen(number));
    if (!isfinite(value)) {
        FUZZ_CHECK(strcmp(number, "null") == 0, "%a is written as %s", (double)value, number);
        return;
    }
    FUZZ_CHECK(reads_back(number, value), "%a is read back wrongly from %s", (double)value, number);
    FUZZ_CHECK(strpbrk(number, ".e"), "%a is written like an integer: %s", (double)value, number);
    digits = significant_digits(number);
    FUZZ_CHECK(digits <= 9, "%a is too long: %s", (double)value, number);
    snprintf(shorter, sizeof shorter, "%.*e", digits > 2 ? (int)digits - 2 : 0, (double)value);
    FUZZ_CHECK(digits < 2 || !reads_back(shorter, value), "%a is written as %s, but %s is shorter",
               (double)value, number, shorter);
}

static void check_integer(uint64_t bits)
{
    struct gguf_value value = {.type = GGUF_UINT64, .u64 = bits};
    char number[FS_NUMBER_BYTES + 1] = "";

    fs_json_scalar(&(struct fs_sink){.to = FS_NUMBER_BYTES, .out = number}, &value);
    FUZZ_CHECK(strtoull(number, NULL, 10) == bits, "%" PRIu64 " is written as %s", bits, number);
    FUZZ_CHECK(fs_count_digits(bits) == strlen(number), "%s is counted as %u digits", number,
               fs_count_digits(bits));
    value = (struct gguf_value){.type = GGUF_INT64, .i64 = (int64_t)bits};
    memset(number, 0, sizeof number);
    fs_json_scalar(&(struct fs_sink){.to = FS_NUMBER_BYTES, .out = number}, &value);
    FUZZ_CHECK(strtoll(number, NULL, 10) == value.i64, "%" PRId64 " is written as %s", value.i64,
               number);
}

/* ---- values ---- */

static struct fs_sink text_of_value(const struct gguf_value *value)
{
    struct fs_sink text = fs_sink_that_grows(UINT64_MAX), counter = fs_sink_that_counts();

    fs_json_value(&text, value);
    fs_json_value(&counter, value);
    FUZZ_CHECK(text.error == 0 && counter.error == 0, "no text could be made of a valid value");
    FUZZ_CHECK(text.position == counter.position,
               "%" PRIu64 " bytes were written, but the counter has %" PRIu64, text.position,
               counter.position);
    return text;
}

/* Check a string that repeats the input, of several steps of a growing buffer. */
static void check_long_string(const uint8_t *data, size_t size)
{
    struct gguf_value value = {.type = GGUF_STRING};
    struct fs_sink whole, grown;
    char *bytes = fuzz_alloc(LONG_BYTES);

    for (size_t i = 0; i < LONG_BYTES; i++)
        bytes[i] = (char)data[i % size];
    value.string = (struct gguf_string){bytes, LONG_BYTES};
    whole = whole_string(value.string);
    grown = text_of_value(&value);
    check_same(&whole, &grown);
    free(whole.out);
    free(grown.out);
    free(bytes);
}

/* Check a value as stored in a file: two bytes for version, byte order and type, then the value. */
static void check_value(const uint8_t *data, size_t size)
{
    struct gguf_report report = {0};
    struct gguf_value value;
    struct gguf_cursor cursor = {.data = data + 2,
                                 .size_bytes = size - 2,
                                 .encoding = {data[0] & 1, data[0] & 2 ? 4 : 8},
                                 .place = gguf_at_part("value", 0),
                                 .report = &report};
    struct fs_sink text;

    if (gguf_value_read(&cursor, data[1] % GGUF_N_VALUE_TYPES, &value) < 0) {
        FUZZ_CHECK(report.n_errors > 0, "a value is refused without an error message");
        return;
    }
    FUZZ_CHECK(cursor.offset <= cursor.size_bytes, "a value ends past its bytes");
    text = text_of_value(&value);
    fuzz_check_json(text.out, (size_t)text.position);
    free(text.out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_random random = fuzz_random_seed(data, size);
    uint64_t bits;

    check_string((struct gguf_string){(const char *)data, size});
    for (size_t i = 0; i + sizeof bits <= size && i < 4 * sizeof bits; i += sizeof bits) {
        memcpy(&bits, data + i, sizeof bits);
        check_double(bits);
        check_float((uint32_t)bits);
        check_integer(bits);
    }
    if (size >= 2)
        check_value(data, size);
    /* Long strings are slow, so only some inputs use one. */
    if (size > 0 && fuzz_random_below(&random, 64) == 0)
        check_long_string(data, size);
    return 0;
}
