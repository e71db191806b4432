/* Broken tensors: their infos, and where their data lie. */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/refusal.h"

TestSuite(gguf_refuse_tensors, .init = model_file_begin_test);

/* The bytes of version 3. */
enum {
    HEADER = 24,
    AFTER_NAME_T = HEADER + 8 + 1, /* what follows the name of a first tensor "t" */
    INFO_1 = 8 + 1 + 4 + 8 + 4 + 8 /* of a tensor of one dimension and a name of one byte */
};

static struct gguf_writer *open_writer(void)
{
    return gguf_writer_open(3, false);
}

static struct model_bytes add_tensor(struct gguf_writer *w, uint32_t type, uint32_t n_dims,
                                     const uint64_t *ne, size_t size_bytes)
{
    gguf_writer_add_tensor(w, "t", 1, n_dims, ne, type, NULL, size_bytes);
    return model_file_finish(w);
}

static struct model_bytes tensor_name_length(uint64_t length)
{
    struct gguf_writer *w = open_writer();
    struct model_bytes bytes;

    for (unsigned i = 0; i < 8; i++)
        gguf_writer_raw_info(w, &(uint8_t){(uint8_t)(length >> 8 * i)}, 1);
    gguf_writer_raw_info(w, "sixteen bytes...", 16);
    gguf_writer_override_tensor_count(w, 1);
    bytes = model_file_finish(w);
    bytes.size_bytes = HEADER + 24;
    return bytes;
}

static struct model_bytes tensor_name_of_bytes(uint64_t n_bytes)
{
    struct gguf_writer *w = open_writer();
    char *name = malloc(n_bytes);

    memset(name, 'n', n_bytes);
    gguf_writer_add_tensor(w, name, n_bytes, 0, NULL, 24, NULL, 1);
    free(name);
    return model_file_finish(w);
}

static struct model_bytes n_dims(uint64_t number)
{
    struct gguf_writer *w = open_writer();

    gguf_writer_raw_info(w, "\1\0\0\0\0\0\0\0t", 9);
    for (unsigned i = 0; i < 4; i++)
        gguf_writer_raw_info(w, &(uint8_t){(uint8_t)(number >> 8 * i)}, 1);
    for (unsigned i = 0; i < 5; i++)
        gguf_writer_raw_info(w, "\1\0\0\0\0\0\0\0", 8);
    gguf_writer_raw_info(w, "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 12);
    gguf_writer_override_tensor_count(w, 1);
    return model_file_finish(w);
}

/* Products of dimensions that pass 2^63 or 2^64, by the number of the row. */
static const uint64_t products[][4] = {
    {P(32), P(32), 1, 1},           /* 2^64 is 0 */
    {3, 0x5555555555555556, 1, 1},  /* 2^64 + 2 is 2 */
    {P(62), 2, 1, 1},               /* 2^63, which is negative */
    {65536, 65536, 65536, 65536},   /* 2^64 in four steps */
    {UINT64_MAX, UINT64_MAX, 1, 1}, /* is 1 */
    {P(63), 1, 1, 1},               /* the first dimension alone */
};

static struct model_bytes product(uint64_t row)
{
    return add_tensor(open_writer(), 24, 4, products[row], 2);
}

static struct model_bytes product_of_unknown(uint64_t row)
{
    return add_tensor(open_writer(), 999, 4, products[row], 2);
}

static struct model_bytes f64_elements(uint64_t n)
{
    return add_tensor(open_writer(), 28, 1, &n, 64);
}

static struct model_bytes f16_elements(uint64_t n)
{
    return add_tensor(open_writer(), 1, 1, &n, 64);
}

static struct model_bytes q8_k_elements(uint64_t n)
{
    return add_tensor(open_writer(), 15, 1, &n, 64);
}

static struct model_bytes q4_0_row(uint64_t n)
{
    return add_tensor(open_writer(), 2, 2, (uint64_t[]){n, 32}, 40 * 18);
}

static struct model_bytes q4_k_row(uint64_t n)
{
    return add_tensor(open_writer(), 12, 2, (uint64_t[]){n, 256}, 4096);
}

static struct model_bytes q4_0_scalar(uint64_t argument)
{
    (void)argument;
    return add_tensor(open_writer(), 2, 0, NULL, 18);
}

static struct model_bytes offset(uint64_t number)
{
    struct gguf_writer *w = open_writer();

