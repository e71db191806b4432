#include "contrib/runner/tokenizer/pretokenizers.h"

#include "contrib/runner/tokenizer/pattern_ranges.h"

#include <string.h>

#define COUNT(list)  (sizeof(list) / sizeof *(list))
#define RANGES(list) .ranges = (list), .n_ranges = COUNT(list)

/* Patterns, from a rule of their type. */
#define SET(rule)                                                                                  \
    {                                                                                              \
        run_match_set, &(rule)                                                                     \
    }
#define WORDS(rule)                                                                                \
    {                                                                                              \
        run_match_words, &(rule)                                                                   \
    }

#define SPACE_LETTER_NUMBER (RUN_SPACE | RUN_LETTER | RUN_NUMBER)

static const struct run_set_rule number = {.classes = RUN_NUMBER, .max = 1};
static const struct run_set_rule numbers = {.classes = RUN_NUMBER};
static const struct run_set_rule numbers_by_three = {.classes = RUN_NUMBER, .max = 3};
static const struct run_set_rule three_digits = {.ascii = "0123456789", .min = 3, .max = 3};
static const struct run_set_rule line_end = {.ascii = "\r\n", .max = 1};
static const struct run_set_rule newlines = {.ascii = "\n"};
static const struct run_set_rule letters_after_any = {.classes = RUN_LETTER,
                                                      .lead = RUN_LEAD_ANY_SPACE};
static const struct run_set_rule cased_after_any = {RANGES(cased_letters),
                                                    .lead = RUN_LEAD_ANY_SPACE};
static const struct run_set_rule marks_after_any = {.classes = RUN_PUNCTUATION,
                                                    .lead = RUN_LEAD_ANY_SPACE};
static const struct run_set_rule wide_after_any = {RANGES(punctuation_and_ascii),
                                                   .lead = RUN_LEAD_ANY_SPACE};
static const struct run_set_rule falcon_marks = {.classes = RUN_PUNCTUATION, .ascii = "$+<=>^~|`"};
static const struct run_set_rule default_marks = {.classes = RUN_PUNCTUATION, .ascii = "$+<=>^~|"};
static const struct run_set_rule any_mark = {
    .classes = RUN_PUNCTUATION, .ascii = "$+<=>^~|`", .max = 1};
static const struct run_set_rule cjk = {RANGES(cjk_and_more)};
static const struct run_set_rule kana = {RANGES(han_and_kana)};
static const struct run_set_rule asia = {RANGES(scripts_of_asia)};
static const struct run_set_rule korean = {RANGES(hangul)};
static const struct run_set_rule chinese_marks = {RANGES(chinese_punctuation)};
static const struct run_set_rule phonetic = {RANGES(bopomofo)};
/* " ?[^(\s|.,!?...)]+": brackets and the bar belong to the set, whatever was meant. */
static const struct run_set_rule phrase = {.classes = RUN_SPACE,
                                           .ascii = "(|.,!?)",
                                           RANGES(sentence_marks),
                                           .lead = RUN_LEAD_SPACE,
                                           .is_negated = true};

static const struct run_words_rule gpt2 = {.contractions = RUN_CONTRACTIONS_FIRST,
                                           .letters = RUN_LETTERS_AFTER_SPACE,
                                           .numbers = RUN_NUMBERS_AFTER_SPACE,
                                           .no_punctuation = SPACE_LETTER_NUMBER};
static const struct run_words_rule llama3 = {.contractions = RUN_CONTRACTIONS_FIRST_ANY_CASE,
                                             .letters = RUN_LETTERS_PREFIXED,
                                             .numbers = RUN_NUMBERS_THREE,
                                             .no_punctuation = SPACE_LETTER_NUMBER,
                                             .tail = RUN_TAIL_LINE_ENDS,
                                             .has_line_ends = true};
static const struct run_words_rule jais2 = {.contractions = RUN_CONTRACTIONS_FIRST_ANY_CASE,
                                            .letters = RUN_LETTERS_PREFIXED,
                                            .numbers = RUN_NUMBERS_THREE,
                                            .no_punctuation = SPACE_LETTER_NUMBER,
                                            .tail = RUN_TAIL_LINE_ENDS,
                                            .has_line_ends = true,
                                            .is_space_halved = true};
static const struct run_words_rule qwen2 = {.contractions = RUN_CONTRACTIONS_FIRST_ANY_CASE,
                                            .letters = RUN_LETTERS_PREFIXED,
                                            .numbers = RUN_NUMBERS_ONE,
                                            .no_punctuation = SPACE_LETTER_NUMBER,
                                            .tail = RUN_TAIL_LINE_ENDS,
                                            .has_line_ends = true};
