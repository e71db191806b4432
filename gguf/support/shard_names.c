#include "gguf/support/shard_names.h"

#include "gguf/support/strings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NUMBERS_BYTES (sizeof "-00001-of-00003" - 1)
#define SHARD_ENDING  ".gguf"
#define PART_ENDING   ".bin"

static const char *const endings[] = {SHARD_ENDING, PART_ENDING};

/* Return the length of a path without its ending. */
static size_t find_ending(const char *path)
{
    const struct gguf_string text = gguf_string_of(path);

    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++)
        if (gguf_string_ends_with(text, endings[i]))
            return text.length_bytes - strlen(endings[i]);
    return text.length_bytes;
}

bool gguf_has_model_ending(const char *path)
{
    return path[find_ending(path)] != '\0';
}

/* Read the numbers that end `length` bytes behind the start of a path. They start at 1. */
static bool read_numbers(const char *path, size_t length, uint32_t *number, uint32_t *count)
{
    const char *numbers = length >= NUMBERS_BYTES ? path + length - NUMBERS_BYTES : "";
    char expected[32];

    if (sscanf(numbers, "-%5" SCNu32 "-of-%5" SCNu32, number, count) != 2 || *number == 0 ||
        *count == 0)
        return false;
    snprintf(expected, sizeof expected, GGUF_SHARD_NUMBERS, *number, *count);
    return strncmp(numbers, expected, NUMBERS_BYTES) == 0; /* five digits each, without signs */
}

size_t gguf_stem_bytes(const char *path)
{
    const size_t length = find_ending(path);
    uint32_t number, count;

    return read_numbers(path, length, &number, &count) ? length - NUMBERS_BYTES : length;
}

bool gguf_read_shard_numbers(const char *path, uint32_t *number, uint32_t *count)
{
    const size_t length = find_ending(path);

    if (strcmp(path + length, SHARD_ENDING) == 0 && read_numbers(path, length, number, count))
        return true;
    *number = *count = 0;
    return false;
}

char *gguf_shard_path(const char *path, uint32_t number)
{
    uint32_t own_number, count;
    char *shard;

    if (!gguf_read_shard_numbers(path, &own_number, &count) ||
        asprintf(&shard, "%.*s" GGUF_SHARD_NUMBERS SHARD_ENDING, (int)gguf_stem_bytes(path), path,
                 number, count) < 0)
        return NULL;
    return shard;
}

/* Return the length of a path without the number of a part. */
static size_t part_name_bytes(const char *path)
{
    const size_t length = strlen(path);
    const char *end = path + length - 2;

    return length > 2 && end[0] == '.' && end[1] > '0' && end[1] < '0' + (char)GGUF_MAX_PARTS
               ? length - 2
               : length;
}

bool gguf_read_part_number(const char *path, uint32_t *number)
{
    const size_t length = part_name_bytes(path), n = sizeof PART_ENDING - 1;
    const bool is_part = length > n && strncmp(path + length - n, PART_ENDING, n) == 0;

    *number = is_part && path[length] ? (uint32_t)(path[length + 1] - '0') : 0;
    return is_part;
}

char *gguf_part_path(const char *path, uint32_t number)
{
    const int length = (int)part_name_bytes(path);
    char *part;

    if ((number == 0 ? asprintf(&part, "%.*s", length, path)
                     : asprintf(&part, "%.*s.%" PRIu32, length, path, number)) < 0)
        return NULL;
    return part;
}

bool gguf_are_shards_of_one_model(const char *a, const char *b)
{
    uint32_t number_of_a, number_of_b, count;
    char *same = NULL; /* the path of b, if it belongs to the model of a */
    bool is_same;

    if (gguf_read_part_number(a, &number_of_a) && gguf_read_part_number(b, &number_of_b)) {
        if (number_of_a != number_of_b)
            same = gguf_part_path(a, number_of_b);
    } else if (gguf_read_shard_numbers(b, &number_of_b, &count)) {
        same = gguf_shard_path(a, number_of_b);
    }
    is_same = same && strcmp(same, b) == 0;
    free(same);
    return is_same;
}
