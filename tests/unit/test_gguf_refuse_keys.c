/* Broken headers and keys. */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/refusal.h"

TestSuite(gguf_refuse_keys, .init = model_file_begin_test);

/* The bytes of version 3. */
enum {
    HEADER = 24,
    VALUE_K = HEADER + 8 + 1 + 4 /* where the value of a first key "k" starts */
};

static struct gguf_writer *open_writer(void)
{
    return gguf_writer_open(3, false);
}

/* The first `n_bytes` of a file that holds nothing. */
static struct model_bytes header_cut(uint64_t n_bytes)
{
    struct model_bytes bytes = model_file_finish(open_writer());

    bytes.size_bytes = n_bytes;
    return bytes;
}

static struct model_bytes version(uint64_t number)
{
    return model_file_finish(gguf_writer_open((uint32_t)number, false));
}

static struct model_bytes big_endian_version(uint64_t number)
{
    return model_file_finish(gguf_writer_open((uint32_t)number, true));
}

static struct model_bytes key_count(uint64_t count)
{
    struct gguf_writer *w = open_writer();
    struct model_bytes bytes;

    gguf_writer_raw(w, "thirty-eight bytes, one less than three", 38);
    gguf_writer_override_key_count(w, count);
    bytes = model_file_finish(w);
    bytes.size_bytes = HEADER + 38;
    return bytes;
}

static struct model_bytes key_count_v1(uint64_t count)
{
    struct gguf_writer *w = gguf_writer_open(1, false);
    struct model_bytes bytes;

    gguf_writer_raw(w, "twenty-six, not twenty-seven", 26);
    gguf_writer_override_key_count(w, count);
    bytes = model_file_finish(w);
    bytes.size_bytes = 16 + 26;
    return bytes;
}

static struct model_bytes tensor_count(uint64_t count)
{
    struct gguf_writer *w = open_writer();
    struct model_bytes bytes;
    static const char rest[71]; /* one less than three tensors */

    gguf_writer_raw_info(w, rest, sizeof rest);
    gguf_writer_override_tensor_count(w, count);
    bytes = model_file_finish(w);
    bytes.size_bytes = HEADER + sizeof rest;
    return bytes;
}

static struct model_bytes key_name_length(uint64_t length)
{
    struct gguf_writer *w = open_writer();

    gguf_writer_count(w, length);
    gguf_writer_raw(w, "32 bytes for the name and value.", 32);
    gguf_writer_override_key_count(w, 1);
    struct model_bytes bytes = model_file_finish(w);
    bytes.size_bytes = HEADER + 8 + 32;
    return bytes;
}

static struct model_bytes key_of_bytes(uint64_t n_bytes)
{
    struct gguf_writer *w = open_writer();
    char *name = malloc(n_bytes);

    memset(name, 'n', n_bytes);
    gguf_writer_key(w, name, n_bytes, GGUF_WRITER_U8);
    gguf_writer_u8(w, 1);
    free(name);
    return model_file_finish(w);
}

static struct model_bytes value_type(uint64_t type)
{
    struct gguf_writer *w = open_writer();

    gguf_writer_key(w, "k", 1, (uint32_t)type);
    gguf_writer_u64(w, 0);
    return model_file_finish(w);
}

static struct model_bytes bool_value(uint64_t value)
{
    struct gguf_writer *w = open_writer();

    gguf_writer_key(w, "k", 1, GGUF_WRITER_BOOL);
    gguf_writer_u8(w, (uint8_t)value);
    return model_file_finish(w);
}

static struct model_bytes bool_in_array(uint64_t value)
{
    struct gguf_writer *w = open_writer();

    gguf_writer_add_array(w, "k", GGUF_WRITER_BOOL, 3);
    gguf_writer_u8(w, 1);
    gguf_writer_u8(w, 0);
    gguf_writer_u8(w, (uint8_t)value);
    return model_file_finish(w);
}

static struct model_bytes string_length(uint64_t length)
{
    struct gguf_writer *w = open_writer();
    struct model_bytes bytes;

    gguf_writer_key(w, "k", 1, GGUF_WRITER_STRING);
    gguf_writer_count(w, length);
    gguf_writer_raw(w, "ten bytes.", 10);
    bytes = model_file_finish(w);
    bytes.size_bytes = VALUE_K + 8 + 10;
    return bytes;
}

static struct model_bytes string_length_in_array(uint64_t length)
{
    struct gguf_writer *w = open_writer();
    struct model_bytes bytes;

    gguf_writer_add_array(w, "k", GGUF_WRITER_STRING, 2);
    gguf_writer_string(w, "one", 3);
    gguf_writer_count(w, length);
    bytes = model_file_finish(w);
    bytes.size_bytes = VALUE_K + 12 + 11 + 8;
    return bytes;
}

/* An array of `type` that claims more elements than can be, with 30 bytes behind its head. */
static struct model_bytes array_length(uint32_t type, uint64_t length)
{
    struct gguf_writer *w = open_writer();
    struct model_bytes bytes;