static const struct run_words_rule qwen35 = {.contractions = RUN_CONTRACTIONS_FIRST_ANY_CASE,
                                             .letters = RUN_LETTERS_AND_MARKS,
                                             .numbers = RUN_NUMBERS_ONE,
                                             .no_punctuation = SPACE_LETTER_NUMBER | RUN_MARK,
                                             .tail = RUN_TAIL_LINE_ENDS,
                                             .has_line_ends = true};
static const struct run_words_rule seed_coder = {.contractions = RUN_CONTRACTIONS_FIRST_ANY_CASE,
                                                 .letters = RUN_LETTERS_PREFIXED,
                                                 .numbers = RUN_NUMBERS_ONE,
                                                 .no_punctuation = SPACE_LETTER_NUMBER,
                                                 .has_line_ends = true};
static const struct run_words_rule minicpm5 = {.contractions = RUN_CONTRACTIONS_FIRST_ANY_CASE,
                                               .letters = RUN_LETTERS_PREFIXED,
                                               .numbers = RUN_NUMBERS_ALL,
                                               .no_punctuation = SPACE_LETTER_NUMBER,
                                               .tail = RUN_TAIL_LINE_ENDS,
                                               .has_line_ends = true};
static const struct run_words_rule exaone_moe = {.contractions = RUN_CONTRACTIONS_FIRST_ANY_CASE,
                                                 .letters = RUN_LETTERS_JOINED,
                                                 .numbers = RUN_NUMBERS_ONE,
                                                 .no_punctuation = SPACE_LETTER_NUMBER,
                                                 .tail = RUN_TAIL_A_LINE_END_OR_SLASH,
                                                 .has_line_ends = true};
static const struct run_words_rule deepseek3 = {
    .letters = RUN_LETTERS_TAGGED, .tail = RUN_TAIL_LINE_ENDS, .has_line_ends = true};
static const struct run_words_rule gpt4o = {.letters = RUN_LETTERS_CASED,
                                            .contractions = RUN_CONTRACTIONS_BEHIND,
                                            .numbers = RUN_NUMBERS_THREE,
                                            .no_punctuation = SPACE_LETTER_NUMBER,
                                            .tail = RUN_TAIL_LINE_ENDS_AND_SLASH,
                                            .has_line_ends = true};
static const struct run_words_rule youtu = {.letters = RUN_LETTERS_CASED,
                                            .contractions = RUN_CONTRACTIONS_BEHIND,
                                            .numbers = RUN_NUMBERS_ONE,
                                            .no_punctuation = SPACE_LETTER_NUMBER,
                                            .tail = RUN_TAIL_LINE_ENDS_AND_SLASH,
                                            .has_line_ends = true};
static const struct run_words_rule tekken = {.letters = RUN_LETTERS_CASED,
                                             .numbers = RUN_NUMBERS_ONE,
                                             .no_punctuation = SPACE_LETTER_NUMBER,
                                             .tail = RUN_TAIL_LINE_ENDS_AND_SLASH,
                                             .has_line_ends = true};
static const struct run_words_rule kimi = {.letters = RUN_LETTERS_CASED_NO_HAN,
                                           .contractions = RUN_CONTRACTIONS_BEHIND,
                                           .numbers = RUN_NUMBERS_THREE,
                                           .no_punctuation = SPACE_LETTER_NUMBER,
                                           .tail = RUN_TAIL_LINE_ENDS,
                                           .has_line_ends = true,
                                           .has_han = true};

/* ---- what the names stand for ---- */

static const struct run_pretokenizer as_default = {
    .patterns = {SET(default_marks), WORDS(gpt2), SET(numbers), SET(three_digits)}};
static const struct run_pretokenizer as_gpt2 = {.patterns = {WORDS(gpt2)}};
static const struct run_pretokenizer as_starcoder = {.patterns = {SET(number), WORDS(gpt2)}};
static const struct run_pretokenizer as_falcon = {
    .patterns = {SET(falcon_marks), WORDS(gpt2), SET(three_digits)}};
static const struct run_pretokenizer as_bloom = {.patterns = {SET(phrase)}};
static const struct run_pretokenizer as_viking = {.patterns = {SET(phrase), SET(number)}};
static const struct run_pretokenizer as_llama3 = {
    .patterns = {WORDS(llama3)}, .is_merging_ignored = true, .is_bos_added = true};
static const struct run_pretokenizer as_gpt4 = {.patterns = {WORDS(llama3)}};
static const struct run_pretokenizer as_jais2 = {.patterns = {WORDS(jais2)}};
static const struct run_pretokenizer as_minicpm5 = {
    .patterns = {SET(numbers_by_three), WORDS(minicpm5)}, .is_merging_ignored = true};
