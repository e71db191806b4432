/* Where pre-tokenizers cut. What they make of these was compared with the regular expressions of
 * the models' tokenizer.json, in the library that these are for. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "contrib/runner/tokenizer/pretokenizers.h"
#include "tests/unit/gguf/model_file.h"

struct cut {
    char text[512]; /* with a bar behind each word */
    size_t n;
};

static int take(void *context, const char *word, size_t length)
{
    struct cut *cut = context;

    cr_assert_gt(length, 0u);
    cr_assert_lt(cut->n + length + 2, sizeof cut->text);
    memcpy(cut->text + cut->n, word, length);
    cut->n += length;
    cut->text[cut->n++] = '|';
    cut->text[cut->n] = '\0';
    return 0;
}

Test(run_tokenizer_words, texts_are_cut_where_the_patterns_say)
{
    static const struct {
        const char *name, *text, *words;
    } list[] = {
        {"gpt-2", "I'm it'LL 12ab  c", "I|'m| it|'|LL| 12|ab| | c|"},
        {"gpt-2", "a?! b\n\n c ", "a|?!| b|\n\n| c| |"},
        {"gpt-2", "", ""},
        {"gpt-2", "a   ", "a|   |"},
        {"gpt-2", "\xe2\x80\xa8\xe2\x80\xa8x", "\xe2\x80\xa8|\xe2\x80\xa8|x|"},
        {"starcoder", "a 12", "a| |1|2|"},
        {"default", "a$1234", "a|$|123|4|"},
        {"falcon", "a`1234", "a|`|123|4|"},
        {"llama-bpe", "I'M (ok)1234\r\n\n x  y", "I|'M| (|ok|)|123|4|\r\n\n| x| | y|"},
        {"llama-bpe", "a !\n\nb \n c", "a| !\n\n|b| \n| c|"},
        {"llama-bpe", "\tif x:\n\t\treturn", "\tif| x|:\n|\t|\treturn|"},
        {"qwen2", "12 a", "1|2| a|"},
        {"qwen35", "\xe0\xa4\xa8\xe0\xa4\xbe x", "\xe0\xa4\xa8\xe0\xa4\xbe| x|"},
        {"qwen2", "\xe0\xa4\xa8\xe0\xa4\xbe x", "\xe0\xa4\xa8|\xe0\xa4\xbe| x|"},
        {"jais-2", "a       b", "a|    |  | b|"},
        {"jais-2", "        ", "        |"},
        {"seed-coder", "a!\n", "a|!|\n|"},
        {"minicpm5", "a12345", "a|123|45|"},
        {"gpt-4o", "HelloWorld's XMLHttp/\n", "Hello|World's| XMLHttp|/\n|"},
        {"gpt-4o",
         "\xe4\xb8\xad"
         "A \xe0\xa4\xa8\xe0\xa4\xbe",
         "\xe4\xb8\xad|A| \xe0\xa4\xa8\xe0\xa4\xbe|"},
        {"gpt-4o",
         "\xcc\x81"
         "AB",
         "\xcc\x81|AB|"},
        {"tekken", "It's 12", "It|'s| |1|2|"},
        {"kimi-k2",
         "\xe4\xb8\xad\xe6\x96\x87"
         "ab\xe4\xb8\xad 1234",
         "\xe4\xb8\xad\xe6\x96\x87|ab|\xe4\xb8\xad| |123|4|"},
        {"deepseek-v3", "a.b ~$1234\xe4\xb8\xad!", "a|.b| ~$|123|4|\xe4\xb8\xad|!|"},
        {"deepseek-llm", "a 12\xe3\x80\x80x  \n", "a| |12|\xe3\x80\x80|x|  |\n|"},
        {"deepseek-coder", "a, b12\n", "a|,| b|1|2|\n|"},
        {"afmoe", "1234567 a", "1|234|567| a|"},
        {"superbpe", "a b1234 c", "a b|1|234| c|"},
        {"tiny_aya", "1234567 1234x", "1|234|567| |123|4|x|"},
        {"exaone-moe", "the red fox  12!/\n", "the red fox| | |1|2|!/\n|"},
        {"bloom", "a b(c, d", "a| b|(|c|,| d|"},
        {"viking", "a 12.", "a| |1|2|.|"},
        {"laguna", "a\n\nb", "a|\n\n|b|"},
        {"gemma4", "a b\n\n c", "a b|\n\n| c|"},
        {"chameleon", "IMGIMGABZ<sentinel:1>\t    x?!",
         "IMGIMGABZ|<|sentinel|:|1|>|\t|    |x|?|!|"},
        {"youtu",
         "\xea\xb0\x80\xe3\x80\x81\xe3\x84\x85\xe4\xb8\xad"
         "Ab",
         "\xea\xb0\x80|\xe3\x80\x81|\xe3\x84\x85|\xe4\xb8\xad|Ab|"},
        /* What is no UTF-8 is cut as U+FFFD is. */
        {"gpt-2", "a\xff\xc3 b", "a|\xff\xc3| b|"},
    };

    for (size_t i = 0; i < COUNT(list); i++) {
        const struct run_pretokenizer *pretokenizer = run_pretokenizer_find(list[i].name);
        struct cut cut = {{0}, 0};

        cr_assert_not_null(pretokenizer, "%s", list[i].name);
        cr_assert_eq(run_pretokenize(pretokenizer, list[i].text, strlen(list[i].text), take, &cut),
                     0);
        cr_expect_str_eq(cut.text, list[i].words, "%s: \"%s\" is \"%s\", not \"%s\"", list[i].name,
                         list[i].text, cut.text, list[i].words);
    }
}

static int add_length(void *context, const char *word, size_t length)
{
    const char **at = context;

    cr_assert_eq(word, *at);
    *at += length;
    return 0;
}

static int refuse(void *context, const char *word, size_t length)
{
    (void)context;
    (void)word;
    (void)length;
    return -7;
}

/* Each name, and any bytes: the words are the text. */
Test(run_tokenizer_words, words_together_are_the_text)
{
    static const char some[] =
        "aZ09 \t\n\r'sl!.$<~/\xc3\xa9\xe4\xb8\xad\xcc\x81\xf0\x9f\x98\x80\xe2\x80\xa8";
    const char *name;
    uint64_t state = 3;

    for (size_t i = 0; (name = run_pretokenizer_name(i)); i++) {
        const struct run_pretokenizer *pretokenizer = run_pretokenizer_find(name);

        cr_assert_not_null(pretokenizer);
        for (size_t j = 0; j < 200; j++) {
            char text[100];
            const size_t length = model_file_random(&state) % sizeof text;
            const char *at = text;

            for (size_t k = 0; k < length; k++) {
                const uint64_t random = model_file_random(&state) >> 8;

                text[k] = (char)(j % 2 ? some[random % (sizeof some - 1)] : (int)random);
            }
            cr_assert_eq(run_pretokenize(pretokenizer, text, length, add_length, &at), 0);
            cr_expect_eq(at, text + length, "%s", name);
        }
        cr_expect_eq(run_pretokenize(pretokenizer, "a", 1, refuse, NULL), -7);
    }
    cr_expect_null(run_pretokenizer_find("tomorrow's"));
}
