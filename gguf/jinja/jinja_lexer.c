/* Splits a template into tokens as jinja2 does with trim_blocks and lstrip_blocks. */
#include "gguf/jinja/jinja_syntax.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unictype.h>
#include <unistr.h>

struct lexer jinja_lexer(struct run *run, const char *source, size_t n_bytes)
{
    const uint8_t *bad = n_bytes ? u8_check((const uint8_t *)source, n_bytes) : NULL;
    char *copy = jinja_alloc(run, n_bytes + 1), *out = copy;

    run->line = 1;
    for (size_t i = 0; i < n_bytes; i++) {
        if (bad == (const uint8_t *)source + i)
            jinja_fail(run, "the template is not UTF-8: byte %zu", i);
        if (source[i] == '\n' && i > 0 && source[i - 1] == '\r')
            continue;
        *out++ = source[i] == '\r' ? '\n' : source[i];
        run->line += out[-1] == '\n';
    }
    if (out > copy && out[-1] == '\n')
        out--;
    run->line = 1;
    return (struct lexer){.at = copy, .end = out, .line = 1, .is_at_line_start = true};
}

static bool starts(const struct lexer *lexer, const char *at, const char *word)
{
    const size_t n = strlen(word);

    return (size_t)(lexer->end - at) >= n && memcmp(at, word, n) == 0;
}

static const char *skip_space(const struct lexer *lexer, const char *at)
{
    while (at < lexer->end) {
        ucs4_t character;
        const int n = u8_mbtoucr(&character, (const uint8_t *)at, (size_t)(lexer->end - at));

        if (!jinja_is_space(character))
            break;
        at += n;
    }
    return at;
}

/* Move on, counting lines. */
static void advance(struct lexer *lexer, const char *to)
{
    for (const char *at = lexer->at; at < to; at++)
        lexer->line += *at == '\n';
    lexer->is_at_line_start = to > lexer->at && to[-1] == '\n';
    lexer->at = to;
}

/* Return the end of a closing tag at `at` with the white space that it removes, or NULL. */
static const char *match_end(const struct lexer *lexer, const char *at, const char *tag, bool trims)
{
    if (*at == '-' && starts(lexer, at + 1, tag))
        return skip_space(lexer, at + 3);
    if (trims && *at == '+' && starts(lexer, at + 1, tag))
        return at + 3;
    if (!starts(lexer, at, tag))
        return NULL;
    return at + 2 + (trims && starts(lexer, at + 2, "\n"));
}

/* Return the end of a tag {% raw %} or {% endraw %} at `at`, or NULL. */
static const char *match_raw(const struct lexer *lexer, const char *at, const char *name)
{
    const bool is_end = name[0] == 'e';

    if (!starts(lexer, at, "{%"))
        return NULL;
    at += 2;
    at = skip_space(lexer, at + (starts(lexer, at, "-") || starts(lexer, at, "+")));
    if (!starts(lexer, at, name))
        return NULL;
    at = skip_space(lexer, at + strlen(name));
    if (at == lexer->end || (!is_end && *at == '+'))
        return NULL;
    if (!is_end && starts(lexer, at, "%}"))
        return at + 2;
    return match_end(lexer, at, "%}", true);
}

/* Return the text up to the tag at `tag`, without the white space that the tag removes. */
static struct value text_before(struct run *run, const struct lexer *lexer, const char *tag)
{
    const struct text text = {.bytes = lexer->at, .n_bytes = (size_t)(tag - lexer->at)};
    const char sign = lexer->end - tag > 2 ? tag[2] : 0;
    struct text *kept = jinja_text_cut(run, &text, 0, text.n_bytes);

    if (sign == '-') {
        kept = jinja_text_strip(run, &text, NULL, false, true);
    } else if (sign != '+' && !starts(lexer, tag, "{{")) {
        const char *newline = memrchr(text.bytes, '\n', text.n_bytes);
        const char *line = newline ? newline + 1 : text.bytes;

        if ((newline || lexer->is_at_line_start) && skip_space(lexer, line) >= tag)
            kept->n_bytes = (size_t)(line - text.bytes);
    }
    return jinja_string(kept);
}

static struct token lex_text(struct run *run, struct lexer *lexer)
{
    struct token token = {TOKEN_END, 0, lexer->line, {.type = JINJA_ABSENT}};
    const char *tag = lexer->at, *end;