    gguf_writer_add_tensor(w, "t", 1, 1, (uint64_t[]){64}, 24, NULL, 128);
    gguf_writer_override_offset(w, number);
    return model_file_finish(w);
}

static struct model_bytes offset_and_alignment_64(uint64_t number)
{
    struct gguf_writer *w = open_writer();

    gguf_writer_set_alignment(w, 64);
    gguf_writer_add_tensor(w, "t", 1, 1, (uint64_t[]){64}, 24, NULL, 128);
    gguf_writer_override_offset(w, number);
    return model_file_finish(w);
}

/* Of the second tensor's 64 bytes `missing` are not there. */
static struct model_bytes data_missing(uint64_t missing)
{
    struct gguf_writer *w = open_writer();
    struct model_bytes bytes;

    gguf_writer_add_tensor(w, "s", 1, 1, (uint64_t[]){64}, 24, NULL, 64);
    gguf_writer_add_tensor(w, "t", 1, 1, (uint64_t[]){64}, 24, NULL, 64);
    bytes = model_file_finish(w);
    bytes.size_bytes -= missing;
    return bytes;
}

static struct model_bytes tensor_twice(uint64_t argument)
{
    struct gguf_writer *w = open_writer();
    static const char *const names[] = {"u", "t", "a", "t"};

    (void)argument;
    for (size_t i = 0; i < COUNT(names); i++)
        gguf_writer_add_tensor(w, names[i], 1, 0, NULL, 0, NULL, 4);
    return model_file_finish(w);
}

/* "t" of 64 bytes lies at `at`, "s" of 128 bytes at 64. */
static struct model_bytes overlap(uint64_t at)
{
    struct gguf_writer *w = open_writer();

