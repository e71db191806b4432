#include "contrib/runner/tokenizer/characters.h"

#include "contrib/runner/tokenizer/utf8_stream.h"

#include <unictype.h>
#include <unistr.h>

#define REPLACEMENT 0xfffdu

struct run_character run_character_decode(const char *text, size_t end, size_t at)
{
    const uint8_t *bytes = (const uint8_t *)text + at;
    struct run_character character = {.code = RUN_NO_CHARACTER};
    ucs4_t code;
    int n;

    if (at >= end)
        return character;
    if (*bytes < 0x80) {
        character.code = *bytes;
        character.n_bytes = 1;
        return character;
    }
    n = u8_mbtoucr(&code, bytes, end - at);
    character.code = n > 0 ? code : REPLACEMENT;
    character.n_bytes = n > 0 ? (uint16_t)n : 1;
    return character;
}

struct run_character run_character_at(const char *text, size_t end, size_t at)
{
    struct run_character character = run_character_decode(text, end, at);

    if (character.code != RUN_NO_CHARACTER)
        character.classes = run_character_classes(character.code);
    return character;
}

static uint16_t ascii_classes(uint32_t code)
{
    if (code >= 'a' && code <= 'z')
        return RUN_LETTER | RUN_LOWER;
    if (code >= 'A' && code <= 'Z')
        return RUN_LETTER | RUN_UPPER;
    if (code == ' ')
        return RUN_SPACE;
    if (code >= '0' && code <= '9')
        return RUN_NUMBER | RUN_DIGIT;
    switch (code) {
    case '\r':
    case '\n':
        return RUN_SPACE | RUN_LINE_END | RUN_CONTROL;
    case '\t':
    case '\v':
    case '\f':
        return RUN_SPACE | RUN_CONTROL;
    case '$':
    case '+':
    case '<':
    case '=':
    case '>':
    case '^':
    case '`':
    case '|':
    case '~':
        return RUN_SYMBOL;
    case '_':
        return RUN_PUNCTUATION | RUN_CONNECTOR;
    default:
        return code < ' ' || code == 0x7f ? RUN_CONTROL : RUN_PUNCTUATION;
    }
}

/*
 * Characters that are younger than the library's Unicode 14: those of 15 and 15.1, and ranges that
 * Unicode keeps for ideographs and for pictures.
 */
static uint16_t younger_classes(uint32_t code)
{
    enum { LETTERS = RUN_LETTER | RUN_UPPER | RUN_LOWER, MARKS = RUN_MARK | RUN_UPPER | RUN_LOWER };
    static const struct {
        uint32_t first, last;
        uint16_t classes;
    } list[] = {
        {0xcf3, 0xcf3, MARKS},
        {0xece, 0xece, MARKS},
        {0x2ffc, 0x2fff, RUN_SYMBOL},
        {0x31ef, 0x31ef, RUN_SYMBOL},
        {0x10efd, 0x10eff, MARKS},
        {0x1123f, 0x11240, LETTERS},
        {0x11241, 0x11241, MARKS},
        {0x11b00, 0x11b09, RUN_PUNCTUATION},
        {0x11f00, 0x11f01, MARKS},
        {0x11f02, 0x11f02, LETTERS},
        {0x11f03, 0x11f03, MARKS},
        {0x11f04, 0x11f10, LETTERS},
        {0x11f12, 0x11f33, LETTERS},
        {0x11f34, 0x11f3a, MARKS},
        {0x11f3e, 0x11f42, MARKS},
        {0x11f43, 0x11f4f, RUN_PUNCTUATION},
        {0x11f50, 0x11f59, RUN_NUMBER | RUN_DIGIT},
        {0x1342f, 0x1342f, LETTERS},
        {0x13439, 0x1343f, RUN_CONTROL},
        {0x13440, 0x13440, MARKS},
        {0x13441, 0x13446, LETTERS},
        {0x13447, 0x13455, MARKS},
        {0x1b132, 0x1b132, LETTERS},
        {0x1b155, 0x1b155, LETTERS},
        {0x1d2c0, 0x1d2d3, RUN_NUMBER},
        {0x1df25, 0x1df2a, RUN_LETTER | RUN_LOWER},
        {0x1e030, 0x1e06d, LETTERS},
        {0x1e08f, 0x1e08f, MARKS},
        {0x1e4d0, 0x1e4eb, LETTERS},
        {0x1e4ec, 0x1e4ef, MARKS},
        {0x1e4f0, 0x1e4f9, RUN_NUMBER | RUN_DIGIT},
    };

    for (size_t i = 0; i < sizeof list / sizeof *list; i++)
        if (code >= list[i].first && code <= list[i].last)
            return list[i].classes;
    if (code >= 0x20000 && code <= 0x3fffd && (code & 0xfffe) != 0xfffe)
        return LETTERS;
    return uc_is_property_extended_pictographic(code) ? RUN_SYMBOL : 0;
}

uint16_t run_character_classes(uint32_t code)
{
    uint32_t category;
    uint16_t classes = 0;

    if (code < 0x80)
        return ascii_classes(code);
    category = uc_general_category(code).bitmask;
    if (category & UC_CATEGORY_MASK_L)
        classes |= RUN_LETTER;
    if (category & (UC_CATEGORY_MASK_Lu | UC_CATEGORY_MASK_Lt | UC_CATEGORY_MASK_Lm |
                    UC_CATEGORY_MASK_Lo | UC_CATEGORY_MASK_M))
        classes |= RUN_UPPER;
    if (category &
        (UC_CATEGORY_MASK_Ll | UC_CATEGORY_MASK_Lm | UC_CATEGORY_MASK_Lo | UC_CATEGORY_MASK_M))
        classes |= RUN_LOWER;
    if (category & UC_CATEGORY_MASK_M)
        classes |= RUN_MARK;
    if (category & UC_CATEGORY_MASK_N)
        classes |= RUN_NUMBER;
    if (category & UC_CATEGORY_MASK_Nd)
        classes |= RUN_DIGIT;
    if (category & UC_CATEGORY_MASK_Pc)
        classes |= RUN_CONNECTOR;
    if (category & UC_CATEGORY_MASK_P)
        classes |= RUN_PUNCTUATION;
    if (category & UC_CATEGORY_MASK_S)
        classes |= RUN_SYMBOL;
    if (category & UC_CATEGORY_MASK_Cn)
        return younger_classes(code);
    if (category & UC_CATEGORY_MASK_C)
        classes |= RUN_CONTROL;
    if (category & (UC_CATEGORY_MASK_Z | UC_CATEGORY_MASK_C) && uc_is_property_white_space(code))
        classes |= RUN_SPACE;
    return classes;
}

size_t run_character_encode(uint32_t code, char *out)
{
    const int n = u8_uctomb((uint8_t *)out, code, RUN_UTF8_BYTES);

    return n > 0 ? (size_t)n : 0;
}
