/* Opening tokenizers, special tokens, and a small vocabulary of each kind. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "contrib/runner/tokenizer/tokenizer_kinds.h"
#include "tests/unit/gguf/model_file.h"
#include "tests/unit/runner/run_vocabularies.h"

/* SentencePiece: ids 0 to 2 as usual, 3 and 4 are bytes, then words with scores. */
#define SPM_TOKENS                                                                                          \
    "\"tokenizer.ggml.model\":\"llama\",\"tokenizer.ggml.tokens\":[\"<unk>\",\"<s>\",\"</s>\","             \
    "\"<0xC3>\",\"<0xA9>\",\"▁\",\"a\",\"b\",\"▁a\",\"ab\",\"▁ab\",\"<|x|>\",\"<tool>\",\"▁▁\"]," \
    "\"tokenizer.ggml.token_type\":[2,3,3,6,6,1,1,1,1,1,1,3,4,1]"
#define SPM "{" SPM_TOKENS ",\"tokenizer.ggml.scores\":[0,0,0,0,0,-9,-8,-7,-2,-1,-3,0,0,-4]}"

Test(run_tokenizer, sentencepiece_merges_by_score)
{
    struct run_tokenizer *tokenizer = vocabulary_accept(SPM);

    vocabulary_expect(tokenizer, "", 0, "");
    vocabulary_expect(tokenizer, "ab", 0, "10");
    /* "ab" is merged before "▁a", so "▁ab" is possible. */
    vocabulary_expect(tokenizer, "ab ab", 0, "10 10");
    vocabulary_expect(tokenizer, "aab", 0, "8 9");
    vocabulary_expect(tokenizer, "  a", 0, "13 8");
    vocabulary_expect(tokenizer, "bé", 0, "5 7 3 4");
    /* The vocabulary has neither "c" nor its byte. */
    vocabulary_expect_ids(tokenizer, "bc", 2, 0, "5 7 0");
    run_tokenizer_close(tokenizer);
}

Test(run_tokenizer, special_tokens_in_text)
{
    struct run_tokenizer *tokenizer = vocabulary_accept(SPM);

    vocabulary_expect_ids(tokenizer, "<|x|>", 5, RUN_ENCODE_SPECIAL, "11");
    vocabulary_expect_ids(tokenizer, "a<|x|>b<s>", 10, RUN_ENCODE_SPECIAL, "8 11 5 7 1");
    vocabulary_expect_ids(tokenizer, "a<tool>b", 8, 0, "8 12 5 7");
    vocabulary_expect_ids(tokenizer, "a", 1, RUN_ENCODE_BOS_EOS, "1 8");
    vocabulary_expect_ids(tokenizer, "", 0, RUN_ENCODE_BOS_EOS, "1");
    /* Pieces are not joined to a special token. */
    vocabulary_expect_ids(tokenizer, "<s>", 3, 0, "5 0 0 0");
    run_tokenizer_close(tokenizer);
}

/* The ids of a chat whose bytes [start, end) are a message. */
static void expect_chat(struct run_tokenizer *tokenizer, const char *text, size_t start, size_t end,
                        const char *expected)
{
    const struct run_span span = {start, end};
    struct run_ids ids = {0};
    struct run_failure failure;
    char got[100] = "";

    cr_assert_eq(run_tokenizer_encode_chat(tokenizer, text, strlen(text), &span, 1, &ids, &failure),
                 0);
    for (size_t i = 0, at = 0; i < ids.n; i++)
        at += (size_t)snprintf(got + at, sizeof got - at, "%s%d", i > 0 ? " " : "", ids.list[i]);
    cr_expect_str_eq(got, expected, "%s", text);
    run_ids_free(&ids);
}

Test(run_tokenizer, control_tokens_in_messages_are_text)
{
    struct run_tokenizer *tokenizer = vocabulary_accept(SPM);

    expect_chat(tokenizer, "<s>a<s>", 0, 0, "1 8 1");
    expect_chat(tokenizer, "<s>a<s>", 3, 4, "1 8 1");
    /* Inside the message, and partly inside at either end. */
    expect_chat(tokenizer, "<s>a<s>", 3, 7, "1 8 0 0 0");
    expect_chat(tokenizer, "<s>a<s>", 2, 3, "5 0 0 0 6 1");
    expect_chat(tokenizer, "<s>a<s>", 3, 5, "1 8 0 0 0");
    /* Added tokens of the user's kind are matched anywhere. */
    expect_chat(tokenizer, "<s><tool>", 3, 9, "1 12");
    expect_chat(tokenizer, "<s><tool>", 3, 6, "1 12");
    /* The message's tokens are joined with the template's. */
    expect_chat(tokenizer, "<s>ab", 4, 5, "1 10");
    run_tokenizer_close(tokenizer);
}

