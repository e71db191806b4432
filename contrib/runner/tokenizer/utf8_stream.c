#include "contrib/runner/tokenizer/utf8_stream.h"

#include "contrib/runner/tokenizer/token_ids.h"

#include <stdlib.h>
#include <string.h>

static const char replacement[] = "\xef\xbf\xbd";

void run_utf8_begin(struct run_utf8_stream *stream, bool is_at_start)
{
    stream->n_kept = 0;
    stream->is_at_start = is_at_start;
}

void run_utf8_free(struct run_utf8_stream *stream)
{
    free(stream->out);
    *stream = (struct run_utf8_stream){0};
}

/* Return true if `second` may follow `first`, which begins a character of several bytes. */
static bool is_second_byte(unsigned char first, unsigned char second)
{
    switch (first) {
    case 0xe0: /* not overlong */
        return second >= 0xa0 && second <= 0xbf;
    case 0xed: /* no surrogates */
        return second >= 0x80 && second <= 0x9f;
    case 0xf0:
        return second >= 0x90 && second <= 0xbf;
    case 0xf4: /* not above U+10FFFF */
        return second >= 0x80 && second <= 0x8f;
    default:
        return second >= 0x80 && second <= 0xbf;
    }
}

/*
 * Return the length of the character at `bytes`, and set `*is_whole`. Otherwise return the length
 * of the longest part that could begin a character, at least one byte; `*is_open` is true if more
 * bytes could complete it.
 */
static size_t part_length(const unsigned char *bytes, size_t length, bool *is_whole, bool *is_open)
{
    const unsigned char first = bytes[0];
    const size_t needed = first < 0x80                    ? 1
                          : first >= 0xc2 && first < 0xe0 ? 2
                          : first >= 0xe0 && first < 0xf0 ? 3
                          : first >= 0xf0 && first < 0xf5 ? 4
                                                          : 0;
    size_t n = 1;

    *is_whole = *is_open = false;
    if (needed == 0)
        return 1;
    while (n < needed && n < length &&
           (n == 1 ? is_second_byte(first, bytes[1]) : (bytes[n] & 0xc0) == 0x80))
        n++;
    *is_whole = n == needed;
    *is_open = n < needed && n == length;
    return n;
}

static int put(struct run_utf8_stream *stream, const char *piece, size_t length, bool is_last,
               const char **out, size_t *out_length)
{
    const size_t n = stream->n_kept + length;
    size_t to = 0, at = 0;
    char *joined;
    int code;

    /* The result is at most three times as long; the joined text follows it. */
    code = run_reserve(&stream->out, &stream->capacity, 4 * n + 1, 1);
    if (code < 0)
        return code;
    joined = stream->out + 3 * n;
    memcpy(joined, stream->kept, stream->n_kept);
    if (length > 0)
        memcpy(joined + stream->n_kept, piece, length);
    stream->n_kept = 0;
    while (at < n) {
        bool is_whole, is_open;
        const size_t part =
            part_length((const unsigned char *)joined + at, n - at, &is_whole, &is_open);

        if (is_whole) {
            memcpy(stream->out + to, joined + at, part);
            to += part;
        } else if (is_open && !is_last) {
            memcpy(stream->kept, joined + at, part);
            stream->n_kept = part;
        } else {
            memcpy(stream->out + to, replacement, sizeof replacement - 1);
            to += sizeof replacement - 1;
        }
        at += part;
    }
    if (to > 0)
        stream->is_at_start = false;
    *out = stream->out;
    *out_length = to;
    return 0;
}

int run_utf8_put(struct run_utf8_stream *stream, const char *piece, size_t length, const char **out,
                 size_t *out_length)
{
    return put(stream, piece, length, false, out, out_length);
}

int run_utf8_end(struct run_utf8_stream *stream, const char **out, size_t *out_length)
{
    return put(stream, NULL, 0, true, out, out_length);
}
