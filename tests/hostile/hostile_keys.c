/* Keys and values that are refused. */
#include "tests/hostile/hostile.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static struct model_bytes key_name_length(uint64_t length)
{
    struct gguf_writer *w = hostile_open();

    gguf_writer_count(w, length);
    gguf_writer_raw(w, "32 bytes for the name and value.", 32);
    gguf_writer_override_key_count(w, 1);
    struct model_bytes bytes = hostile_finish(w);
    bytes.size_bytes = HEADER_END + 8 + 32;
    return bytes;
}

static struct model_bytes key_of_bytes(uint64_t n_bytes)
{
    struct gguf_writer *w = hostile_open();
    char *name = malloc(n_bytes);

    memset(name, 'n', n_bytes);
    gguf_writer_key(w, name, n_bytes, GGUF_WRITER_U8);
    gguf_writer_u8(w, 1);
    free(name);
    return hostile_finish(w);
}

static struct model_bytes value_type(uint64_t type)
{
    struct gguf_writer *w = hostile_open();

    gguf_writer_key(w, "k", 1, (uint32_t)type);
    gguf_writer_u64(w, 0);
    return hostile_finish(w);
}

static struct model_bytes bool_value(uint64_t value)
{
    struct gguf_writer *w = hostile_open();

    gguf_writer_key(w, "k", 1, GGUF_WRITER_BOOL);
    gguf_writer_u8(w, (uint8_t)value);
    return hostile_finish(w);
}

static struct model_bytes bool_in_array(uint64_t value)
{
    struct gguf_writer *w = hostile_open();

    gguf_writer_add_array(w, "k", GGUF_WRITER_BOOL, 3);
    gguf_writer_u8(w, 1);
    gguf_writer_u8(w, 0);
    gguf_writer_u8(w, (uint8_t)value);
    return hostile_finish(w);
}

static struct model_bytes string_length(uint64_t length)
{
    struct gguf_writer *w = hostile_open();
    struct model_bytes bytes;

    gguf_writer_key(w, "k", 1, GGUF_WRITER_STRING);
    gguf_writer_count(w, length);
    gguf_writer_raw(w, "ten bytes.", 10);
    bytes = hostile_finish(w);
    bytes.size_bytes = AT_VALUE_K + 8 + 10;
    return bytes;
}

static struct model_bytes string_length_in_array(uint64_t length)
{
    struct gguf_writer *w = hostile_open();
    struct model_bytes bytes;

    gguf_writer_add_array(w, "k", GGUF_WRITER_STRING, 2);
    gguf_writer_string(w, "one", 3);
    gguf_writer_count(w, length);
    bytes = hostile_finish(w);
    bytes.size_bytes = AT_VALUE_K + 12 + 11 + 8;
    return bytes;
}

static struct model_bytes string_length_v1(uint64_t length)
{
    struct gguf_writer *w = gguf_writer_open(1, false);

    gguf_writer_key(w, "k", 1, GGUF_WRITER_STRING);
    gguf_writer_count(w, length);
    gguf_writer_raw(w, "ten bytes.", 10);
    struct model_bytes bytes = hostile_finish(w);
    bytes.size_bytes = 16 + 4 + 1 + 4 + 4 + 10;
    return bytes;
}

/* Return an array of `type` whose length is `length`, but which has 30 bytes of elements. */
static struct model_bytes array_length(uint32_t type, uint64_t length)
{
    struct gguf_writer *w = hostile_open();
    struct model_bytes bytes;

    gguf_writer_add_array(w, "k", type, length);
    gguf_writer_raw(w, "thirty bytes follow the length", 30);
    bytes = hostile_finish(w);
    bytes.size_bytes = AT_VALUE_K + 12 + 30;
    return bytes;
}

static struct model_bytes array_of_u8(uint64_t length)
{
    return array_length(GGUF_WRITER_U8, length);
}

static struct model_bytes array_of_u64(uint64_t length)
{
    return array_length(GGUF_WRITER_U64, length);
}

static struct model_bytes array_of_bools(uint64_t length)
{
    return array_length(GGUF_WRITER_BOOL, length);
}

static struct model_bytes array_of_strings(uint64_t length)
{
    return array_length(GGUF_WRITER_STRING, length);
}

static struct model_bytes array_of_arrays(uint64_t length)
{
    return array_length(GGUF_WRITER_ARRAY, length);
}

static struct model_bytes array_of_unknown(uint64_t type)
{
    return array_length((uint32_t)type, 1);
}

static struct model_bytes arrays_deep(uint64_t depth)
{
    struct gguf_writer *w = hostile_open();

