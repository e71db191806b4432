/* Showing tokens: pieces are joined to whole UTF-8 characters. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/gguf/model_file.h"
#include "tests/unit/runner/run_vocabularies.h"

static void expect(const struct gguf_buffer *out, const char *what, const char *shown)
{
    const char *bytes = out->length > 0 ? out->bytes : ""; /* NULL if nothing was put */

    cr_expect(out->length == strlen(shown) && memcmp(bytes, shown, out->length) == 0,
              "%s is shown as \"%.*s\"", what, (int)out->length, bytes);
}

static void expect_put(struct run_utf8_stream *stream, const char *piece, const char *shown)
{
    struct gguf_buffer out = {0};

    cr_assert_eq(run_utf8_put(stream, piece, strlen(piece), &out), 0);
    expect(&out, piece, shown);
    gguf_buffer_free(&out);
}

static void expect_end(struct run_utf8_stream *stream, const char *shown)
{
    struct gguf_buffer out = {0};

    cr_assert_eq(run_utf8_end(stream, &out), 0);
    expect(&out, "the end", shown);
    gguf_buffer_free(&out);
}

#define NONE "\xef\xbf\xbd" /* U+FFFD */

Test(run_tokenizer_stream, characters_are_whole)
{
    struct run_utf8_stream stream = {0};

    expect_put(&stream, "", "");
    expect_put(&stream, "a\xc3", "a");
    expect_put(&stream,
               "\xa9"
               "b",
               "\xc3\xa9"
               "b");
    expect_put(&stream, "\xf0", "");
    expect_put(&stream, "\x9f\x98", "");
    expect_put(&stream, "\x80!", "\xf0\x9f\x98\x80!");
    expect_end(&stream, "");
    expect_put(&stream, "\xe4\xb8", "");
    expect_end(&stream, NONE);
    expect_put(&stream, "\xe4", "");
    /* Bytes kept from the previous text are dropped. */
    stream = (struct run_utf8_stream){0};
    expect_put(&stream, "x", "x");
}

/* Examples of Unicode, chapter 3.9, tables 3-8 to 3-11. */
Test(run_tokenizer_stream, invalid_utf8_is_replaced)
{
    static const struct {
        const char *bytes, *shown;
    } list[] = {
        {"\xc0\xaf\xe0\x80\xbf\xf0\x81\x82"
         "A",
         NONE NONE NONE NONE NONE NONE NONE NONE "A"},
        {"\xed\xa0\x80\xed\xbf\xbf\xed\xaf"
         "A",
         NONE NONE NONE NONE NONE NONE NONE NONE "A"},
        {"\xf4\x91\x92\x93\xff"
         "A\x80\xbf"
         "B",
         NONE NONE NONE NONE NONE "A" NONE NONE "B"},
        {"\xe1\x80\xe2\xf0\x91\x92\xf1\xbf"
         "A",
         NONE NONE NONE NONE "A"},
    };

    for (size_t i = 0; i < COUNT(list); i++) {
        struct run_utf8_stream whole = {0}, single = {0};
        struct gguf_buffer out = {0};

        expect_put(&whole, list[i].bytes, list[i].shown);
        for (const char *at = list[i].bytes; *at != '\0'; at++)
            cr_assert_eq(run_utf8_put(&single, at, 1, &out), 0);
        expect(&out, list[i].bytes, list[i].shown);
        gguf_buffer_free(&out);
    }
}

static void expect_show(const struct run_tokenizer *tokenizer, struct run_utf8_stream *stream,
                        int32_t id, bool is_control_shown, const char *shown)
{
    struct gguf_buffer out = {0};
    char what[32];

    snprintf(what, sizeof what, "id %d", id);
    cr_assert_eq(run_tokenizer_show(tokenizer, id, is_control_shown, stream, &out), 0);
    expect(&out, what, shown);
    gguf_buffer_free(&out);
}

Test(run_tokenizer_stream, the_added_space_is_not_shown)
{
    struct run_tokenizer *tokenizer = vocabulary_accept(
        "{\"tokenizer.ggml.model\":\"llama\",\"tokenizer.ggml.tokens\":[\"<unk>\",\"<s>\",\"</s>\","
        "\"▁a\",\"<0xC3>\",\"<0xA9>\",\"▁\"],\"tokenizer.ggml.token_type\":[2,3,3,1,6,6,1]}");
    struct run_utf8_stream stream = {0};

    expect_show(tokenizer, &stream, 1, false, "");
    expect_show(tokenizer, &stream, 3, false, "a");
    expect_show(tokenizer, &stream, 3, false, " a");
    expect_show(tokenizer, &stream, 4, false, "");
    expect_show(tokenizer, &stream, 5, false, "\xc3\xa9");
    expect_show(tokenizer, &stream, 2, true, "</s>");
    expect_show(tokenizer, &stream, 99, true, "");
    /* If the first token is a lone space, it is the added one. */
    stream = (struct run_utf8_stream){0};
    expect_show(tokenizer, &stream, 6, false, "");
    expect_show(tokenizer, &stream, 3, false, " a");
    /* If text was shown before, no space was added. */
    stream = (struct run_utf8_stream){.has_begun = true};
    expect_show(tokenizer, &stream, 3, false, " a");
    run_tokenizer_close(tokenizer);
}
