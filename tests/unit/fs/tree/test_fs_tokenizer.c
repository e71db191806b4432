/* tokenizer/ and the tokenizer's files in hf/, of vocabularies that are odd or wrong. */
#include <cjson/cJSON.h>
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/writer/gguf_writer.h"
#include "fs/tree/hf/hf_tokenizer.h"
#include "tests/unit/fs/tree_file.h"
#include "tests/unit/gguf/model_file.h"

TestSuite(fs_tokenizer, .init = model_file_begin_test);

#define KEY "tokenizer.ggml."

struct made {
    struct gguf_model *model;
    struct fs_tree *tree;
};

static struct made make_tree(struct gguf_writer *w)
{
    struct made made = {.model = model_file_make(w)};

    made.tree = tree_file_make_tree(made.model);
    return made;
}

static void end_tree(struct made made)
{
    fs_tree_free(made.tree);
    gguf_close(made.model);
}

static void add_numbers(struct gguf_writer *w, const char *key, uint32_t type, const float *numbers,
                        size_t n)
{
    gguf_writer_add_array(w, key, type, n);
    for (size_t i = 0; i < n; i++) {
        if (type == GGUF_WRITER_F32)
            gguf_writer_f32(w, numbers[i]);
        else
            gguf_writer_i32(w, (int32_t)numbers[i]);
    }
}

static struct gguf_writer *begin_vocabulary(const char *kind, const char *const *tokens, size_t n,
                                            const float *types, const float *scores)
{
    struct gguf_writer *w = gguf_writer_open(3, false);

    gguf_writer_add_string(w, KEY "model", kind);
    gguf_writer_add_strings(w, KEY "tokens", tokens, n);
    if (types)
        add_numbers(w, KEY "token_type", GGUF_WRITER_I32, types, n);
    if (scores)
        add_numbers(w, KEY "scores", GGUF_WRITER_F32, scores, n);
    return w;
}

static cJSON *read_tokenizer(const struct made *made)
{
    struct tree_file file = tree_file_read(made->tree, "hf/tokenizer.json");
    cJSON *json = tree_file_parse(&file);

    free(file.bytes);
    return json;
}

static void expect_json(const cJSON *json, const char *expected)
{
    char *text = cJSON_PrintUnformatted(json);

    cr_assert_not_null(text);
    cr_expect_str_eq(text, expected);
    free(text);
}

static cJSON *model_of(const cJSON *json, const char *name)
{
    return cJSON_GetObjectItem(cJSON_GetObjectItem(json, "model"), name);
}

/* Return the type of the step `name`, or "" if the step is missing. */
static const char *type_of(const cJSON *json, const char *name)
{
    const char *type =
        cJSON_GetStringValue(cJSON_GetObjectItem(cJSON_GetObjectItem(json, name), "type"));

    return type ? type : "";
}

Test(fs_tokenizer, merges_come_from_scores)
{
    static const char *const tokens[] = {"<unk>", "<s>", "</s>", "<0x41>", "a",
                                         "b",     "aa",  "ab",   "aab",    "▁"};
    static const float types[] = {2, 3, 3, 6, 1, 1, 1, 1, 1, 1};
    static const float scores[] = {0, 0, 0, 0, -9, -8, -2, -1, -3, -7};
    struct made made = make_tree(begin_vocabulary("llama", tokens, COUNT(tokens), types, scores));
    cJSON *json = read_tokenizer(&made);

    expect_json(model_of(json, "merges"),
                "[[\"a\",\"b\"],[\"a\",\"a\"],[\"aa\",\"b\"],[\"a\",\"ab\"]]");
    expect_json(model_of(json, "byte_fallback"), "true");
    expect_json(model_of(json, "unk_token"), "\"<unk>\"");
    cr_expect_str_eq(type_of(json, "normalizer"), "Sequence");
    cr_expect_str_eq(type_of(json, "pre_tokenizer"), "");
    cr_expect_str_eq(type_of(json, "post_processor"), "TemplateProcessing");
    cr_expect_eq(cJSON_GetArraySize(cJSON_GetObjectItem(json, "added_tokens")), 3);
    cJSON_Delete(json);
    tree_file_expect(made.tree, "tokenizer/tokens.txt",
                     "<unk>\n<s>\n</s>\nA\na\nb\naa\nab\naab\n \n");
    tree_file_expect(made.tree, "tokenizer/scores.txt",
                     "0.0\n0.0\n0.0\n0.0\n-9.0\n-8.0\n-2.0\n-1.0\n-3.0\n-7.0\n");
    tree_file_expect(
        made.tree, "hf/special_tokens_map.json",
        "{\n\"bos_token\": \"<s>\",\n\"eos_token\": \"</s>\",\n\"unk_token\": \"<unk>\"\n}\n");
    end_tree(made);
}

