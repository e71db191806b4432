/*
 * Writes a model for measuring startup time: many tokens, many merges, and many small tensors. No
 * program can run it, because the tensors have the names of a llama's but not the shapes. All data
 * is zeros.
 */
#include "tests/writer/gguf_writer.h"
#include "tests/writer/random_weights.h"
#include "dequant/types.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

enum {
    DEFAULT_TOKENS = 150000,
    DEFAULT_TENSORS = 1000,
    MOST_TOKENS = 10000000,
    MOST_TENSORS = 1000000,
    N_EMBD = 256,
    N_ROWS = 4,
    TEXT_BYTES = 64, /* room for any token and any merge */
};

/* ---- the vocabulary ---- */

/* An alphabet of sixteen syllables. */
struct alphabet {
    const char *syllables[16];
};

static const struct alphabet latin = {{"an", "ber", "con", "da", "est", "for", "ing", "ki", "lo",
                                       "men", "ne", "per", "ra", "sti", "tur", "ve"}};
static const struct alphabet cyrillic = {{"ал", "бе", "во", "го", "де", "жи", "за", "ил", "ка",
                                          "ло", "ми", "но", "пр", "ра", "ст", "ту"}};
static const struct alphabet chinese = {{"的", "一", "是", "不", "了", "人", "我", "在", "有", "他",
                                         "这", "中", "大", "来", "上", "国"}};

static const struct alphabet *alphabet_of(uint32_t token)
{
    if (token % 8 == 0)
        return &chinese;
    return token % 8 == 1 ? &cyrillic : &latin;
}

static void append(char text[TEXT_BYTES], const char *more)
{
    strncat(text, more, TEXT_BYTES - 1 - strlen(text));
}

/* Append the syllables of `number`, which are different for every number. */
static void spell(char text[TEXT_BYTES], const struct alphabet *alphabet, uint32_t number)
{
    do {
        append(text, alphabet->syllables[number % 16]);
        number /= 16;
    } while (number-- > 0);
}

/* Start a token. Half of them begin with a space, which byte-level BPE writes as "Ġ". */
static void start_text(char text[TEXT_BYTES], uint32_t token)
{
    text[0] = '\0';
    if (token / 8 % 2 != 0)
        append(text, "Ġ");
}

static void token_text(char text[TEXT_BYTES], uint32_t token)
{
    start_text(text, token);
    spell(text, alphabet_of(token), token);
}

static void merge_text(char text[TEXT_BYTES], uint32_t merge)
{
    start_text(text, merge);
    spell(text, alphabet_of(merge), merge / 16);
    append(text, " ");
    append(text, alphabet_of(merge)->syllables[merge % 16]);
}

/* Return a score between -2000 and 0, with three decimals. */
static float token_score(uint32_t token)
{
    return -(float)(token * UINT64_C(48271) % 2000003) / 1000.0f;
}

enum { TOKEN_NORMAL = 1, TOKEN_CONTROL = 3 };

static void add_strings(struct gguf_writer *w, const char *key, uint32_t n_strings,
                        void (*make_text)(char text[TEXT_BYTES], uint32_t number))
{
    gguf_writer_add_array(w, key, GGUF_WRITER_STRING, n_strings);
    for (uint32_t i = 0; i < n_strings; i++) {
        char text[TEXT_BYTES];
        make_text(text, i);
        gguf_writer_string(w, text, strlen(text));
    }
}

static void add_tokenizer_keys(struct gguf_writer *w, uint32_t n_tokens)
{
    gguf_writer_add_string(w, "tokenizer.ggml.model", "gpt2");
    gguf_writer_add_string(w, "tokenizer.ggml.pre", "llama-bpe");
    add_strings(w, "tokenizer.ggml.tokens", n_tokens, token_text);
    gguf_writer_add_array(w, "tokenizer.ggml.scores", GGUF_WRITER_F32, n_tokens);
    for (uint32_t i = 0; i < n_tokens; i++)
        gguf_writer_f32(w, token_score(i));
    gguf_writer_add_array(w, "tokenizer.ggml.token_type", GGUF_WRITER_I32, n_tokens);
    for (uint32_t i = 0; i < n_tokens; i++)
        gguf_writer_i32(w, i < 2 ? TOKEN_CONTROL : TOKEN_NORMAL);
    add_strings(w, "tokenizer.ggml.merges", n_tokens, merge_text);
    gguf_writer_add_u32(w, "tokenizer.ggml.bos_token_id", 0);
    gguf_writer_add_u32(w, "tokenizer.ggml.eos_token_id", 1);
}

