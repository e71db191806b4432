/* Splits a template into tokens as jinja2 does with trim_blocks and lstrip_blocks. */
#include "gguf/jinja/jinja_syntax.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unictype.h>
#include <unistr.h>

struct lexer jinja_lexer(struct run *r, const char *source, size_t n_bytes)
{
    const uint8_t *bad = n_bytes ? u8_check((const uint8_t *)source, n_bytes) : NULL;
    char *copy = jinja_alloc(r, n_bytes + 1), *out = copy;

    r->line = 1;
    for (size_t i = 0; i < n_bytes; i++) {
        if (bad == (const uint8_t *)source + i)
            jinja_fail(r, "the template is not UTF-8: byte %zu", i);
        if (source[i] == '\n' && i > 0 && source[i - 1] == '\r')
            continue;
        *out++ = source[i] == '\r' ? '\n' : source[i];
        r->line += out[-1] == '\n';
    }
    if (out > copy && out[-1] == '\n')
        *--out = '\0';
    r->line = 1;
    return (struct lexer){.at = copy, .end = out, .line = 1, .is_line_start = true};
}

/* ---- text ---- */

static bool starts(const char *at, const char *word)
{
    return strncmp(at, word, strlen(word)) == 0;
}

static bool is_one_of(char character, const char *characters)
{
    return character && strchr(characters, character);
}

/* Skip white space, or a name of a variable. */
static const char *skip_class(const char *at, bool is_name)
{
    ucs4_t c;

    for (int n, i = 0; (n = u8_strmbtouc(&c, (const uint8_t *)at)) > 0; at += n, i++)
        if (is_name
                ? c != '_' && !(i ? uc_is_property_xid_continue(c) : uc_is_property_xid_start(c))
                : !jinja_is_space(c))
            break;
    return at;
}

/* Move on, counting lines. */
static void advance(struct lexer *lexer, const char *to)
{
    for (const char *at = lexer->at; at < to; at++)
        lexer->line += *at == '\n';
    lexer->is_line_start = to > lexer->at && to[-1] == '\n';
    lexer->at = to;
}

/* Return the end of a closing tag at `at` with the white space that it removes, or NULL. */
static const char *match_end(const char *at, const char *tag)
{
    const bool trims = *tag != '}';

    if (*at == '-' && starts(at + 1, tag))
        return skip_class(at + 3, false);
    if (trims && *at == '+' && starts(at + 1, tag))
        return at + 3;
    if (!starts(at, tag))
        return NULL;
    return at + 2 + (trims && starts(at + 2, "\n"));
}

/* Return the end of a tag {% raw %} or {% endraw %} at `at`, or NULL. */
static const char *match_raw(const char *at, const char *name)
{
    const bool is_end = name[0] == 'e';

    if (!starts(at, "{%"))
        return NULL;
    at = skip_class(at + 2 + is_one_of(at[2], "-+"), false);
    if (!starts(at, name))
        return NULL;
    at = skip_class(at + strlen(name), false);
    if (!*at || (!is_end && *at == '+'))
        return NULL;
    return !is_end && starts(at, "%}") ? at + 2 : match_end(at, "%}");
}

/* Return the text up to the tag at `tag`, without the white space that the tag removes. */
static struct token text_before(struct run *r, const struct lexer *lexer, const char *tag)
{
    struct text *text = jinja_text(r, lexer->at, (size_t)(tag - lexer->at));
    const char sign = lexer->end - tag > 2 ? tag[2] : 0;

    if (sign == '-') {
        text = jinja_strip(r, text, NULL, JINJA_RIGHT);
    } else if (sign != '+' && tag < lexer->end && !starts(tag, "{{")) {
        const char *newline = memrchr(lexer->at, '\n', text->n);
        const char *line = newline ? newline + 1 : lexer->at;

        if ((newline || lexer->is_line_start) && skip_class(line, false) >= tag)
            text->n = (size_t)(line - lexer->at);
    }
    return (struct token){.type = TOKEN_DATA, .line = lexer->line, .value = jinja_string(text)};
}

static const char *find_tag(const struct lexer *lexer, const char *at, const char *second)
{
    while ((at = memchr(at, '{', (size_t)(lexer->end - at))) && !is_one_of(at[1], second))
        at++;
    return at;
}