Test(fs_tokenizer, merges_without_tokens_are_left_out)
{
    static const char *const tokens[] = {"a", "b", "ab", "<|endoftext|>", "abb"};
    static const char *const merges[] = {"a b", "a c",  "b a",  "ab",    "",
                                         " ",   "a  b", "ab b", "\xff b"};
    struct gguf_writer *w = begin_vocabulary("gpt2", tokens, COUNT(tokens), NULL, NULL);
    struct made made;
    cJSON *json;

    gguf_writer_add_strings(w, KEY "merges", merges, COUNT(merges));
    gguf_writer_add_string(w, KEY "pre", "kimi-k2");
    made = make_tree(w);
    json = read_tokenizer(&made);
    expect_json(model_of(json, "merges"), "[[\"a\",\"b\"],[\"ab\",\"b\"]]");
    cr_expect_str_eq(type_of(json, "normalizer"), "");
    cr_expect_str_eq(type_of(json, "pre_tokenizer"), "Sequence");
    /* The file says NORMAL, but the text is known. */
    expect_json(cJSON_GetObjectItem(json, "added_tokens"),
                "[{\"id\":3,\"content\":\"<|endoftext|>\",\"single_word\":false,\"lstrip\":false,"
                "\"rstrip\":false,\"normalized\":false,\"special\":true}]");
    cJSON_Delete(json);
    tree_file_expect(made.tree, "tokenizer/merges.txt",
                     "a b\na c\nb a\nab\n\n \na  b\nab b\n\\xFF b\n");
    end_tree(made);
}

Test(fs_tokenizer, tokens_without_a_text_of_their_own_keep_their_ids)
{
    static const char *const tokens[] = {"a", "", "a", "\xff\xfe", "\n\\\t\x7f", ""};
    struct made made = make_tree(begin_vocabulary("llama", tokens, COUNT(tokens), NULL, NULL));
    cJSON *json = read_tokenizer(&made);

    expect_json(model_of(json, "vocab"),
                "{\"a\":0,\"\uffff1\":1,\"\uffff2\":2,\"\uffff3\":3,\"\\n\\\\\\t\x7f\":4,"
                "\"\uffff5\":5}");
    cJSON_Delete(json);
    tree_file_expect(made.tree, "tokenizer/tokens.txt", "a\n\na\n\\xFF\\xFE\n\\n\\\\\\t\\x7F\n\n");
    end_tree(made);
}

Test(fs_tokenizer, word_pieces_get_their_prefix)
{
    static const char *const tokens[] = {"[PAD]", "[unused0]", "[UNK]", "▁hello", "ing", "▁", "##"};
    static const float types[] = {3, 1, 3, 1, 1, 1, 1};
    struct gguf_writer *w = begin_vocabulary("bert", tokens, COUNT(tokens), types, NULL);
    struct made made;
    cJSON *json;

    gguf_writer_add_u32(w, KEY "unknown_token_id", 2);
    made = make_tree(w);
    json = read_tokenizer(&made);
    expect_json(model_of(json, "vocab"), "{\"[PAD]\":0,\"[unused0]\":1,\"[UNK]\":2,\"hello\":3,"
                                         "\"##ing\":4,\"\":5,\"####\":6}");
    expect_json(model_of(json, "unk_token"), "\"[UNK]\"");
    expect_json(cJSON_GetObjectItem(json, "normalizer"),
                "{\"type\":\"Sequence\",\"normalizers\":[{\"type\":\"BertNormalizer\","
                "\"clean_text\":true,\"handle_chinese_chars\":true,\"strip_accents\":true,"
                "\"lowercase\":true},{\"type\":\"Replace\",\"pattern\":{\"Regex\":\"\\\\p{Mn}\"},"
                "\"content\":\"\"}]}");
    /* CLS and SEP have ids beyond this vocabulary. */
    cr_expect_str_eq(type_of(json, "post_processor"), "");
    cJSON_Delete(json);
    end_tree(made);
}