    gguf_writer_add_array(w, "k", type, length);
    gguf_writer_raw(w, "thirty bytes behind the length", 30);
    bytes = model_file_finish(w);
    bytes.size_bytes = VALUE_K + 12 + 30;
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
    struct gguf_writer *w = open_writer();

    gguf_writer_add_array(w, "k", GGUF_WRITER_ARRAY, 1);
    for (uint64_t i = 2; i < depth; i++)
        gguf_writer_array(w, GGUF_WRITER_ARRAY, 1);
    gguf_writer_array(w, GGUF_WRITER_U8, 1);
    gguf_writer_u8(w, 1);
    return model_file_finish(w);
}

static struct model_bytes alignment(uint64_t value)
{
    struct gguf_writer *w = open_writer();

    gguf_writer_add_u32(w, "general.alignment", (uint32_t)value);
    return model_file_finish(w);
}

static struct model_bytes alignment_of_u64(uint64_t value)
{
    struct gguf_writer *w = open_writer();

    gguf_writer_add_u64(w, "general.alignment", value);
    return model_file_finish(w);
}

static struct model_bytes alignment_of_i32(uint64_t value)
{
    struct gguf_writer *w = open_writer();

    gguf_writer_add_i32(w, "general.alignment", (int32_t)value);
    return model_file_finish(w);
}

static struct model_bytes alignment_of_string(uint64_t value)
{
    struct gguf_writer *w = open_writer();

    (void)value;
    gguf_writer_add_string(w, "general.alignment", "32");
    return model_file_finish(w);
}

static struct model_bytes key_twice(uint64_t argument)
{
    struct gguf_writer *w = open_writer();

    (void)argument;
    gguf_writer_add_u32(w, "b", 1);
    gguf_writer_add_u32(w, "k", 1);
    gguf_writer_add_u32(w, "a", 1);
    gguf_writer_add_u32(w, "k", 2);
    return model_file_finish(w);
}

