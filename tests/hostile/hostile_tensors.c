/* Tensors that are refused: infos and data offsets. */
#include "tests/hostile/hostile.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* start of the second tensor's info */
#define SECOND_INFO (HEADER_END + INFO_BYTES)

static struct model_bytes add_tensor(struct gguf_writer *w, uint32_t type, uint32_t n_dims,
                                     const uint64_t *ne, size_t size_bytes)
{
    gguf_writer_add_tensor(w, "t", 1, n_dims, ne, type, NULL, size_bytes);
    return hostile_finish(w);
}

static struct model_bytes tensor_name_length(uint64_t length)
{
    struct gguf_writer *w = hostile_open();
    struct model_bytes bytes;

    for (unsigned i = 0; i < 8; i++)
        gguf_writer_raw_info(w, &(uint8_t){(uint8_t)(length >> 8 * i)}, 1);
    gguf_writer_raw_info(w, "sixteen bytes...", 16);
    gguf_writer_override_tensor_count(w, 1);
    bytes = hostile_finish(w);
    bytes.size_bytes = HEADER_END + 24;
    return bytes;
}

static struct model_bytes tensor_name_of_bytes(uint64_t n_bytes)
{
    struct gguf_writer *w = hostile_open();
    char *name = malloc(n_bytes);

    memset(name, 'n', n_bytes);
    gguf_writer_add_tensor(w, name, n_bytes, 0, NULL, 24, NULL, 1);
    free(name);
    return hostile_finish(w);
}

static struct model_bytes n_dims(uint64_t number)
{
    struct gguf_writer *w = hostile_open();

    gguf_writer_raw_info(w, "\1\0\0\0\0\0\0\0t", 9);
    for (unsigned i = 0; i < 4; i++)
        gguf_writer_raw_info(w, &(uint8_t){(uint8_t)(number >> 8 * i)}, 1);
    for (unsigned i = 0; i < 9; i++)
        gguf_writer_raw_info(w, "\1\0\0\0\0\0\0\0", 8);
    gguf_writer_raw_info(w, "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 12);
    gguf_writer_override_tensor_count(w, 1);
    return hostile_finish(w);
}

/* Products of dimensions above 2^63 or 2^64; a row's argument is the index. */
static const uint64_t products[][4] = {
    {P(32), P(32), 1, 1},           /* wraps to 0 */
    {3, 0x5555555555555556, 1, 1},  /* wraps to 2 */
    {P(62), 2, 1, 1},               /* 2^63, negative as a signed number */
    {65536, 65536, 65536, 65536},   /* wraps to 0 in the fourth step */
    {UINT64_MAX, UINT64_MAX, 1, 1}, /* wraps to 1 */
    {P(63), 1, 1, 1},               /* the first dimension is too large */
};

static struct model_bytes product(uint64_t row)
{
    return add_tensor(hostile_open(), 24, 4, products[row], 2);
}

static struct model_bytes product_of_unknown(uint64_t row)
{
    return add_tensor(hostile_open(), 999, 4, products[row], 2);
}

static struct model_bytes f64_elements(uint64_t n)
{
    return add_tensor(hostile_open(), 28, 1, &n, 64);
}

static struct model_bytes f16_elements(uint64_t n)
{
    return add_tensor(hostile_open(), 1, 1, &n, 64);
}

static struct model_bytes q8_k_elements(uint64_t n)
{
    return add_tensor(hostile_open(), 15, 1, &n, 64);
}

static struct model_bytes q4_0_row(uint64_t n)
{
    return add_tensor(hostile_open(), 2, 2, (uint64_t[]){n, 32}, 40 * 18);
}

static struct model_bytes q4_k_row(uint64_t n)
{
    return add_tensor(hostile_open(), 12, 2, (uint64_t[]){n, 256}, 4096);
}

/* IQ4_KS_R4 interleaves four rows. */
static struct model_bytes iq4_ks_r4_rows(uint64_t n)
{
    return add_tensor(hostile_open(), 344, 3, (uint64_t[]){256, n, 4}, 4 * n * 140);
}

/* Type id times 100, plus a number of rows. */
static struct model_bytes rows_of_type(uint64_t number)
{
    const uint64_t ne[] = {256, number % 100};

