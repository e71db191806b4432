/* Texts: UTF-8 with a mark for each byte that is from a message. */
#include "gguf/jinja/jinja_values.h"

#include <string.h>
#include <unicase.h>
#include <unictype.h>
#include <unistr.h>

/* ---- builders ---- */

struct builder *jinja_builder(struct run *run)
{
    return jinja_alloc(run, sizeof(struct builder));
}

static void reserve(struct run *run, struct builder *builder, size_t n_bytes)
{
    struct builder old = *builder;
    size_t room = old.room < 48 ? 48 : 2 * old.room;

    if (n_bytes > JINJA_MAX_OUTPUT_BYTES || old.n_bytes > JINJA_MAX_OUTPUT_BYTES - n_bytes)
        jinja_fail(run, "text too long: more than %u MiB", JINJA_MAX_OUTPUT_BYTES >> 20);
    if (n_bytes <= old.room - old.n_bytes)
        return;
    if (room < old.n_bytes + n_bytes)
        room = old.n_bytes + n_bytes;
    builder->bytes = jinja_alloc(run, room);
    builder->room = room;
    if (old.n_bytes)
        memcpy(builder->bytes, old.bytes, old.n_bytes);
    if (old.marks) {
        builder->marks = jinja_alloc(run, room);
        memcpy(builder->marks, old.marks, old.n_bytes);
    }
}

void jinja_add(struct run *run, struct builder *builder, const char *bytes, size_t n_bytes,
               const unsigned char *marks)
{
    if (n_bytes == 0)
        return;
    jinja_charge(run, 1 + n_bytes / 64);
    reserve(run, builder, n_bytes);
    memcpy(builder->bytes + builder->n_bytes, bytes, n_bytes);
    if (marks && !builder->marks)
        builder->marks = jinja_alloc(run, builder->room);
    if (marks)
        memcpy(builder->marks + builder->n_bytes, marks, n_bytes);
    builder->n_bytes += n_bytes;
}

void jinja_add_text(struct run *run, struct builder *builder, const struct text *text)
{
    jinja_add(run, builder, text->bytes, text->n_bytes, text->marks);
}

void jinja_add_string(struct run *run, struct builder *builder, const char *string)
{
    jinja_add(run, builder, string, strlen(string), NULL);
}

void jinja_add_char(struct run *run, struct builder *builder, uint32_t character,
                    unsigned char mark)
{
    const unsigned char marks[] = {1, 1, 1, 1};
    uint8_t bytes[4];
    int n = u8_uctomb(bytes, character, sizeof bytes);

    if (n < 0) /* a surrogate */
        n = u8_uctomb(bytes, 0xfffd, sizeof bytes);
    jinja_add(run, builder, (const char *)bytes, (size_t)n, mark ? marks : NULL);
}

void jinja_add_times(struct run *run, struct builder *builder, const struct text *text, int64_t n)
{
    if (n > 0 && text->n_bytes > JINJA_MAX_OUTPUT_BYTES / (uint64_t)n)
        jinja_fail(run, "text too long: %zu bytes %lld times, more than %u MiB", text->n_bytes,
                   (long long)n, JINJA_MAX_OUTPUT_BYTES >> 20);
    for (int64_t i = 0; i < n && text->n_bytes; i++)
        jinja_add_text(run, builder, text);
}

struct text *jinja_built(struct run *run, struct builder *builder)
{
    struct text *text =
        jinja_text_make(run, builder->bytes ? builder->bytes : "", builder->n_bytes);

    text->marks = builder->marks;
    text->appended = builder;
    return text;
}

/* ---- texts ---- */

struct text *jinja_text_make(struct run *run, const char *bytes, size_t n_bytes)
{
    struct text *text = jinja_alloc(run, sizeof *text);

    text->bytes = bytes;
    text->n_bytes = n_bytes;
    return text;
}

struct value jinja_string_of(struct run *run, const char *string)
{
    return jinja_string(jinja_text_make(run, string, strlen(string)));
}

struct text *jinja_text_clean(struct run *run, const char *bytes, size_t n_bytes)
{
    struct builder *builder = jinja_builder(run);
    const uint8_t *bad;

