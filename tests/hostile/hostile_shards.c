/*
 * Single files whose keys make them a shard. Several files:
 * tests/unit/gguf/test_gguf_hostile_shards.c.
 */
#include "tests/hostile/hostile.h"

#include <errno.h>

static void add_tensor(struct gguf_writer *w)
{
    gguf_writer_add_tensor(w, "t", 1, 1, (uint64_t[]){2}, 0, NULL, 8);
}

static struct model_bytes finish(struct gguf_writer *w)
{
    add_tensor(w);
    return hostile_finish(w);
}

/* Return a shard. Its file name has no shard number, so the others cannot be found. */
static struct model_bytes shard(uint64_t count)
{
    struct gguf_writer *w = hostile_open();

    gguf_writer_add_u16(w, "split.count", (uint16_t)count);
    gguf_writer_add_u16(w, "split.no", 1);
    gguf_writer_add_i32(w, "split.tensors.count", 2);
    return finish(w);
}

static struct model_bytes count_of_i32(uint64_t count)
{
    struct gguf_writer *w = hostile_open();

    gguf_writer_add_i32(w, "split.count", (int32_t)(uint32_t)count);
    return finish(w);
}

static struct model_bytes count_of_u64(uint64_t count)
{
    struct gguf_writer *w = hostile_open();

    gguf_writer_add_u64(w, "split.count", count);
    return finish(w);
}

static struct model_bytes count_of_string(uint64_t argument)
{
    struct gguf_writer *w = hostile_open();

    gguf_writer_add_string(w, "split.count", "3");
    return finish(w);
}

static struct model_bytes no_of_i32(uint64_t no)
{
    struct gguf_writer *w = hostile_open();

    gguf_writer_add_u16(w, "split.count", 3);
    gguf_writer_add_i32(w, "split.no", (int32_t)(uint32_t)no);
    return finish(w);
}

/* offset of the key split.no, after the key split.count */
#define NO_OFFSET (HEADER_END + 8 + 11 + 4 + 2)
#define T_ALONE                                                                                    \
    {                                                                                              \
        "tensors/t/info", "tensors/t/f32", "metadata/split.count.json"                             \
    }

static const struct hostile_row rows[] = {
    {21,
     "a shard without number in its name",
     shard,
     3,
     -EINVAL,
     GGUF_NO_OFFSET,
     {"shard 2 of 3", "must end in -00002-of-00003.gguf"}},
    {21,
     "split.count -1",
     count_of_i32,
     UINT32_MAX,
     -EINVAL,
     HEADER_END,
     {"\"split.count\"", "-1, which is below 0"}},
    {21,
     "split.count 65536",
     count_of_u64,
     65536,
     -EINVAL,
     HEADER_END,
     {"65536", "the limit is 65535"}},
    {21, "split.count 2^64-1", count_of_u64, UINT64_MAX, -EINVAL, HEADER_END, {"the limit is"}},
    {21,
     "split.count is a string",
     count_of_string,
     0,
     -EINVAL,
     HEADER_END,
     {"its type is string", "whole number"}},
    {21,
     "split.no missing",
     count_of_u64,
     3,
     -EINVAL,
     GGUF_NO_OFFSET,
     {"of 3", "\"split.no\" is missing"}},
    {21, "split.no 3 of 3", no_of_i32, 3, -EINVAL, NO_OFFSET, {"it is 3", "only 3 shards"}},
    {21, "split.no -1", no_of_i32, UINT32_MAX, -EINVAL, NO_OFFSET, {"-1, which is below 0"}},
};

const struct hostile_table hostile_shards_table = {rows, COUNT(rows), 1};

static const struct hostile_row alone_rows[] = {
    {21, "split.count 1", count_of_i32, 1, 0, 0, T_ALONE},
    {21, "split.count 0", count_of_u64, 0, 0, 0, T_ALONE},
};

const struct hostile_table hostile_no_shards_table = {alone_rows, COUNT(alone_rows), 0};