Test(fs_tokenizer, word_pieces_that_are_written_alike_keep_their_ids)
{
    static const char *const tokens[] = {"▁[CLS]", "[CLS]", "▁a", "a",  "▁##a", "##a",  "▁hello",
                                         "hello",  "▁▁x",   "▁x", "##", "▁##",  "▁##b", "[CLS]"};
    static const float types[] = {1, 3, 1, 1, 1, 4, 1, 4, 1, 1, 1, 1, 1, 3};
    struct made made = make_tree(begin_vocabulary("bert", tokens, COUNT(tokens), types, NULL));
    cJSON *json = read_tokenizer(&made);

    expect_json(model_of(json, "vocab"),
                "{\"\uffff0\":0,\"[CLS]\":1,\"a\":2,\"##a\":3,\"\uffff4\":4,\"\uffff5\":5,"
                "\"\uffff6\":6,\"hello\":7,\"▁x\":8,\"x\":9,\"####\":10,\"##\":11,\"##b\":12,"
                "\"\uffff13\":13}");
    /* An added token has the text that the vocabulary has for its id. */
    expect_json(cJSON_GetObjectItem(
                    cJSON_GetArrayItem(cJSON_GetObjectItem(json, "added_tokens"), 0), "content"),
                "\"[CLS]\"");
    cJSON_Delete(json);
    end_tree(made);
}

Test(fs_tokenizer, unigram_has_scores_and_a_map)
{
    static const char *const tokens[] = {"<pad>", "</s>", "<unk>", "▁a", "<0x41>", "b"};
    static const float types[] = {3, 3, 2, 1, 6, 1};
    const float scores[] = {0, 0, 0, -1.5f, 0, -(float)INFINITY};
    static const uint8_t map[] = {4, 0, 0, 0, 0, 0, 0, 0, 'x', 0};
    struct gguf_writer *w = begin_vocabulary("t5", tokens, COUNT(tokens), types, scores);
    struct made made;
    cJSON *json, *steps;

    gguf_writer_add_array(w, KEY "precompiled_charsmap", GGUF_WRITER_U8, sizeof map);
    gguf_writer_raw(w, map, sizeof map);
    gguf_writer_add_bool(w, KEY "remove_extra_whitespaces", true);
    made = make_tree(w);
    json = read_tokenizer(&made);
    expect_json(model_of(json, "vocab"),
                "[[\"<pad>\",0],[\"</s>\",0],[\"<unk>\",0],[\"▁a\",-1.5],[\"<0x41>\",-1.5],"
                "[\"b\",-3.4028234663852886e+38]]");
    expect_json(model_of(json, "unk_id"), "2");
    steps = cJSON_GetObjectItem(cJSON_GetObjectItem(json, "normalizer"), "normalizers");
    expect_json(cJSON_GetArrayItem(steps, 0),
                "{\"type\":\"Precompiled\",\"precompiled_charsmap\":\"BAAAAAAAAAB4AA==\"}");
    cr_expect_eq(cJSON_GetArraySize(steps), 5);
    cJSON_Delete(json);
    tree_file_expect(made.tree, "tokenizer/scores.txt", "0.0\n0.0\n0.0\n-1.5\n0.0\n-inf\n");
    end_tree(made);
}