    while (n_bytes > 0 && (bad = u8_check((const uint8_t *)bytes, n_bytes))) {
        const size_t n_good = (size_t)(bad - (const uint8_t *)bytes);

        jinja_add(run, builder, bytes, n_good, NULL);
        jinja_add_char(run, builder, 0xfffd, 0);
        bytes += n_good + 1;
        n_bytes -= n_good + 1;
    }
    jinja_add(run, builder, bytes, n_bytes, NULL);
    return jinja_built(run, builder);
}

struct text *jinja_text_cut(struct run *run, const struct text *text, size_t start, size_t end)
{
    struct text *part = jinja_text_make(run, text->bytes + start, end > start ? end - start : 0);

    if (text->marks)
        part->marks = text->marks + start;
    part->is_markup = text->is_markup;
    return part;
}

struct text *jinja_text_join(struct run *run, struct text *a, const struct text *b)
{
    struct builder *builder = a->appended;

    /* Append in place if nothing else was appended to `a`: a loop that adds to a text is linear. */
    if (!builder || builder->n_bytes != a->n_bytes || builder->bytes != a->bytes) {
        builder = jinja_builder(run);
        jinja_add_text(run, builder, a);
    }
    jinja_add_text(run, builder, b);
    return jinja_built(run, builder);
}

size_t jinja_text_chars(struct text *text)
{
    if (!text->is_counted) {
        text->n_chars = 0;
        for (size_t i = 0; i < text->n_bytes; i++)
            text->n_chars += ((unsigned char)text->bytes[i] & 0xc0) != 0x80;
        text->is_counted = true;
    }
    return text->n_chars;
}

size_t jinja_text_offset(struct text *text, size_t character)
{
    size_t at = 0;

    if (character >= jinja_text_chars(text))
        return text->n_bytes;
    if (text->n_chars == text->n_bytes)
        return character;
    for (; character > 0; character--) {
        for (at++; ((unsigned char)text->bytes[at] & 0xc0) == 0x80;)
            at++;
    }
    return at;
}

size_t jinja_text_find(struct run *run, const struct text *text, const struct text *part,
                       size_t from)
{
    const char *found = NULL;

    if (from <= text->n_bytes)
        found = memmem(text->bytes + from, text->n_bytes - from, part->bytes, part->n_bytes);
    jinja_charge(
        run,
        1 + ((found ? (size_t)(found - text->bytes) : text->n_bytes) - (found ? from : 0)) / 64);
    return found ? (size_t)(found - text->bytes) : SIZE_MAX;
}

bool jinja_text_is(const struct text *text, const char *string)
{
    return strlen(string) == text->n_bytes && memcmp(text->bytes, string, text->n_bytes) == 0;
}

bool jinja_text_among(const struct text *text, const char *names)
{
    for (size_t n; *names; names += n + strspn(names + n, " ")) {
        n = strcspn(names, " ");
        if (text->n_bytes == n && memcmp(text->bytes, names, n) == 0)
            return true;
    }
    return false;
}

bool jinja_text_equal(const struct text *a, const struct text *b)
{
    return a->n_bytes == b->n_bytes && memcmp(a->bytes, b->bytes, a->n_bytes) == 0;
}

int jinja_text_compare(const struct text *a, const struct text *b)
{
    const size_t common = a->n_bytes < b->n_bytes ? a->n_bytes : b->n_bytes;
    const int order = memcmp(a->bytes, b->bytes, common);

    return order ? (order > 0) - (order < 0)
                 : (a->n_bytes > b->n_bytes) - (a->n_bytes < b->n_bytes);
}

uint64_t jinja_text_hash(struct text *text)
{
    if (text->hash == 0) {
        uint64_t hash = 0xcbf29ce484222325u; /* FNV-1a */

        for (size_t i = 0; i < text->n_bytes; i++)
            hash = (hash ^ (unsigned char)text->bytes[i]) * 0x100000001b3u;
        text->hash = hash ? hash : 1;
    }
    return text->hash;
}

size_t jinja_next_char(const struct text *text, size_t at, uint32_t *character)
{
    const int n = u8_mbtoucr(character, (const uint8_t *)text->bytes + at, text->n_bytes - at);

    return at + (n > 0 ? (size_t)n : 1);
}

