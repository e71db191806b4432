/* Names that mount with file names that stay in their folder, and names whose file names clash. */
#include "tests/hostile/hostile.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct name {
    const char *text;
    size_t n_bytes;
};
#define NAME(text)                                                                                 \
    {                                                                                              \
        text, sizeof(text) - 1                                                                     \
    }

enum {
    EMPTY,
    DOT,
    DOTS,
    SLASH,
    A_SLASH_B,
    UP,
    NUL,
    NEWLINE,
    CONTROL,
    PERCENT,
    NO_UTF8,
    ESCAPED_SLASH,
    ESCAPED_DOT,
    N_NAMES
};

static const struct name names[N_NAMES] = {
    [EMPTY] = NAME(""),
    [DOT] = NAME("."),
    [DOTS] = NAME(".."),
    [SLASH] = NAME("/"),
    [A_SLASH_B] = NAME("a/b"),
    [UP] = NAME("../../etc/passwd"),
    [NUL] = NAME("a\0b"),
    [NEWLINE] = NAME("a\nb"),
    [CONTROL] = NAME("\x1b[2J\x7f"),
    [PERCENT] = NAME("%"),
    [NO_UTF8] = NAME("\xff\xc3"),
    [ESCAPED_SLASH] = NAME("a%2Fb"),
    [ESCAPED_DOT] = NAME("%2E"),
};

static void add_key(struct gguf_writer *w, const char *name, size_t n_bytes)
{
    gguf_writer_key(w, name, n_bytes, GGUF_WRITER_U8);
    gguf_writer_u8(w, 1);
}

static void add_tensor(struct gguf_writer *w, const char *name, size_t n_bytes)
{
    gguf_writer_add_tensor(w, name, n_bytes, 0, NULL, 0, "\0\0\x80\x3f", 4);
}

static struct model_bytes key(uint64_t number)
{
    struct gguf_writer *w = hostile_open();

    add_key(w, names[number].text, names[number].n_bytes);
    return hostile_finish(w);
}

static struct model_bytes tensor(uint64_t number)
{
    struct gguf_writer *w = hostile_open();

    add_tensor(w, names[number].text, names[number].n_bytes);
    return hostile_finish(w);
}

/* Return a file with two tensors. Their file names differ only if escaping is unique. */
static struct model_bytes tensors(uint64_t pair)
{
    struct gguf_writer *w = hostile_open();

    add_tensor(w, names[pair >> 8].text, names[pair >> 8].n_bytes);
    add_tensor(w, names[pair & 0xff].text, names[pair & 0xff].n_bytes);
    return hostile_finish(w);
}
#define PAIR(one, other) ((uint64_t)(one) << 8 | (other))

static struct model_bytes all_keys(uint64_t argument)
{
    struct gguf_writer *w = hostile_open();

    for (size_t i = 0; i < N_NAMES; i++)
        add_key(w, names[i].text, names[i].n_bytes);
    return hostile_finish(w);
}

static struct model_bytes all_tensors(uint64_t argument)
{
    struct gguf_writer *w = hostile_open();

    for (size_t i = 0; i < N_NAMES; i++)
        add_tensor(w, names[i].text, names[i].n_bytes);
    return hostile_finish(w);
}

/* Return a file with names of n_bytes that differ only in the last byte. */
static struct model_bytes long_names(uint64_t n_bytes, size_t n_names, bool of_keys)
{
    struct gguf_writer *w = hostile_open();
    char *name = malloc(n_bytes);

    if (!name)
        abort();
    memset(name, 'n', n_bytes);
    for (size_t i = 0; i < n_names; i++) {
        name[n_bytes - 1] = (char)('n' + i);
        (of_keys ? add_key : add_tensor)(w, name, n_bytes);
    }
    free(name);
    return hostile_finish(w);
}

static struct model_bytes long_keys(uint64_t n_bytes)
{
    return long_names(n_bytes, 2, true);
}

static struct model_bytes long_key(uint64_t n_bytes)
{
    return long_names(n_bytes, 1, true);
}

static struct model_bytes long_tensors(uint64_t n_bytes)
{
    return long_names(n_bytes, 2, false);
}

static struct model_bytes long_tensor(uint64_t n_bytes)
{
    return long_names(n_bytes, 1, false);
}

static struct model_bytes key_again(uint64_t argument)
{
    struct gguf_writer *w = hostile_open();

    add_key(w, "k", 1);
    add_key(w, "l", 1);
    add_key(w, "k", 1);
    return hostile_finish(w);
}

/*
 * The FNV-1a hash of these bytes is 0 and stays 0 however many NULs follow. Names that start with
 * them and are cut get the same file name. (The bytes: http://www.isthe.com/chongo/tech/comp/fnv/)
 */
static const char hash_of_0[400] = "\xd5\x6b\xb9\x53\x42\x87\x08\x36";

static struct model_bytes keys_of_one_hash(uint64_t argument)
{
    struct gguf_writer *w = hostile_open();

    add_key(w, hash_of_0, 300);
    add_key(w, hash_of_0, 301);
    return hostile_finish(w);
}

static struct model_bytes tensors_of_one_hash(uint64_t argument)
{
    struct gguf_writer *w = hostile_open();

    add_tensor(w, hash_of_0, 300);
    add_tensor(w, hash_of_0, 301);
    return hostile_finish(w);
}