Test(fs_tokenizer, tokens_of_the_world_are_unescaped)
{
    static const char *const tokens[] = {"\\x00", "\\n", "a\\\\b", "\\xe2\\x82"};
    struct made made = make_tree(begin_vocabulary("rwkv", tokens, COUNT(tokens), NULL, NULL));

    tree_file_expect(made.tree, "tokenizer/tokens.txt", "\\x00\n\\n\na\\\\b\n\\xE2\\x82\n");
    end_tree(made);
}

Test(fs_tokenizer, types_have_names)
{
    static const char *const tokens[] = {"a", "b", "c", "d", "e", "f", "g", "h", "i"};
    static const float types[] = {0, 1, 2, 3, 4, 5, 6, 7, -1};
    struct made made = make_tree(begin_vocabulary("none", tokens, COUNT(tokens), types, NULL));

    tree_file_expect(made.tree, "tokenizer/types.txt",
                     "undefined\nnormal\nunknown\ncontrol\nuser_defined\nunused\nbyte\n7\n-1\n");
    end_tree(made);
}

Test(fs_tokenizer, long_texts_are_written_in_pieces)
{
    enum { N_TOKENS = 3000, LONG_BYTES = 20000 };
    struct gguf_writer *w = gguf_writer_open(3, false);
    char *template = malloc(LONG_BYTES + 1);
    struct made made;
    cJSON *json;

    cr_assert_not_null(template);
    memset(template, '{', LONG_BYTES);
    template[LONG_BYTES] = '\0';
    gguf_writer_add_string(w, KEY "model", "llama");
    gguf_writer_add_array(w, KEY "tokens", GGUF_WRITER_STRING, N_TOKENS);
    for (unsigned i = 0; i < N_TOKENS; i++) {
        char text[16];

        snprintf(text, sizeof text, "%u", i);
        gguf_writer_string(w, text, strlen(text));
    }
    gguf_writer_add_string(w, "tokenizer.chat_template", template);
    gguf_writer_add_string(w, "tokenizer.chat_template.a/b", "{{ b }}");
    made = make_tree(w);
    json = read_tokenizer(&made);
    cr_expect_eq(cJSON_GetArraySize(model_of(json, "vocab")), N_TOKENS);
    /* One merge per position inside a number, but not before "05": it is not a token. */
    cr_expect_eq(cJSON_GetArraySize(model_of(json, "merges")),
                 90 + (900 + 810) + (2000 + 1800 + 1800));
    cJSON_Delete(json);
    tree_file_expect(made.tree, "hf/chat_template.jinja", template);
    tree_file_expect(made.tree, "tokenizer/chat_template.jinja", template);
    tree_file_expect(made.tree, "tokenizer/chat_template.a%2Fb.jinja", "{{ b }}");
    tree_file_expect(made.tree, "hf/additional_chat_templates/a%2Fb.jinja", "{{ b }}");
    free(template);
    end_tree(made);
}

/* ---- vocabularies that no tokenizer.json can be made of ---- */

static struct gguf_writer *begin_obstructed(unsigned which)
{
    static const char *const tokens[] = {"a", "b"};
    static const float one[] = {1};
    static const char *const kinds[] = {"rwkv", "plamo2", "none", "no_vocab", "unheard of"};
    struct gguf_writer *w = gguf_writer_open(3, false);

    if (which < COUNT(kinds)) {
        gguf_writer_add_string(w, KEY "model", kinds[which]);
        gguf_writer_add_strings(w, KEY "tokens", tokens, 2);
        return w;
    }
    gguf_writer_add_string(w, KEY "model", which == 11 ? "t5" : "gpt2");
    switch (which) {
    case 5:
        break;
    case 6:
        gguf_writer_add_strings(w, KEY "tokens", NULL, 0);
        break;
    case 7:
        gguf_writer_add_array(w, KEY "tokens", GGUF_WRITER_U8, 1);
        gguf_writer_u8(w, 1);
        break;
    default:
        gguf_writer_add_strings(w, KEY "tokens", tokens, 2);
    }
    if (which == 8)
        add_numbers(w, KEY "token_type", GGUF_WRITER_I32, one, 1);
    if (which == 9)
        add_numbers(w, KEY "scores", GGUF_WRITER_F32, one, 1);
    if (which == 10)
        gguf_writer_add_u32(w, KEY "merges", 1);
    return w;
}

