/*
 * Writes the sample model: the shape of a real llama with four layers, with pseudo-random weights
 * in eleven tensor types. It runs, but talks nonsense. The file is the same on every machine, byte
 * for byte: all random numbers are integers, and no floating-point result depends on how the
 * compiler arranges the operations.
 */
#include "contrib/sample/gguf_writer.h"
#include "contrib/sample/random_weights.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <sysexits.h>

enum {
    N_EMBD = 256,
    N_FF = 512,
    N_LAYERS = 4,
    N_HEADS = 8,
    N_KV_HEADS = 2,
    HEAD_DIM = N_EMBD / N_HEADS,
    N_KV = N_KV_HEADS * HEAD_DIM, /* the width of keys and values */
    N_CONTEXT = 2048,
    FILE_TYPE_MOSTLY_Q4_K_M = 15,
};

/* ---- the model ---- */

/* The ordinary tokens: merged ones, the earliest merge first, then the letters. */
static const char *const pieces[] = {
    "▁t",   "▁a",     "in",  "he",  "re",   "on",    "er",  "▁the", "at",   "▁s",    "▁w",    "▁o",
    "ou",   "nd",     "it",  "es",  "en",   "is",    "or",  "▁c",   "an",   "ed",    "▁b",    "▁f",
    "ing",  "▁p",     "▁in", "▁m",  "▁of",  "▁and",  "▁to", "al",   "ar",   "▁h",    "as",    "le",
    "el",   "▁is",    "▁it", "▁y",  "▁you", "▁for",  "ion", "▁be",  "▁was", "ile",   "▁file", "od",
    "odel", "▁model", "▁r",  "▁re", "ad",   "▁read", "▁n",  "am",   "ame",  "▁name", "▁",     "e",
    "t",    "a",      "o",   "i",   "n",    "s",     "h",   "r",    "d",    "l",     "u",     "c",
    "m",    "f",      "w",   "y",   "p",    "v",     "b",   "g",    "k",    "q",     "j",     "x",
    "z",    ".",      ",",   "'",   "!",    "?",     "-",
};

enum {
    N_PIECES = sizeof pieces / sizeof pieces[0],
    N_BYTES = 256,
    N_SPECIAL = 3,
    N_CHAT = 2,
    N_VOCAB = N_SPECIAL + N_BYTES + N_PIECES + N_CHAT,
};

enum token_type { TOKEN_NORMAL = 1, TOKEN_UNKNOWN = 2, TOKEN_CONTROL = 3, TOKEN_BYTE = 6 };

struct token {
    char text[16];
    float score;
    enum token_type type;
};

static void set_token(struct token *token, const char *text, float score, enum token_type type)
{
    snprintf(token->text, sizeof token->text, "%s", text);
    token->score = score;
    token->type = type;
}

static void make_vocabulary(struct token tokens[N_VOCAB])
{
    struct token *next = tokens;
    set_token(next++, "<unk>", 0, TOKEN_UNKNOWN);
    set_token(next++, "<s>", 0, TOKEN_CONTROL);
    set_token(next++, "</s>", 0, TOKEN_CONTROL);
    for (unsigned i = 0; i < N_BYTES; i++) {
        char text[8];
        snprintf(text, sizeof text, "<0x%02X>", i & 255);
        set_token(next++, text, 0, TOKEN_BYTE);
    }
    for (int i = 0; i < N_PIECES; i++)
        set_token(next++, pieces[i], (float)-i, TOKEN_NORMAL);
    set_token(next++, "<|im_start|>", 0, TOKEN_CONTROL);
    set_token(next++, "<|im_end|>", 0, TOKEN_CONTROL);
}

static const char chat_template[] =
    "{%- for message in messages %}\n"
    "{{- '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>\\n' }}\n"
    "{%- endfor %}\n"
    "{%- if add_generation_prompt %}\n"
    "{{- '<|im_start|>assistant\\n' }}\n"
    "{%- endif %}\n";