/* Return the text of {% raw %}, whose tag ends at `at`. */
static struct token lex_raw(struct run *r, struct lexer *lexer, const char *at)
{
    const char *end = NULL;
    struct token token;

    advance(lexer, at);
    for (; (at = find_tag(lexer, at, "%")) && !(end = match_raw(at, "endraw")); at++)
        continue;
    if (!end)
        jinja_fail(r, "Missing end of raw directive");
    token = text_before(r, lexer, at);
    advance(lexer, end);
    return token;
}

static void skip_comment(struct run *r, struct lexer *lexer)
{
    const char *start = lexer->at + 2 + is_one_of(lexer->at[2], "-+"),
               *end = memmem(start, (size_t)(lexer->end - start), "#}", 2);

    if (end) {
        if (end > start && is_one_of(end[-1], "-+")) /* a sign that belongs to the end */
            end--;
        advance(lexer, match_end(end, "#}"));
        return;
    }
    jinja_fail(r, "Missing end of comment tag");
}

/* Return the text up to the next tag, which may be empty, or the beginning of a tag. */
static struct token lex_text(struct run *r, struct lexer *lexer)
{
    const char *tag = lexer->at, *end;
    struct token token = {.line = lexer->line};

    if (lexer->state == LEXER_TEXT) {
        tag = find_tag(lexer, tag, "{%#");
        token = text_before(r, lexer, tag ? tag : lexer->end);
        if (!tag && lexer->at == lexer->end)
            token.type = TOKEN_END;
        advance(lexer, tag ? tag : lexer->end);
        lexer->state = tag ? LEXER_TAG : LEXER_TEXT;
        return token;
    }
    lexer->state = LEXER_TEXT;
    if (starts(tag, "{#")) {
        skip_comment(r, lexer);
        return lex_text(r, lexer);
    }
    if ((end = match_raw(tag, "raw")))
        return lex_raw(r, lexer, end);
    lexer->state = tag[1] == '%' ? LEXER_BLOCK : LEXER_PRINT;
    token.type = tag[1] == '%' ? TOKEN_BLOCK_BEGIN : TOKEN_PRINT_BEGIN;
    advance(lexer, tag + 2 + is_one_of(tag[2], "-+"));
    return token;
}

/* ---- tokens in tags ---- */

static struct value lex_number(struct run *r, struct lexer *lexer)
{
    const char *start = lexer->at, *end = start;
    char *float_end;
    double number;
    int64_t integer;

    while (is_one_of(*end, "0123456789"))
        end++;
    if ((*start == '0' && end > start + 1) || is_one_of(*end, "_xXoObB"))
        jinja_fail(
            r, "a number that is not decimal, or with '_' or a 0 before it," JINJA_NOT_IMPLEMENTED);
    number = strtod(start, &float_end);
    lexer->at = end;
    /* Digits follow a point; after one ("a.1.5") are integers. */
    if (start[-1] != '.' && float_end > end && !(*end == '.' && !is_one_of(end[1], "0123456789"))) {
        lexer->at = float_end;
        if (is_one_of(*float_end, "_"))
            jinja_fail(r, "a number with '_'" JINJA_NOT_IMPLEMENTED);
        return jinja_float(number);
    }
    errno = 0;
    integer = strtoll(start, NULL, 10);
    if (errno == ERANGE)
        jinja_fail(r, "the integer %.*s does not fit in 64 bits",
                   end - start > 40 ? 40 : (int)(end - start), start);
    return jinja_int(integer);
}

/* Read at most n digits; returns their end. */
static const char *read_code(const char *at, int n, int base, uint32_t *code)
{
    char digits[9] = "", *end;

    for (int i = 0; i < n && is_one_of(at[i], "0123456789abcdefABCDEF"); i++)
        digits[i] = at[i];
    *code = (uint32_t)strtoul(digits, &end, base);
    return at + (end - digits);
}