    while ((tag = memchr(tag, '{', (size_t)(lexer->end - tag)))) {
        if (starts(lexer, tag, "{{") || starts(lexer, tag, "{%") || starts(lexer, tag, "{#"))
            break;
        tag++;
    }
    if (!tag) {
        token.type = lexer->at < lexer->end ? TOKEN_DATA : TOKEN_END;
        token.value =
            jinja_string(jinja_text_make(run, lexer->at, (size_t)(lexer->end - lexer->at)));
        advance(lexer, lexer->end);
        return token;
    }
    token.type = TOKEN_DATA;
    token.value = text_before(run, lexer, tag);
    advance(lexer, tag);
    run->line = lexer->line;
    if (starts(lexer, tag, "{#")) {
        for (tag += 2 + (starts(lexer, tag + 2, "-") || starts(lexer, tag + 2, "+"));; tag++) {
            tag = memchr(tag, '#', (size_t)(lexer->end - tag));
            if (!tag)
                jinja_fail(run, "Missing end of comment tag");
            if (starts(lexer, tag, "#}"))
                break;
        }
        /* The sign before the end belongs to it, unless it is also the sign of the start. */
        if (tag > lexer->at + 2 + (lexer->at[2] == '-' || lexer->at[2] == '+') &&
            (tag[-1] == '-' || tag[-1] == '+'))
            tag--;
        advance(lexer, match_end(lexer, tag, "#}", true));
    } else if ((end = match_raw(lexer, tag, "raw"))) {
        if (token.value.text->n_bytes) {
            /* The text before is a token of its own; the next call sees the tag again. */
            return token;
        }
        advance(lexer, end);
        for (tag = end;; tag++) {
            tag = memmem(tag, (size_t)(lexer->end - tag), "{%", 2);
            if (!tag)
                jinja_fail(run, "Missing end of raw directive");
            if ((end = match_raw(lexer, tag, "endraw")))
                break;
        }
        token.line = lexer->line;
        token.value = text_before(run, lexer, tag);
        advance(lexer, end);
    } else {
        const bool is_block = tag[1] == '%';

        lexer->queued = (struct token){is_block ? TOKEN_BLOCK_BEGIN : TOKEN_PRINT_BEGIN,
                                       0,
                                       lexer->line,
                                       {.type = JINJA_ABSENT}};
        lexer->has_queued = true;
        lexer->state = is_block ? LEXER_BLOCK : LEXER_PRINT;
        tag += 2;
        advance(lexer, tag + (starts(lexer, tag, "-") || starts(lexer, tag, "+")));
    }
    return token;
}

/* ---- tokens in tags ---- */

static bool is_digit(const char *at, int base)
{
    return (*at >= '0' && *at < '0' + (base < 10 ? base : 10)) ||
           (base == 16 && ((*at | 32) >= 'a' && (*at | 32) <= 'f'));
}

static const char *skip_digits(const struct lexer *lexer, const char *at)
{
    while (at < lexer->end && is_digit(at, 10))
        at++;
    return at;
}

static struct value lex_number(struct run *run, struct lexer *lexer)
{
    const char *start = lexer->at, *end = skip_digits(lexer, start), *after = end;
    const bool may_be_float = start[-1] != '.';
    char digits[400];
    struct value value;

    if (may_be_float && starts(lexer, after, ".") && skip_digits(lexer, after + 1) > after + 1)
        after = skip_digits(lexer, after + 1);
    if (may_be_float && (starts(lexer, after, "e") || starts(lexer, after, "E"))) {
        const char *exponent = after + 1;

        exponent += starts(lexer, exponent, "+") || starts(lexer, exponent, "-");
        if (skip_digits(lexer, exponent) > exponent)
            after = skip_digits(lexer, exponent);
    }
    if (after - start >= (ptrdiff_t)sizeof digits)
        jinja_fail(run, "a number of %zu characters is too long", (size_t)(after - start));
    if ((*start == '0' && end > start + 1) || (after < lexer->end && memchr("_xXoObB", *after, 7)))
        jinja_fail(
            run,
            "a number that is not decimal, or with '_' or a 0 before it," JINJA_NOT_IMPLEMENTED);
    memcpy(digits, start, (size_t)(after - start));
    digits[after - start] = '\0';
    lexer->at = after;
    if (after > end)
        return jinja_float(strtod(digits, NULL));
    errno = 0;
    value = jinja_int(strtoll(digits, NULL, 10));
    if (errno == ERANGE)
        jinja_fail(run, "the integer %.40s does not fit in 64 bits", digits);
    return value;
}

/* Add the character of an escape after the backslash at `at`; returns its end. */
static const char *unescape(struct run *run, struct builder *builder, const char *at,
                            const char *end)
{
    static const char letters[] = "\\'\"abfnrtv", meanings[] = "\\'\"\a\b\f\n\r\t\v";
    const char *letter = *at ? strchr(letters, *at) : NULL;
    const int n_digits = *at == 'x' ? 2 : *at == 'u' ? 4 : *at == 'U' ? 8 : 0;
    uint32_t code = 0;
    int n = 0;

    if (*at == '\n')
        return at + 1;
    if (letter) {
        jinja_add_char(run, builder, (unsigned char)meanings[letter - letters], 0);
        return at + 1;
    }
    if (is_digit(at, 8)) {
        for (; n < 3 && at + n < end && is_digit(at + n, 8); n++)
            code = code * 8 + (uint32_t)(at[n] - '0');
        jinja_add_char(run, builder, code, 0);
        return at + n;
    }
    if (n_digits) {
        for (at++; n < n_digits && at + n < end && is_digit(at + n, 16); n++)
            code = code << 4 | (uint32_t)(at[n] <= '9' ? at[n] - '0' : (at[n] | 32) - 'a' + 10);
        if (n < n_digits || code > 0x10ffff)
            jinja_fail(run, "wrong escape \\%c in a string", at[-1]);
        jinja_add_char(run, builder, code, 0);
        return at + n;
    }
    if (*at == 'N')
        jinja_fail(run, "the escape \\N{…} is not supported; use --chat-template NAME");
    jinja_add_string(run, builder, "\\");
    return at;
}