/* ---- the rest ---- */

static const char *const parts[] = {
    "attn_norm", "attn_q",   "attn_k", "attn_v",   "attn_output",
    "ffn_norm",  "ffn_gate", "ffn_up", "ffn_down",
};
enum { N_PARTS = sizeof parts / sizeof parts[0] };

static void add_model_keys(struct gguf_writer *w, uint32_t n_tokens, uint32_t n_tensors)
{
    gguf_writer_add_string(w, "general.architecture", "llama");
    gguf_writer_add_string(w, "general.name", "ggufs big");
    gguf_writer_add_u32(w, "general.quantization_version", 2);
    gguf_writer_add_u32(w, "llama.context_length", 8192);
    gguf_writer_add_u32(w, "llama.embedding_length", N_EMBD);
    gguf_writer_add_u32(w, "llama.block_count", (n_tensors + N_PARTS - 1) / N_PARTS);
    gguf_writer_add_u32(w, "llama.feed_forward_length", N_EMBD);
    gguf_writer_add_u32(w, "llama.attention.head_count", 8);
    gguf_writer_add_u32(w, "llama.attention.head_count_kv", 8);
    gguf_writer_add_f32(w, "llama.attention.layer_norm_rms_epsilon", 1e-5f);
    gguf_writer_add_u32(w, "llama.rope.dimension_count", N_EMBD / 8);
    gguf_writer_add_f32(w, "llama.rope.freq_base", 500000.0f);
    gguf_writer_add_u32(w, "llama.vocab_size", n_tokens);
}

static void add_tensors(struct gguf_writer *w, uint32_t n_tensors)
{
    static const char *const types[] = {"F32", "Q4_K", "Q6_K", "F16", "Q8_0", "Q5_K", "Q4_0"};
    static const uint64_t ne[2] = {N_EMBD, N_ROWS};

    for (uint32_t i = 0; i < n_tensors; i++) {
        const struct dequant_type *type = sample_type(types[i % (sizeof types / sizeof types[0])]);
        char name[64];
        snprintf(name, sizeof name, "blk.%u.%s.weight", i / N_PARTS, parts[i % N_PARTS]);
        gguf_writer_add_tensor(w, name, strlen(name), 2, ne, type->id, NULL,
                               (size_t)N_EMBD * N_ROWS / type->block_elements * type->block_bytes);
    }
}

/* Parse a decimal number up to `most`. */
static bool parse_number(const char *text, uint32_t most, uint32_t *number)
{
    if (text[0] < '0' || text[0] > '9')
        return false;
    char *end;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    if (errno != 0 || *end != '\0' || value > most)
        return false;
    *number = (uint32_t)value;
    return true;
}

int main(int argc, char **argv)
{
    uint32_t n_tokens = DEFAULT_TOKENS;
    uint32_t n_tensors = DEFAULT_TENSORS;
    if (argc < 2 || argc > 4 || argv[1][0] == '-' ||
        (argc > 2 && !parse_number(argv[2], MOST_TOKENS, &n_tokens)) ||
        (argc > 3 && !parse_number(argv[3], MOST_TENSORS, &n_tensors))) {
        fprintf(stderr,
                "usage: make-big OUT.gguf [N_TOKENS [N_TENSORS]]\n"
                "  N_TOKENS   0 to %d, default %d\n"
                "  N_TENSORS  0 to %d, default %d\n",
                MOST_TOKENS, DEFAULT_TOKENS, MOST_TENSORS, DEFAULT_TENSORS);
        return EX_USAGE;
    }
    struct gguf_writer *w = gguf_writer_open(3, false);
    add_model_keys(w, n_tokens, n_tensors);
    add_tokenizer_keys(w, n_tokens);
    add_tensors(w, n_tensors);
    int error = gguf_writer_save(w, argv[1]);
    if (error) {
        fprintf(stderr, "make-big: %s: %s\n", argv[1], strerror(-error));
        return EX_IOERR;
    }
    return EX_OK;
}
