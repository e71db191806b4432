/* Invalid metadata: refused with a message that names the key, or harmless. */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gguf/support/limits.h"
#include "tests/unit/gguf/model_file.h"
#include "tests/unit/runner/run_vocabularies.h"

#define GPT2   "\"tokenizer.ggml.model\":\"gpt2\",\"tokenizer.ggml.pre\":\"gpt-2\","
#define LLAMA  "\"tokenizer.ggml.model\":\"llama\","
#define TOKENS "\"tokenizer.ggml.tokens\":[\"a\",\"b\",\"ab\"]"

Test(run_tokenizer_hostile, wrong_metadata_are_refused)
{
    static const struct {
        const char *metadata;
        int code;
        const char *message; /* part of the message */
    } list[] = {
        {"{}", -ENOENT, "no tokenizer.ggml.model"},
        {"{\"general.architecture\":\"x\",\"x.vocab_size\":\"256\"}", -ENOENT,
         "no tokenizer.ggml.model"},
        {"{\"tokenizer.ggml.model\":7}", -EINVAL, "tokenizer.ggml.model: not a string"},
        {"{\"tokenizer.ggml.model\":\"\"}", -ENOTSUP, "tokenizer.ggml.model"},
        {"{\"tokenizer.ggml.model\":\"no_vocab\"}", -ENOENT,
         "tokenizer.ggml.model: no_vocab: the model has no vocabulary"},
        {"{\"tokenizer.ggml.model\":\"llama\"}", -ENOENT, "no tokenizer.ggml.tokens"},
        {"{" LLAMA "\"tokenizer.ggml.tokens\":{}}", -EINVAL, "tokenizer.ggml.tokens: not an array"},
        {"{" LLAMA "\"tokenizer.ggml.tokens\":[]}", -EINVAL, "tokenizer.ggml.tokens: no tokens"},
        {"{" LLAMA "\"tokenizer.ggml.tokens\":[\"a\",[\"b\"]]}", -EINVAL,
         "tokenizer.ggml.tokens: element 1"},
        {"{" LLAMA TOKENS ",\"tokenizer.ggml.scores\":[0]}", -EINVAL,
         "tokenizer.ggml.scores: 1 values for 3 tokens"},
        {"{" LLAMA TOKENS ",\"tokenizer.ggml.scores\":[0,true,0]}", -EINVAL,
         "tokenizer.ggml.scores: element 1"},
        {"{" LLAMA TOKENS ",\"tokenizer.ggml.scores\":3}", -EINVAL, "tokenizer.ggml.scores"},
        {"{" LLAMA TOKENS ",\"tokenizer.ggml.token_type\":[1,1]}", -EINVAL,
         "tokenizer.ggml.token_type: 2 values for 3 tokens"},
        {"{" LLAMA TOKENS ",\"tokenizer.ggml.token_type\":[1,\"1\",1]}", -EINVAL,
         "tokenizer.ggml.token_type: element 1"},
        {"{" LLAMA TOKENS ",\"tokenizer.ggml.eos_token_id\":\"2\"}", -EINVAL,
         "tokenizer.ggml.eos_token_id: not a number"},
        {"{" GPT2 TOKENS ",\"tokenizer.ggml.merges\":\"a b\"}", -EINVAL,
         "tokenizer.ggml.merges: not an array"},
        {"{" GPT2 TOKENS ",\"tokenizer.ggml.merges\":[\"a b\",3]}", -EINVAL,
         "tokenizer.ggml.merges: element 1"},
        {"{\"tokenizer.ggml.model\":\"t5\"," TOKENS "}", -ENOTSUP, "t5 is not supported"},
        {"{\"tokenizer.ggml.model\":\"plamo2\"," TOKENS "}", -ENOENT, "tokenizer.ggml.scores"},
    };

    for (size_t i = 0; i < COUNT(list); i++) {
        struct run_failure failure = {0};
        struct run_tokenizer *tokenizer;

        cr_expect_eq(vocabulary_open(list[i].metadata, &tokenizer, &failure), list[i].code,
                     "%s: %s", list[i].metadata, failure.text);
        cr_expect(strstr(failure.text, list[i].message) != NULL, "%s: %s", list[i].metadata,
                  failure.text);
        cr_expect_null(tokenizer);
    }
}