static struct value lex_string(struct run *run, struct lexer *lexer)
{
    const char quote = *lexer->at, *at = lexer->at + 1;
    struct builder *builder = jinja_builder(run);

    for (;;) {
        const char *from = at;

        while (at < lexer->end && *at != quote && *at != '\\')
            at++;
        jinja_add(run, builder, from, (size_t)(at - from), NULL);
        if (at + 1 >= lexer->end && (at == lexer->end || *at != quote))
            jinja_fail(run, "a string has no closing %c", quote);
        if (*at == quote)
            break;
        at = unescape(run, builder, at + 1, lexer->end);
    }
    advance(lexer, at + 1);
    return jinja_string(jinja_built(run, builder));
}

static const char *skip_name(const struct lexer *lexer)
{
    const char *at = lexer->at;

    while (at < lexer->end) {
        ucs4_t character;
        const int n = u8_mbtoucr(&character, (const uint8_t *)at, (size_t)(lexer->end - at));

        if (character != '_' && !(at > lexer->at ? uc_is_property_xid_continue(character)
                                                 : uc_is_property_xid_start(character)))
            break;
        at += n;
    }
    return at;
}

static void balance(struct run *run, struct lexer *lexer, char bracket)
{
    static const char open[] = "([{", close[] = ")]}";
    const char *opened = strchr(open, bracket);

    if (opened && lexer->n_open == JINJA_MAX_PARSE_DEPTH)
        jinja_fail(run, "brackets nest deeper than %u levels", JINJA_MAX_PARSE_DEPTH);
    if (opened)
        lexer->closers[lexer->n_open++] = close[opened - open];
    else if (strchr(close, bracket) &&
             (lexer->n_open == 0 || lexer->closers[--lexer->n_open] != bracket))
        jinja_fail(run, "unexpected '%c'", bracket);
}

struct token jinja_lex(struct run *run, struct lexer *lexer)
{
    static const char *const pairs[] = {"//", "**", "==", "!=", ">=", "<="};
    struct token token = lexer->queued;
    const char *end;

    if (lexer->has_queued) {
        lexer->has_queued = false;
        return token;
    }
    if (lexer->state == LEXER_TEXT) {
        do
            token = lex_text(run, lexer);
        while (token.type == TOKEN_DATA && token.value.text->n_bytes == 0 && !lexer->has_queued);
        if (token.type == TOKEN_DATA && token.value.text->n_bytes == 0)
            return jinja_lex(run, lexer);
        return token;
    }
    /* The end of a tag removes white space after it, but before it white space means nothing. */
    advance(lexer, skip_space(lexer, lexer->at));
    run->line = lexer->line;
    token = (struct token){TOKEN_END, 0, lexer->line, {.type = JINJA_ABSENT}};
    if (lexer->at == lexer->end)
        return token;
    end = lexer->n_open                 ? NULL
          : lexer->state == LEXER_BLOCK ? match_end(lexer, lexer->at, "%}", true)
                                        : match_end(lexer, lexer->at, "}}", false);
    if (end) {
        token.type = lexer->state == LEXER_BLOCK ? TOKEN_BLOCK_END : TOKEN_PRINT_END;
        lexer->state = LEXER_TEXT;
        advance(lexer, end);
        return token;
    }
    if (is_digit(lexer->at, 10)) {
        token.type = TOKEN_NUMBER;
        token.value = lex_number(run, lexer);
        return token;
    }
    if (*lexer->at == '"' || *lexer->at == '\'') {
        token.type = TOKEN_STRING;
        token.value = lex_string(run, lexer);
        return token;
    }
    end = skip_name(lexer);
    if (end > lexer->at) {
        token.type = TOKEN_NAME;
        token.value = jinja_string(jinja_text_make(run, lexer->at, (size_t)(end - lexer->at)));
        lexer->at = end;
        return token;
    }
    token.type = TOKEN_OPERATOR;
    token.op = (unsigned char)*lexer->at;
    for (size_t i = 0; i < JINJA_COUNT(pairs); i++) {
        if (starts(lexer, lexer->at, pairs[i]))
            token.op = OPERATOR(pairs[i][0], pairs[i][1]);
    }
    if (token.op == 0 || !strchr("+-*/%~()[]{}<>=.,:|;!", (int)(token.op & 0xff)) ||
        token.op == '!')
        jinja_fail(run, "unexpected character U+%04X", (unsigned)(unsigned char)*lexer->at);
    if (token.op < 256)
        balance(run, lexer, *lexer->at);
    lexer->at += token.op > 255 ? 2 : 1;
    return token;
}
