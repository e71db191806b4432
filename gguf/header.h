/*
 * The header of a file: everything that a parser reads, that is all but the tensor data. It is
 * copied once, in steps, and parsed from the copy, so that a file that changes meanwhile cannot
 * contradict itself. The copy does not move: pointers into it stay valid until gguf_header_free().
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct gguf_source;

/* Limit of the headers of all files of a model together. Real ones have up to 30 MB. */
#define GGUF_MAX_HEADER_BYTES ((uint64_t)1 << 30)

/*
 * Limit of holes in the headers of all files: holes take no disk space, but their copy takes memory
 * and time. A copy made with `cp --sparse=always` has holes where an array is zero: 1 MB for the
 * scores of 262144 tokens.
 */
#define GGUF_MAX_HEADER_HOLE_BYTES ((uint64_t)16 << 20)

/* Data left out of the copy: bytes[i] with i >= start is the file's byte i + left_out_bytes. */
struct gguf_header_gap {
    uint64_t start;
    uint64_t left_out_bytes; /* sum of all gaps up to here */
};

/* All zero: nothing is copied yet. */
struct gguf_header {
    uint8_t *bytes; /* reserved address space; the first writable_bytes are memory */
    uint64_t n_bytes;
    uint64_t left_out_bytes; /* in all gaps */
    uint64_t end_offset;     /* n_bytes + left_out_bytes, where the copy ends in the file */
    uint64_t writable_bytes, reserved_bytes;
    uint64_t limit_bytes;
    uint64_t hole_bytes; /* of n_bytes */
    uint64_t limit_hole_bytes;
    size_t step_bytes; /* that will be copied next */

    struct gguf_header_gap *gaps;
    size_t n_gaps, room;
};

/*
 * Copy more of the source until the copy ends at or after end_offset in the file. Returns 0, -E2BIG
 * beyond the limit, -EFBIG for too many holes, -EAGAIN for bytes that a growing source does not
 * have yet, -EIO or -ENOMEM. end_offset must not exceed the source's size.
 */
int gguf_header_reach(struct gguf_header *header, const struct gguf_source *source,
                      uint64_t end_offset);

/*
 * Return the byte at `offset` in the file, which must have been reached and must not lie before
 * data that were left out.
 */
static inline const uint8_t *gguf_header_at(const struct gguf_header *header, uint64_t offset)
{
    return header->bytes + (offset - header->left_out_bytes);
}

/*
 * Leave n_bytes at `offset` in the file out of the copy and continue after them. No byte from there
 * on may be in use yet. Returns 0 or -ENOMEM.
 */
int gguf_header_leave_out(struct gguf_header *header, uint64_t offset, uint64_t n_bytes);

/*
 * Truncate the copy at its first gap, to parse the file in another way. The gap before a
 * model inside a larger file does not count.
 */
void gguf_header_rewind(struct gguf_header *header);

/* End the copy at end_offset in the file and free the memory after it. */
void gguf_header_finish(struct gguf_header *header, uint64_t end_offset);

/*
 * Compare the copy with the source's current bytes. Returns 0 if they are equal, -ESTALE if not,
 * -EIO if the source cannot be read.
 */
int gguf_header_compare(const struct gguf_header *header, const struct gguf_source *source);

void gguf_header_free(struct gguf_header *header);