    return add_tensor(hostile_open(), (uint32_t)(number / 100), ne[1] == 1 ? 1 : 2, ne, 8192);
}

static struct model_bytes q4_0_scalar(uint64_t argument)
{
    return add_tensor(hostile_open(), 2, 0, NULL, 18);
}

static struct model_bytes offset(uint64_t number)
{
    struct gguf_writer *w = hostile_open();

    gguf_writer_add_tensor(w, "t", 1, 1, (uint64_t[]){64}, 24, NULL, 128);
    gguf_writer_override_offset(w, number);
    return hostile_finish(w);
}

static struct model_bytes offset_and_alignment_64(uint64_t number)
{
    struct gguf_writer *w = hostile_open();

    gguf_writer_set_alignment(w, 64);
    gguf_writer_add_tensor(w, "t", 1, 1, (uint64_t[]){64}, 24, NULL, 128);
    gguf_writer_override_offset(w, number);
    return hostile_finish(w);
}

/* The alignment is the largest, but the file has no padding for it. */
static struct model_bytes offset_and_alignment_65536(uint64_t number)
{
    struct gguf_writer *w = hostile_open();

    gguf_writer_add_u32(w, "general.alignment", 1u << 16);
    gguf_writer_add_tensor(w, "t", 1, 1, (uint64_t[]){64}, 24, NULL, 64);
    gguf_writer_override_offset(w, number);
    return hostile_finish(w);
}

static struct model_bytes empty_at(uint64_t number)
{
    struct gguf_writer *w = hostile_open();

    gguf_writer_add_tensor(w, "t", 1, 1, (uint64_t[]){0}, 24, NULL, 0);
    gguf_writer_override_offset(w, number);
    return hostile_finish(w);
}

static struct model_bytes i8_elements(uint64_t n)
{
    return add_tensor(hostile_open(), 24, 1, &n, 64);
}

static struct model_bytes no_row_of_33(uint64_t argument)
{
    return add_tensor(hostile_open(), 2, 2, (uint64_t[]){33, 0}, 0);
}

/* Cut the file so that `missing` of the second tensor's 64 bytes are missing. */
static struct model_bytes data_missing(uint64_t missing)
{
    struct gguf_writer *w = hostile_open();
    struct model_bytes bytes;

    gguf_writer_add_tensor(w, "s", 1, 1, (uint64_t[]){64}, 24, NULL, 64);
    gguf_writer_add_tensor(w, "t", 1, 1, (uint64_t[]){64}, 24, NULL, 64);
    bytes = hostile_finish(w);
    bytes.size_bytes -= missing;
    return bytes;
}

/* Tensor "s" of 64 bytes at offset 0, and "t" of unknown type at `at`; 128 bytes of data. */
static struct model_bytes unknown_at(uint64_t at)
{
    struct gguf_writer *w = hostile_open();

    gguf_writer_add_tensor(w, "s", 1, 1, (uint64_t[]){64}, 24, NULL, 64);
    gguf_writer_add_tensor(w, "t", 1, 1, (uint64_t[]){1}, 999, NULL, 64);
    gguf_writer_override_offset(w, at);
    return hostile_finish(w);
}

static struct model_bytes two_of(uint64_t n_bytes, uint64_t second_offset)
{
    struct gguf_writer *w = hostile_open();

    gguf_writer_add_tensor(w, "s", 1, 1, &n_bytes, 24, NULL, 64);
    gguf_writer_add_tensor(w, "t", 1, 1, &n_bytes, 24, NULL, 64);
    gguf_writer_override_offset(w, second_offset);
    return hostile_finish(w);
}

/* The sum of both sizes is just below 2^64; with the start of the data it is above. */
static struct model_bytes two_of_bytes(uint64_t n_bytes)
{
    return two_of(n_bytes, n_bytes + 1);
}

/*
 * With 64-bit arithmetic the padded sizes wrap, and the second tensor starts where the first does.
 */
static struct model_bytes two_of_bytes_padded(uint64_t n_bytes)
{
    return two_of(n_bytes, 2 * (n_bytes + 1));
}

static struct model_bytes tensor_twice(uint64_t argument)
{
    struct gguf_writer *w = hostile_open();
    static const char *const names[] = {"u", "t", "a", "t"};