    gguf_writer_add_array(w, "k", GGUF_WRITER_ARRAY, 1);
    for (uint64_t i = 2; i < depth; i++)
        gguf_writer_array(w, GGUF_WRITER_ARRAY, 1);
    gguf_writer_array(w, GGUF_WRITER_U8, 1);
    gguf_writer_u8(w, 1);
    return hostile_finish(w);
}

static struct model_bytes alignment(uint64_t value)
{
    struct gguf_writer *w = hostile_open();

    gguf_writer_add_u32(w, "general.alignment", (uint32_t)value);
    return hostile_finish(w);
}

static struct model_bytes alignment_of_u64(uint64_t value)
{
    struct gguf_writer *w = hostile_open();

    gguf_writer_add_u64(w, "general.alignment", value);
    return hostile_finish(w);
}

static struct model_bytes alignment_of_i32(uint64_t value)
{
    struct gguf_writer *w = hostile_open();

    gguf_writer_add_i32(w, "general.alignment", (int32_t)value);
    return hostile_finish(w);
}

static struct model_bytes alignment_of_string(uint64_t value)
{
    struct gguf_writer *w = hostile_open();

    gguf_writer_add_string(w, "general.alignment", "32");
    return hostile_finish(w);
}

static struct model_bytes key_twice(uint64_t argument)
{
    struct gguf_writer *w = hostile_open();

    gguf_writer_add_u32(w, "b", 1);
    gguf_writer_add_u32(w, "k", 1);
    gguf_writer_add_u32(w, "a", 1);
    gguf_writer_add_u32(w, "k", 2);
    return hostile_finish(w);
}