Test(fs_tokenizer, obstacles_are_named)
{
    enum { N_OBSTACLES = 12 };
    const char *sentences[N_OBSTACLES];

    for (unsigned i = 0; i < N_OBSTACLES; i++) {
        struct made made = make_tree(begin_obstructed(i));
        struct tree_file note = tree_file_read(made.tree, "hf.unsupported.txt");

        cr_expect_eq(tree_file_find(made.tree, "hf/tokenizer.json"), FS_NO_NODE, "%u", i);
        sentences[i] = fs_tokenizer_obstacle(made.tree);
        cr_assert_not_null(sentences[i], "%u", i);
        cr_expect_not_null(strstr(note.bytes, sentences[i]), "%s", note.bytes);
        cr_expect_eq(sentences[i][strlen(sentences[i]) - 1], '.');
        free(note.bytes);
        end_tree(made);
    }
    cr_expect_str_eq(sentences[8],
                     "The key \"" KEY "token_type\" has fewer elements than \"" KEY "tokens\".");
}

Test(fs_tokenizer, tokens_have_a_limit)
{
    for (unsigned n = GGUF_MAX_TOKENS; n <= GGUF_MAX_TOKENS + 1; n++) {
        struct gguf_writer *w = gguf_writer_open(3, false);
        struct made made;
        const char *obstacle;

        gguf_writer_add_string(w, KEY "model", "llama");
        gguf_writer_add_array(w, KEY "tokens", GGUF_WRITER_STRING, n);
        for (unsigned i = 0; i < n; i++)
            gguf_writer_string(w, "", 0);
        made = make_tree(w);
        obstacle = fs_tokenizer_obstacle(made.tree);
        cr_expect_eq(obstacle && strstr(obstacle, "more than 1048575 tokens"), n > GGUF_MAX_TOKENS,
                     "%u: %s", n, obstacle ? obstacle : "none");
        end_tree(made);
    }
}

static struct made make_with_pre(const char *kind, const char *pre)
{
    static const char *const tokens[] = {"a", "b"};
    struct gguf_writer *w = begin_vocabulary(kind, tokens, COUNT(tokens), NULL, NULL);

    if (pre)
        gguf_writer_add_string(w, KEY "pre", pre);
    return make_tree(w);
}

Test(fs_tokenizer, an_unknown_pretokenizer_is_an_obstacle)
{
    char too_long[1001];
    const char *const values[] = {"not-known-yet", "tomorrow\x1b\"s\xff", "", too_long};
    const char *const quoted[] = {"\"not-known-yet\"", "\"tomorrow\\x1b\\\"s\\xff\"", "\"\"",
                                  "eee...\""};

    memset(too_long, 'e', sizeof too_long - 1);
    too_long[sizeof too_long - 1] = '\0';
    for (size_t i = 0; i < COUNT(values); i++) {
        struct made made = make_with_pre("gpt2", values[i]);
        struct tree_file note = tree_file_read(made.tree, "hf.unsupported.txt");

        cr_expect_eq(tree_file_find(made.tree, "hf/tokenizer.json"), FS_NO_NODE, "%s", values[i]);
        cr_expect_not_null(strstr(note.bytes, quoted[i]), "%s", note.bytes);
        cr_expect_not_null(strstr(note.bytes, "of the key \"" KEY "pre\" is unknown"));
        cr_expect_not_null(strstr(note.bytes, "set it with --set " KEY "pre=str:NAME.\n"), "%s",
                           note.bytes);
        free(note.bytes);
        end_tree(made);
    }
}

/* Such models are common, and other kinds of vocabularies do not depend on the key. */
Test(fs_tokenizer, a_missing_or_unused_pretokenizer_is_no_obstacle)
{
    static const char *const made_of[][2] = {{"gpt2", NULL},
                                             {"gpt2", "default"},
                                             {"gemma4", "not-known-yet"},
                                             {"llama", "not-known-yet"}};

    for (size_t i = 0; i < COUNT(made_of); i++) {
        struct made made = make_with_pre(made_of[i][0], made_of[i][1]);

        cr_expect_null(fs_tokenizer_obstacle(made.tree), "%zu", i);
        cr_expect_neq(tree_file_find(made.tree, "hf/tokenizer.json"), FS_NO_NODE, "%zu", i);
        end_tree(made);
    }
}

