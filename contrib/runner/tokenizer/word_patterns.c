#include "contrib/runner/tokenizer/word_patterns.h"

#include <unictype.h>

/* The end of the characters of any of the classes. */
static size_t skip_classes(const struct run_scan *scan, size_t at, unsigned classes)
{
    struct run_character character = run_scan_look(scan, at);

    while (character.classes & classes) {
        at += character.n_bytes;
        character = run_scan_look(scan, at);
    }
    return at;
}

static uint32_t lower_ascii(uint32_t code)
{
    return code >= 'A' && code <= 'Z' ? code - 'A' + 'a' : code;
}

static size_t match_contraction(const struct run_scan *scan, size_t at, bool has_any_case)
{
    uint32_t code[3] = {0};

    for (size_t i = 0; i < 3 && at + i < scan->end; i++) {
        code[i] = (unsigned char)scan->text[at + i];
        if (has_any_case)
            code[i] = lower_ascii(code[i]);
    }
    if (code[0] != '\'')
        return at;
    switch (code[1]) {
    case 's':
    case 't':
    case 'm':
    case 'd':
        return at + 2;
    case 'r':
    case 'v':
        return code[2] == 'e' ? at + 3 : at;
    case 'l':
        return code[2] == 'l' ? at + 3 : at;
    default:
        return at;
    }
}

static bool is_han(struct run_character character)
{
    if (character.code < 0x2e80 || character.code == RUN_NO_CHARACTER)
        return false;
    return uc_is_script(character.code, uc_script_byname("Han")) ||
           (character.code >= 0x20000 && character.classes & RUN_LETTER);
}

static size_t match_han(const struct run_scan *scan, size_t at)
{
    struct run_character character = run_scan_look(scan, at);

    while (is_han(character)) {
        at += character.n_bytes;
        character = run_scan_look(scan, at);
    }
    return at;
}

static bool is_cased(const struct run_words_rule *rule, struct run_character character,
                     unsigned class)
{
    return character.classes & class && (rule->letters == RUN_LETTERS_CASED || !is_han(character));
}

/* U*L+ */
static size_t match_lower_end(const struct run_scan *scan, size_t at,
                              const struct run_words_rule *rule)
{
    struct run_character character = run_scan_look(scan, at);
    size_t behind_last_lower = at, to = at;

    while (is_cased(rule, character, RUN_UPPER)) {
        to += character.n_bytes;
        if (character.classes & RUN_LOWER)
            behind_last_lower = to;
        character = run_scan_look(scan, to);
    }
    if (!is_cased(rule, character, RUN_LOWER))
        return behind_last_lower; /* L+ takes back what may be either */
    while (is_cased(rule, character, RUN_LOWER)) {
        to += character.n_bytes;
        character = run_scan_look(scan, to);
    }
    return to;
}

/* U+L*; where U*L+ does not match, no L follows. */
static size_t match_upper(const struct run_scan *scan, size_t at, const struct run_words_rule *rule)
{
    struct run_character character = run_scan_look(scan, at);

    while (is_cased(rule, character, RUN_UPPER)) {
        at += character.n_bytes;
        character = run_scan_look(scan, at);
    }
    return at;
}

static size_t match_joined(const struct run_scan *scan, size_t at)
{
    struct run_character character = run_scan_look(scan, at);

    if (!(character.classes & RUN_LETTER))
        return at;
    for (;;) {
        while (character.classes & (RUN_LETTER | RUN_MARK)) {
            at += character.n_bytes;
            character = run_scan_look(scan, at);
        }
        if (character.code != ' ')
            return at;
        character = run_scan_look(scan, at + 1);
        if (!(character.classes & RUN_LETTER))
            return at;
        at++;
    }
}

static size_t match_bare_letters(const struct run_scan *scan, size_t at,
                                 const struct run_words_rule *rule)
{
    switch (rule->letters) {
    case RUN_LETTERS_JOINED:
        return match_joined(scan, at);
    case RUN_LETTERS_AND_MARKS:
    case RUN_LETTERS_TAGGED:
        return skip_classes(scan, at, RUN_LETTER | RUN_MARK);
    default:
        return skip_classes(scan, at, RUN_LETTER);
    }
}

static bool is_prefix(const struct run_words_rule *rule, struct run_character character)
{
    switch (rule->letters) {
    case RUN_LETTERS_AFTER_SPACE:
        return character.code == ' ';
    case RUN_LETTERS_TAGGED:
        return !(character.classes & (RUN_LINE_END | RUN_LETTER | RUN_PUNCTUATION | RUN_SYMBOL));
    default:
        return !(character.classes & (RUN_LINE_END | RUN_LETTER | RUN_NUMBER));
    }
}

static bool is_ascii_letter(struct run_character character)
{
    return character.code < 0x80 && character.classes & RUN_LETTER;
}

typedef size_t match_part(const struct run_scan *scan, size_t at,
                          const struct run_words_rule *rule);

/* With a prefix, or else without. */
static size_t match_prefixed(const struct run_scan *scan, size_t at,
                             const struct run_words_rule *rule, match_part *match)
{
    const struct run_character first = run_scan_look(scan, at);

    if (is_prefix(rule, first)) {
        const size_t to = match(scan, at + first.n_bytes, rule);

        if (to > at + first.n_bytes)
            return to;
    }
    return match(scan, at, rule);
}

