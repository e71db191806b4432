#include "contrib/runner/tokenizer/charsmap.h"

#include "contrib/runner/tokenizer/token_ids.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MAX_BYTES ((size_t)1 << 24)

static uint32_t read_u32(const uint8_t *bytes)
{
    return bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 | (uint32_t)bytes[3] << 24;
}

struct reading {
    struct run_charsmap *map;
    const char *key;
    size_t n_bytes, capacity;
};

static int take_byte(void *context, uint32_t index, const struct gguf_json *element,
                     struct run_failure *failure)
{
    struct reading *reading = context;

    if (element->kind != GGUF_JSON_NUMBER || element->number < -128 || element->number > 255 ||
        index == MAX_BYTES)
        return run_fail(failure, -EINVAL,
                        "metadata: %s: element %u is not a byte, or there are more than %zu",
                        reading->key, index, MAX_BYTES);
    /* One more for a NUL, which the last replacement may lack. */
    if (run_reserve(&reading->map->bytes, &reading->capacity, index + 2, 1) < 0)
        return run_fail_memory(failure);
    reading->map->bytes[index] = (uint8_t)(int)element->number;
    reading->map->bytes[index + 1] = '\0';
    reading->n_bytes = index + 1;
    return 1;
}

int run_charsmap_read(const struct run_metadata *metadata, const char *key,
                      struct run_charsmap *map, struct run_failure *failure)
{
    struct reading reading = {map, key, 0, 0};
    size_t n_bytes, n_unit_bytes;
    int code;

    *map = (struct run_charsmap){0};
    code = run_metadata_each(metadata, key, take_byte, &reading, failure);
    n_bytes = reading.n_bytes;
    if (code < 0 || n_bytes == 0)
        return code;
    if (n_bytes < sizeof(uint32_t))
        return run_fail(failure, -EINVAL,
                        "metadata: %s: %zu bytes, too short for the length of the units", key,
                        n_bytes);
    n_unit_bytes = read_u32(map->bytes);
    if (n_unit_bytes > n_bytes - sizeof(uint32_t))
        return run_fail(failure, -EINVAL, "metadata: %s: %zu bytes of units, but only %zu follow",
                        key, n_unit_bytes, n_bytes - sizeof(uint32_t));
    map->units = map->bytes + sizeof(uint32_t);
    map->n_units = n_unit_bytes / sizeof(uint32_t);
    map->replacements = (const char *)map->units + n_unit_bytes;
    map->n_replacement_bytes = n_bytes - sizeof(uint32_t) - n_unit_bytes;
    return 0;
}

void run_charsmap_free(struct run_charsmap *map)
{
    free(map->bytes);
    *map = (struct run_charsmap){0};
}

/* Return the unit at `index`, or 0, which leads nowhere, past the end. */
static uint32_t unit_at(const struct run_charsmap *map, uint32_t index)
{
    return index < map->n_units ? read_u32(map->units + (size_t)index * sizeof(uint32_t)) : 0;
}

/* Return the distance from a unit to its children. */
static uint32_t offset_of(uint32_t unit)
{
    return unit >> 10 << ((unit & 1u << 9) >> 6);
}

bool run_charsmap_find(const struct run_charsmap *map, const char *text, size_t length,
                       const char **replacement, size_t *n_bytes, size_t *n_taken)
{
    uint32_t at = offset_of(unit_at(map, 0)), value = 0;

    *n_taken = 0;
    for (size_t i = 0; i < length && map->n_units > 0; i++) {
        const unsigned char byte = (unsigned char)text[i];
        uint32_t unit;

        at ^= byte;
        unit = unit_at(map, at);
        if (byte == 0 || (unit & (1u << 31 | 0xff)) != byte)
            break;
        at ^= offset_of(unit);
        if (unit >> 8 & 1) {
            *n_taken = i + 1;
            value = unit_at(map, at) & 0x7fffffffu;
        }
    }
    if (*n_taken == 0 || value >= map->n_replacement_bytes)
        return false;
    *replacement = map->replacements + value;
    *n_bytes = strlen(*replacement);
    return true;
}
