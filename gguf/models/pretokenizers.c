#include "gguf/models/pretokenizers.h"

#include "gguf/models/models.h"
#include "gguf/support/strings.h"

#include <string.h>

#define COUNT(list) (sizeof(list) / sizeof *(list))

/*
 * Sources of the expressions: the models' tokenizer.json and the list in llama.cpp's
 * src/llama-vocab.cpp. Here they are in PCRE2's syntax (pcre2pattern(3)). They differ as follows,
 * without a change to any match:
 * - (?i:...) is written out for ASCII, since to PCRE2 U+017F is another case of "s";
 * - scripts are \p{sc:...}, since PCRE2's \p{...} includes script extensions;
 * - [U&&[^H]], which PCRE2 10.42 lacks, is written as the complement of the complement;
 * - expressions that would take quadratic time or deep backtracking have guards: possessive
 *   quantifiers, and lookbehinds at places where the expression cannot match. A comment on the row
 *   says so.
 */
/* clang-format off */

#define ANY_CASE  "(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])"
#define WORD      "[^\\r\\n\\p{L}\\p{N}]?\\p{L}+"
#define MARKS     " ?[^\\s\\p{L}\\p{N}]+"
#define SPACES    "\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"

#define GPT2    "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+|" MARKS "|\\s+(?!\\S)|\\s+"
#define LLAMA3  ANY_CASE "|" WORD "|\\p{N}{1,3}|" MARKS "[\\r\\n]*|" SPACES
#define QWEN2   ANY_CASE "|" WORD "|\\p{N}|" MARKS "[\\r\\n]*|" SPACES

/* A word of upper-case letters, then lower-case ones; either may be missing. */
#define UPPER      "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]"
#define LOWER      "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]"
#define CASED(upper, lower, behind) \
    "[^\\r\\n\\p{L}\\p{N}]?" upper "*" lower "+" behind "|" \
    "[^\\r\\n\\p{L}\\p{N}]?" upper "+" lower "*" behind
#define GPT4O   CASED(UPPER, LOWER, ANY_CASE "?") "|\\p{N}{1,3}|" MARKS "[\\r\\n/]*|" SPACES
#define YOUTU   CASED(UPPER, LOWER, ANY_CASE "?") "|\\p{N}|" MARKS "[\\r\\n/]*|" SPACES
#define TEKKEN  CASED(UPPER, LOWER, "") "|\\p{N}|" MARKS "[\\r\\n/]*|" SPACES

/* The same without ideographs. */
#define UPPER_NO_HAN "[^\\p{Ll}\\p{N}\\p{P}\\p{S}\\p{Z}\\p{C}\\p{sc:Han}]"
#define LOWER_NO_HAN "[^\\p{Lu}\\p{Lt}\\p{N}\\p{P}\\p{S}\\p{Z}\\p{C}\\p{sc:Han}]"

#define DEEPSEEK3 \
    "[!-/:-@\\[-`{-~][A-Za-z]+|[^\\r\\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+|" \
    " ?[\\p{P}\\p{S}]+[\\r\\n]*|" SPACES

/*
 * Groups of three digits from the right, (?=(\d{3})+(?!\d)). The first alternative continues from
 * the previous group; the second finds the first group, and is tried only where digits begin.
 */
#define GROUPS_FROM_RIGHT(digit, not_behind) \
    "\\G(?<=" digit ")" digit "{3}|" \
    "(?<!" digit ")" digit "{1,3}(?=(?:" digit "{3})*+(?!" not_behind "))"

#define HAN_AND_KANA "[\\x{3040}-\\x{309f}\\x{30a0}-\\x{30ff}\\x{4e00}-\\x{9fa5}]+"

/* The brackets and the bar are members of the set, although they were probably not meant to be. */
#define BLOOM " ?[^(\\s|.,!?\\x{2026}\\x{3002}\\x{ff0c}\\x{3001}\\x{964}\\x{6d4}\\x{60c})]+"

