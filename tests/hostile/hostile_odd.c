/* Odd but legal values, shapes, types and offsets: these files mount. */
#include "tests/hostile/hostile.h"

#include <math.h>

/* Shapes without elements; a row's argument is the index. */
static const uint64_t empty_shapes[][4] = {
    {0, 1, 1, 1},   {3, 0, 1, 1},     {0, 0, 0, 0},
    {256, 0, 1, 1}, {P(63), 2, 0, 1}, {UINT64_MAX, UINT64_MAX, UINT64_MAX, 0},
};

static struct model_bytes empty_tensor(uint64_t shape, uint32_t type)
{
    struct gguf_writer *w = hostile_open();

    gguf_writer_add_tensor(w, "t", 1, 4, empty_shapes[shape], type, NULL, 0);
    return hostile_finish(w);
}

static struct model_bytes empty_f32(uint64_t shape)
{
    return empty_tensor(shape, 0);
}

static struct model_bytes empty_q4_k(uint64_t shape)
{
    return empty_tensor(shape, 12);
}

static struct model_bytes empty_of_unknown(uint64_t shape)
{
    return empty_tensor(shape, 999);
}

static struct model_bytes empty_far_out(uint64_t offset)
{
    struct gguf_writer *w = hostile_open();

    gguf_writer_add_tensor(w, "t", 1, 1, (uint64_t[]){0}, 0, NULL, 0);
    gguf_writer_override_offset(w, offset);
    gguf_writer_add_tensor(w, "u", 1, 1, (uint64_t[]){2}, 0, NULL, 8);
    return hostile_finish(w);
}

static struct model_bytes alignment_alone(uint64_t alignment)
{
    struct gguf_writer *w = hostile_open();

    gguf_writer_add_u32(w, "general.alignment", (uint32_t)alignment);
    return hostile_finish(w);
}

static struct model_bytes alignment_of_data(uint64_t alignment)
{
    struct gguf_writer *w = hostile_open();

    gguf_writer_set_alignment(w, (uint32_t)alignment);
    gguf_writer_add_tensor(w, "s", 1, 1, (uint64_t[]){3}, 24, "one", 3);
    gguf_writer_add_tensor(w, "t", 1, 1, (uint64_t[]){3}, 24, "two", 3);
    return hostile_finish(w);
}

static struct model_bytes gap(uint64_t n_bytes)
{
    struct gguf_writer *w = hostile_open();

    gguf_writer_add_tensor(w, "s", 1, 1, (uint64_t[]){32}, 24, NULL, 32 + n_bytes);
    gguf_writer_add_tensor(w, "t", 1, 1, (uint64_t[]){32}, 24, NULL, 32 + n_bytes);
    return hostile_finish(w);
}

/* Return a file whose tensor data are in the reverse order of the infos. */
static struct model_bytes reverse_order(uint64_t argument)
{
    struct gguf_writer *w = hostile_open();

    gguf_writer_add_tensor(w, "s", 1, 1, (uint64_t[]){32}, 24, NULL, 32);
    gguf_writer_override_offset(w, 32);
    gguf_writer_add_tensor(w, "t", 1, 1, (uint64_t[]){32}, 24, NULL, 32);
    gguf_writer_override_offset(w, 0);
    return hostile_finish(w);
}

static struct model_bytes no_padding_at_the_end(uint64_t argument)
{
    struct gguf_writer *w = hostile_open();
    struct model_bytes bytes;

    gguf_writer_add_tensor(w, "t", 1, 1, (uint64_t[]){3}, 24, "end", 3);
    bytes = hostile_finish(w);
    bytes.size_bytes -= 29;
    return bytes;
}

static struct model_bytes tensor_type(uint64_t type)
{
    struct gguf_writer *w = hostile_open();

    gguf_writer_add_tensor(w, "t", 1, 2, (uint64_t[]){32, 2}, (uint32_t)type, NULL, 64);
    gguf_writer_add_tensor(w, "known", 5, 1, (uint64_t[]){2}, 0, NULL, 8);
    return hostile_finish(w);
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

/* A string literal and its length. */
#define TEXT(text) text, sizeof(text) - 1

static struct model_bytes string(const char *text, size_t n_bytes)
{
    struct gguf_writer *w = hostile_open();