Test(run_tokenizer_hostile, tokens_have_a_limit)
{
    static const char head[] = "{" LLAMA "\"tokenizer.ggml.tokens\":[\"\"", more[] = ",\"\"";
    char *metadata = malloc(sizeof head + (sizeof more - 1) * GGUF_MAX_TOKENS + 2);
    char *end = metadata + sprintf(metadata, "%s", head);
    struct run_failure failure = {0};
    struct run_tokenizer *tokenizer;

    for (uint32_t n = 1; n < GGUF_MAX_TOKENS; n++)
        end += sprintf(end, "%s", more);
    strcpy(end, "]}");
    cr_assert_eq(vocabulary_open(metadata, &tokenizer, &failure), 0, "%s", failure.text);
    cr_expect_eq(tokenizer->vocabulary.n, GGUF_MAX_TOKENS);
    run_tokenizer_close(tokenizer);
    sprintf(end, "%s]}", more);
    cr_expect_eq(vocabulary_open(metadata, &tokenizer, &failure), -E2BIG);
    cr_expect_not_null(strstr(failure.text, "more than 1048575 tokens"), "%s", failure.text);
    free(metadata);
}

/* Encode texts of all lengths. Any ids within the vocabulary are accepted. */
static void use(const char *metadata)
{
    static const char text[] =
        "a b ab abab <0x41> <s> \xc3\xa9 \xff\xc3 [CLS] \xe4\xb8\xad \xe2\x96\x81";
    struct run_tokenizer *tokenizer = vocabulary_accept(metadata);
    struct run_failure failure;
    struct run_ids ids = {0};

    for (size_t length = 0; length <= sizeof text; length++)
        for (unsigned flags = 0; flags < 4; flags++) {
            ids.n = 0;
            cr_assert_eq(run_tokenizer_encode(tokenizer, text, length, flags, &ids, &failure), 0);
            for (size_t i = 0; i < ids.n; i++)
                cr_assert(ids.list[i] >= 0 && (size_t)ids.list[i] < tokenizer->vocabulary.n, "%s",
                          metadata);
        }
    run_ids_free(&ids);
    run_tokenizer_close(tokenizer);
}

Test(run_tokenizer_hostile, odd_metadata_are_harmless)
{
    static const char *const list[] = {
        /* Unknown token types, numbers out of range, too many values. */
        "{" LLAMA TOKENS ",\"tokenizer.ggml.token_type\":[1e300,-5,99,1,1,1],"
        "\"tokenizer.ggml.scores\":[1e300,-1e300,null,0,0,0,0]}",
        "{" LLAMA TOKENS ",\"tokenizer.ggml.bos_token_id\":-1,\"tokenizer.ggml.eos_token_id\":1e99,"
        "\"tokenizer.ggml.unknown_token_id\":3}",
        /* Empty and equal tokens, all special or bytes. */
        "{" LLAMA "\"tokenizer.ggml.tokens\":[\"\",\"\",\"a\",\"a\",\"\"],"
        "\"tokenizer.ggml.token_type\":[3,4,3,4,6]}",
        "{" GPT2 "\"tokenizer.ggml.tokens\":[\"\",\"a\",\"a\",\"aa\",\"aa\"],"
        "\"tokenizer.ggml.token_type\":[6,6,6,6,6],\"tokenizer.ggml.merges\":[\"a a\",\"a a\"]}",
        /* Merges that form a cycle, of empty tokens, without a space. */
        "{" GPT2 TOKENS ",\"tokenizer.ggml.merges\":[\"a b\",\"ab a\",\"b a\",\" \",\"  \",\"a\","
        "\"a \",\" a\",\"\"]}",
        "{" GPT2 "\"tokenizer.ggml.tokens\":[\"\\udcff\",\"\\u0000\",\"\\udcc3\",\"\xc4\"],"
        "\"tokenizer.ggml.merges\":[\"\\udcff \\udcff\"]}",
        "{\"tokenizer.ggml.model\":\"gemma4\",\"tokenizer.ggml.pre\":3,\"tokenizer.ggml.tokens\":"
        "[\"<0x4\",\"<0xZZ>\",\"<0x41>\"],\"tokenizer.ggml.token_type\":[6,6,6]}",
        "{\"tokenizer.ggml.model\":\"bert\"," TOKENS "}",
        "{\"tokenizer.ggml.model\":\"bert\",\"tokenizer.ggml.tokens\":[\"\",\"\xe2\x96\x81\"]}",
        "{\"tokenizer.ggml.model\":\"rwkv\",\"tokenizer.ggml.tokens\":[\"\\\\\",\"\\\\x\","
        "\"\\\\x1\","
        "\"\\\\xzz\",\"\\\\x4\\\\\",\"\"]}",
        "{\"tokenizer.ggml.model\":\"plamo2\",\"tokenizer.ggml.tokens\":[\"a\",\"\\udce4\","
        "\"\\udce4\\udcb8\"],\"tokenizer.ggml.scores\":[-1e38,1e38,1e38]}",
    };

    for (size_t i = 0; i < COUNT(list); i++)
        use(list[i]);
}