static const struct gguf_pretokenizer pretokenizers[] = {
    {.names = "default", .patterns = {"[\\p{P}$+<=>^~|]+", GPT2, "\\p{N}+", "[0-9][0-9][0-9]"}},
    {.names = "a.x-4.0 exaone4 gigachat gpt-2 granite-docling jais jina-de jina-es "
              "jina-v1-en jina-v2-code jina-v2-de jina-v2-es mellum modern-bert mpt olmo "
              "phi-2 roberta-bpe trillion",
     .patterns = {GPT2}},
    {.names = "codeshell command-r exaone mellum2 minerva-7b refact smollm starcoder",
     .patterns = {"\\p{N}", GPT2}},
    {.names = "falcon", .patterns = {"[\\p{P}$+<=>^~|`]+", GPT2, "[0-9][0-9][0-9]"}},
    {.names = "bloom gpt3-finnish poro-chat", .patterns = {BLOOM}},
    {.names = "viking", .patterns = {BLOOM, "\\p{N}"}},
    {.names = "falcon-h1 falcon3 jina-v5-nano lfm2 llama-bpe llama-v3 llama3 midm-2.0 "
              "pixtral",
     .patterns = {LLAMA3}, .is_merging_ignored = true, .is_bos_added = true},
    {.names = "chatglm-bpe dbrx glm4 smaug-bpe", .patterns = {LLAMA3}},
    /* Guarded: after a space that is not at the end of a line, no line ends within these spaces. */
    {.names = "jais-2",
     .patterns = {ANY_CASE "|" WORD "|\\p{N}{1,3}|" MARKS "[\\r\\n]*|"
                  "(?<![^\\S\\r\\n])\\s*[\\r\\n]+|"
                  "\\s{512}(?!\\S)|\\s{256}(?!\\S)|\\s{128}(?!\\S)|\\s{64}(?!\\S)|\\s{32}(?!\\S)|"
                  "\\s{16}(?!\\S)|\\s{8}(?!\\S)|\\s{4}(?!\\S)|\\s{1,2}(?!\\S)|\\s{1}"}},
    {.names = "minicpm5",
     .patterns = {"\\p{N}{1,3}", ANY_CASE "|" WORD "|\\p{N}+|" MARKS "[\\r\\n]*|" SPACES},
     .is_merging_ignored = true},
    {.names = "bailingmoe bailingmoe2 deepseek-r1-qwen f2llmv2 grok-2 hunyuan kormo "
              "llada-moe megrez qwen2 solar-open stablelm2",
     .patterns = {QWEN2}},
    {.names = "qwen35",
     .patterns = {ANY_CASE "|[^\\r\\n\\p{L}\\p{N}]?[\\p{L}\\p{M}]+|\\p{N}|"
                  " ?[^\\s\\p{L}\\p{M}\\p{N}]+[\\r\\n]*|" SPACES}},
    {.names = "laguna", .patterns = {"\\n+", QWEN2}},
    {.names = "seed-coder",
     .patterns = {ANY_CASE "|" WORD "|\\p{N}| ?[^\\s\\p{L}\\p{N}\\r\\n]+|" SPACES}},
    /* Guarded: with possessive quantifiers. */
    {.names = "exaone-moe",
     .patterns = {ANY_CASE "|[^\\r\\n\\p{L}\\p{N}]?(?:\\p{L}\\p{M}*+(?: \\p{L}\\p{M}*+)*+)++|\\p{N}|"
                  MARKS "[\\r\\n/]?|\\s*[\\r\\n]|\\s+(?!\\S)|\\s+"}},
    /* Guarded: \s+$ is tried only where spaces begin. */
    {.names = "deepseek-llm",
     .patterns = {"[\\r\\n]",
                  "\\s?[A-Za-z\\x{b5}\\x{c0}-\\x{d6}\\x{d8}-\\x{f6}\\x{f8}-\\x{1ba}"
                  "\\x{1bc}-\\x{1bf}\\x{1c4}-\\x{293}\\x{295}-\\x{2af}\\x{370}-\\x{373}"
                  "\\x{376}\\x{377}\\x{37b}-\\x{37d}\\x{37f}\\x{386}\\x{388}-\\x{38a}"
                  "\\x{38c}\\x{38e}-\\x{3a1}\\x{3a3}-\\x{3f5}\\x{3f7}-\\x{481}"
                  "\\x{48a}-\\x{52f}\\x{531}-\\x{556}\\x{10a0}-\\x{10c5}\\x{13a0}-\\x{13f5}"
                  "\\x{13f8}-\\x{13fd}\\x{1c90}-\\x{1cba}\\x{1cbd}-\\x{1cbf}"
                  "\\x{1d00}-\\x{1d2b}\\x{1d6b}-\\x{1d77}\\x{1d79}-\\x{1d9a}"
                  "\\x{1e00}-\\x{1f15}\\x{1f18}-\\x{1f1d}\\x{1f20}-\\x{1f45}"
                  "\\x{1f48}-\\x{1f4d}\\x{1f50}-\\x{1f57}\\x{1f59}\\x{1f5b}\\x{1f5d}"
                  "\\x{1f5f}-\\x{1f7d}\\x{1f80}-\\x{1fb4}\\x{1fb6}-\\x{1fbc}\\x{1fbe}"
                  "\\x{1fc2}-\\x{1fc4}\\x{1fc6}-\\x{1fcc}\\x{1fd0}-\\x{1fd3}"
                  "\\x{1fd6}-\\x{1fdb}\\x{1fe0}-\\x{1fec}\\x{1ff2}-\\x{1ff4}"
                  "\\x{1ff6}-\\x{1ffc}\\x{2102}\\x{2107}\\x{210a}-\\x{2113}\\x{2115}"
                  "\\x{2119}-\\x{211d}\\x{2124}\\x{2126}\\x{2128}\\x{212a}-\\x{212d}"
                  "\\x{212f}-\\x{2134}\\x{2139}\\x{213c}-\\x{213f}\\x{2145}-\\x{2149}"
                  "\\x{214e}\\x{2183}\\x{2184}\\x{2c00}-\\x{2c7b}\\x{2c7e}-\\x{2ce4}"
                  "\\x{2ceb}-\\x{2cee}\\x{2cf2}\\x{2cf3}\\x{a640}-\\x{a66d}"
                  "\\x{a680}-\\x{a69b}\\x{a722}-\\x{a76f}\\x{a771}-\\x{a787}"
                  "\\x{a78b}-\\x{a78e}\\x{ab70}-\\x{abbf}\\x{fb00}-\\x{fb06}"
                  "\\x{fb13}-\\x{fb17}\\x{ff21}-\\x{ff3a}\\x{ff41}-\\x{ff5a}"
                  "\\x{10400}-\\x{1044f}\\x{104b0}-\\x{104d3}\\x{104d8}-\\x{104fb}"
                  "\\x{10c80}-\\x{10cb2}\\x{10cc0}-\\x{10cf2}\\x{118a0}-\\x{118df}"
                  "\\x{1e900}-\\x{1e943}]+",
                  "\\s?[!-/:-~\\x{ff01}-\\x{ff0f}\\x{ff1a}-\\x{ff5e}\\x{2018}-\\x{201f}\\x{3000}-\\x{3002}]+",
                  "(?<!\\s)\\s++\\z",
                  "[\\x{4e00}-\\x{9fa5}\\x{800}-\\x{4e00}\\x{ac00}-\\x{d7ff}]+",
                  "\\p{N}+"}},
    {.names = "deepseek-coder",
     .patterns = {"[\\r\\n]", "\\s?\\p{L}+", "\\s?\\p{P}+",
                  "[\\x{4e00}-\\x{9fa5}\\x{800}-\\x{4e00}\\x{ac00}-\\x{d7ff}]+", "\\p{N}"}},
    {.names = "deepseek-v3 hunyuan-dense joyai-llm",
     .patterns = {"\\p{N}{1,3}", HAN_AND_KANA, DEEPSEEK3}},
    {.names = "afmoe",
     .patterns = {GROUPS_FROM_RIGHT("\\p{N}", "\\p{N}"),
                  "[\\x{e40}-\\x{e7f}\\x{e80}-\\x{eff}\\x{1000}-\\x{109f}\\x{1100}-\\x{11ff}"
                  "\\x{1780}-\\x{17ff}\\x{2f00}-\\x{2fdf}\\x{3040}-\\x{309f}"
                  "\\x{30a0}-\\x{30ff}\\x{3400}-\\x{4dbf}\\x{4e00}-\\x{9fff}"
                  "\\x{8c48}-\\x{faff}\\x{a9e0}-\\x{a9ff}\\x{aa60}-\\x{aa7f}"
                  "\\x{ac00}-\\x{d7af}\\x{ff65}-\\x{ff9f}]+",
                  DEEPSEEK3}},
    {.names = "gpt-4o kanana2 llama4 minimax-m2 talkie", .patterns = {GPT4O}},
    {.names = "granite-embed-multi-97m", .patterns = {GPT4O}, .is_merging_ignored = true},
    /* \d{1,3}(?=(?:\d{3})*\b), including the marks and connectors that are word characters. */
    {.names = "cohere2moe tiny_aya",
     .patterns = {GROUPS_FROM_RIGHT("\\d", "[\\p{L}\\p{M}\\p{N}\\p{Pc}]"), GPT4O}},
    {.names = "youtu",
     .patterns = {"[\\x{ac00}-\\x{d7a3}\\x{3131}-\\x{318e}]+|"
                  "[\\x{2014}\\x{2018}\\x{2019}\\x{201c}\\x{201d}\\x{2026}\\x{3001}-\\x{303f}"
                  "\\x{fe30}-\\x{fe4f}\\x{ff01}\\x{ff0c}\\x{ff1a}\\x{ff1b}]+|"
                  "[\\x{3105}-\\x{312f}]+|" HAN_AND_KANA,
                  YOUTU},
     .is_merging_ignored = true},
    {.names = "tekken", .patterns = {TEKKEN}, .is_merging_ignored = true, .is_bos_added = true},
    {.names = "kimi-k2",
     .patterns = {"\\p{sc:Han}+|" CASED(UPPER_NO_HAN, LOWER_NO_HAN, ANY_CASE "?")
                  "|\\p{N}{1,3}|" MARKS "[\\r\\n]*|" SPACES},
     .is_merge_optional = true},
    {.names = "superbpe", .patterns = {GROUPS_FROM_RIGHT("\\p{N}", "\\p{N}")}},
    {.names = "chameleon",
     /* The last pattern is GPT2, of several lines. NOLINTBEGIN(bugprone-suspicious-missing-comma) */
     .patterns = {"<sentinel:[0-9]+>", "IMGIMG[A-I]{1,4}Z", "[\\t\\n]|    |  ", "\\p{N}",
                  "[\\p{P}!-/:-@\\[-`{-~]", GPT2},
     /* NOLINTEND(bugprone-suspicious-missing-comma) */
     .is_bos_added = true},
    {.names = "gemma4 granite-embed-multi-311m",
     .patterns = {"\\n+"}, .is_raw = true, .is_always_bos = true},
    {.names = "sarvam-moe", .patterns = {"\\n+"}, .is_raw = true},
};