Test(fs_tokenizer, a_damaged_map_is_an_obstacle)
{
    static const char *const tokens[] = {"a"};
    static const float scores[] = {-1};
    static const uint8_t maps[][8] = {{9, 0, 0, 0, 0, 0, 0, 0}, {3, 0, 0, 0, 0, 0, 0, 0}};

    for (size_t i = 0; i < COUNT(maps); i++) {
        struct gguf_writer *w = begin_vocabulary("t5", tokens, 1, NULL, scores);
        struct made made;

        gguf_writer_add_array(w, KEY "precompiled_charsmap", GGUF_WRITER_U8, sizeof maps[i]);
        gguf_writer_raw(w, maps[i], sizeof maps[i]);
        made = make_tree(w);
        cr_expect_not_null(fs_tokenizer_obstacle(made.tree));
        end_tree(made);
    }
}

/* One token begins and ends texts: it is described once. */
Test(fs_tokenizer, the_same_token_begins_and_ends)
{
    static const char *const tokens[] = {"<unk>", "<s>", "a"};
    static const float types[] = {2, 3, 1}, scores[] = {0, 0, -1};
    struct gguf_writer *w = begin_vocabulary("llama", tokens, COUNT(tokens), types, scores);
    struct made made;
    cJSON *json;

    gguf_writer_add_u32(w, KEY "bos_token_id", 1);
    gguf_writer_add_u32(w, KEY "eos_token_id", 1);
    gguf_writer_add_bool(w, KEY "add_bos_token", true);
    gguf_writer_add_bool(w, KEY "add_eos_token", true);
    made = make_tree(w);
    json = read_tokenizer(&made);
    expect_json(cJSON_GetObjectItem(cJSON_GetObjectItem(json, "post_processor"), "special_tokens"),
                "{\"<s>\":{\"id\":\"<s>\",\"ids\":[1],\"tokens\":[\"<s>\"]}}");
    expect_json(cJSON_GetObjectItem(cJSON_GetObjectItem(json, "post_processor"), "single"),
                "[{\"SpecialToken\":{\"id\":\"<s>\",\"type_id\":0}},"
                "{\"Sequence\":{\"id\":\"A\",\"type_id\":0}},"
                "{\"SpecialToken\":{\"id\":\"<s>\",\"type_id\":0}}]");
    cJSON_Delete(json);
    end_tree(made);
}

/* If the text were written again for each read, this would take minutes. */
Test(fs_tokenizer, a_token_of_16_mib, .timeout = 60)
{
    enum { LENGTH = 16 << 20 };
    static const float types[] = {2, 3, 3, 4}, scores[] = {0, 0, 0, -1};
    char *text = malloc(LENGTH + 1);
    const char *const tokens[] = {"<unk>", "<s>", "</s>", text};
    struct made made;
    struct tree_file file;

    cr_assert_not_null(text);
    memset(text, 'x', LENGTH);
    text[LENGTH] = '\0';
    made = make_tree(begin_vocabulary("llama", tokens, COUNT(tokens), types, scores));
    file = tree_file_read(made.tree, "hf/tokenizer.json");
    /* As an added token, and in the vocabulary. */
    cr_expect_gt(file.size_bytes, 2 * (uint64_t)LENGTH);
    cr_expect_lt(file.size_bytes, 2 * (uint64_t)LENGTH + 2000, "%zu", (size_t)file.size_bytes);
    free(file.bytes);
    file = tree_file_read(made.tree, "tokenizer/tokens.txt");
    cr_expect_eq(file.size_bytes, strlen("<unk>\n<s>\n</s>\n") + LENGTH + 1);
    free(file.bytes);
    end_tree(made);
    free(text);
}
