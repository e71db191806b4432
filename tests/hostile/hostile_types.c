/* Tensors of ids that several programs took, which fit none of their types, and broken rows. */
#include "tests/hostile/hostile.h"

#include <errno.h>

enum { SHARED_INFO_BYTES = INFO_BYTES + 8 }; /* with two dimensions */

/* Tensor "s" of that id, too short for any of its types, and "t". */
static struct model_bytes too_short(uint64_t id)
{
    struct gguf_writer *w = hostile_open();

    gguf_writer_add_tensor(w, "s", 1, 2, (uint64_t[]){1024, 64}, (uint32_t)id, NULL, 1024);
    gguf_writer_add_tensor(w, "t", 1, 1, (uint64_t[]){131072}, 24, NULL, 131072);
    return hostile_finish(w);
}

/* Tensor "s" of that id with rows of 1000 elements, which are whole blocks of none of its types. */
static struct model_bytes broken_rows(uint64_t id)
{
    struct gguf_writer *w = hostile_open();

    gguf_writer_add_tensor(w, "s", 1, 2, (uint64_t[]){1000, 64}, (uint32_t)id, NULL, 32768);
    return hostile_finish(w);
}

/* Tensor "s" of that id with three rows, which are no group of interleaved ones. */
static struct model_bytes three_rows(uint64_t id)
{
    struct gguf_writer *w = hostile_open();

    gguf_writer_add_tensor(w, "s", 1, 2, (uint64_t[]){1024, 3}, (uint32_t)id, NULL, 4096);
    return hostile_finish(w);
}

#define SHORT(id)                                                                                  \
    {                                                                                              \
        27, "type " #id " that fits nothing", too_short, id, -EINVAL,                              \
            HEADER_END + SHARED_INFO_BYTES,                                                        \
        {                                                                                          \
            "tensor \"t\"", "overlap", "\"s\""                                                     \
        }                                                                                          \
    }
#define BROKEN(id, name)                                                                           \
    {                                                                                              \
        27, "type " #id " with broken blocks", broken_rows, id, -EINVAL, HEADER_END,               \
        {                                                                                          \
            "tensor \"s\"", "row length 1000", name                                                \
        }                                                                                          \
    }
#define THREE(id, name)                                                                            \
    {                                                                                              \
        27, "type " #id " with three rows", three_rows, id, -EINVAL, HEADER_END,                   \
        {                                                                                          \
            "tensor \"s\"", "3 rows", name                                                         \
        }                                                                                          \
    }

static const struct hostile_row rows[] = {
    SHORT(34),
    SHORT(36),
    SHORT(38),
    SHORT(39),
    SHORT(40),
    SHORT(41),
    SHORT(42),
    SHORT(143),
    SHORT(155),
    SHORT(202),
    BROKEN(36, "I2_S"),
    BROKEN(37, "IQ4_NL_4_8"),
    BROKEN(39, "MXFP4"),
    BROKEN(40, "NVFP4"),
    BROKEN(41, "Q1_0"),
    BROKEN(42, "Q2_0"),
    BROKEN(142, "PQ2_0"),
    BROKEN(155, "IQ4_KT"),
    THREE(202, "Q4_0_R8"),
    THREE(208, "Q8_0_R8"),
    THREE(223, "IQ4_XS_R8"),
    THREE(353, "MXFP4_R8"),
    THREE(344, "IQ4_KS_R4"),
};

const struct hostile_table hostile_types_table = {rows, COUNT(rows), 1};
