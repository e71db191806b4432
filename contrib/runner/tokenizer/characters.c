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
        return RUN_NUMBER;
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
    default:
        return code < ' ' || code == 0x7f ? RUN_CONTROL : RUN_PUNCTUATION;
    }
}

/*
 * Characters that are younger than the library's Unicode. Unicode keeps these ranges for
 * ideographs, and the others that way, for pictures.
 */
static uint16_t unassigned_classes(uint32_t code)
{
    if (code >= 0x20000 && code <= 0x3fffd && (code & 0xfffe) != 0xfffe)
        return RUN_LETTER | RUN_UPPER | RUN_LOWER;
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
    if (category & UC_CATEGORY_MASK_P)
        classes |= RUN_PUNCTUATION;
    if (category & UC_CATEGORY_MASK_S)
        classes |= RUN_SYMBOL;
    if (category & UC_CATEGORY_MASK_Cn)
        return unassigned_classes(code);
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
