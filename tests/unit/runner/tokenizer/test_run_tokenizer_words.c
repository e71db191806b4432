/*
 * Word boundaries of the pre-tokenizers. The expected words were compared with the output of
 * Hugging Face's tokenizers library for the models' tokenizer.json.
 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "contrib/runner/tokenizer/pre_tokenizer.h"
#include "gguf/support/confine.h"
#include "tests/unit/gguf/model_file.h"

/* The words, each followed by a bar. */
struct words {
    char text[512];
    size_t n;
};

static int take(void *context, const char *word, size_t length)
{
    struct words *words = context;

    cr_assert_gt(length, 0u);
    cr_assert_lt(words->n + length + 2, sizeof words->text);
    memcpy(words->text + words->n, word, length);
    words->n += length;
    words->text[words->n++] = '|';
    words->text[words->n] = '\0';
    return 0;
}

static struct run_pre_tokenizer open_splitter(const struct gguf_pretokenizer *pretokenizer)
{
    struct run_pre_tokenizer splitter = {0};

    cr_assert_not_null(pretokenizer);
    cr_assert_eq(run_pre_tokenizer_open(pretokenizer, &splitter), 0);
    return splitter;
}

Test(run_tokenizer_words, expected_words)
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
        /* Bytes that are not UTF-8 are split like U+FFFD. */
        {"gpt-2", "a\xff\xc3 b", "a|\xff\xc3| b|"},
        {"deepseek-v3",
         "\xff"
         "ab\xc3",
         "\xff|ab|\xc3|"},
        /*
         * Characters newer than the library's Unicode: U+1FAE8 is a symbol, U+31350 an ideograph.
         */
        {"deepseek-v3",
         "\xf0\x9f\xab\xa8"
         "ab",
         "\xf0\x9f\xab\xa8|ab|"},
        {"kimi-k2",
         "a\xf0\xb1\x8d\x90"
         "b",
         "a|\xf0\xb1\x8d\x90|b|"},
        /* U+180E is not white space, U+017F is not "s". */
        {"gpt-2", "a \xe1\xa0\x8e b", "a| \xe1\xa0\x8e| b|"},
        {"llama-bpe", "'\xc5\xbf", "'\xc5\xbf|"},
        /* U+3001 and U+30FC occur with several scripts, so their script is not Han. */
        {"kimi-k2", "\xe4\xb8\xad\xe3\x80\x81\xe4\xb8\xad\xe3\x83\xbc",
         "\xe4\xb8\xad|\xe3\x80\x81|\xe4\xb8\xad|\xe3\x83\xbc|"},
        /* An underscore or a mark after digits continues the word. */
        {"tiny_aya", "1234_ 1234\xcc\x81 1234.", "123|4|_| |123|4|\xcc\x81| |1|234|.|"},
        /* A line break follows the first spaces but not the second. */
        {"jais-2", "!\n \n   x", "!\n| \n|  | x|"},
    };

    for (size_t i = 0; i < COUNT(list); i++) {
        struct run_pre_tokenizer splitter = open_splitter(gguf_pretokenizer_find(list[i].name));
        struct words words = {{0}, 0};

        cr_assert_eq(
            run_pre_tokenizer_split(&splitter, list[i].text, strlen(list[i].text), take, &words),
            0);
        cr_expect_str_eq(words.text, list[i].words, "%s: \"%s\" gives \"%s\", expected \"%s\"",
                         list[i].name, list[i].text, words.text, list[i].words);
        run_pre_tokenizer_close(&splitter);
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
    return -7;
}

/* The words of any bytes, joined, are these bytes. */
Test(run_tokenizer_words, joined_words_are_the_text)
{
    static const char some[] =
        "aZ09 \t\n\r'sl!.$<~/\xc3\xa9\xe4\xb8\xad\xcc\x81\xf0\x9f\x98\x80\xe2\x80\xa8";
    const struct gguf_pretokenizer *row;
    uint64_t state = 3;

    for (size_t i = 0; (row = gguf_pretokenizer_at(i)); i++) {
        struct run_pre_tokenizer splitter = open_splitter(row);

        for (size_t j = 0; j < 200; j++) {
            char text[100];
            const size_t length = model_file_random(&state) % sizeof text;
            const char *at = text;

            for (size_t k = 0; k < length; k++) {
                const uint64_t random = model_file_random(&state) >> 8;

                text[k] = (char)(j % 2 ? some[random % (sizeof some - 1)] : (int)random);
            }
            cr_assert_eq(run_pre_tokenizer_split(&splitter, text, length, add_length, &at), 0);
            cr_expect_eq(at, text + length, "%s", row->names);
        }
        cr_expect_eq(run_pre_tokenizer_split(&splitter, "a", 1, refuse, NULL), -7);
        run_pre_tokenizer_close(&splitter);
    }
    cr_expect_null(gguf_pretokenizer_find("tomorrow's"));
    cr_expect_null(gguf_pretokenizer_find("llama-v3 llama3"));
    cr_expect_null(gguf_pretokenizer_find("llama"));
    cr_expect_null(gguf_pretokenizer_find(""));
}

static const char mixed[] = "It's 12345 \xc3\xa9t\xc3\xa9 \xe4\xb8\xad!\n\n  x";

static int count(void *context, const char *word, size_t length)
{
    size_t *n = context;

    ++*n;
    return 0;
}

static size_t count_words(void)
{
    const struct gguf_pretokenizer *row;
    size_t n = 0;

    for (size_t i = 0; (row = gguf_pretokenizer_at(i)); i++) {
        struct run_pre_tokenizer splitter = open_splitter(row);

        cr_assert_eq(run_pre_tokenizer_split(&splitter, mixed, sizeof mixed - 1, count, &n), 0);
        run_pre_tokenizer_close(&splitter);
    }
    return n;
}

/* In a process that may not map executable memory, the patterns are interpreted. */
Test(run_tokenizer_words, confinement_does_not_change_words)
{
    size_t *n = mmap(NULL, sizeof *n, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    const struct gguf_confinement confinement = {0};
    const char *step;
    pid_t child;
    int status;

    cr_assert_neq(n, MAP_FAILED);
    child = fork();
    cr_assert_geq(child, 0);
    if (child == 0) {
        if (gguf_confine(&confinement, &step) < 0)
            _exit(1);
        *n = count_words();
        _exit(0);
    }
    cr_assert_eq(waitpid(child, &status, 0), child);
    cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0, "wait status %d", status);
    cr_expect_gt(*n, 300u);
    cr_expect_eq(*n, count_words()); /* last, because the child inherits this process's memory */
    munmap(n, sizeof *n);
}
