#include "contrib/runner/tokenizer/utf8_stream.h"

#include "contrib/runner/tokenizer/token_ids.h"

#include <stdlib.h>
#include <string.h>
#include <unistr.h>

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

/*
 * Return the length of the character at `bytes`, and set `*is_whole`. Otherwise return the length
 * of the longest part that could begin a character, at least one byte; `*is_open` is true if more
 * bytes could complete it.
 */
static size_t part_length(const char *text, size_t length, bool *is_whole, bool *is_open)
{
    const uint8_t *bytes = (const uint8_t *)text;
    ucs4_t code;
    const int found = u8_mbtoucr(&code, bytes, length); /* -2: incomplete */
    size_t n = 1;

    *is_whole = found > 0;
    *is_open = found == -2;
    if (*is_whole || *is_open)
        return *is_whole ? (size_t)found : length;
    while (n + 1 < length && u8_mbtoucr(&code, bytes, n + 1) == -2)
        n++;
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
        const size_t part = part_length(joined + at, n - at, &is_whole, &is_open);

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