    for (size_t i = 0; i < COUNT(names); i++)
        gguf_writer_add_tensor(w, names[i], 1, 0, NULL, 0, NULL, 4);
    return hostile_finish(w);
}

/* Tensor "t" has 64 bytes at offset `at`, "s" has 128 bytes at offset 64. */
static struct model_bytes overlap(uint64_t at)
{
    struct gguf_writer *w = hostile_open();

    gguf_writer_add_tensor(w, "s", 1, 1, (uint64_t[]){128}, 24, NULL, 192);
    gguf_writer_override_offset(w, 64);
    gguf_writer_add_tensor(w, "t", 1, 1, (uint64_t[]){64}, 24, NULL, 192);
    gguf_writer_override_offset(w, at);
    return hostile_finish(w);
}

static const struct hostile_row rows[] = {
    {2,
     "a tensor name that is too long",
     tensor_name_length,
     17,
     -ENODATA,
     HEADER_END,
     {"tensor 1 of 1", "17 bytes", "only 16"}},
    {2,
     "a tensor name of 2^64-1",
     tensor_name_length,
     UINT64_MAX,
     -ENODATA,
     HEADER_END,
     {"tensor 1 of 1", "18446744073709551615", "only 16"}},
    {2,
     "a tensor name that wraps",
     tensor_name_length,
     -(uint64_t)32,
     -ENODATA,
     HEADER_END,
     {"tensor 1"}},
    {17,
     "a name of 65,536 bytes",
     tensor_name_of_bytes,
     65536,
     -EINVAL,
     HEADER_END,
     {"tensor 1 of 1", "\"nnn", "65536 bytes", "65535"}},
    {3, "9 dimensions", n_dims, 9, -EINVAL, AFTER_NAME_T, {"tensor \"t\"", "9 dim", "is 8"}},
    {3,
     "2^32-1 dimensions",
     n_dims,
     UINT32_MAX,
     -EINVAL,
     AFTER_NAME_T,
     {"tensor \"t\"", "4294967295 dim", "is 8"}},

    {4,
     "2^32 times 2^32",
     product,
     0,
     -EOVERFLOW,
     HEADER_END,
     {"tensor \"t\"", "dimension 1 is 4294967296", "2^63"}},
    {4,
     "2^64+2 elements",
     product,
     1,
     -EOVERFLOW,
     HEADER_END,
     {"tensor \"t\"", "dimension 1 is 6148914691236517206"}},
    {4, "2^62 times 2", product, 2, -EOVERFLOW, HEADER_END, {"tensor \"t\"", "dimension 1 is 2"}},
    {4, "2^16 four times", product, 3, -EOVERFLOW, HEADER_END, {"\"t\"", "dimension 3 is 65536"}},
    {4, "2^64-1 squared", product, 4, -EOVERFLOW, HEADER_END, {"\"t\"", "18446744073709551615"}},
    {4,
     "a dimension of 2^63",
     product,
     5,
     -EOVERFLOW,
     HEADER_END,
     {"\"t\"", "dimension 0 is 9223372036854775808"}},
    {4,
     "2^64 elements of unknown type",
     product_of_unknown,
     0,
     -EOVERFLOW,
     HEADER_END,
     {"\"t\"", "dimension 1"}},

    {5,
     "2^61 F64 wrap to 0",
     f64_elements,
     P(61),
     -EOVERFLOW,
     HEADER_END,
     {"tensor \"t\"", "2305843009213693952 elements of type F64", "2^63"}},
    {5, "2^61+8 F64 wrap to 64", f64_elements, P(61) + 8, -EOVERFLOW, HEADER_END, {"\"t\"", "F64"}},
    /* With wrapping, the tensor has 72 bytes, and the file only 64. */
    {5, "2^61+9 F64 wrap to 72", f64_elements, P(61) + 9, -EOVERFLOW, HEADER_END, {"\"t\"", "F64"}},
    {5, "2^60 F64", f64_elements, P(60), -EOVERFLOW, HEADER_END, {"\"t\"", "1152921504606846976"}},
    {5, "2^62 F16", f16_elements, P(62), -EOVERFLOW, HEADER_END, {"\"t\"", "type F16", "2^63"}},
    {5, "2^63-256 Q8_K", q8_k_elements, P(63) - 256, -EOVERFLOW, HEADER_END, {"\"t\"", "Q8_K"}},

    {12,
     "Q4_0 rows of 33",
     q4_0_row,
     33,
     -EINVAL,
     HEADER_END,
     {"tensor \"t\"", "row length 33 ", "32", "Q4_0"}},
    {12, "Q4_0 rows of 1", q4_0_row, 1, -EINVAL, HEADER_END, {"\"t\"", "row length 1 ", "Q4_0"}},
    {12, "a Q4_0 scalar", q4_0_scalar, 0, -EINVAL, HEADER_END, {"\"t\"", "row length 1 ", "Q4_0"}},
    {12, "Q4_K rows of 32", q4_k_row, 32, -EINVAL, HEADER_END, {"\"t\"", "row length 32 ", "256"}},
    {12, "5-row IQ4_KS_R4", iq4_ks_r4_rows, 5, -EINVAL, HEADER_END, {"have 5 rows", "of the 4"}},
    /* The rows divide into groups of four, but a group would contain rows of two matrices. */
    {12, "2-row IQ4_KS_R4", iq4_ks_r4_rows, 2, -EINVAL, HEADER_END, {"\"t\"", "have 2 rows"}},
    {12, "a Q4_0_4_4 vector", rows_of_type, 3101, -EINVAL, HEADER_END, {"\"t\"", "have 1 rows"}},
    {12, "8-row Q8_K_R16", rows_of_type, 39708, -EINVAL, HEADER_END, {"8 rows", "of the 16"}},

    {12,
     "no Q4_0 rows of 33",
     no_row_of_33,
     0,
     -EINVAL,
     HEADER_END,
     {"\"t\"", "row length 33 ", "Q4_0"}},

    {6,
     "2^63-1 bytes",
     i8_elements,
     P(63) - 1,
     -ENODATA,
     HEADER_END,
     {"\"t\"", "9223372036854775807 bytes are missing", "ends at 128"}},
    {7,
     "padding of 65536 bytes missing",
     offset_and_alignment_65536,
     0,
     -ENODATA,
     HEADER_END + ALIGNMENT_KEY_BYTES,
     {"\"t\"", "bytes 65536 to 65600", "64 of its 64"}},
    {7,
     "padding that wraps",
     offset_and_alignment_65536,
     -P(16),
     -EOVERFLOW,
     HEADER_END + ALIGNMENT_KEY_BYTES,
     {"\"t\"", "18446744073709486080", "byte 65536", "2^64"}},
    {10,
     "an empty tensor's offset that wraps",
     empty_at,
     -(uint64_t)32,
     -EOVERFLOW,
     HEADER_END,
     {"\"t\"", "18446744073709551584", "2^64"}},

    {10, "offset 1", offset, 1, -EINVAL, HEADER_END, {"tensor \"t\"", "offset 1 ", "alignment 32"}},
    {10, "offset 2^64-1", offset, UINT64_MAX, -EINVAL, HEADER_END, {"18446744073709551615"}},
    {10,
     "offset 32 with alignment 64",
     offset_and_alignment_64,
     32,
     -EINVAL,
     HEADER_END + ALIGNMENT_KEY_BYTES,
     {"tensor \"t\"", "offset 32 ", "alignment 64"}},
    {10,
     "an offset that wraps",
     offset,
     -(uint64_t)32,
     -EOVERFLOW,
     HEADER_END,
     {"tensor \"t\"", "18446744073709551584", "byte 64", "2^64"}},
    {6,
     "an end that wraps",
     offset,
     -(uint64_t)96,
     -EOVERFLOW,
     HEADER_END,
     {"tensor \"t\"", "18446744073709551584", "64 bytes", "2^64"}},
    {10,
     "far past the end",
     offset,
     P(40),
     -ENODATA,
     HEADER_END,
     {"tensor \"t\"", "1099511627840 to 1099511627904", "ends at 192", "64 of its 64"}},
    {10,
     "just past the end",
     offset,
     128,
     -ENODATA,
     HEADER_END,
     {"tensor \"t\"", "bytes 192 to 256", "ends at 192", "64 of its 64"}},
    {10,
     "half past the end",
     offset,
     96,
     -ENODATA,
     HEADER_END,
     {"tensor \"t\"", "bytes 160 to 224", "ends at 192", "32 of its 64"}},

    {10,
     "unknown type at the end",
     unknown_at,
     128,
     -ENODATA,
     SECOND_INFO,
     {"tensor \"t\"", "start at byte 224", "ends at 224", "unfinished download?"}},
    {10, "unknown type far out", unknown_at, P(40), -ENODATA, SECOND_INFO, {"1099511627872"}},
    {10, "unknown type at 2^64", unknown_at, -P(5), -EOVERFLOW, SECOND_INFO, {"\"t\"", "2^64"}},
    {10, "unknown type in a tensor", unknown_at, 32, -EINVAL, SECOND_INFO, {"\"t\"", "\"s\""}},

    {11,
     "1 byte missing",
     data_missing,
     1,
     -ENODATA,
     SECOND_INFO,
     {"tensor \"t\"", "ends at 223", "1 of its 64 bytes are missing"}},
    {11, "63 bytes missing", data_missing, 63, -ENODATA, SECOND_INFO, {"\"t\"", "63 of its 64"}},
    {11, "64 bytes missing", data_missing, 64, -ENODATA, SECOND_INFO, {"\"t\"", "64 of its 64"}},

    {17,
     "a tensor twice",
     tensor_twice,
     0,
     -EEXIST,
     HEADER_END + 3 * 25,
     {"tensor \"t\"", "duplicate", "byte 49"}},
    {10, "two at one offset", overlap, 64, -EINVAL, SECOND_INFO, {"\"t\"", "\"s\"", "160 to 288"}},
    {10, "inside another", overlap, 96, -EINVAL, SECOND_INFO, {"\"t\"", "\"s\"", "byte "}},
    {10, "across another's end", overlap, 160, -EINVAL, SECOND_INFO, {"\"t\"", "\"s\"", "byte "}},
    {10, "across another's start", overlap, 32, -EINVAL, HEADER_END, {"\"s\"", "\"t\"", "byte "}},
};

const struct hostile_table hostile_tensors_table = {rows, COUNT(rows), 1};

static const struct hostile_row many[] = {
    {11,
     "all data missing",
     data_missing,
     128,
     -ENODATA,
     HEADER_END,
     {"tensor \"s\"", "64 of its 64"}},
    {11,
     "all data and the padding missing",
     data_missing,
     134,
     -ENODATA,
     HEADER_END,
     {"tensor \"s\"", "64 of its 64"}},
    {11,
     "a tensor and 1 byte missing",
     data_missing,
     65,
     -ENODATA,
     HEADER_END,
     {"tensor \"s\"", "1 of its 64"}},
    {6,
     "two tensors of 2^63-1 bytes",
     two_of_bytes,
     P(63) - 1,
     -ENODATA,
     HEADER_END,
     {"tensor \"s\"", "9223372036854775807 bytes are missing"}},
    {7,
     "two tensors of 2^63-1 bytes",
     two_of_bytes_padded,
     P(63) - 1,
     -ENODATA,
     HEADER_END,
     {"tensor \"s\"", "9223372036854775807 bytes are missing"}},
};

const struct hostile_table hostile_many_errors_table = {many, COUNT(many), 2};