static const struct refusal rows[] = {
    {"no version", header_cut, 4, -ENODATA, 4, {"header", "version", "0 bytes are left"}},
    {"half a version", header_cut, 6, -ENODATA, 4, {"header", "version", "2 bytes are left"}},
    {"no counts", header_cut, 8, -ENODATA, 8, {"header", "counts", "0 bytes are left"}},
    {"half a count", header_cut, 15, -ENODATA, 8, {"header", "counts", "7 bytes are left"}},
    {"one count", header_cut, 16, -ENODATA, 16, {"header", "counts", "0 bytes are left"}},
    {"all but a byte", header_cut, 23, -ENODATA, 16, {"counts", "7 bytes are left"}},

    {"version 0", version, 0, -EINVAL, 4, {"version 0 ", "1 to 3"}},
    {"version 4", version, 4, -EINVAL, 4, {"version 4 ", "1 to 3"}},
    {"the last version", version, UINT32_MAX, -EINVAL, 4, {"version 4294967295 ", "1 to 3"}},
    {"big-endian 1", big_endian_version, 1, -EINVAL, 4, {"version 16777216 ", "1 to 3"}},
    {"big-endian 2", big_endian_version, 2, -EINVAL, 4, {"version 33554432 ", "1 to 3"}},
    {"big-endian 4", big_endian_version, 4, -EINVAL, 4, {"version 67108864 ", "1 to 3"}},

    {"a key too many", key_count, 3, -ENODATA, HEADER, {"3 keys", "38 bytes", "at most 2"}},
    {"2^61 keys", key_count, P(61), -ENODATA, HEADER, {"2305843009213693952 keys"}},
    {"2^63 keys", key_count, P(63), -ENODATA, HEADER, {"9223372036854775808 keys"}},
    {"2^64-1 keys", key_count, UINT64_MAX, -ENODATA, HEADER, {"18446744073709551615 keys"}},
    {"v1: a key too many", key_count_v1, 3, -ENODATA, 16, {"3 keys", "26 bytes", "most 2"}},
    {"v1: 2^32-1 keys", key_count_v1, UINT32_MAX, -ENODATA, 16, {"4294967295 keys"}},
    {"a tensor too many", tensor_count, 3, -ENODATA, HEADER, {"3 tensors", "71", "most 2"}},
    {"2^61 tensors", tensor_count, P(61), -ENODATA, HEADER, {"2305843009213693952 tensors"}},
    {"2^64-1 tensors", tensor_count, UINT64_MAX, -ENODATA, HEADER, {"18446744073709551615"}},

    {"a name too long", key_name_length, 33, -ENODATA, HEADER, {"key 1 of 1", "33", "32"}},
    {"a name of 2^63", key_name_length, P(63), -ENODATA, HEADER, {"key 1 of 1", "32"}},
    {"a name of 2^64-1",
     key_name_length,
     UINT64_MAX,
     -ENODATA,
     HEADER,
     {"key 1 of 1", "18446744073709551615", "only 32"}},
    /* Added to where it starts, these wrap to the end of the file, and to its start. */
    {"a name that wraps", key_name_length, -(uint64_t)32, -ENODATA, HEADER, {"key 1 of 1"}},
    {"a name to 0", key_name_length, -(uint64_t)(HEADER + 8), -ENODATA, HEADER, {"key 1 of 1"}},
    {"a key of 65,536",
     key_of_bytes,
     65536,
     -EINVAL,
     HEADER,
     {"key 1 of 1", "\"nnn", "65536 bytes", "65535"}},

    {"type 13", value_type, 13, -EINVAL, HEADER + 9, {"key \"k\"", "type 13", "is 12"}},
    {"type 2^32-1", value_type, UINT32_MAX, -EINVAL, HEADER + 9, {"\"k\"", "4294967295"}},
    {"bool 2", bool_value, 2, -EINVAL, VALUE_K, {"key \"k\"", "bool is 2", "0 and 1"}},
    {"bool 255", bool_value, 255, -EINVAL, VALUE_K, {"key \"k\"", "bool is 255"}},
    {"bool 2 in an array", bool_in_array, 2, -EINVAL, VALUE_K + 12 + 2, {"\"k\"", "is 2"}},

    {"a string too long", string_length, 11, -ENODATA, VALUE_K, {"\"k\"", "11", "only 10"}},
    {"a string of 2^61", string_length, P(61), -ENODATA, VALUE_K, {"2305843009213693952"}},
    {"a string of 2^64-1",
     string_length,
     UINT64_MAX,
     -ENODATA,
     VALUE_K,
     {"key \"k\"", "18446744073709551615 bytes", "only 10"}},
    {"a string that wraps",
     string_length,
     -(uint64_t)(VALUE_K + 8),
     -ENODATA,
     VALUE_K,
     {"key \"k\""}},
    {"a string in an array",
     string_length_in_array,
     UINT64_MAX - 3,
     -ENODATA,
     VALUE_K + 23,
     {"key \"k\"", "18446744073709551612", "only 0"}},

    {"31 of 30 bytes",
     array_of_u8,
     31,
     -ENODATA,
     VALUE_K,
     {"key \"k\"", "31 elements", "uint8", "30 bytes", "at most 30"}},
    {"2^64-1 bytes", array_of_u8, UINT64_MAX, -ENODATA, VALUE_K, {"18446744073709551615"}},
    {"a u64 too many", array_of_u64, 4, -ENODATA, VALUE_K, {"4 elements", "at most 3"}},
    {"2^61 u64 are 0",
     array_of_u64,
     P(61),
     -ENODATA,
     VALUE_K,
     {"key \"k\"", "2305843009213693952 elements", "uint64", "at most 3"}},
    {"2^61+1 u64 are 8", array_of_u64, P(61) + 1, -ENODATA, VALUE_K, {"at most 3"}},
    {"2^64-1 u64", array_of_u64, UINT64_MAX, -ENODATA, VALUE_K, {"18446744073709551615"}},
    {"2^64-1 bools", array_of_bools, UINT64_MAX, -ENODATA, VALUE_K, {"bool", "most 30"}},
    {"2^61 strings", array_of_strings, P(61), -ENODATA, VALUE_K, {"string", "at most 3"}},
    {"2^64-1 strings", array_of_strings, UINT64_MAX, -ENODATA, VALUE_K, {"at most 3"}},
    {"2^64-1 arrays", array_of_arrays, UINT64_MAX, -ENODATA, VALUE_K, {"array", "most 2"}},
    {"elements of 13", array_of_unknown, 13, -EINVAL, VALUE_K, {"\"k\"", "is 13", "12"}},
    {"elements of 2^32-1", array_of_unknown, UINT32_MAX, -EINVAL, VALUE_K, {"4294967295"}},
    {"9 levels", arrays_deep, 9, -EINVAL, VALUE_K + 8 * 12, {"\"k\"", "more than 8"}},
    {"10,000 levels", arrays_deep, 10000, -EINVAL, VALUE_K + 8 * 12, {"\"k\"", "than 8"}},

    {"alignment 0",
     alignment,
     0,
     -EINVAL,
     HEADER,
     {"general.alignment", ": 0 is not a power of two"}},
    {"alignment 3", alignment, 3, -EINVAL, HEADER, {"general.alignment", ": 3 is"}},
    {"alignment 48", alignment, 48, -EINVAL, HEADER, {"general.alignment", ": 48 is"}},
    {"alignment 2^32-1", alignment, UINT32_MAX, -EINVAL, HEADER, {"4294967295"}},
    {"a u64", alignment_of_u64, 32, -EINVAL, HEADER, {"alignment", "uint64", "uint32"}},
    {"an i32", alignment_of_i32, 32, -EINVAL, HEADER, {"alignment", "int32", "uint32"}},
    {"a string", alignment_of_string, 0, -EINVAL, HEADER, {"alignment", "string", "uint32"}},

    {"a key twice",
     key_twice,
     0,
     -EEXIST,
     HEADER + 3 * 17,
     {"key \"k\"", "twice", "different", "byte 41"}},
};

REFUSAL_TESTS(gguf_refuse_keys, what_each_row_breaks, rows)
