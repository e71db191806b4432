#include "contrib/runner/tokenizer/characters.h"

#include <errno.h>
#include <unictype.h>
#include <unistr.h>

struct run_character run_character_decode(const char *text, size_t end, size_t at)
{
    const uint8_t *bytes = (const uint8_t *)text + at;
    ucs4_t code;
    int n;

    if (*bytes < 0x80)
        return (struct run_character){*bytes, 1};
    n = u8_mbtoucr(&code, bytes, end - at);
    return n > 0 ? (struct run_character){code, (uint32_t)n}
                 : (struct run_character){RUN_REPLACEMENT, 1};
}

/* Stand-ins, by general category. */
enum {
    LETTER = 0x10000,        /* Lo */
    LOWER_LETTER = 0x1d41a,  /* Ll */
    MARK = 0x101fd,          /* Mn */
    PUNCTUATION = 0x10100,   /* Po */
    DIGIT = 0x104a0,         /* Nd */
    NUMBER = 0x10107,        /* No */
    FORMAT = 0x13430,        /* Cf */
    SYMBOL = 0x1f300,        /* So */
    IDEOGRAPH = 0x20000,     /* Lo, of the script Han */
    SHORT_FORMAT = 0x200b,   /* Cf; this and the next ones are three bytes long */
    KANNADA_MARK = 0xce2,    /* Mn */
    LAO_MARK = 0xecd,        /* Mn */
    IDEOGRAPH_PART = 0x2ff0, /* So */
    STROKE = 0x31c0,         /* So */
};

#define FIRST_YOUNG      0xcf3u
#define FIRST_PICTOGRAPH 0x1f000u
#define FIRST_IDEOGRAPH  0x20000u
#define LAST_IDEOGRAPH   0x3fffdu

uint32_t run_character_stand_in(uint32_t code)
{
    /* Sorted. */
    static const struct {
        uint32_t first, last, stand_in;
    } list[] = {
        {FIRST_YOUNG, 0xcf3, KANNADA_MARK}, {0xece, 0xece, LAO_MARK},
        {0x180e, 0x180e, SHORT_FORMAT},     {0x2ffc, 0x2fff, IDEOGRAPH_PART},
        {0x31ef, 0x31ef, STROKE},           {0x10efd, 0x10eff, MARK},
        {0x1123f, 0x11240, LETTER},         {0x11241, 0x11241, MARK},
        {0x11b00, 0x11b09, PUNCTUATION},    {0x11f00, 0x11f01, MARK},
        {0x11f02, 0x11f02, LETTER},         {0x11f03, 0x11f03, MARK},
        {0x11f04, 0x11f10, LETTER},         {0x11f12, 0x11f33, LETTER},
        {0x11f34, 0x11f3a, MARK},           {0x11f3e, 0x11f42, MARK},
        {0x11f43, 0x11f4f, PUNCTUATION},    {0x11f50, 0x11f59, DIGIT},
        {0x1342f, 0x1342f, LETTER},         {0x13439, 0x1343f, FORMAT},
        {0x13440, 0x13440, MARK},           {0x13441, 0x13446, LETTER},
        {0x13447, 0x13455, MARK},           {0x1b132, 0x1b132, LETTER},
        {0x1b155, 0x1b155, LETTER},         {0x1d2c0, 0x1d2d3, NUMBER},
        {0x1df25, 0x1df2a, LOWER_LETTER},   {0x1e030, 0x1e06d, LETTER},
        {0x1e08f, 0x1e08f, MARK},           {0x1e4d0, 0x1e4eb, LETTER},
        {0x1e4ec, 0x1e4ef, MARK},           {0x1e4f0, 0x1e4f9, DIGIT},
    };

    if (code < FIRST_YOUNG)
        return code;
    for (size_t i = 0; i < sizeof list / sizeof *list && code >= list[i].first; i++)
        if (code <= list[i].last)
            return list[i].stand_in;
    if (code < FIRST_PICTOGRAPH || code > LAST_IDEOGRAPH ||
        !uc_is_general_category_withtable(code, UC_CATEGORY_MASK_Cn))
        return code;
    if (code >= FIRST_IDEOGRAPH)
        return (code & 0xfffe) == 0xfffe ? code : IDEOGRAPH; /* not a noncharacter */
    return uc_is_property_extended_pictographic(code) ? SYMBOL : code;
}

int run_character_add(struct gguf_buffer *text, uint32_t code)
{
    uint8_t utf8[4];
    const int n = u8_uctomb(utf8, code, sizeof utf8);

    return gguf_buffer_add(text, utf8, n > 0 ? (size_t)n : 0);
}

/* ---- a text in pieces ---- */

int run_utf8_end(struct run_utf8_stream *stream, struct gguf_buffer *out)
{
    const bool is_incomplete = stream->n_kept > 0;

    stream->n_kept = 0;
    return is_incomplete ? run_character_add(out, RUN_REPLACEMENT) : 0;
}

/* Add a byte to the kept ones, which begin a character but do not complete it. */
static int put_byte(struct run_utf8_stream *stream, char byte, struct gguf_buffer *out)
{
    ucs4_t code;
    int found; /* -1: invalid, -2: incomplete */

    stream->kept[stream->n_kept++] = byte;
    found = u8_mbtoucr(&code, (const uint8_t *)stream->kept, stream->n_kept);
    if (found == -1 && stream->n_kept > 1) { /* the byte may begin another one */
        if (run_utf8_end(stream, out) < 0)
            return -ENOMEM;
        stream->kept[stream->n_kept++] = byte;
        found = u8_mbtoucr(&code, (const uint8_t *)&byte, 1);
    }
    if (found == -2)
        return 0;
    stream->n_kept = 0;
    return run_character_add(out, found > 0 ? code : RUN_REPLACEMENT);
}

int run_utf8_put(struct run_utf8_stream *stream, const char *piece, size_t length,
                 struct gguf_buffer *out)
{
    const size_t n_before = out->length;

    for (size_t i = 0; i < length; i++)
        if (put_byte(stream, piece[i], out) < 0)
            return -ENOMEM;
    stream->has_begun |= out->length > n_before;
    return 0;
}