Test(run_tokenizer, bos_and_eos_keys)
{
    struct run_tokenizer *tokenizer = vocabulary_accept(
        "{" SPM_TOKENS ",\"tokenizer.ggml.add_bos_token\":false,\"tokenizer.ggml.add_eos_token\":"
        "true,\"tokenizer.ggml.eos_token_id\":11,\"tokenizer.ggml.add_space_prefix\":false,"
        "\"tokenizer.ggml.padding_token_id\":4294967295,\"tokenizer.ggml.bos_token_id\":99}");
    const struct gguf_special_ids *special = &tokenizer->special;

    vocabulary_expect_ids(tokenizer, "a", 1, RUN_ENCODE_BOS_EOS, "6 11");
    cr_expect_eq(special->bos, 1);
    cr_expect_eq(special->pad, RUN_NO_TOKEN);
    cr_expect(strstr(tokenizer->note, "tokenizer.ggml.bos_token_id: 99") != NULL, "%s",
              tokenizer->note);
    cr_expect(run_tokenizer_is_end(tokenizer, 11));
    run_tokenizer_close(tokenizer);
}

/* Old files have no scores: lower ids are merged first. A note names every missing key. */
Test(run_tokenizer, sentencepiece_without_scores)
{
    static const char tokens[] =
        "\"tokenizer.ggml.model\":\"llama\",\"tokenizer.ggml.add_space_prefix\":false,"
        "\"tokenizer.ggml.tokens\":[\"a\",\"b\",\"c\",\"bc\",\"ab\"]";
    char text[256];
    struct run_tokenizer *tokenizer;

    snprintf(text, sizeof text, "{%s}", tokens);
    tokenizer = vocabulary_accept(text);
    vocabulary_expect(tokenizer, "abc", 0, "0 3");
    cr_expect_str_eq(tokenizer->note,
                     "no tokenizer.ggml.token_type: only tokens with well-known texts are control "
                     "tokens; no tokenizer.ggml.scores: tokens are merged in the order of their "
                     "ids, which may not be the model's");
    run_tokenizer_close(tokenizer);
    snprintf(text, sizeof text, "{%s,\"tokenizer.ggml.scores\":[0,0,0,-2,-1]}", tokens);
    tokenizer = vocabulary_accept(text);
    vocabulary_expect(tokenizer, "abc", 0, "4 2");
    cr_expect_null(strstr(tokenizer->note, "scores"));
    run_tokenizer_close(tokenizer);
}

Test(run_tokenizer, byte_level_bpe)
{
    struct run_tokenizer *tokenizer = vocabulary_accept(
        "{\"tokenizer.ggml.model\":\"gpt2\",\"tokenizer.ggml.pre\":\"gpt-2\","
        "\"tokenizer.ggml.tokens\":[\"a\",\"b\",\"Ġ\",\"Ã\",\"©\",\"ab\",\"Ġa\",\"aa\","
        "\"<|endoftext|>\",\"Ġab\",\"é\"],\"tokenizer.ggml.token_type\":[1,1,1,1,1,1,1,1,3,1,1],"
        "\"tokenizer.ggml.merges\":[\"Ġ a\",\"a b\",\"Ġa b\",\"a a\",\"no merge\",\"nospace\",\"\","
        "\" \"]}");

    vocabulary_expect(tokenizer, "ab ab", 0, "5 9");
    vocabulary_expect(tokenizer, "aab", 0, "0 5");
    vocabulary_expect(tokenizer, "aaa", 0, "7 0");
    vocabulary_expect(tokenizer, "é", 0, "3 4");
    cr_expect_eq(tokenizer->special.eos, 8);
    cr_expect(run_tokenizer_is_end(tokenizer, 8));
    cr_expect_str_eq(tokenizer->note, "");
    run_tokenizer_close(tokenizer);
}