bool jinja_is_space(uint32_t c)
{
    return (c >= 9 && c <= 13) || (c >= 0x1c && c <= 0x20) || c == 0x85 || c == 0xa0 ||
           c == 0x1680 || (c >= 0x2000 && c <= 0x200a) || c == 0x2028 || c == 0x2029 ||
           c == 0x202f || c == 0x205f || c == 0x3000;
}

static bool is_stripped(struct run *run, const struct text *set, const struct text *text,
                        size_t start, size_t end)
{
    uint32_t character = 0;

    if (!set) {
        jinja_next_char(text, start, &character);
        return jinja_is_space(character);
    }
    jinja_charge(run, 1 + set->n_bytes / 64);
    return memmem(set->bytes, set->n_bytes, text->bytes + start, end - start) != NULL;
}

struct text *jinja_text_strip(struct run *run, const struct text *text, const struct text *set,
                              bool left, bool right)
{
    size_t start = 0, end = text->n_bytes;

    while (left && start < end) {
        uint32_t character;
        const size_t next = jinja_next_char(text, start, &character);

        if (!is_stripped(run, set, text, start, next))
            break;
        start = next;
    }
    while (right && end > start) {
        size_t last = end - 1;

        while (((unsigned char)text->bytes[last] & 0xc0) == 0x80)
            last--;
        if (!is_stripped(run, set, text, last, end))
            break;
        end = last;
    }
    return jinja_text_cut(run, text, start, end);
}

/* ---- upper and lower case ---- */

/* Return true if a sigma at `at` ends a word, and is thus a final sigma in lower case. */
static bool ends_word(const struct text *text, size_t at, size_t next)
{
    const uint8_t *bytes = (const uint8_t *)text->bytes;
    ucs4_t character = 0;
    bool has_letter = false;

    while (at > 0 && !has_letter) {
        at -= (size_t)(bytes + at - u8_prev(&character, bytes + at, bytes));
        if (!uc_is_property_case_ignorable(character))
            break;
    }
    has_letter =
        character && uc_is_property_cased(character) && !uc_is_property_case_ignorable(character);
    while (has_letter && next < text->n_bytes) {
        next = jinja_next_char(text, next, &character);
        if (!uc_is_property_case_ignorable(character))
            return !uc_is_property_cased(character);
    }
    return has_letter;
}

struct text *jinja_text_case(struct run *run, const struct text *text, enum jinja_case to)
{
    struct builder *builder = jinja_builder(run);
    struct text *result;
    bool is_in_word = false;

    jinja_charge(run, text->n_bytes);
    for (size_t at = 0, next; at < text->n_bytes; at = next) {
        const uint8_t *bytes = (const uint8_t *)text->bytes + at;
        const unsigned char mark = text->marks ? text->marks[at] : 0;
        enum jinja_case one = to;
        uint8_t changed[64]; /* the longest case mapping has three characters */
        size_t n_changed = sizeof changed;
        uint32_t character;

        next = jinja_next_char(text, at, &character);
        if (to == JINJA_TITLE || to == JINJA_CAPITALIZED)
            one = is_in_word ? JINJA_LOWER : JINJA_TITLE;
        is_in_word = to == JINJA_CAPITALIZED || uc_is_property_cased(character);
        if (one == JINJA_LOWER && character == 0x3a3) {
            jinja_add_char(run, builder, ends_word(text, at, next) ? 0x3c2 : 0x3c3, mark);
            continue;
        }
        if (!(one == JINJA_UPPER   ? u8_toupper(bytes, next - at, NULL, NULL, changed, &n_changed)
              : one == JINJA_TITLE ? u8_totitle(bytes, next - at, NULL, NULL, changed, &n_changed)
                                   : u8_tolower(bytes, next - at, NULL, NULL, changed, &n_changed)))
            jinja_fail(run, "out of memory");
        for (size_t i = 0; i < n_changed;) {
            ucs4_t part;

            i += (size_t)u8_mbtoucr(&part, changed + i, n_changed - i);
            jinja_add_char(run, builder, part, mark);
        }
    }
    result = jinja_built(run, builder);
    result->is_markup = text->is_markup;
    return result;
}