Test(run_tokenizer_hostile, long_texts_are_refused)
{
    struct run_tokenizer *tokenizer = vocabulary_accept("{" LLAMA TOKENS "}");
    struct run_failure failure;
    struct run_ids ids = {0};

    cr_expect_eq(run_tokenizer_encode(tokenizer, "a", (size_t)1 << 30, 0, &ids, &failure), -E2BIG);
    cr_expect_eq(ids.n, 0u);
    run_tokenizer_close(tokenizer);
}

/* A quadratic algorithm would exceed the timeout. */
Test(run_tokenizer_hostile, long_words_take_linear_time, .timeout = 120)
{
    static const struct {
        const char *pre, *unit;
    } list[] = {{"gpt-2", "a"},
                {"gpt-2", " "},
                {"jais-2", " "},
                {"deepseek-llm", " "},
                {"afmoe", "1"},
                {"gpt-4o", "\xe4\xb8\xad"
                           "A"},
                {"llama3", " \n"},
                {"superbpe", "1 "},
                {"exaone-moe", "a "},
                {"kimi-k2", "A"},
                {"tiny_aya", "7"},
                {"deepseek-v3", "!"}};
    const size_t n_bytes = (size_t)1 << 20;
    char *text = malloc(n_bytes);

    cr_assert_not_null(text);
    for (size_t i = 0; i < COUNT(list); i++) {
        const size_t length = strlen(list[i].unit);
        char metadata[512];
        struct run_tokenizer *tokenizer;
        struct run_failure failure;
        struct run_ids ids = {0};

        snprintf(metadata, sizeof metadata,
                 "{\"tokenizer.ggml.model\":\"gpt2\",\"tokenizer.ggml.pre\":\"%s\","
                 "\"tokenizer.ggml.tokens\":[\"a\",\"aa\",\"aaaa\",\"1\",\"11\"],"
                 "\"tokenizer.ggml.merges\":[\"a a\",\"aa aa\",\"1 1\"]}",
                 list[i].pre);
        tokenizer = vocabulary_accept(metadata);
        for (size_t at = 0; at < n_bytes; at++)
            text[at] = list[i].unit[at % length];
        text[n_bytes - 1] = '7';
        cr_expect_eq(run_tokenizer_encode(tokenizer, text, n_bytes, 0, &ids, &failure), 0);
        run_ids_free(&ids);
        run_tokenizer_close(tokenizer);
    }
    free(text);
}

/* The time for a byte of text grows with the longest token. */
Test(run_tokenizer_hostile, tokens_longer_than_64_kib_are_refused)
{
    static const char head[] = "{" LLAMA "\"tokenizer.ggml.tokens\":[\"b\",\"";
    static char metadata[70000];
    struct run_failure failure = {0};
    struct run_tokenizer *tokenizer;

    for (size_t length = 65536; length <= 65537; length++) {
        memcpy(metadata, head, sizeof head - 1);
        memset(metadata + sizeof head - 1, 'a', length);
        strcpy(metadata + sizeof head - 1 + length, "\"]}");
        if (length == 65536) {
            run_tokenizer_close(vocabulary_accept(metadata));
            continue;
        }
        cr_expect_eq(vocabulary_open(metadata, &tokenizer, &failure), -E2BIG);
        cr_expect_str_eq(failure.text, "metadata: tokenizer.ggml.tokens: element 1 has 65537 "
                                       "bytes, more than 65536");
    }
}