Test(run_tokenizer, unknown_pretokenizers_are_noted)
{
    static const char tokens[] = "\"tokenizer.ggml.model\":\"gpt2\",\"tokenizer.ggml.tokens\":"
                                 "[\"a\",\"b\",\"ab\"],\"tokenizer.ggml.merges\":[\"a b\"],"
                                 "\"tokenizer.ggml.token_type\":[1,1,1]";
    char text[512];
    struct run_tokenizer *tokenizer;

    snprintf(text, sizeof text, "{%s,\"tokenizer.ggml.pre\":\"tomorrow\\u001b's\"}", tokens);
    tokenizer = vocabulary_accept(text);
    cr_expect(strstr(tokenizer->note, "tomorrow\x1b's") != NULL, "%s", tokenizer->note);
    vocabulary_expect(tokenizer, "ab", 0, "2");
    run_tokenizer_close(tokenizer);

    snprintf(text, sizeof text, "{%s}", tokens);
    tokenizer = vocabulary_accept(text);
    cr_expect(strstr(tokenizer->note, "no tokenizer.ggml.pre") != NULL);
    run_tokenizer_close(tokenizer);

    /* Files of this architecture are older than the key. */
    snprintf(text, sizeof text, "{%s,\"general.architecture\":\"gptneox\"}", tokens);
    tokenizer = vocabulary_accept(text);
    cr_expect_str_eq(tokenizer->note, "");
    run_tokenizer_close(tokenizer);
}

/* Old files and Kimi's files have no merges: lower ids are merged first. */
Test(run_tokenizer, bpe_without_merges)
{
    struct run_tokenizer *tokenizer =
        vocabulary_accept("{\"general.architecture\":\"gpt2\",\"tokenizer.ggml.model\":\"gpt2\","
                          "\"tokenizer.ggml.tokens\":[\"a\",\"b\",\"c\",\"bc\",\"ab\"]}");

    vocabulary_expect(tokenizer, "abc", 0, "0 3");
    cr_expect(strstr(tokenizer->note, "no tokenizer.ggml.merges") != NULL);
    run_tokenizer_close(tokenizer);
}

Test(run_tokenizer, character_bpe)
{
    struct run_tokenizer *tokenizer =
        vocabulary_accept("{\"tokenizer.ggml.model\":\"gemma4\",\"tokenizer.ggml.bos_token_id\":0,"
                          "\"tokenizer.ggml.tokens\":[\"<bos>\",\"▁\",\"é\",\"a\",\"▁a\",\"\\n\","
                          "\"\\n\\n\",\"<0xC3>\","
                          "\"<0xB6>\",\"▁aé\"],\"tokenizer.ggml.token_type\":[3,1,1,1,1,1,1,6,6,1],"
                          "\"tokenizer.ggml.merges\":[\"▁ a\",\"▁a é\"]}");

    vocabulary_expect(tokenizer, "a aé", 0, "3 9");
    vocabulary_expect(tokenizer, "ö\n\n\na", 0, "7 8 5 5 5 3");
    vocabulary_expect(tokenizer, "a\n\na", 0, "3 6 3");
    vocabulary_expect_ids(tokenizer, "a", 1, RUN_ENCODE_BOS_EOS, "0 3");
    run_tokenizer_close(tokenizer);
}

Test(run_tokenizer, wordpiece)
{
    struct run_tokenizer *tokenizer = vocabulary_accept(
        "{\"tokenizer.ggml.model\":\"bert\",\"tokenizer.ggml.tokens\":[\"[PAD]\",\"[UNK]\","
        "\"[CLS]\",\"[SEP]\",\"▁un\",\"known\",\"▁known\",\"▁,\",\"▁中\",\"▁cafe\",\"▁+\",\"s\"],"
        "\"tokenizer.ggml.token_type\":[3,3,3,3,1,1,1,1,1,1,1,1],"
        "\"tokenizer.ggml.cls_token_id\":2,\"tokenizer.ggml.seperator_token_id\":3,"
        "\"tokenizer.ggml.unknown_token_id\":1}");

    vocabulary_expect_ids(tokenizer, "unknown, KNOWN", 14, 0, "4 5 7 6");
    vocabulary_expect_ids(tokenizer, "Cafés\tcafé+", 13, RUN_ENCODE_BOS_EOS, "2 9 11 9 10 3");
    vocabulary_expect_ids(tokenizer, "known中known", 13, 0, "6 8 6");
    vocabulary_expect_ids(tokenizer, "unx un\xff", 7, 0, "1 4");
    vocabulary_expect_ids(tokenizer, "[CLS]", 5, RUN_ENCODE_SPECIAL, "2");
    run_tokenizer_close(tokenizer);
}

/* Scores: "a" -1, "b" -1, "ab" -1.5, "bb" -5. */
Test(run_tokenizer, plamo_takes_the_highest_sum)
{
    struct run_tokenizer *tokenizer =
        vocabulary_accept("{\"tokenizer.ggml.model\":\"plamo2\",\"tokenizer.ggml.tokens\":[\"<pad>"
                          "\",\"</s>\",\"<unk>\","
                          "\"▁\",\"a\",\"b\",\"ab\",\"bb\",\"<0x78>\"],"
                          "\"tokenizer.ggml.token_type\":[3,3,2,1,1,1,1,1,6],"
                          "\"tokenizer.ggml.scores\":[0,0,0,-1,-1,-1,-1.5,-5,0]}");

    vocabulary_expect(tokenizer, "abb", 0, "6 5");
    vocabulary_expect(tokenizer, "axb", 0, "4 8 5");
    run_tokenizer_close(tokenizer);
}

