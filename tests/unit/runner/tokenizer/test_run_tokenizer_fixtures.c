/* Vocabularies of models from the fixtures, if present: expected ids, and lossless round trips. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "contrib/runner/tokenizer/tokenizer_kinds.h"
#include "tests/unit/gguf/model_file.h"
#include "tests/unit/runner/run_vocabularies.h"

TestSuite(run_tokenizer_fixtures, .init = model_file_begin_test);

#define DIVIDER "\n__ggml_vocab_test__\n"

/*
 * Return the next text of an .inp file, whose texts are separated by dividers. NULL after the last.
 */
static char *next_text(char **rest)
{
    char *text = *rest, *end;

    if (!text)
        return NULL;
    end = strstr(text, DIVIDER);
    if (end)
        *end = '\0';
    *rest = end ? end + strlen(DIVIDER) : NULL;
    return text;
}

/* Remove spaces at both ends. */
static char *trim(char *line)
{
    size_t length;

    line += strspn(line, " ");
    length = strlen(line);
    while (length > 0 && line[length - 1] == ' ')
        line[--length] = '\0';
    return line;
}

static const char *const with_ids[] = {"ggml-vocab-bert-bge.gguf", "ggml-vocab-falcon.gguf",
                                       "ggml-vocab-gpt-2.gguf", "ggml-vocab-llama-spm.gguf",
                                       "ggml-vocab-phi-3.gguf"};

Test(run_tokenizer_fixtures, expected_ids)
{
    for (size_t i = 0; i < COUNT(with_ids); i++) {
        struct run_tokenizer *tokenizer = vocabulary_fixture(with_ids[i]);
        char name[64], *texts, *lines, *text, *line, *rest, *rest_of_lines = NULL;
        size_t length, n = 0;

        if (!tokenizer)
            continue;
        snprintf(name, sizeof name, "%s.inp", with_ids[i]);
        texts = vocabulary_fixture_file(name, &length);
        snprintf(name, sizeof name, "%s.out", with_ids[i]);
        lines = vocabulary_fixture_file(name, &length);
        cr_assert(texts && lines, "%s", name);
        rest = texts;
        rest_of_lines = lines;
        while ((text = next_text(&rest))) {
            line = strsep(&rest_of_lines, "\n");
            cr_assert_not_null(line);
            vocabulary_expect_ids(tokenizer, text, strlen(text), 0, trim(line));
            n++;
        }
        cr_expect_gt(n, (size_t)40);
        free(texts);
        free(lines);
        run_tokenizer_close(tokenizer);
    }
}

static const char *const lossless[] = {
    "ggml-vocab-baichuan.gguf",     "ggml-vocab-deepseek-coder.gguf",
    "ggml-vocab-deepseek-llm.gguf", "ggml-vocab-falcon.gguf",
    "ggml-vocab-gpt-2.gguf",        "ggml-vocab-gpt-neox.gguf",
    "ggml-vocab-llama-spm.gguf",    "ggml-vocab-mpt.gguf",
    "ggml-vocab-phi-3.gguf",        "ggml-vocab-refact.gguf",
    "ggml-vocab-starcoder.gguf"};

/* All tokenizers but WordPiece, which drops spaces and case, are lossless. */
Test(run_tokenizer_fixtures, texts_round_trip)
{
    for (size_t i = 0; i < COUNT(lossless); i++) {
        struct run_tokenizer *tokenizer = vocabulary_fixture(lossless[i]);
        size_t length;

        for (size_t j = 0; tokenizer && j < COUNT(with_ids); j++) {
            char name[64], *texts, *rest, *text;

            snprintf(name, sizeof name, "%s.inp", with_ids[j]);
            texts = rest = vocabulary_fixture_file(name, &length);
            cr_assert_not_null(texts, "%s", name);
            while ((text = next_text(&rest)))
                cr_expect(vocabulary_is_kept(tokenizer, text, strlen(text)), "%s: \"%s\"",
                          lossless[i], text);
            free(texts);
        }
        run_tokenizer_close(tokenizer);
    }
}

/*
 * Find the bytes that round-trip alone. Some vocabularies lack control characters or bytes that
 * UTF-8 never uses.
 */
static void find_bytes(const struct run_tokenizer *tokenizer, bool has_token[256])
{
    for (unsigned byte = 0; byte < 256; byte++) {
        const char text = (char)byte;

        has_token[byte] = vocabulary_is_kept(tokenizer, &text, 1);
    }
}

/* Random bytes round-trip too. */
Test(run_tokenizer_fixtures, random_bytes_round_trip)
{
    uint64_t state = 11;

    for (size_t i = 0; i < COUNT(lossless); i++) {
        struct run_tokenizer *tokenizer = vocabulary_fixture(lossless[i]);
        bool has_token[256];

        if (!tokenizer)
            continue;
        find_bytes(tokenizer, has_token);
        for (size_t j = 0; j < 1000; j++) {
            static const char some[] = "\xe2\x96\x81 a\xc3\xf0\x9f\n";
            char bytes[64];
            const size_t length = model_file_random(&state) % sizeof bytes;

            for (size_t k = 0; k < length; k++) {
                const uint64_t random = model_file_random(&state) >> 8;

                bytes[k] = (char)(j % 4 == 0 ? some[random % (sizeof some - 1)] : (int)random);
                if (!has_token[(unsigned char)bytes[k]])
                    bytes[k] = ' ';
            }
            /* SentencePiece decodes U+2581 to a space. */
            if (tokenizer->is_space_added && memmem(bytes, length, "\xe2\x96\x81", 3))
                continue;
            cr_expect(vocabulary_is_kept(tokenizer, bytes, length), "%s: text %zu", lossless[i], j);
        }
        run_tokenizer_close(tokenizer);
    }
}

Test(run_tokenizer_fixtures, special_tokens)
{
    struct run_tokenizer *tokenizer = vocabulary_fixture("ggml-vocab-phi-3.gguf");
    static const char chat[] = "<|user|>\nHi<|end|>\n<|assistant|>";
    const struct gguf_special_ids *special;
    int32_t end;

    if (!tokenizer)
        return;
    special = &tokenizer->special;
    end = run_vocabulary_find(&tokenizer->vocabulary, "<|end|>", strlen("<|end|>"));
    cr_expect_eq(special->bos, 1);
    cr_expect_eq(special->eos, 32000);
    cr_expect_eq(special->eot, end);
    cr_expect(special->is_bos_added);
    cr_expect_not(special->is_eos_added);
    cr_expect(run_tokenizer_is_end(tokenizer, end));
    cr_expect(run_tokenizer_is_end(tokenizer, 32000));
    cr_expect_not(run_tokenizer_is_end(tokenizer, 1));
    /* These special tokens absorb the white space after them. */
    vocabulary_expect_ids(tokenizer, chat, strlen(chat), RUN_ENCODE_SPECIAL | RUN_ENCODE_BOS_EOS,
                          "1 32010 6324 32007 32001");
    run_tokenizer_close(tokenizer);
}
