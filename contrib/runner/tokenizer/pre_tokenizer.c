#include "contrib/runner/tokenizer/pre_tokenizer.h"

#include "contrib/runner/tokenizer/characters.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

int run_pre_tokenizer_open(const struct gguf_pretokenizer *pretokenizer,
                           struct run_pre_tokenizer *splitter)
{
    for (size_t i = 0; i < GGUF_MAX_PATTERNS && pretokenizer->patterns[i]; i++) {
        int error;
        size_t offset;

        splitter->patterns[i] =
            pcre2_compile((PCRE2_SPTR)pretokenizer->patterns[i], PCRE2_ZERO_TERMINATED,
                          PCRE2_UTF | PCRE2_UCP, &error, &offset, NULL);
        /* The patterns are valid. */
        assert(splitter->patterns[i] || error == PCRE2_ERROR_HEAP_FAILED);
        if (!splitter->patterns[i])
            return -ENOMEM;
        (void)pcre2_jit_compile(splitter->patterns[i], PCRE2_JIT_COMPLETE);
    }
    return 0;
}

void run_pre_tokenizer_close(struct run_pre_tokenizer *splitter)
{
    for (size_t i = 0; i < GGUF_MAX_PATTERNS; i++)
        pcre2_code_free(splitter->patterns[i]);
}

/* ---- the text that the patterns see: valid UTF-8 with characters that PCRE2 knows ---- */

/* Return the place of the first character at or after `at` that must be replaced, or `length`. */
static size_t find_unseen(const char *text, size_t length, size_t at)
{
    while (at < length) {
        uint64_t eight;
        struct run_character character;

        if (length - at >= sizeof eight) {
            memcpy(&eight, text + at, sizeof eight);
            if ((eight & 0x8080808080808080u) == 0) { /* ASCII */
                at += sizeof eight;
                continue;
            }
        }
        character = run_character_decode(text, length, at);
        if ((character.code == RUN_REPLACEMENT && character.n_bytes == 1) ||
            run_character_stand_in(character.code) != character.code)
            break;
        at += character.n_bytes;
    }
    return at;
}

/* Append the text with U+FFFD and stand-ins to `seen`; append nothing if it needs no change. */
static int replace_unseen(const char *text, size_t length, struct gguf_buffer *seen)
{
    size_t at = 0, next = find_unseen(text, length, 0);
    int code = 0;

    while (code == 0 && next < length) {
        const struct run_character character = run_character_decode(text, length, next);

        code = gguf_buffer_add(seen, text + at, next - at);
        if (code == 0)
            code = run_character_add(seen, run_character_stand_in(character.code));
        at = next + character.n_bytes;
        next = find_unseen(text, length, at);
    }
    return code == 0 && seen->length > 0 ? gguf_buffer_add(seen, text + at, length - at) : code;
}

/* ---- splitting ---- */

struct splitting {
    const struct run_pre_tokenizer *splitter;
    pcre2_match_data *match;
    const char *seen; /* valid UTF-8; points to `text` if nothing had to be replaced */
    const char *text;
    size_t length, at; /* bytes of `text`, and how many were passed on */
    run_word_taker *take;
    void *context;
};

/* Pass on the part of the original text that `seen` stands for. */
static int take_word(struct splitting *splitting, const char *seen, size_t n_bytes)
{
    const char *word = splitting->text + splitting->at, *end = word + n_bytes;

    /* A word differs from the original only if it has replaced bytes. */
    if (splitting->seen != splitting->text &&
        (n_bytes > splitting->length - splitting->at || memcmp(word, seen, n_bytes) != 0)) {
        size_t at = splitting->at;

        for (size_t i = 0; i < n_bytes; i += run_character_decode(seen, n_bytes, i).n_bytes)
            at += run_character_decode(splitting->text, splitting->length, at).n_bytes;
        end = splitting->text + at;
    }
    splitting->at = (size_t)(end - splitting->text);
    return splitting->take(splitting->context, word, (size_t)(end - word));
}

/*
 * Split a piece of the text with the patterns from `index` on. The recursion is at most as deep as
 * the number of patterns.
 */
/* NOLINTNEXTLINE(misc-no-recursion) */
static int split(struct splitting *splitting, size_t index, const char *piece, size_t length)
{
    const size_t *offsets = pcre2_get_ovector_pointer(splitting->match);
    size_t at = 0;
    int code = 0;

    if (length == 0)
        return 0;
    if (index == GGUF_MAX_PATTERNS || !splitting->splitter->patterns[index])
        return take_word(splitting, piece, length);
    while (code == 0 && at < length) {
        const int found = pcre2_match(splitting->splitter->patterns[index], (PCRE2_SPTR)piece,
                                      length, at, PCRE2_NO_UTF_CHECK, splitting->match, NULL);
        const size_t start = found > 0 ? offsets[0] : length;
        const size_t end = found > 0 ? offsets[1] : length;

        if (found == PCRE2_ERROR_NOMEMORY || found == PCRE2_ERROR_HEAPLIMIT)
            return -ENOMEM;
        if (found < 0 && found != PCRE2_ERROR_NOMATCH)
            return -EOVERFLOW;
        assert(found < 0 || end > start); /* no pattern matches an empty text */
        code = split(splitting, index + 1, piece + at, start - at);
        if (code == 0)
            code = split(splitting, index + 1, piece + start, end - start);
        at = end;
    }
    return code;
}

int run_pre_tokenizer_split(const struct run_pre_tokenizer *splitter, const char *text,
                            size_t length, run_word_taker *take, void *context)
{
    struct splitting splitting = {.splitter = splitter,
                                  .match = pcre2_match_data_create(1, NULL),
                                  .text = text,
                                  .length = length,
                                  .take = take,
                                  .context = context};
    struct gguf_buffer seen = {0};
    int code = splitting.match ? replace_unseen(text, length, &seen) : -ENOMEM;

    splitting.seen = seen.length > 0 ? seen.bytes : text;
    if (code == 0)
        code = split(&splitting, 0, splitting.seen, seen.length > 0 ? seen.length : length);
    free(seen.bytes);
    pcre2_match_data_free(splitting.match);
    return code;
}