    gguf_writer_key(w, "k", 1, GGUF_WRITER_STRING);
    gguf_writer_string(w, text, n_bytes);
    gguf_writer_add_array(w, "array", GGUF_WRITER_STRING, 3);
    gguf_writer_string(w, "", 0);
    gguf_writer_string(w, text, n_bytes);
    gguf_writer_string(w, text, n_bytes - 1);
    return hostile_finish(w);
}

static struct model_bytes string_of_no_utf8(uint64_t argument)
{
    return string(TEXT("\xff \xc3 \xe2\x82 \xed\xa0\x80 \xf4\x90\x80\x80 \xc0\xaf \xf0\x9f\x97"));
}

static struct model_bytes string_of_controls(uint64_t argument)
{
    return string(TEXT("\0\1\b\t\n\v\f\r\x1b[2J\x7f\"\\/\xc2\x80\xe2\x80\xa8\xe2\x80\xae"));
}

static struct model_bytes floats(uint64_t argument)
{
    struct gguf_writer *w = hostile_open();
    static const double odd[] = {(double)NAN, (double)INFINITY, -(double)INFINITY, -0.0};

    gguf_writer_add_f32(w, "nan", NAN);
    gguf_writer_add_f32(w, "inf", INFINITY);
    gguf_writer_add_f64(w, "-inf", -(double)INFINITY);
    gguf_writer_add_array(w, "f32", GGUF_WRITER_F32, COUNT(odd));
    for (size_t i = 0; i < COUNT(odd); i++)
        gguf_writer_f32(w, (float)odd[i]);
    gguf_writer_add_array(w, "f64", GGUF_WRITER_F64, COUNT(odd));
    for (size_t i = 0; i < COUNT(odd); i++)
        gguf_writer_f64(w, odd[i]);
    gguf_writer_add_tensor(w, "t", 1, 1, (uint64_t[]){3}, 0, "\0\0\xc0\x7f\0\0\x80\x7f\0\0\x80\xff",
                           12);
    return hostile_finish(w);
}

static struct model_bytes integers(uint64_t argument)
{
    struct gguf_writer *w = hostile_open();
    static const uint64_t limits[] = {0, P(53) + 1, INT64_MAX, P(63), UINT64_MAX};

    gguf_writer_add_u64(w, "u64", UINT64_MAX);
    gguf_writer_add_i64(w, "i64", INT64_MIN);
    gguf_writer_add_array(w, "u64s", GGUF_WRITER_U64, COUNT(limits));
    for (size_t i = 0; i < COUNT(limits); i++)
        gguf_writer_u64(w, limits[i]);
    gguf_writer_add_array(w, "i64s", GGUF_WRITER_I64, COUNT(limits));
    for (size_t i = 0; i < COUNT(limits); i++)
        gguf_writer_i64(w, (int64_t)limits[i]);
    return hostile_finish(w);
}

static struct model_bytes empty_strings(uint64_t version)
{
    struct gguf_writer *w = gguf_writer_open((uint32_t)version, false);
    static const char *const texts[] = {"", "", ""};

    gguf_writer_add_string(w, "", "");
    gguf_writer_add_strings(w, "array", texts, COUNT(texts));
    gguf_writer_add_tensor(w, "", 0, 1, (uint64_t[]){1}, 0, "\0\0\x80\x3f", 4);
    return hostile_finish(w);
}

/* Return a file that ends with the length of its last string, 0. */
static struct model_bytes empty_string_at_the_end(uint64_t argument)
{
    struct gguf_writer *w = gguf_writer_open(1, false);
    struct model_bytes bytes;

    gguf_writer_add_string(w, "", "");
    bytes = hostile_finish(w);
    bytes.size_bytes = 16 + 4 + 4 + 4;
    return bytes;
}

#define T_ALL                                                                                      \
    {                                                                                              \
        "tensors/t/info", "tensors/t/raw", "tensors/t/f32"                                         \
    }
#define T_RAW                                                                                      \
    {                                                                                              \
        "tensors/t/info", "tensors/t/raw", "!tensors/t/f32", "tensors/known/f32"                   \
    }
#define T_NO_BYTES                                                                                 \
    {                                                                                              \
        "tensors/t/info", "!tensors/t/raw", "!tensors/t/f32", "tensors/known/f32"                  \
    }

/* Ids of special tokens that no token has. */
static struct model_bytes token_ids(uint64_t id)
{
    struct gguf_writer *w = hostile_open();