/* clang-format on */

const struct gguf_pretokenizer *gguf_pretokenizer_find(const char *name)
{
    for (size_t i = 0; i < COUNT(pretokenizers); i++)
        if (gguf_words_have(pretokenizers[i].names, gguf_string_of(name)))
            return &pretokenizers[i];
    return NULL;
}

const struct gguf_pretokenizer *gguf_pretokenizer_at(size_t index)
{
    return index < COUNT(pretokenizers) ? &pretokenizers[index] : NULL;
}

/* Return the name to use for an architecture whose files predate the key, or NULL. */
static const char *name_of_architecture(const char *architecture)
{
    const struct gguf_architecture *row = gguf_architecture_find(architecture);

    if (row)
        return row->pretokenizer;
    return strcmp(architecture, "whisper") == 0 ? "gpt-2" : NULL;
}

const struct gguf_pretokenizer *gguf_pretokenizer_choose(const char *model, const char *pre,
                                                         const char *architecture,
                                                         enum gguf_pretokenizer_origin *origin)
{
    const char *name = strcmp(model, "gemma4") == 0 ? model : pre;
    const struct gguf_pretokenizer *found;

    if (!name)
        name = name_of_architecture(architecture);
    *origin = name ? GGUF_PRE_KNOWN : GGUF_PRE_MISSING;
    found = gguf_pretokenizer_find(name ? name : "default");
    if (found)
        return found;
    *origin = GGUF_PRE_UNKNOWN;
    return gguf_pretokenizer_find("smaug-bpe");
}

void gguf_pattern_to_oniguruma(const char *pattern, char *out)
{
    static const char script[] = "\\p{sc:";

    /* The patterns use one construct that Oniguruma spells otherwise: \p{Han} is a script. */
    while (*pattern != '\0') {
        if (strncmp(pattern, script, sizeof script - 1) == 0) {
            memcpy(out, "\\p{", 3);
            out += 3;
            pattern += sizeof script - 1;
        } else {
            *out++ = *pattern++;
        }
    }
    *out = '\0';
}