/* Add the character of an escape after the backslash at `at`; returns its end. */
static const char *unescape(struct run *r, struct text *text, const char *at)
{
    static const char letters[] = "\\'\"abfnrtv", meanings[] = "\\'\"\a\b\f\n\r\t\v";
    const char *letter = is_one_of(*at, letters) ? strchr(letters, *at) : NULL, *end;
    const int n_digits = *at == 'x' ? 2 : *at == 'u' ? 4 : *at == 'U' ? 8 : 0;
    uint32_t code;

    if (*at == '\n')
        return at + 1;
    if (letter) {
        jinja_add(r, text, &meanings[letter - letters], 1);
        return at + 1;
    }
    if (*at == 'N')
        jinja_fail(r, "the escape \\N{…} is not supported; use --chat-template NAME");
    end = n_digits ? read_code(at + 1, n_digits, 16, &code) : read_code(at, 3, 8, &code);
    if (n_digits && (end < at + 1 + n_digits || code > 0x10ffff))
        jinja_fail(r, "wrong escape \\%c in a string", *at);
    if (end > at)
        jinja_add_char(r, text, code, 0);
    else
        jinja_add_string(r, text, "\\");
    return end;
}

static struct value lex_string(struct run *r, struct lexer *lexer)
{
    const char quote = *lexer->at, *at = lexer->at + 1;
    struct text *text = jinja_text(r, "", 0);

    for (;; at = unescape(r, text, at + 1)) {
        const char *from = at;

        while (at < lexer->end && *at != quote && *at != '\\')
            at++;
        jinja_add(r, text, from, (size_t)(at - from));
        if (at + 1 >= lexer->end && (at == lexer->end || *at != quote))
            jinja_fail(r, "a string has no closing %c", quote);
        if (*at == quote)
            break;
    }
    advance(lexer, at + 1);
    return jinja_string(text);
}

static void balance(struct run *r, struct lexer *lexer, char bracket)
{
    static const char open[] = "([{", close[] = ")]}";
    const char *opened = strchr(open, bracket);

    if (opened && lexer->n_open == JINJA_MAX_PARSE_DEPTH)
        jinja_fail(r, "brackets nest deeper than %u levels", JINJA_MAX_PARSE_DEPTH);
    if (opened)
        lexer->closers[lexer->n_open++] = close[opened - open];
    else if (strchr(close, bracket) &&
             (lexer->n_open == 0 || lexer->closers[--lexer->n_open] != bracket))
        jinja_fail(r, "unexpected '%c'", bracket);
}

/* Return the length of the operator at the current place. */
static size_t match_operator(struct run *r, struct lexer *lexer)
{
    static const char *const pairs[] = {"//", "**", "==", "!=", ">=", "<="};

    for (size_t i = 0; i < JINJA_COUNT(pairs); i++)
        if (starts(lexer->at, pairs[i]))
            return 2;
    if (!is_one_of(*lexer->at, "+-*/%~()[]{}<>=.,:|;"))
        jinja_fail(r, "unexpected character U+%04X", (unsigned)(unsigned char)*lexer->at);
    balance(r, lexer, *lexer->at);
    return 1;
}

struct token jinja_lex(struct run *r, struct lexer *lexer)
{
    const bool is_block = lexer->state == LEXER_BLOCK;
    struct token token;
    const char *end;

    r->line = lexer->line;
    if (lexer->state < LEXER_PRINT)
        return lex_text(r, lexer);
    /* The end of a tag removes white space after it, but before it white space means nothing. */
    advance(lexer, skip_class(lexer->at, false));
    r->line = lexer->line;
    token = (struct token){.line = lexer->line, .bytes = lexer->at};
    if (lexer->at == lexer->end)
        return token;
    end = lexer->n_open ? NULL : match_end(lexer->at, is_block ? "%}" : "}}");
    if (end) {
        token.type = is_block ? TOKEN_BLOCK_END : TOKEN_PRINT_END;
        lexer->state = LEXER_TEXT;
        advance(lexer, end);
    } else if (is_one_of(*lexer->at, "0123456789")) {
        token.type = TOKEN_NUMBER;
        token.value = lex_number(r, lexer);
    } else if (is_one_of(*lexer->at, "\"'")) {
        token.type = TOKEN_STRING;
        token.value = lex_string(r, lexer);
    } else {
        end = skip_class(lexer->at, true);
        token.type = end > lexer->at ? TOKEN_NAME : TOKEN_OPERATOR;
        token.n = end > lexer->at ? (size_t)(end - lexer->at) : match_operator(r, lexer);
        lexer->at += token.n;
    }
    return token;
}