static void add_general_keys(struct gguf_writer *w)
{
    static const char *const tags[] = {"sample", "text-generation"};
    static const char *const languages[] = {"en"};

    gguf_writer_add_string(w, "general.architecture", "llama");
    gguf_writer_add_string(w, "general.type", "model");
    gguf_writer_add_string(w, "general.name", "ggufs sample");
    gguf_writer_add_string(w, "general.author", "the ggufs authors");
    gguf_writer_add_string(w, "general.description",
                           "A small llama with pseudo-random weights. It runs and talks nonsense.");
    gguf_writer_add_string(w, "general.license", "MIT");
    gguf_writer_add_string(w, "general.size_label", "2.4M");
    gguf_writer_add_strings(w, "general.tags", tags, sizeof tags / sizeof tags[0]);
    gguf_writer_add_strings(w, "general.languages", languages,
                            sizeof languages / sizeof languages[0]);
    gguf_writer_add_u32(w, "general.file_type", FILE_TYPE_MOSTLY_Q4_K_M);
    gguf_writer_add_u32(w, "general.quantization_version", 2);
}

static void add_llama_keys(struct gguf_writer *w)
{
    gguf_writer_add_u32(w, "llama.context_length", N_CONTEXT);
    gguf_writer_add_u32(w, "llama.embedding_length", N_EMBD);
    gguf_writer_add_u32(w, "llama.block_count", N_LAYERS);
    gguf_writer_add_u32(w, "llama.feed_forward_length", N_FF);
    gguf_writer_add_u32(w, "llama.attention.head_count", N_HEADS);
    gguf_writer_add_u32(w, "llama.attention.head_count_kv", N_KV_HEADS);
    gguf_writer_add_f32(w, "llama.attention.layer_norm_rms_epsilon", 1e-5f);
    gguf_writer_add_u32(w, "llama.rope.dimension_count", HEAD_DIM);
    gguf_writer_add_f32(w, "llama.rope.freq_base", 10000.0f);
    gguf_writer_add_u32(w, "llama.vocab_size", N_VOCAB);
}

static void add_tokenizer_keys(struct gguf_writer *w)
{
    struct token tokens[N_VOCAB];
    make_vocabulary(tokens);

    gguf_writer_add_string(w, "tokenizer.ggml.model", "llama");
    gguf_writer_add_string(w, "tokenizer.ggml.pre", "default");
    gguf_writer_add_array(w, "tokenizer.ggml.tokens", GGUF_WRITER_STRING, N_VOCAB);
    for (int i = 0; i < N_VOCAB; i++)
        gguf_writer_string(w, tokens[i].text, strlen(tokens[i].text));
    gguf_writer_add_array(w, "tokenizer.ggml.scores", GGUF_WRITER_F32, N_VOCAB);
    for (int i = 0; i < N_VOCAB; i++)
        gguf_writer_f32(w, tokens[i].score);
    gguf_writer_add_array(w, "tokenizer.ggml.token_type", GGUF_WRITER_I32, N_VOCAB);
    for (int i = 0; i < N_VOCAB; i++)
        gguf_writer_i32(w, (int32_t)tokens[i].type);

    gguf_writer_add_u32(w, "tokenizer.ggml.unknown_token_id", 0);
    gguf_writer_add_u32(w, "tokenizer.ggml.bos_token_id", 1);
    gguf_writer_add_u32(w, "tokenizer.ggml.eos_token_id", 2);
    gguf_writer_add_u32(w, "tokenizer.ggml.eot_token_id", N_VOCAB - 1);
    gguf_writer_add_bool(w, "tokenizer.ggml.add_bos_token", true);
    gguf_writer_add_bool(w, "tokenizer.ggml.add_eos_token", false);
    gguf_writer_add_bool(w, "tokenizer.ggml.add_space_prefix", true);
    gguf_writer_add_string(w, "tokenizer.chat_template", chat_template);
}