static const struct run_pretokenizer as_qwen2 = {.patterns = {WORDS(qwen2)}};
static const struct run_pretokenizer as_qwen35 = {.patterns = {WORDS(qwen35)}};
static const struct run_pretokenizer as_laguna = {.patterns = {SET(newlines), WORDS(qwen2)}};
static const struct run_pretokenizer as_seed_coder = {.patterns = {WORDS(seed_coder)}};
static const struct run_pretokenizer as_exaone_moe = {.patterns = {WORDS(exaone_moe)}};
static const struct run_pretokenizer as_deepseek_llm = {.patterns = {SET(line_end),
                                                                     SET(cased_after_any),
                                                                     SET(wide_after_any),
                                                                     {run_match_last_spaces, NULL},
                                                                     SET(cjk),
                                                                     SET(numbers)}};
static const struct run_pretokenizer as_deepseek_coder = {
    .patterns = {SET(line_end), SET(letters_after_any), SET(marks_after_any), SET(cjk),
                 SET(number)}};
static const struct run_pretokenizer as_deepseek3 = {
    .patterns = {SET(numbers_by_three), SET(kana), WORDS(deepseek3)}};
static const struct run_pretokenizer as_afmoe = {
    .patterns = {{run_match_digits_from_right, NULL}, SET(asia), WORDS(deepseek3)}};
static const struct run_pretokenizer as_gpt4o = {.patterns = {WORDS(gpt4o)}};
static const struct run_pretokenizer as_granite = {.patterns = {WORDS(gpt4o)},
                                                   .is_merging_ignored = true};
static const struct run_pretokenizer as_tiny_aya = {
    .patterns = {{run_match_number_from_right, NULL}, WORDS(gpt4o)}};
static const struct run_pretokenizer as_youtu = {
    .patterns = {SET(korean), SET(chinese_marks), SET(phonetic), SET(kana), WORDS(youtu)},
    .is_merging_ignored = true};
static const struct run_pretokenizer as_tekken = {
    .patterns = {WORDS(tekken)}, .is_merging_ignored = true, .is_bos_added = true};
static const struct run_pretokenizer as_kimi = {.patterns = {WORDS(kimi)},
                                                .is_merge_optional = true};
static const struct run_pretokenizer as_superbpe = {
    .patterns = {{run_match_digits_from_right, NULL}}};
static const struct run_pretokenizer as_chameleon = {.patterns = {{run_match_sentinel, NULL},
                                                                  {run_match_image, NULL},
                                                                  {run_match_indent, NULL},
                                                                  SET(number),
                                                                  SET(any_mark),
                                                                  WORDS(gpt2)},
                                                     .is_bos_added = true};
static const struct run_pretokenizer as_gemma4 = {
    .patterns = {SET(newlines)}, .is_raw = true, .is_always_bos = true};
static const struct run_pretokenizer as_sarvam = {.patterns = {SET(newlines)}, .is_raw = true};

