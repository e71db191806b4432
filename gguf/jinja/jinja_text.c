/* Texts: UTF-8 with a mark for each byte that is from a message. */
#include "gguf/jinja/jinja_run.h"

#include <string.h>
#include <unicase.h>
#include <unictype.h>
#include <unistr.h>

struct buffer {
    size_t used, room;
    char bytes[]; /* `room` bytes and as many marks; those behind `used` are 0 */
};

/* Append bytes with their marks (NULL: none), in place if nothing else was appended to the text: a
 * loop that adds to a text is linear. */
static void append(struct run *r, struct text *to, const char *bytes, const char *marks, size_t n)
{
    struct buffer *buffer = to->buffer;

    if (n == 0)
        return;
    jinja_charge(r, 1 + n / 64);
    if (n > JINJA_MAX_OUTPUT_BYTES || to->n > JINJA_MAX_OUTPUT_BYTES - n)
        jinja_fail(r, "text too long: more than %u MiB", JINJA_MAX_OUTPUT_BYTES >> 20);
    if (!buffer || to->bytes + to->n != buffer->bytes + buffer->used ||
        n > buffer->room - buffer->used) {
        const size_t doubled = to->n < JINJA_MAX_OUTPUT_BYTES / 2 ? 2 * to->n : to->n;
        const size_t room = to->n + n < doubled ? doubled : to->n + n + 16;

        buffer = jinja_alloc(r, sizeof *buffer + 2 * room);
        *buffer = (struct buffer){to->n, room};
        if (to->n) {
            memcpy(buffer->bytes, to->bytes, to->n);
            memcpy(buffer->bytes + room, to->marks, to->n);
        }
        to->bytes = buffer->bytes;
        to->marks = buffer->bytes + room;
        to->buffer = buffer;
    }
    memcpy(to->bytes + to->n, bytes, n);
    if (marks)
        memcpy(to->marks + to->n, marks, n);
    to->n += n;
    buffer->used += n;
    to->n_chars = 0;
}

void jinja_add(struct run *r, struct text *to, const char *bytes, size_t n)
{
    append(r, to, bytes, NULL, n);
}

void jinja_add_string(struct run *r, struct text *to, const char *string)
{
    append(r, to, string, NULL, strlen(string));
}

void jinja_add_char(struct run *r, struct text *to, uint32_t character, char mark)
{
    const char marks[] = {mark, mark, mark, mark};
    uint8_t bytes[4];
    int n = u8_uctomb(bytes, character, sizeof bytes);

    if (n < 0) /* a surrogate */
        n = u8_uctomb(bytes, 0xfffd, sizeof bytes);
    append(r, to, (const char *)bytes, marks, (size_t)n);
}

void jinja_add_part(struct run *r, struct text *to, const struct text *text, size_t start,
                    size_t end)
{
    append(r, to, text->bytes + start, text->marks + start, end > start ? end - start : 0);
}

void jinja_add_text(struct run *r, struct text *to, const struct text *text)
{
    jinja_add_part(r, to, text, 0, text->n);
}

void jinja_add_times(struct run *r, struct text *to, const struct text *text, int64_t n)
{
    if (n > 0 && text->n > JINJA_MAX_OUTPUT_BYTES / (uint64_t)n)
        jinja_fail(r, "text too long: %zu bytes %lld times, more than %u MiB", text->n,
                   (long long)n, JINJA_MAX_OUTPUT_BYTES >> 20);
    for (int64_t i = 0; i < n && text->n; i++)
        jinja_add_text(r, to, text);
}

void jinja_add_clean(struct run *r, struct text *to, const char *bytes, size_t n)
{
    const uint8_t *bad;

    while (n > 0 && (bad = u8_check((const uint8_t *)bytes, n))) {
        const size_t n_good = (size_t)(bad - (const uint8_t *)bytes);

        jinja_add(r, to, bytes, n_good);
        jinja_add_char(r, to, 0xfffd, 0);
        bytes += n_good + 1;
        n -= n_good + 1;
    }
    jinja_add(r, to, bytes, n);
}

struct text *jinja_text(struct run *r, const char *bytes, size_t n)
{
    struct text *text = jinja_alloc(r, sizeof *text);

    text->bytes = text->marks = (char *)"";
    jinja_add(r, text, bytes, n);
    return text;
}

struct value jinja_string_of(struct run *r, const char *string)
{
    return jinja_string(jinja_text(r, string, strlen(string)));
}

struct text *jinja_cut(struct run *r, const struct text *text, size_t start, size_t end)
{
    struct text *part = jinja_alloc(r, sizeof *part);

    *part = (struct text){.bytes = text->bytes + start,
                          .marks = text->marks + start,
                          .n = end > start ? end - start : 0,
                          .is_markup = text->is_markup};
    return part;
}

size_t jinja_chars(struct run *r, struct text *text)
{
    jinja_charge(r, text->n_chars ? 0 : text->n / 64);
    for (size_t i = text->n_chars ? text->n : 0; i < text->n; i++)
        text->n_chars += ((unsigned char)text->bytes[i] & 0xc0) != 0x80;
    return text->n_chars;
}