Test(run_tokenizer, rwkv_takes_the_longest_token)
{
    struct run_tokenizer *tokenizer = vocabulary_accept(
        "{\"tokenizer.ggml.model\":\"rwkv\",\"tokenizer.ggml.tokens\":[\"<s>\",\"a\",\"ab\","
        "\"abcd\",\"\\\\n\",\"\\\\xc3\",\"\\\\xa9\",\"c\",\"b\",\"\\\\\\\\\",\"\\\\x\"],"
        "\"tokenizer.ggml.token_type\":[3,1,1,1,1,1,1,1,1,1,1]}");

    vocabulary_expect(tokenizer, "abcababcd", 0, "2 7 2 3");
    vocabulary_expect(tokenizer, "b\né\\", 0, "8 4 5 6 9");
    vocabulary_expect_ids(tokenizer, "a?b", 3, 0, "1 8");
    run_tokenizer_close(tokenizer);
}

Test(run_tokenizer, end_tokens_by_text)
{
    struct run_tokenizer *tokenizer = vocabulary_accept(
        "{\"tokenizer.ggml.model\":\"gpt2\",\"tokenizer.ggml.pre\":\"gpt-4o\","
        "\"tokenizer.ggml.merges\":[],\"tokenizer.ggml.tokens\":[\"a\",\"<|end|>\",\"<|return|>\","
        "\"<|call|>\",\"<|channel|>\",\"<|im_end|>\",\"<|fim_pad|>\",\"<|fim_prefix|>\"],"
        "\"tokenizer.ggml.token_type\":[1,3,3,3,3,1,4,4],\"tokenizer.ggml.eos_token_id\":2}");

    for (int32_t id = 0; id < 8; id++)
        cr_expect_eq(run_tokenizer_is_end(tokenizer, id), id == 2 || id == 3 || id == 5 || id == 6,
                     "%d", id);
    /* In gpt-oss a message may follow <|end|>. It and <|channel|> are shown. */
    cr_expect_not(run_tokenizer_is_hidden(tokenizer, 1));
    cr_expect_not(run_tokenizer_is_hidden(tokenizer, 4));
    cr_expect(run_tokenizer_is_hidden(tokenizer, 5));
    cr_expect(run_tokenizer_is_hidden(tokenizer, 7));
    vocabulary_expect_ids(tokenizer, "<|channel|>a<|im_end|>", 22, RUN_ENCODE_SPECIAL, "4 0 5");
    run_tokenizer_close(tokenizer);
}

/* gpt-oss shows some control tokens in the output. They are still not matched in input text. */
Test(run_tokenizer, control_tokens_are_not_matched_in_text)
{
    static const char *const names[] = {"<|start|>", "<|message|>", "<|channel|>", "<|constrain|>",
                                        "<|end|>",   "<|return|>",  "<|call|>",    "<|user|>"};
    struct run_tokenizer *tokenizer = vocabulary_accept(
        "{\"tokenizer.ggml.model\":\"gpt2\",\"tokenizer.ggml.pre\":\"gpt-4o\","
        "\"tokenizer.ggml.merges\":[\"< |\",\"a b\",\"<| |\"],\"tokenizer.ggml.tokens\":["
        "\"<|start|>\",\"<|message|>\",\"<|channel|>\",\"<|constrain|>\",\"<|end|>\","
        "\"<|return|>\",\"<|call|>\",\"<|user|>\",\"<\",\"|\",\">\",\"a\",\"b\",\"ab\",\"<|\","
        "\"<||\"],\"tokenizer.ggml.token_type\":[3,3,3,3,3,3,3,4,1,1,1,1,1,3,1,3]}");

    for (int32_t id = 0; id < 8; id++) {
        const bool is_control = id < 7;
        struct run_failure failure;
        struct run_ids ids = {0};
        char text[32];

        snprintf(text, sizeof text, "%d", id);
        vocabulary_expect_ids(tokenizer, names[id], strlen(names[id]), RUN_ENCODE_SPECIAL, text);
        cr_assert_eq(
            run_tokenizer_encode(tokenizer, names[id], strlen(names[id]), 0, &ids, &failure), 0);
        for (size_t i = 0; i < ids.n; i++)
            cr_expect_eq(ids.list[i] >= 7, is_control || ids.list[i] == 7, "%s", names[id]);
        cr_expect_eq(ids.list[0], is_control ? 14 : 7, "%s", names[id]);
        cr_expect_eq(run_tokenizer_is_hidden(tokenizer, id), id == 5 || id == 6, "%s", names[id]);
        run_ids_free(&ids);
    }
    /* A merge must not give a control token either. */
    vocabulary_expect_ids(tokenizer, "ab<||", 5, 0, "11 12 14 9");
    run_tokenizer_close(tokenizer);
}

