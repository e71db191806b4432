/* Conventions about vocabularies; the tests of the runner and of hf/ cover most of them. */
#include <criterion/criterion.h>
#include <string.h>

#include "gguf/models/pretokenizers.h"
#include "gguf/models/tokens.h"

Test(gguf_conventions, names_of_token_types)
{
    static const char *const names[] = {"undefined",    "normal", "unknown", "control",
                                        "user_defined", "unused", "byte"};

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        cr_expect_str_eq(gguf_token_type_name(i), names[i]);
    cr_expect_null(gguf_token_type_name(sizeof names / sizeof *names));
    cr_expect_null(gguf_token_type_name(UINT64_MAX));
}

Test(gguf_conventions, patterns_become_those_of_oniguruma)
{
    static const struct {
        const char *pattern, *expected;
    } list[] = {
        {"", ""},
        {"a\\p{L}+|\\s", "a\\p{L}+|\\s"},
        {"\\p{sc:Han}+[^\\p{N}\\p{sc:Han}]", "\\p{Han}+[^\\p{N}\\p{Han}]"},
    };

    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        char out[64];

        gguf_pattern_to_oniguruma(list[i].pattern, out);
        cr_expect_str_eq(out, list[i].expected);
    }
}

Test(gguf_conventions, a_pretokenizer_is_always_chosen)
{
    enum gguf_pretokenizer_origin origin;

    cr_expect_eq(gguf_pretokenizer_choose("gpt2", "qwen2", "", &origin),
                 gguf_pretokenizer_find("qwen2"));
    cr_expect_eq(origin, GGUF_PRE_KNOWN);
    cr_expect_eq(gguf_pretokenizer_choose("gpt2", NULL, "falcon", &origin),
                 gguf_pretokenizer_find("falcon"));
    cr_expect_eq(origin, GGUF_PRE_KNOWN);
    cr_expect_eq(gguf_pretokenizer_choose("gemma4", "qwen2", "", &origin),
                 gguf_pretokenizer_find("gemma4"));
    cr_expect_eq(gguf_pretokenizer_choose("gpt2", NULL, "", &origin),
                 gguf_pretokenizer_find("default"));
    cr_expect_eq(origin, GGUF_PRE_MISSING);
    cr_expect_eq(gguf_pretokenizer_choose("gpt2", "unheard of", "", &origin),
                 gguf_pretokenizer_find("smaug-bpe"));
    cr_expect_eq(origin, GGUF_PRE_UNKNOWN);
}

Test(gguf_conventions, bytes_are_parsed)
{
    uint8_t byte = 0;

    cr_expect(gguf_byte_token_parse("<0xA9>", 6, &byte));
    cr_expect_eq(byte, 0xa9);
    cr_expect(gguf_byte_token_parse("<0x0a>", 6, &byte));
    cr_expect_eq(byte, 0x0a);
    cr_expect_not(gguf_byte_token_parse("<0xA9>", 5, &byte));
    cr_expect_not(gguf_byte_token_parse("<0xG9>", 6, &byte));
    cr_expect_not(gguf_byte_token_parse("(0xA9>", 6, &byte));
}

Test(gguf_conventions, some_models_strip_white_space)
{
    const struct gguf_strip_rule *phi = gguf_strip_rule_find("Phi-3 mini", NULL, "phi3");
    const struct gguf_strip_rule *jina = gguf_strip_rule_find(NULL, "jina-v2-de", NULL);

    cr_expect_null(gguf_strip_rule_find(NULL, NULL, NULL));
    cr_expect_eq(gguf_strips(NULL, "<mask>", 6, GGUF_TOKEN_CONTROL), 0u);
    cr_expect_eq(gguf_strips(jina, "<mask>", 6, GGUF_TOKEN_CONTROL), GGUF_STRIP_LEFT);
    cr_expect_eq(gguf_strips(jina, "<s>", 3, GGUF_TOKEN_CONTROL), 0u);
    cr_expect_eq(gguf_strips(phi, "<|end|>", 7, GGUF_TOKEN_CONTROL), GGUF_STRIP_RIGHT);
    cr_expect_eq(gguf_strips(phi, "</s>", 4, GGUF_TOKEN_NORMAL), GGUF_STRIP_RIGHT);
    cr_expect_eq(gguf_strips(phi, "<s>", 3, GGUF_TOKEN_CONTROL), 0u);
    cr_expect_eq(gguf_strips(phi, "a", 1, GGUF_TOKEN_NORMAL), 0u);
}

Test(gguf_conventions, ids_are_completed)
{
    struct gguf_special_ids ids = gguf_tokenizer_defaults_find("gpt2")->ids;

    gguf_special_ids_complete(&ids, "gpt2", gguf_pretokenizer_find("llama-bpe"), false, 7);
    cr_expect(ids.bos == 7 && ids.eos == 7 && ids.is_bos_added);
    ids = gguf_tokenizer_defaults_find("gpt2")->ids;
    gguf_special_ids_complete(&ids, "gpt2", gguf_pretokenizer_find("llama-bpe"), true, 7);
    cr_expect_not(ids.is_bos_added);
    ids = gguf_tokenizer_defaults_find("bert")->ids;
    gguf_special_ids_complete(&ids, "bert", NULL, false, GGUF_NO_TOKEN);
    cr_expect(ids.bos == 101 && ids.eos == 102 && ids.is_bos_added && ids.is_eos_added);
}