size_t jinja_offset(struct run *r, struct text *text, size_t character)
{
    size_t at = 0;

    if (character >= jinja_chars(r, text))
        return text->n;
    if (text->n_chars == text->n)
        return character;
    while (character-- > 0)
        at = jinja_next_char(text, at, &(uint32_t){0});
    return at;
}

size_t jinja_search(struct run *r, const struct text *text, const struct text *part, size_t from)
{
    const char *found = memmem(text->bytes + from, text->n - from, part->bytes, part->n);
    const size_t at = found ? (size_t)(found - text->bytes) : text->n;

    jinja_charge(r, 1 + (at - from + part->n) / 64);
    return found ? at : SIZE_MAX;
}

bool jinja_among(const char *bytes, size_t n, const char *names)
{
    for (size_t n_name; *names; names += n_name + strspn(names + n_name, " ")) {
        n_name = strcspn(names, " ");
        if (n == n_name && memcmp(bytes, names, n) == 0)
            return true;
    }
    return false;
}

bool jinja_is(const struct text *text, const char *names)
{
    return jinja_among(text->bytes, text->n, names);
}

size_t jinja_next_char(const struct text *text, size_t at, uint32_t *character)
{
    const int n = u8_mbtoucr(character, (const uint8_t *)text->bytes + at, text->n - at);

    return at + (n > 0 ? (size_t)n : 1);
}

bool jinja_is_space(uint32_t c)
{
    return (c >= 9 && c <= 13) || (c >= 0x1c && c <= 0x20) || c == 0x85 || c == 0xa0 ||
           c == 0x1680 || (c >= 0x2000 && c <= 0x200a) || c == 0x2028 || c == 0x2029 ||
           c == 0x202f || c == 0x205f || c == 0x3000;
}

struct text *jinja_strip(struct run *r, const struct text *text, const struct text *set, int sides)
{
    size_t start = 0, end = text->n;

    while (start < end && sides) {
        const bool is_left = sides & JINJA_LEFT;
        size_t at = is_left ? start : end - 1, next;
        uint32_t character;

        while (((unsigned char)text->bytes[at] & 0xc0) == 0x80)
            at--;
        next = jinja_next_char(text, at, &character);
        jinja_charge(r, set ? 1 + set->n / 64 : (end - start) % 8 == 0);
        if (set ? !memmem(set->bytes, set->n, text->bytes + at, next - at)
                : !jinja_is_space(character))
            sides &= is_left ? ~JINJA_LEFT : 0;
        else
            *(is_left ? &start : &end) = is_left ? next : at;
    }
    return jinja_cut(r, text, start, end);
}

/* ---- upper and lower case ---- */

/* Return true if a sigma at `at` ends a word that begins at or after `start`, and is thus a final
 * sigma in lower case. */
static bool ends_word(const struct text *text, size_t start, size_t at, size_t next)
{
    const uint8_t *bytes = (const uint8_t *)text->bytes;
    ucs4_t character = 0;

    do {
        if (at == start)
            return false;
        at -= (size_t)(bytes + at - u8_prev(&character, bytes + at, bytes));
    } while (uc_is_property_case_ignorable(character));
    if (!uc_is_property_cased(character))
        return false;
    do {
        if (next >= text->n)
            return true;
        next = jinja_next_char(text, next, &character);
    } while (uc_is_property_case_ignorable(character));
    return !uc_is_property_cased(character);
}

struct text *jinja_change_case(struct run *r, const struct text *text, enum jinja_case to)
{
    struct text *result = jinja_text(r, "", 0);
    bool is_in_word = false;
    size_t start = 0; /* of the text for ends_word() */

    jinja_charge(r, text->n);
    for (size_t at = 0, next; at < text->n; at = next) {
        const uint8_t *bytes = (const uint8_t *)text->bytes + at;
        enum jinja_case one = to < JINJA_TITLE ? to : is_in_word ? JINJA_LOWER : JINJA_TITLE;
        uint8_t changed[64]; /* the longest case mapping has three characters */
        size_t n = sizeof changed;
        uint32_t c;

        next = jinja_next_char(text, at, &c);
        if (to == JINJA_WORDS && !is_in_word) {
            one = JINJA_UPPER;
            start = next;
        }
        is_in_word =
            to == JINJA_CAPITALIZED ||
            (to == JINJA_WORDS ? !jinja_is_space(c) && (c > 127 || !strchr("-({[<", (int)c))
                               : uc_is_property_cased(c));
        if (one == JINJA_LOWER && c == 0x3a3) {
            jinja_add_char(r, result, ends_word(text, start, at, next) ? 0x3c2 : 0x3c3,
                           text->marks[at]);
            continue;
        }
        if (!(one == JINJA_UPPER   ? u8_toupper(bytes, next - at, NULL, NULL, changed, &n)
              : one == JINJA_TITLE ? u8_totitle(bytes, next - at, NULL, NULL, changed, &n)
                                   : u8_tolower(bytes, next - at, NULL, NULL, changed, &n)))
            jinja_fail(r, "out of memory");
        jinja_add(r, result, (const char *)changed, n);
        memset(result->marks + result->n - n, text->marks[at], n);
    }
    result->is_markup = text->is_markup && to != JINJA_WORDS;
    return result;
}