static size_t match_letters(const struct run_scan *scan, size_t at,
                            const struct run_words_rule *rule)
{
    const struct run_character first = run_scan_look(scan, at);
    size_t to;

    switch (rule->letters) {
    case RUN_LETTERS_CASED:
    case RUN_LETTERS_CASED_NO_HAN:
        to = match_prefixed(scan, at, rule, match_lower_end);
        return to > at ? to : match_prefixed(scan, at, rule, match_upper);
    case RUN_LETTERS_TAGGED:
        if (first.code >= 0x80 || !(first.classes & (RUN_PUNCTUATION | RUN_SYMBOL)) ||
            !is_ascii_letter(run_scan_look(scan, at + 1)))
            break;
        to = at + 1;
        while (is_ascii_letter(run_scan_look(scan, to)))
            to++;
        return to;
    default:
        break;
    }
    return match_prefixed(scan, at, rule, match_bare_letters);
}

static size_t match_numbers(const struct run_scan *scan, size_t at, enum run_numbers numbers)
{
    const size_t from =
        numbers == RUN_NUMBERS_AFTER_SPACE && run_scan_look(scan, at).code == ' ' ? at + 1 : at;
    const uint32_t max = numbers == RUN_NUMBERS_ONE ? 1 : numbers == RUN_NUMBERS_THREE ? 3 : 0;
    struct run_character character = run_scan_look(scan, from);
    size_t to = from;

    if (numbers == RUN_NUMBERS_NONE)
        return at;
    for (uint32_t n = 0; character.classes & RUN_NUMBER && (max == 0 || n < max); n++) {
        to += character.n_bytes;
        character = run_scan_look(scan, to);
    }
    return to > from ? to : at;
}

static bool is_punctuation(const struct run_words_rule *rule, struct run_character character)
{
    if (character.code == RUN_NO_CHARACTER)
        return false;
    if (rule->no_punctuation == 0)
        return character.classes & (RUN_PUNCTUATION | RUN_SYMBOL);
    return !(character.classes & rule->no_punctuation);
}

static bool is_tail(enum run_tail tail, struct run_character character)
{
    if (tail == RUN_TAIL_NONE)
        return false;
    return character.classes & RUN_LINE_END ||
           (tail != RUN_TAIL_LINE_ENDS && character.code == '/');
}

static size_t match_punctuation(const struct run_scan *scan, size_t at,
                                const struct run_words_rule *rule)
{
    const size_t from = run_scan_look(scan, at).code == ' ' ? at + 1 : at;
    struct run_character character = run_scan_look(scan, from);
    size_t to = from;

    while (is_punctuation(rule, character)) {
        to += character.n_bytes;
        character = run_scan_look(scan, to);
    }
    if (to == from)
        return at;
    while (is_tail(rule->tail, character)) {
        to += character.n_bytes;
        if (rule->tail == RUN_TAIL_A_LINE_END_OR_SLASH)
            break;
        character = run_scan_look(scan, to);
    }
    return to;
}

static size_t match_line_ends(struct run_scan *scan, size_t at)
{
    run_scan_measure(scan, at, RUN_SPACE);
    return scan->run_mark > at ? scan->run_mark : at;
}

/* The start of the character that ends at `end`. */
static size_t character_before(const struct run_scan *scan, size_t end)
{
    do {
        end--;
    } while (((unsigned char)scan->text[end] & 0xc0) == 0x80);
    return end;
}

static size_t match_spaces(struct run_scan *scan, size_t at)
{
    size_t last;

    run_scan_measure(scan, at, RUN_SPACE);
    if (scan->run_end <= at)
        return at;
    if (scan->run_end == scan->end)
        return scan->run_end;
    last = character_before(scan, scan->run_end);
    return last > at ? last : scan->run_end;
}

/* As many spaces as the largest power of two that leaves one, up to 512, or that is all of the text
 * that is left. */
static size_t match_halved_spaces(struct run_scan *scan, size_t at)
{
    const uint32_t most = 512;
    size_t places[10], to = at;
    uint32_t n = 0, power = 1;
    int n_places = 0;

    run_scan_measure(scan, at, RUN_SPACE);
    if (scan->run_end <= at)
        return at;
    while (to < scan->run_end && n <= most) {
        to += run_scan_look(scan, to).n_bytes;
        if (++n == power && n_places < 10) {
            places[n_places++] = to;
            power *= 2;
        }
    }
    for (int i = n_places - 1; i > 0; i--)
        if (places[i] < scan->run_end || scan->run_end == scan->end)
            return places[i];
    return places[0];
}

size_t run_match_words(struct run_scan *scan, size_t at, const void *rule)
{
    const struct run_words_rule *words = rule;
    size_t to = at;

    if (words->has_han)
        to = match_han(scan, at);
    if (to == at && (words->contractions == RUN_CONTRACTIONS_FIRST ||
                     words->contractions == RUN_CONTRACTIONS_FIRST_ANY_CASE))
        to = match_contraction(scan, at, words->contractions == RUN_CONTRACTIONS_FIRST_ANY_CASE);
    if (to == at) {
        to = match_letters(scan, at, words);
        if (to > at && words->contractions == RUN_CONTRACTIONS_BEHIND)
            to = match_contraction(scan, to, true);
    }
    if (to == at)
        to = match_numbers(scan, at, words->numbers);
    if (to == at)
        to = match_punctuation(scan, at, words);
    if (to == at && words->has_line_ends)
        to = match_line_ends(scan, at);
    if (to == at)
        to = words->is_space_halved ? match_halved_spaces(scan, at) : match_spaces(scan, at);
    return to;
}