static const struct hostile_row rows[] = {
    {2,
     "a name that is too long",
     key_name_length,
     33,
     -ENODATA,
     HEADER_END,
     {"key 1 of 1", "33", "32"}},
    {2, "a name of 2^63", key_name_length, P(63), -ENODATA, HEADER_END, {"key 1 of 1", "32"}},
    {2,
     "a name of 2^64-1",
     key_name_length,
     UINT64_MAX,
     -ENODATA,
     HEADER_END,
     {"key 1 of 1", "18446744073709551615", "only 32"}},
    /* offset + length wraps: first to the end of the file, then to byte 0. */
    {2, "a name that wraps", key_name_length, -(uint64_t)32, -ENODATA, HEADER_END, {"key 1 of 1"}},
    {2,
     "a name that wraps to 0",
     key_name_length,
     -(uint64_t)(HEADER_END + 8),
     -ENODATA,
     HEADER_END,
     {"key 1 of 1"}},
    {16,
     "a key of 65,536 bytes",
     key_of_bytes,
     65536,
     -EINVAL,
     HEADER_END,
     {"key 1 of 1", "\"nnn", "65536 bytes", "65535"}},

    {14,
     "value type 13",
     value_type,
     13,
     -EINVAL,
     HEADER_END + 9,
     {"key \"k\"", "type 13", "is 12"}},
    {14,
     "value type 2^32-1",
     value_type,
     UINT32_MAX,
     -EINVAL,
     HEADER_END + 9,
     {"\"k\"", "4294967295"}},
    {15, "bool 2", bool_value, 2, -EINVAL, AT_VALUE_K, {"key \"k\"", "bool is 2", "0 and 1"}},
    {15, "bool 255", bool_value, 255, -EINVAL, AT_VALUE_K, {"key \"k\"", "bool is 255"}},
    {15, "bool 2 in an array", bool_in_array, 2, -EINVAL, AT_VALUE_K + 12 + 2, {"\"k\"", "is 2"}},

    {2,
     "a string that is too long",
     string_length,
     11,
     -ENODATA,
     AT_VALUE_K,
     {"\"k\"", "11", "only 10"}},
    {2, "a string of 2^61", string_length, P(61), -ENODATA, AT_VALUE_K, {"2305843009213693952"}},
    {2,
     "a string of 2^64-1",
     string_length,
     UINT64_MAX,
     -ENODATA,
     AT_VALUE_K,
     {"key \"k\"", "18446744073709551615 bytes", "only 10"}},
    {2,
     "a string that wraps",
     string_length,
     -(uint64_t)(AT_VALUE_K + 8),
     -ENODATA,
     AT_VALUE_K,
     {"key \"k\""}},
    {2,
     "a string in an array",
     string_length_in_array,
     UINT64_MAX - 3,
     -ENODATA,
     AT_VALUE_K + 23,
     {"key \"k\"", "18446744073709551612", "only 0"}},

    {2,
     "v1: a string of 2^32-1",
     string_length_v1,
     UINT32_MAX,
     -ENODATA,
     25,
     {"key \"k\"", "4294967295 bytes", "only 10"}},
    {18,
     "a string of 1 GiB",
     string_length,
     P(30),
     -ENODATA,
     AT_VALUE_K,
     {"key \"k\"", "1073741824 bytes", "only 10"}},

    {2,
     "an array of 31 bytes in 30",
     array_of_u8,
     31,
     -ENODATA,
     AT_VALUE_K,
     {"key \"k\"", "31 elements", "uint8", "30 bytes", "at most 30"}},
    {2,
     "an array of 2^64-1 bytes",
     array_of_u8,
     UINT64_MAX,
     -ENODATA,
     AT_VALUE_K,
     {"18446744073709551615"}},
    {2, "one u64 too many", array_of_u64, 4, -ENODATA, AT_VALUE_K, {"4 elements", "at most 3"}},
    {2,
     "2^61 u64 wrap to 0 bytes",
     array_of_u64,
     P(61),
     -ENODATA,
     AT_VALUE_K,
     {"key \"k\"", "2305843009213693952 elements", "uint64", "at most 3"}},
    {2, "2^61+1 u64 wrap to 8 bytes", array_of_u64, P(61) + 1, -ENODATA, AT_VALUE_K, {"at most 3"}},
    {2, "2^64-1 u64", array_of_u64, UINT64_MAX, -ENODATA, AT_VALUE_K, {"18446744073709551615"}},
    {2, "2^64-1 bools", array_of_bools, UINT64_MAX, -ENODATA, AT_VALUE_K, {"bool", "most 30"}},
    {2, "2^61 strings", array_of_strings, P(61), -ENODATA, AT_VALUE_K, {"string", "at most 3"}},
    {2, "2^64-1 strings", array_of_strings, UINT64_MAX, -ENODATA, AT_VALUE_K, {"at most 3"}},
    {2, "2^64-1 arrays", array_of_arrays, UINT64_MAX, -ENODATA, AT_VALUE_K, {"array", "most 2"}},
    {14,
     "elements of type 13",
     array_of_unknown,
     13,
     -EINVAL,
     AT_VALUE_K,
     {"\"k\"", "is 13", "12"}},
    {14,
     "elements of type 2^32-1",
     array_of_unknown,
     UINT32_MAX,
     -EINVAL,
     AT_VALUE_K,
     {"4294967295"}},
    {14,
     "arrays nested 9 deep",
     arrays_deep,
     9,
     -EINVAL,
     AT_VALUE_K + 8 * 12,
     {"\"k\"", "more than 8"}},
    {14,
     "arrays nested 10000 deep",
     arrays_deep,
     10000,
     -EINVAL,
     AT_VALUE_K + 8 * 12,
     {"\"k\"", "than 8"}},

    {9,
     "alignment 0",
     alignment,
     0,
     -EINVAL,
     HEADER_END,
     {"general.alignment", ": 0 is not a power of two"}},
    {9, "alignment 3", alignment, 3, -EINVAL, HEADER_END, {"general.alignment", ": 3 is"}},
    {9, "alignment 48", alignment, 48, -EINVAL, HEADER_END, {"general.alignment", ": 48 is"}},
    {9, "alignment 2^17", alignment, P(17), -EINVAL, HEADER_END, {"alignment", "131072", "65536"}},
    {9, "alignment 2^31", alignment, P(31), -EINVAL, HEADER_END, {"alignment", "2147483648"}},
    {9, "alignment 2^32-1", alignment, UINT32_MAX, -EINVAL, HEADER_END, {"4294967295"}},
    {9,
     "alignment as u64 2^63",
     alignment_of_u64,
     P(63),
     -EINVAL,
     HEADER_END,
     {"alignment", "uint64", "uint32"}},
    {9,
     "alignment as u64",
     alignment_of_u64,
     32,
     -EINVAL,
     HEADER_END,
     {"alignment", "uint64", "uint32"}},
    {9,
     "alignment as i32",
     alignment_of_i32,
     32,
     -EINVAL,
     HEADER_END,
     {"alignment", "int32", "uint32"}},
    {9,
     "alignment as a string",
     alignment_of_string,
     0,
     -EINVAL,
     HEADER_END,
     {"alignment", "string", "uint32"}},

    {16,
     "a key twice",
     key_twice,
     0,
     -EEXIST,
     HEADER_END + 3 * 17,
     {"key \"k\"", "duplicate", "another value", "byte 41"}},
};

const struct hostile_table hostile_keys_table = {rows, COUNT(rows), 1};