static const struct {
    const char *name;
    const struct run_pretokenizer *is;
} names[] = {
    {"default", &as_default},
    {"a.x-4.0", &as_gpt2},
    {"afmoe", &as_afmoe},
    {"bailingmoe", &as_qwen2},
    {"bailingmoe2", &as_qwen2},
    {"bloom", &as_bloom},
    {"chameleon", &as_chameleon},
    {"chatglm-bpe", &as_gpt4},
    {"codeshell", &as_starcoder},
    {"cohere2moe", &as_tiny_aya},
    {"command-r", &as_starcoder},
    {"dbrx", &as_gpt4},
    {"deepseek-coder", &as_deepseek_coder},
    {"deepseek-llm", &as_deepseek_llm},
    {"deepseek-r1-qwen", &as_qwen2},
    {"deepseek-v3", &as_deepseek3},
    {"exaone", &as_starcoder},
    {"exaone-moe", &as_exaone_moe},
    {"exaone4", &as_gpt2},
    {"f2llmv2", &as_qwen2},
    {"falcon", &as_falcon},
    {"falcon-h1", &as_llama3},
    {"falcon3", &as_llama3},
    {"gemma4", &as_gemma4},
    {"gigachat", &as_gpt2},
    {"glm4", &as_gpt4},
    {"gpt-2", &as_gpt2},
    {"gpt-4o", &as_gpt4o},
    {"gpt3-finnish", &as_bloom},
    {"granite-docling", &as_gpt2},
    {"granite-embed-multi-311m", &as_gemma4},
    {"granite-embed-multi-97m", &as_granite},
    {"grok-2", &as_qwen2},
    {"hunyuan", &as_qwen2},
    {"hunyuan-dense", &as_deepseek3},
    {"jais", &as_gpt2},
    {"jais-2", &as_jais2},
    {"jina-de", &as_gpt2},
    {"jina-es", &as_gpt2},
    {"jina-v1-en", &as_gpt2},
    {"jina-v2-code", &as_gpt2},
    {"jina-v2-de", &as_gpt2},
    {"jina-v2-es", &as_gpt2},
    {"jina-v5-nano", &as_llama3},
    {"joyai-llm", &as_deepseek3},
    {"kanana2", &as_gpt4o},
    {"kimi-k2", &as_kimi},
    {"kormo", &as_qwen2},
    {"laguna", &as_laguna},
    {"lfm2", &as_llama3},
    {"llada-moe", &as_qwen2},
    {"llama-bpe", &as_llama3},
    {"llama-v3", &as_llama3},
    {"llama3", &as_llama3},
    {"llama4", &as_gpt4o},
    {"megrez", &as_qwen2},
    {"mellum", &as_gpt2},
    {"mellum2", &as_starcoder},
    {"midm-2.0", &as_llama3},
    {"minerva-7b", &as_starcoder},
    {"minicpm5", &as_minicpm5},
    {"minimax-m2", &as_gpt4o},
    {"modern-bert", &as_gpt2},
    {"mpt", &as_gpt2},
    {"olmo", &as_gpt2},
    {"phi-2", &as_gpt2},
    {"pixtral", &as_llama3},
    {"poro-chat", &as_bloom},
    {"qwen2", &as_qwen2},
    {"qwen35", &as_qwen35},
    {"refact", &as_starcoder},
    {"roberta-bpe", &as_gpt2},
    {"sarvam-moe", &as_sarvam},
    {"seed-coder", &as_seed_coder},
    {"smaug-bpe", &as_gpt4},
    {"smollm", &as_starcoder},
    {"solar-open", &as_qwen2},
    {"stablelm2", &as_qwen2},
    {"starcoder", &as_starcoder},
    {"superbpe", &as_superbpe},
    {"talkie", &as_gpt4o},
    {"tekken", &as_tekken},
    {"tiny_aya", &as_tiny_aya},
    {"trillion", &as_gpt2},
    {"viking", &as_viking},
    {"youtu", &as_youtu},
};

const struct run_pretokenizer *run_pretokenizer_find(const char *name)
{
    for (size_t i = 0; i < COUNT(names); i++)
        if (strcmp(names[i].name, name) == 0)
            return names[i].is;
    return NULL;
}

const char *run_pretokenizer_name(size_t index)
{
    return index < COUNT(names) ? names[index].name : NULL;
}

const char *run_pretokenizer_of(const char *architecture)
{
    static const struct {
        const char *architecture, *name;
    } list[] = {
        {"bloom", "bloom"},   {"codeshell", "codeshell"}, {"falcon", "falcon"},
        {"gpt2", "gpt-2"},    {"gptj", "gpt-2"},          {"gptneox", "gpt-2"},
        {"mpt", "mpt"},       {"phi2", "phi-2"},          {"qwen", "qwen2"},
        {"refact", "refact"}, {"stablelm", "gpt-2"},      {"starcoder", "starcoder"},
        {"whisper", "gpt-2"},
    };

    for (size_t i = 0; i < COUNT(list); i++)
        if (strcmp(list[i].architecture, architecture) == 0)
            return list[i].name;
    return NULL;
}

/* ---- cutting ---- */

struct cutting {
    const struct run_pretokenizer *pretokenizer;
    const char *text;
    run_word_taker *take;
    void *context;
};

/* Cuts the text from `start` to `end` by the patterns from `index` on: as deep as there are
 * patterns. */
/* NOLINTNEXTLINE(misc-no-recursion) */
static int cut(const struct cutting *cutting, size_t index, size_t start, size_t end)
{
    const struct run_pattern *pattern = &cutting->pretokenizer->patterns[index];
    struct run_scan scan = {.text = cutting->text, .end = end};
    size_t at = start;
    int code = 0;

    if (start == end)
        return 0;
    if (index == RUN_MAX_PATTERNS || !pattern->match)
        return cutting->take(cutting->context, cutting->text + start, end - start);
    while (code == 0 && at < end) {
        const size_t to = pattern->match(&scan, at, pattern->rule);

        if (to == at) {
            at += run_character_decode(scan.text, end, at).n_bytes;
            continue;
        }
        code = cut(cutting, index + 1, start, at);
        if (code == 0)
            code = cut(cutting, index + 1, at, to);
        start = at = to;
    }
    return code < 0 ? code : cut(cutting, index + 1, start, end);
}

int run_pretokenize(const struct run_pretokenizer *pretokenizer, const char *text, size_t length,
                    run_word_taker *take, void *context)
{
    const struct cutting cutting = {pretokenizer, text, take, context};

    return cut(&cutting, 0, 0, length);
}
