/* The copy of a file's header, made from a source that is a hole. */
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#include "gguf/header.h"
#include "gguf/source.h"

#define LIMIT_HOLE_BYTES ((uint64_t)64 << 10)

static int read_zeros(const struct gguf_source *source, uint64_t offset, size_t n_bytes, void *out)
{
    memset(out, 0, n_bytes);
    return 0;
}

static uint64_t count_all(const struct gguf_source *source, uint64_t offset, uint64_t n_bytes)
{
    return n_bytes;
}

static const struct gguf_source_kind hole = {.read = read_zeros, .count_hole_bytes = count_all};

/* Tensor data between the parts of a header may be zeros: only copied bytes count. */
Test(gguf_header, holes_that_are_left_out_do_not_count)
{
    const uint64_t size_bytes = (uint64_t)1 << 30;
    const struct gguf_source source = {
        .kind = &hole, .size_bytes = size_bytes, .end_offset = size_bytes};
    struct gguf_header header = {.limit_bytes = source.size_bytes,
                                 .limit_hole_bytes = LIMIT_HOLE_BYTES};
    const uint64_t data_bytes = 1 << 20;
    uint64_t offset = 0;

    for (int i = 0; i < 100; i++, offset += data_bytes) {
        cr_assert_eq(gguf_header_reach(&header, &source, offset + 8), 0, "tensor %d", i);
        offset += 8;
        cr_assert_eq(gguf_header_leave_out(&header, offset, data_bytes), 0);
        cr_expect_eq(header.n_bytes, 8 * (i + 1));
        cr_expect_eq(header.hole_bytes, header.n_bytes);
    }
    cr_expect_eq(gguf_header_reach(&header, &source, offset + LIMIT_HOLE_BYTES), -EFBIG);
    gguf_header_free(&header);
}