/* The tensors of a layer, with a type for each layer. A tensor with one row is a vector. */
struct part {
    const char *name;
    uint64_t row_elements;
    uint64_t n_rows;
    float std;
    const char *types[N_LAYERS];
};

static const struct part parts[] = {
    {"attn_norm", N_EMBD, 1, 0.1f, {"F32", "F32", "F32", "F32"}},
    {"attn_q", N_EMBD, N_EMBD, 0.05f, {"Q4_K", "Q4_K", "Q4_0", "Q3_K"}},
    {"attn_k", N_EMBD, N_KV, 0.05f, {"BF16", "Q8_0", "Q5_K", "Q4_K"}},
    {"attn_v", N_EMBD, N_KV, 0.05f, {"F16", "Q6_K", "Q8_0", "Q6_K"}},
    {"attn_output", N_EMBD, N_EMBD, 0.03f, {"Q5_K", "IQ4_NL", "Q4_K", "Q3_K"}},
    {"ffn_norm", N_EMBD, 1, 0.1f, {"F32", "F32", "F32", "F32"}},
    {"ffn_gate", N_EMBD, N_FF, 0.04f, {"Q4_K", "Q4_K", "Q3_K", "Q2_K"}},
    {"ffn_up", N_EMBD, N_FF, 0.04f, {"Q4_K", "Q3_K", "Q3_K", "Q2_K"}},
    {"ffn_down", N_FF, N_EMBD, 0.03f, {"Q4_K", "Q3_K", "Q3_K", "Q2_K"}},
};

static void add_tensor(struct gguf_writer *w, struct sample_random *r, const char *name,
                       const char *type, uint64_t row_elements, uint64_t n_rows, float std)
{
    static unsigned char data[sizeof(float) * N_EMBD * N_FF]; /* enough for the largest tensor */

    const struct dequant_type *row = sample_type(type);
    size_t n_blocks = (size_t)(row_elements * n_rows / row->block_elements);
    size_t n_bytes = n_blocks * row->block_bytes;
    assert(n_bytes <= sizeof data);

    /* Vectors are norms: factors around one. */
    sample_fill_blocks(r, row, data, n_blocks, n_rows == 1 ? 1.0f : 0.0f, std);
    uint64_t ne[2] = {row_elements, n_rows};
    gguf_writer_add_tensor(w, name, strlen(name), n_rows == 1 ? 1 : 2, ne, row->id, data, n_bytes);
}

static void add_tensors(struct gguf_writer *w)
{
    struct sample_random r = {.state = 2026};

    add_tensor(w, &r, "token_embd.weight", "Q4_K", N_EMBD, N_VOCAB, 0.06f);
    for (int layer = 0; layer < N_LAYERS; layer++) {
        for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
            const struct part *part = &parts[i];
            char name[64];
            snprintf(name, sizeof name, "blk.%d.%s.weight", layer, part->name);
            add_tensor(w, &r, name, part->types[layer], part->row_elements, part->n_rows,
                       part->std);
        }
    }
    add_tensor(w, &r, "output_norm.weight", "F32", N_EMBD, 1, 0.1f);
    add_tensor(w, &r, "output.weight", "Q6_K", N_EMBD, N_VOCAB, 0.06f);
}

int main(int argc, char **argv)
{
    if (argc != 2 || argv[1][0] == '-') {
        fprintf(stderr, "usage: make-sample OUT.gguf\n");
        return EX_USAGE;
    }
    struct gguf_writer *w = gguf_writer_open(3, false);
    add_general_keys(w);
    add_llama_keys(w);
    add_tokenizer_keys(w);
    add_tensors(w);
    int error = gguf_writer_save(w, argv[1]);
    if (error) {
        fprintf(stderr, "make-sample: %s: %s\n", argv[1], strerror(-error));
        return EX_IOERR;
    }
    return EX_OK;
}