/* File name of a long name of n's. */
#define N_10 "nnnnnnnnnn"
#define N_230                                                                                      \
    N_10 N_10 N_10 N_10 N_10 N_10 N_10 N_10 N_10 N_10 N_10 N_10 N_10 N_10 N_10 N_10 N_10 N_10 N_10 \
        N_10 N_10 N_10 N_10
#define CUT_TENSOR(hash) "tensors/" N_230 "nnnnnnn%~" hash
#define CUT_KEY(hash)    "metadata/" N_230 "nn%~" hash ".json"

static const struct hostile_row rows[] = {
    {16, "an empty key", key, EMPTY, 0, 0, {"metadata/%.json"}},
    {16, "a key that is a dot", key, DOT, 0, 0, {"metadata/%2E.json", "!metadata/..json"}},
    {16, "a key that is two dots", key, DOTS, 0, 0, {"metadata/%2E%2E.json", "!metadata/...json"}},
    {16, "a key that is a slash", key, SLASH, 0, 0, {"metadata/%2F.json"}},
    {16,
     "a key that is a path to a parent",
     key,
     UP,
     0,
     0,
     {"metadata/..%2F..%2Fetc%2Fpasswd.json"}},
    {16, "a key with NUL", key, NUL, 0, 0, {"metadata/a%00b.json", "!metadata/a"}},
    {16, "a key with a newline", key, NEWLINE, 0, 0, {"metadata/a%0Ab.json"}},
    {16, "a key with control characters", key, CONTROL, 0, 0, {"metadata/%1B[2J%7F.json"}},
    {16, "a key that is not UTF-8", key, NO_UTF8, 0, 0, {"metadata/\xff\xc3.json"}},
    {16, "all odd keys", all_keys, 0, 0, 0, {"metadata/a%2Fb.json", "metadata/a%252Fb.json"}},
    {16, "a key of 65,535 bytes", long_key, 65535, 0, 0, {CUT_KEY("17bb1a807ed56ba9")}},
    {16,
     "two long keys, equal but for the last byte",
     long_keys,
     300,
     0,
     0,
     {CUT_KEY("a4cf91b7088f4495"), CUT_KEY("a4cf90b7088f42e2")}},
    {16, "a key twice with one value", key_again, 0, 0, 0, {"metadata/k.json", "metadata/l.json"}},

    {17, "an empty name", tensor, EMPTY, 0, 0, {"tensors/%/raw"}},
    {17, "a dot", tensor, DOT, 0, 0, {"tensors/%2E/raw", "!tensors/raw"}},
    {17, "dots", tensor, DOTS, 0, 0, {"tensors/%2E%2E/raw", "!raw"}},
    {17, "a slash", tensor, A_SLASH_B, 0, 0, {"tensors/a%2Fb/raw", "!tensors/a"}},
    {17, "a path to a parent", tensor, UP, 0, 0, {"tensors/..%2F..%2Fetc%2Fpasswd/f32"}},
    {17, "a name with NUL", tensor, NUL, 0, 0, {"tensors/a%00b/raw", "!tensors/a"}},
    {17, "a name with a newline", tensor, NEWLINE, 0, 0, {"tensors/a%0Ab/raw"}},
    {17, "a name that is not UTF-8", tensor, NO_UTF8, 0, 0, {"tensors/\xff\xc3/raw"}},
    {17, "a name of 300 bytes", long_tensor, 300, 0, 0, {CUT_TENSOR("a4cf91b7088f4495")}},
    {17, "a name of 10,000 bytes", long_tensor, 10000, 0, 0, {CUT_TENSOR("4b5f66fda4afc465")}},
    {17,
     "two long names, equal but for the last byte",
     long_tensors,
     300,
     0,
     0,
     {CUT_TENSOR("a4cf91b7088f4495"), CUT_TENSOR("a4cf90b7088f42e2")}},
    {17,
     "a name like an escape",
     tensors,
     PAIR(A_SLASH_B, ESCAPED_SLASH),
     0,
     0,
     {"tensors/a%2Fb/raw", "tensors/a%252Fb/raw"}},
    {17,
     "a name like an escaped dot",
     tensors,
     PAIR(DOT, ESCAPED_DOT),
     0,
     0,
     {"tensors/%2E/raw", "tensors/%252E/raw"}},
    {17,
     "a name like the escaped empty name",
     tensors,
     PAIR(EMPTY, PERCENT),
     0,
     0,
     {"tensors/%/raw", "tensors/%25/raw"}},
    {17, "all odd names", all_tensors, 0, 0, 0, {"tensors/%1B[2J%7F/raw"}},
};

const struct hostile_table hostile_names_table = {rows, COUNT(rows), 0};

static const struct hostile_row clashes[] = {
    {16,
     "two keys with one hash",
     keys_of_one_hash,
     0,
     -EEXIST,
     GGUF_NO_OFFSET,
     {"\"\\xd5k\\xb9S", "same file name"}},
    {17,
     "two names with one hash",
     tensors_of_one_hash,
     0,
     -EEXIST,
     GGUF_NO_OFFSET,
     {"\"\\xd5k\\xb9S", "same file name"}},
};

const struct hostile_table hostile_clashes_table = {clashes, COUNT(clashes), 1};