/* A byte must not become a control token, whatever the token's text is. */
Test(run_tokenizer, bytes_do_not_become_control_tokens)
{
    struct run_tokenizer *tokenizer = vocabulary_accept(
        "{\"tokenizer.ggml.model\":\"gpt2\",\"tokenizer.ggml.pre\":\"gpt-2\",\"tokenizer.ggml."
        "tokens\":"
        "[\"a\",\"b\"],\"tokenizer.ggml.token_type\":[3,1],\"tokenizer.ggml.merges\":[]}");

    vocabulary_expect_ids(tokenizer, "ab", 2, 0, "1");
    vocabulary_expect_ids(tokenizer, "ab", 2, RUN_ENCODE_SPECIAL, "0 1");
    run_tokenizer_close(tokenizer);
    tokenizer = vocabulary_accept(
        "{\"tokenizer.ggml.model\":\"llama\",\"tokenizer.ggml.add_space_prefix\":false,"
        "\"tokenizer.ggml.tokens\":[\"<unk>\",\"<0x61>\",\"a\",\"<0x62>\"],"
        "\"tokenizer.ggml.token_type\":[2,3,3,6]}");
    vocabulary_expect_ids(tokenizer, "ab", 2, 0, "0 3");
    run_tokenizer_close(tokenizer);
}

/* In Gemma 4, "</s>" is HTML text unless the file says that it is a control token. */
Test(run_tokenizer, gemma_4_takes_end_text_for_html)
{
    static const char format[] =
        "{\"tokenizer.ggml.model\":\"gemma4\",\"tokenizer.ggml.tokens\":[\"<|tool_response>\","
        "\"</s>\",\"<\"],\"tokenizer.ggml.token_type\":[3,%d,1],\"tokenizer.ggml.merges\":[]}";

    for (int type = 1; type <= 4; type++) {
        struct run_tokenizer *tokenizer;
        char metadata[512];

        snprintf(metadata, sizeof metadata, format, type);
        tokenizer = vocabulary_accept(metadata);
        cr_expect_eq(run_tokenizer_is_hidden(tokenizer, 1), type == 3, "%d", type);
        cr_expect_not(run_tokenizer_is_end(tokenizer, 1));
        cr_expect(run_tokenizer_is_end(tokenizer, 0));
        run_tokenizer_close(tokenizer);
    }
}

Test(run_tokenizer, invalid_ids)
{
    static const int32_t ids[] = {RUN_NO_TOKEN, -2147483647 - 1, 14, 2147483647};
    struct run_tokenizer *tokenizer = vocabulary_accept(SPM);

    for (size_t i = 0; i < COUNT(ids); i++) {
        size_t length = 1;

        cr_expect_not_null(run_tokenizer_piece(tokenizer, ids[i], &length));
        cr_expect_eq(length, 0u);
        cr_expect_not(run_tokenizer_is_hidden(tokenizer, ids[i]));
        cr_expect_not(run_tokenizer_is_end(tokenizer, ids[i]));
    }
    cr_expect_eq(run_vocabulary_find(&tokenizer->vocabulary, "▁ab", strlen("▁ab")), 10);
    cr_expect_eq(run_vocabulary_find(&tokenizer->vocabulary, "", strlen("")), RUN_NO_TOKEN);
    cr_expect_eq(run_vocabulary_find(&tokenizer->vocabulary, "▁abc", strlen("▁abc")), RUN_NO_TOKEN);
    run_tokenizer_close(tokenizer);
    run_tokenizer_close(NULL);
}

/* In memory, a NUL of the metadata is stored as two bytes. */
Test(run_tokenizer, nul_is_a_character)
{
    struct run_tokenizer *tokenizer = vocabulary_accept(
        "{\"tokenizer.ggml.model\":\"rwkv\",\"tokenizer.ggml.tokens\":[\"a\",\"\\u0000\","
        "\"a\\u0000b\"]}");

    vocabulary_expect_ids(tokenizer, "a\0a\0b", 5, 0, "0 1 2");
    cr_expect(vocabulary_is_kept(tokenizer, "a\0a\0b", 5));
    run_tokenizer_close(tokenizer);
}