    gguf_writer_add_strings(w, "tokenizer.ggml.tokens", (const char *const[]){"a", "b"}, 2);
    gguf_writer_add_u32(w, "tokenizer.ggml.bos_token_id", (uint32_t)id);
    gguf_writer_add_array(w, "tokenizer.ggml.eos_token_ids", GGUF_WRITER_I32, 2);
    gguf_writer_i32(w, 0);
    gguf_writer_i32(w, (int32_t)id);
    return hostile_finish(w);
}

static const struct hostile_row rows[] = {
    {8, "a dimension of 0", empty_f32, 0, 0, 0, T_ALL},
    {8, "3 times 0", empty_f32, 1, 0, 0, T_ALL},
    {8, "four dimensions of 0", empty_f32, 2, 0, 0, T_ALL},
    {8, "rows without blocks", empty_q4_k, 0, 0, 0, T_ALL},
    {8, "no rows, of one block", empty_q4_k, 3, 0, 0, T_ALL},
    {8, "2^64 times 0", empty_f32, 4, 0, 0, T_ALL},
    {8, "2^192 times 0", empty_f32, 5, 0, 0, T_ALL},
    {8,
     "an empty tensor of unknown type",
     empty_of_unknown,
     1,
     0,
     0,
     {"tensors/t/info", "!tensors/t/raw"}},
    {8, "an empty tensor past the end", empty_far_out, P(40), 0, 0, T_ALL},
    {8, "an empty tensor near 2^64", empty_far_out, -P(12), 0, 0, T_ALL},

    {9, "alignment 1", alignment_of_data, 1, 0, 0, T_ALL},
    {9, "alignment 65536", alignment_of_data, 65536, 0, 0, T_ALL},
    {9,
     "alignment 65536 without tensors",
     alignment_alone,
     P(16),
     0,
     0,
     {"metadata/general.alignment.json"}},
    {10, "a gap", gap, 64, 0, 0, T_ALL},
    {10, "data in reverse order", reverse_order, 0, 0, 0, T_ALL},
    {11, "only the last padding is missing", no_padding_at_the_end, 0, 0, 0, T_ALL},

    {13, "removed type 4", tensor_type, 4, 0, 0, T_NO_BYTES},
    {13, "removed type 37", tensor_type, 37, 0, 0, T_RAW},
    {13, "unknown type 43", tensor_type, 43, 0, 0, T_NO_BYTES},
    {13, "unknown type 999", tensor_type, 999, 0, 0, T_NO_BYTES},
    {13, "type -1", tensor_type, UINT32_MAX, 0, 0, T_NO_BYTES},
    {13, "type -2^31", tensor_type, P(31), 0, 0, T_NO_BYTES},

    {14, "arrays nested 8 deep", arrays_deep, 8, 0, 0, {"metadata/k.json"}},
    {18,
     "strings that are not UTF-8",
     string_of_no_utf8,
     0,
     0,
     0,
     {"metadata/k.json", "metadata/array.json"}},
    {18, "strings of control characters", string_of_controls, 0, 0, 0, {"metadata/k.json"}},
    {19,
     "NaN and infinity",
     floats,
     0,
     0,
     0,
     {"metadata/nan.json", "metadata/-inf.json", "tensors/t/f32"}},
    {19,
     "integers at their limits",
     integers,
     0,
     0,
     0,
     {"metadata/u64.json", "metadata/i64s.json"}},
    {19, "a token id beyond the vocabulary", token_ids, 2, 0, 0, {"tokenizer/tokens.txt"}},
    {19, "a negative token id", token_ids, UINT32_MAX - 6, 0, 0, {"tokenizer/tokens.txt"}},
    {20,
     "v1: empty strings",
     empty_strings,
     1,
     0,
     0,
     {"metadata/%.json", "metadata/array.json", "tensors/%/f32"}},
    {20, "v2: empty strings", empty_strings, 2, 0, 0, {"metadata/%.json", "tensors/%/f32"}},
    {20, "v1: ends with an empty string", empty_string_at_the_end, 0, 0, 0, {"metadata/%.json"}},
};

const struct hostile_table hostile_odd_table = {rows, COUNT(rows), 0};