    gguf_writer_add_tensor(w, "s", 1, 1, (uint64_t[]){128}, 24, NULL, 192);
    gguf_writer_override_offset(w, 64);
    gguf_writer_add_tensor(w, "t", 1, 1, (uint64_t[]){64}, 24, NULL, 192);
    gguf_writer_override_offset(w, at);
    return model_file_finish(w);
}

static const struct refusal rows[] = {
    {"a name too long",
     tensor_name_length,
     17,
     -ENODATA,
     HEADER,
     {"tensor 1 of 1", "17 bytes", "only 16"}},
    {"a name of 2^64-1",
     tensor_name_length,
     UINT64_MAX,
     -ENODATA,
     HEADER,
     {"tensor 1 of 1", "18446744073709551615", "only 16"}},
    {"a name that wraps", tensor_name_length, -(uint64_t)32, -ENODATA, HEADER, {"tensor 1"}},
    {"a name of 65,536",
     tensor_name_of_bytes,
     65536,
     -EINVAL,
     HEADER,
     {"tensor 1 of 1", "\"nnn", "65536 bytes", "65535"}},
    {"5 dimensions", n_dims, 5, -EINVAL, AFTER_NAME_T, {"tensor \"t\"", "5 dim", "is 4"}},
    {"2^32-1 dimensions",
     n_dims,
     UINT32_MAX,
     -EINVAL,
     AFTER_NAME_T,
     {"tensor \"t\"", "4294967295 dim", "is 4"}},

    {"2^32 * 2^32",
     product,
     0,
     -EOVERFLOW,
     HEADER,
     {"tensor \"t\"", "dimension 1 is 4294967296", "2^63"}},
    {"3 * (2^64 + 2) / 3",
     product,
     1,
     -EOVERFLOW,
     HEADER,
     {"tensor \"t\"", "dimension 1 is 6148914691236517206"}},
    {"2^62 * 2", product, 2, -EOVERFLOW, HEADER, {"tensor \"t\"", "dimension 1 is 2"}},
    {"2^16 four times", product, 3, -EOVERFLOW, HEADER, {"\"t\"", "dimension 3 is 65536"}},
    {"(2^64-1)^2", product, 4, -EOVERFLOW, HEADER, {"\"t\"", "18446744073709551615"}},
    {"2^63", product, 5, -EOVERFLOW, HEADER, {"\"t\"", "dimension 0 is 9223372036854775808"}},
    {"unknown type", product_of_unknown, 0, -EOVERFLOW, HEADER, {"\"t\"", "dimension 1"}},

    {"2^61 F64 are 0",
     f64_elements,
     P(61),
     -EOVERFLOW,
     HEADER,
     {"tensor \"t\"", "2305843009213693952 elements of type F64", "2^63"}},
    {"2^61+8 F64 are 64", f64_elements, P(61) + 8, -EOVERFLOW, HEADER, {"\"t\"", "F64"}},
    /* Of the 72 that this seems to be, only 64 are there. */
    {"2^61+9 F64 are 72", f64_elements, P(61) + 9, -EOVERFLOW, HEADER, {"\"t\"", "F64"}},
    {"2^60 F64", f64_elements, P(60), -EOVERFLOW, HEADER, {"\"t\"", "1152921504606846976"}},
    {"2^62 F16", f16_elements, P(62), -EOVERFLOW, HEADER, {"\"t\"", "type F16", "2^63"}},
    {"2^63-256 Q8_K", q8_k_elements, P(63) - 256, -EOVERFLOW, HEADER, {"\"t\"", "Q8_K"}},

    {"33 in a row of Q4_0",
     q4_0_row,
     33,
     -EINVAL,
     HEADER,
     {"tensor \"t\"", "have 33 elements", "32", "Q4_0"}},
    {"1 in a row of Q4_0", q4_0_row, 1, -EINVAL, HEADER, {"\"t\"", "have 1 ", "Q4_0"}},
    {"no row of Q4_0", q4_0_scalar, 0, -EINVAL, HEADER, {"\"t\"", "have 1 ", "Q4_0"}},
    {"32 in a row of Q4_K", q4_k_row, 32, -EINVAL, HEADER, {"\"t\"", "have 32", "256"}},

    {"offset 1", offset, 1, -EINVAL, HEADER, {"tensor \"t\"", "offset 1 ", "alignment 32"}},
    {"offset 2^64-1", offset, UINT64_MAX, -EINVAL, HEADER, {"18446744073709551615"}},
    {"offset 32 of 64",
     offset_and_alignment_64,
     32,
     -EINVAL,
     HEADER + 8 + 17 + 4 + 4,
     {"tensor \"t\"", "offset 32 ", "alignment 64"}},
    {"an offset that wraps",
     offset,
     -(uint64_t)32,
     -EOVERFLOW,
     HEADER,
     {"tensor \"t\"", "18446744073709551584", "byte 64", "2^64"}},
    {"an end that wraps",
     offset,
     -(uint64_t)96,
     -EOVERFLOW,
     HEADER,
     {"tensor \"t\"", "18446744073709551584", "64 bytes", "2^64"}},
    {"past the end",
     offset,
     P(40),
     -ENODATA,
     HEADER,
     {"tensor \"t\"", "1099511627840 to 1099511627904", "ends at 192", "64 of its 64"}},
    {"just past the end",
     offset,
     128,
     -ENODATA,
     HEADER,
     {"tensor \"t\"", "bytes 192 to 256", "ends at 192", "64 of its 64"}},
    {"half past the end",
     offset,
     96,
     -ENODATA,
     HEADER,
     {"tensor \"t\"", "bytes 160 to 224", "ends at 192", "32 of its 64"}},

    {"a byte missing",
     data_missing,
     1,
     -ENODATA,
     HEADER + INFO_1,
     {"tensor \"t\"", "ends at 223", "1 of its 64 bytes are missing"}},
    {"63 bytes missing", data_missing, 63, -ENODATA, HEADER + INFO_1, {"\"t\"", "63 of its 64"}},
    {"64 bytes missing", data_missing, 64, -ENODATA, HEADER + INFO_1, {"\"t\"", "64 of its 64"}},

    {"a tensor twice",
     tensor_twice,
     0,
     -EEXIST,
     HEADER + 3 * 25,
     {"tensor \"t\"", "twice", "byte 49"}},
    {"at one place", overlap, 64, -EINVAL, HEADER + INFO_1, {"\"t\"", "\"s\"", "160 to 288"}},
    {"in the middle", overlap, 96, -EINVAL, HEADER + INFO_1, {"\"t\"", "\"s\"", "byte "}},
    {"over its end", overlap, 160, -EINVAL, HEADER + INFO_1, {"\"t\"", "\"s\"", "byte "}},
    {"over its start", overlap, 32, -EINVAL, HEADER, {"\"s\"", "\"t\"", "byte "}},
};

REFUSAL_TESTS(gguf_refuse_tensors, what_each_row_breaks, rows)
