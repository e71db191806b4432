/* Headers: cut, of unknown versions, with impossible counts. */
#include "tests/hostile/hostile.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Return the first `n_bytes` of an empty model. */
static struct model_bytes header_cut(uint64_t n_bytes)
{
    struct model_bytes bytes = hostile_finish(hostile_open());

    bytes.size_bytes = n_bytes;
    return bytes;
}

static struct model_bytes version(uint64_t number)
{
    return hostile_finish(gguf_writer_open((uint32_t)number, false));
}

static struct model_bytes big_endian_version(uint64_t number)
{
    return hostile_finish(gguf_writer_open((uint32_t)number, true));
}

static struct model_bytes key_count(uint64_t count)
{
    struct gguf_writer *w = hostile_open();
    struct model_bytes bytes;

    gguf_writer_raw(w, "thirty-eight bytes, one less than three", 38);
    gguf_writer_override_key_count(w, count);
    bytes = hostile_finish(w);
    bytes.size_bytes = HEADER_END + 38;
    return bytes;
}

static struct model_bytes key_count_v1(uint64_t count)
{
    struct gguf_writer *w = gguf_writer_open(1, false);
    struct model_bytes bytes;

    gguf_writer_raw(w, "twenty-six, not twenty-seven", 26);
    gguf_writer_override_key_count(w, count);
    bytes = hostile_finish(w);
    bytes.size_bytes = 16 + 26;
    return bytes;
}

static struct model_bytes tensor_count(uint64_t count)
{
    struct gguf_writer *w = hostile_open();
    struct model_bytes bytes;
    static const char rest[71]; /* one byte less than three tensors need */

    gguf_writer_raw_info(w, rest, sizeof rest);
    gguf_writer_override_tensor_count(w, count);
    bytes = hostile_finish(w);
    bytes.size_bytes = HEADER_END + sizeof rest;
    return bytes;
}

/* Return a file whose version alone is in the opposite byte order. */
static struct model_bytes swap_version(struct gguf_writer *w)
{
    struct model_bytes bytes;
    unsigned char *version;

    gguf_writer_add_u8(w, "k", 1);
    bytes = hostile_finish(w);
    version = bytes.data + 4;
    for (size_t i = 0; i < 4; i++)
        version[i] = i == 0 || i == 3 ? (unsigned char)(3 - version[i]) : 0;
    return bytes;
}

static struct model_bytes only_version_little_endian(uint64_t argument)
{
    return swap_version(gguf_writer_open(3, true));
}

static struct model_bytes only_version_big_endian(uint64_t argument)
{
    return swap_version(hostile_open());
}

static const struct hostile_row rows[] = {
    {23, "no version", header_cut, 4, -ENODATA, 4, {"header", "version", "0 bytes are left"}},
    {23, "half a version", header_cut, 6, -ENODATA, 4, {"header", "version", "2 bytes are left"}},
    {23, "no counts", header_cut, 8, -ENODATA, 8, {"header", "counts", "0 bytes are left"}},
    {23, "half a count", header_cut, 15, -ENODATA, 8, {"header", "counts", "7 bytes are left"}},
    {23, "one count", header_cut, 16, -ENODATA, 16, {"header", "counts", "0 bytes are left"}},
    {23, "one byte cut", header_cut, 23, -ENODATA, 16, {"counts", "7 bytes are left"}},

    {22, "version 0", version, 0, -EINVAL, 4, {"version 0 ", "1 to 3"}},
    {22, "version 4", version, 4, -EINVAL, 4, {"version 4 ", "1 to 3"}},
    {22, "version 2^32-1", version, UINT32_MAX, -EINVAL, 4, {"version 4294967295 ", "1 to 3"}},
    {22,
     "big-endian version 1",
     big_endian_version,
     1,
     -EINVAL,
     4,
     {"version 16777216 ", "1 to 3"}},
    {22,
     "big-endian version 2",
     big_endian_version,
     2,
     -EINVAL,
     4,
     {"version 33554432 ", "1 to 3"}},
    {22,
     "big-endian version 4",
     big_endian_version,
     4,
     -EINVAL,
     4,
     {"version 67108864 ", "1 to 3"}},

    /* The count of one key is 2^56 in the wrong byte order. */
    {22,
     "big-endian with a little-endian version",
     only_version_little_endian,
     0,
     -ENODATA,
     HEADER_END,
     {"72057594037927936 keys"}},
    {22,
     "little-endian with a big-endian version",
     only_version_big_endian,
     0,
     -ENODATA,
     HEADER_END,
     {"72057594037927936 keys"}},

    {1, "a key too many", key_count, 3, -ENODATA, HEADER_END, {"3 keys", "38 bytes", "at most 2"}},
    {1, "2^61 keys", key_count, P(61), -ENODATA, HEADER_END, {"2305843009213693952 keys"}},
    {1, "2^63 keys", key_count, P(63), -ENODATA, HEADER_END, {"9223372036854775808 keys"}},
    {1, "2^64-1 keys", key_count, UINT64_MAX, -ENODATA, HEADER_END, {"18446744073709551615 keys"}},
    {1, "v1: a key too many", key_count_v1, 3, -ENODATA, 16, {"3 keys", "26 bytes", "most 2"}},
    {1, "v1: 2^32-1 keys", key_count_v1, UINT32_MAX, -ENODATA, 16, {"4294967295 keys"}},
    {1, "a tensor too many", tensor_count, 3, -ENODATA, HEADER_END, {"3 tensors", "71", "most 2"}},
    {1, "2^61 tensors", tensor_count, P(61), -ENODATA, HEADER_END, {"2305843009213693952 tensors"}},
    {1, "2^64-1 tensors", tensor_count, UINT64_MAX, -ENODATA, HEADER_END, {"18446744073709551615"}},
};

const struct hostile_table hostile_header_table = {rows, COUNT(rows), 1};
