/* Metadata above the limits of size: long arrays and strings, holes, many names. */
#include "tests/hostile/hostile.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Return a file whose array elements lie in a hole. */
static struct model_bytes array_of(uint32_t type, uint64_t n_elements, uint64_t element_bytes)
{
    struct gguf_writer *w = hostile_open();
    struct model_bytes bytes;

    gguf_writer_add_array(w, "k", type, n_elements);
    bytes = hostile_finish(w);
    bytes.size_bytes = AT_VALUE_K + 12;
    bytes.hole_bytes = n_elements * element_bytes;
    return bytes;
}

static struct model_bytes u8_hole(uint64_t n_elements)
{
    return array_of(GGUF_WRITER_U8, n_elements, 1);
}

static struct model_bytes bool_hole(uint64_t n_elements)
{
    return array_of(GGUF_WRITER_BOOL, n_elements, 1);
}

/* Return a file with an array of empty strings in a hole. */
static struct model_bytes string_array_hole(uint64_t n_elements)
{
    return array_of(GGUF_WRITER_STRING, n_elements, 8);
}

static struct model_bytes string_hole(uint64_t n_bytes)
{
    struct gguf_writer *w = hostile_open();
    struct model_bytes bytes;

    gguf_writer_key(w, "k", 1, GGUF_WRITER_STRING);
    gguf_writer_count(w, n_bytes);
    bytes = hostile_finish(w);
    bytes.size_bytes = AT_VALUE_K + 8;
    bytes.hole_bytes = n_bytes;
    return bytes;
}

/* Return a file with keys whose names have the largest length. */
static struct model_bytes long_key_names(uint64_t count)
{
    static char name[65535];
    struct gguf_writer *w = hostile_open();

    for (uint64_t i = 0; i < count; i++) {
        memset(name, (int)('a' + i % 26), sizeof name);
        memcpy(name, &i, sizeof i);
        gguf_writer_key(w, name, sizeof name, GGUF_WRITER_U8);
        gguf_writer_u8(w, 1);
    }
    return hostile_finish(w);
}

/* Return a file with empty tensors whose names have the largest length. */
static struct model_bytes long_tensor_names(uint64_t count)
{
    static char name[65535];
    struct gguf_writer *w = hostile_open();

    for (uint64_t i = 0; i < count; i++) {
        memset(name, (int)('a' + i % 26), sizeof name);
        memcpy(name, &i, sizeof i);
        gguf_writer_add_tensor(w, name, sizeof name, 1, (uint64_t[]){0}, 0, NULL, 0);
    }
    return hostile_finish(w);
}

enum { KEY_ENTRY = 8 + 65535 + 4 + 1, TENSOR_ENTRY = 8 + 65535 + 4 + 8 + 4 + 8 };

static const struct hostile_row refused[] = {
    {25,
     "2^36 u8 in 49 bytes",
     u8_hole,
     P(36),
     -E2BIG,
     AT_VALUE_K + 12,
     {"key \"k\"", "an array", "over 1073741824 bytes"}},
    {25,
     "2^36 bools in 49 bytes",
     bool_hole,
     P(36),
     -E2BIG,
     AT_VALUE_K + 12,
     {"key \"k\"", "an array", "over 1073741824 bytes"}},
    {25,
     "a string of 2^36 bytes",
     string_hole,
     P(36),
     -E2BIG,
     AT_VALUE_K,
     {"key \"k\"", "a string", "over 1073741824 bytes"}},
    {25,
     "17 MiB of holes",
     u8_hole,
     17 << 20,
     -EFBIG,
     AT_VALUE_K + 12,
     {"key \"k\"", "an array", "over 16777216 bytes", "holes"}},
    {25,
     "a string of 17 MiB of holes",
     string_hole,
     17 << 20,
     -EFBIG,
     AT_VALUE_K,
     {"key \"k\"", "a string", "holes"}},
    {25,
     "32 MiB of key names",
     long_key_names,
     513,
     -E2BIG,
     HEADER_END + 512ull * KEY_ENTRY,
     {"key 513 of 513", "65535 bytes", "over 33554432 bytes"}},
    {25,
     "32 MiB of tensor names",
     long_tensor_names,
     513,
     -E2BIG,
     HEADER_END + 512ull * TENSOR_ENTRY,
     {"tensor 513 of 513", "65535 bytes", "over 33554432 bytes"}},
};

const struct hostile_table hostile_limits_table = {refused, COUNT(refused), 1};

static const struct hostile_row accepted[] = {
    {25, "a hole of 1 MiB", u8_hole, 1 << 20, 0, 0, {"metadata/k.json"}},
    {25, "empty strings in a hole", string_array_hole, 1000, 0, 0, {"metadata/k.json"}},
};

const struct hostile_table hostile_within_limits_table = {accepted, COUNT(accepted), 0};
