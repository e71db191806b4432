/*
 * Sets of characters, and patterns that few models have.
 */
#include "contrib/runner/tokenizer/word_patterns.h"

#include <string.h>

static bool is_in_set(const struct run_set_rule *rule, struct run_character character)
{
    if (character.code == RUN_NO_CHARACTER)
        return false;
    if (character.classes & rule->classes)
        return !rule->is_negated;
    if (rule->ascii && character.code < 0x80 && character.code != 0 &&
        strchr(rule->ascii, (int)character.code))
        return !rule->is_negated;
    for (size_t i = 0; i < rule->n_ranges; i++)
        if (character.code >= rule->ranges[i].first && character.code <= rule->ranges[i].last)
            return !rule->is_negated;
    return rule->is_negated;
}

/* The end of the characters of the set; `at` if there are too few. */
static size_t match_in_set(const struct run_scan *scan, size_t at, const struct run_set_rule *set)
{
    struct run_character character = run_scan_look(scan, at);
    size_t to = at;
    uint32_t n = 0;

    while ((set->max == 0 || n < set->max) && is_in_set(set, character)) {
        to += character.n_bytes;
        character = run_scan_look(scan, to);
        n++;
    }
    return n >= set->min ? to : at;
}

size_t run_match_set(struct run_scan *scan, size_t at, const void *rule)
{
    const struct run_set_rule *set = rule;

    if (set->lead != RUN_LEAD_NONE) {
        const struct run_character first = run_scan_look(scan, at);

        if (set->lead == RUN_LEAD_SPACE ? first.code == ' ' : first.classes & RUN_SPACE) {
            const size_t to = match_in_set(scan, at + first.n_bytes, set);

            if (to > at + first.n_bytes)
                return to;
        }
    }
    return match_in_set(scan, at, set);
}

/* ---- others ---- */

size_t run_match_last_spaces(struct run_scan *scan, size_t at, const void *rule)
{
    (void)rule;
    run_scan_measure(scan, at, RUN_SPACE);
    return scan->run_end == scan->end ? scan->run_end : at;
}

/* The end of the next group of the run that was measured: of three, the first of what is left
 * over. */
static size_t match_group(struct run_scan *scan, size_t at, unsigned class)
{
    const bool is_inside = scan->run_class == class && at > scan->run_start && at < scan->run_end;
    size_t n = 3;

    if (!is_inside) {
        run_scan_measure(scan, at, class);
        n = 0;
        for (size_t i = at; i < scan->run_end; i += run_scan_look(scan, i).n_bytes)
            n++;
        n = n == 0 ? 0 : n % 3 == 0 ? 3 : n % 3;
    }
    for (; n > 0; n--)
        at += run_scan_look(scan, at).n_bytes;
    return at;
}

size_t run_match_digits_from_right(struct run_scan *scan, size_t at, const void *rule)
{
    (void)rule;
    return match_group(scan, at, RUN_NUMBER);
}

size_t run_match_number_from_right(struct run_scan *scan, size_t at, const void *rule)
{
    (void)rule;
    run_scan_measure(scan, at, RUN_DIGIT);
    if (run_scan_look(scan, scan->run_end).classes &
        (RUN_LETTER | RUN_MARK | RUN_NUMBER | RUN_CONNECTOR))
        return at; /* the word goes on */
    return match_group(scan, at, RUN_DIGIT);
}

static bool begins_with(const struct run_scan *scan, size_t at, const char *text)
{
    const size_t length = strlen(text);

    return scan->end - at >= length && memcmp(scan->text + at, text, length) == 0;
}

static size_t skip_ascii(const struct run_scan *scan, size_t at, char first, char last)
{
    while (at < scan->end && scan->text[at] >= first && scan->text[at] <= last)
        at++;
    return at;
}

size_t run_match_sentinel(struct run_scan *scan, size_t at, const void *rule)
{
    static const char beginning[] = "<sentinel:";
    const size_t from = at + sizeof beginning - 1;
    size_t to;

    (void)rule;
    if (!begins_with(scan, at, beginning))
        return at;
    to = skip_ascii(scan, from, '0', '9');
    return to > from && to < scan->end && scan->text[to] == '>' ? to + 1 : at;
}

size_t run_match_image(struct run_scan *scan, size_t at, const void *rule)
{
    static const char beginning[] = "IMGIMG";
    const size_t from = at + sizeof beginning - 1;
    size_t to;

    (void)rule;
    if (!begins_with(scan, at, beginning))
        return at;
    to = skip_ascii(scan, from, 'A', 'I');
    return to > from && to - from <= 4 && to < scan->end && scan->text[to] == 'Z' ? to + 1 : at;
}

size_t run_match_indent(struct run_scan *scan, size_t at, const void *rule)
{
    (void)rule;
    if (begins_with(scan, at, "\t") || begins_with(scan, at, "\n"))
        return at + 1;
    if (begins_with(scan, at, "    "))
        return at + 4;
    return begins_with(scan, at, "  ") ? at + 2 : at;
}
