#include "tests/unit/runner/tiny_shapes.h"

#include <criterion/criterion.h>

#include <stdio.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* ---- sizes, by the letters of the table of shapes ---- */

enum {
    E = 32,           /* embeddings */
    V = TINY_N_VOCAB, /* tokens */
    C = 64,           /* context */
    H = 4,            /* heads */
    G = 2,            /* heads of keys and values; groups of recurrent heads */
    D = 8,            /* width of a head */
    Q = H * D,        /* queries */
    K = G * D,        /* keys */
    F = 48,           /* feed-forward */
    N = 4,            /* experts */
    X = 48,           /* width of an expert */
    R = 12,           /* rank of latent attention, and of low-rank products */
    O = 4,            /* rotated elements of a head in latent attention */
    M = 8,            /* width of keys in latent attention */
    U = 8,            /* width of values in latent attention */
    I = 2 * E,        /* inner width of Mamba */
    S = 8,            /* states of a recurrent head */
    L = 2,            /* layers */
};

struct size {
    char letter;
    uint64_t size;
};

static const struct size sizes[] = {
    {'1', 1},
    {'2', 2},
    {'3', 3},
    {'4', 4},
    {'5', 5},
    {'6', 6},
    {'9', 9},
    {'E', E},
    {'V', V},
    {'C', C},
    {'H', H},
    {'G', G},
    {'D', D},
    {'Q', Q},
    {'K', K},
    {'F', F},
    {'N', N},
    {'X', X},
    {'R', R},
    {'O', O},
    {'M', M},
    {'U', U},
    {'I', I},
    {'S', S},
    {'L', L},
    {'q', 2 * Q},
    {'f', 2 * F},
    {'p', Q + 2 * K},
    {'e', 3 * E},
    {'i', 2 * I},
    {'m', H *M},
    {'u', H *U},
    {'a', R + O},
    {'b', H *(M - O + U)},
    {'n', M - O},
    {'x', O + 2 * S},
    {'w', 64 + 2 * S},
    {'t', 3 * Q},
    {'z', 64},
    {'c', I + 2 * G *S},
    {'j', 2 * I + 2 * G *S + H},
    {'v', H *S},
    {'k', 2 * G *S + H *S},
    {'h', 2 * H},
    {'g', I / G},
    {'r', 5 * S},
    {'A', 16},
    {'B', 16 * L},
    {'T', 8},
    {'W', 256},
    {'Y', 256 * L},
    {'y', G * 8},
};

/*
 * Shapes by name without suffix, fastest dimension first; the first row that matches counts.
 * `architecture` is one, or begins with it if it ends in '*'; NULL is any. A bias has a row of its
 * own, or the other dimensions of the tensor.
 */
static const struct {
    const char *architecture, *name, *shape;
} shapes[] = {
    {NULL, "token_embd", "EV"},
    {NULL, "output", "EV"},
    {NULL, "output_norm.bias", "E"},
    {NULL, "position_embd", "EC"},
    {NULL, "rope_freqs", "4"},
    {NULL, "dense_2", "EE"},
    {"arctic", "ffn_up", "EE"},
    {"arctic", "ffn_gate", "EE"},
    {"arctic", "ffn_down", "EE"},
    {"plm", "attn_q", "Em"},
    {NULL, "attn_q_a", "ER"},
    {NULL, "attn_q_a_norm", "R"},
    {NULL, "attn_q_b", "Rm"},
    {NULL, "attn_kv_a_mqa", "Ea"},
    {NULL, "attn_kv_a_norm", "R"},
    {NULL, "attn_kv_b", "Rb"},
    {NULL, "attn_k_b", "nRH"},
    {NULL, "attn_v_b", "RUH"},
    {"deepseek2", "attn_output", "uE"},
    {"deepseek32", "attn_output", "uE"},
    {"mistral4", "attn_output", "uE"},
    {"glm-dsa", "attn_output", "uE"},
    {"minicpm3", "attn_output", "uE"},
    {"plm", "attn_output", "uE"},
    {"kimi-linear", "attn_q", "Ev"},
    {"kimi-linear", "attn_k", "Ev"},
    {"kimi-linear", "attn_v", "Ev"},
    {"qwen3next", "attn_q", "Eq"},
    {"qwen35*", "attn_q", "Eq"},
    {"qwen3next", "attn_qkv", "Ek"},
    {"qwen35*", "attn_qkv", "Ek"},
    {"qwen3next", "attn_gate", "Ev"},
    {"qwen35*", "attn_gate", "Ev"},
    {"afmoe", "attn_gate", "EQ"},
    {NULL, "attn_gate", "EH"},
    {NULL, "attn_q", "EQ"},
    {NULL, "attn_k", "EK"},
    {NULL, "attn_v", "EK"},
    {NULL, "attn_qkv", "Ep"},
    {NULL, "attn_output", "QE"},
    {NULL, "attn_sinks", "H"},
    {NULL, "attn_sub_norm", "Q"},
    {"mpt", "attn_q_norm", "E"},
    {"mpt", "attn_k_norm", "K"},
    {"olmo2", "attn_q_norm", "Q"},
    {"olmo2", "attn_k_norm", "K"},
    {"olmoe", "attn_q_norm", "Q"},
    {"olmoe", "attn_k_norm", "Q"},
    {"minimax-m2", "attn_q_norm", "Q"},
    {"minimax-m2", "attn_k_norm", "K"},
    {"stablelm", "attn_q_norm", "DH"},
    {"stablelm", "attn_k_norm", "DG"},
    {"plamo2", "attn_q_norm", "DH"},
    {"plamo2", "attn_k_norm", "DG"},
    {"chameleon", "attn_q_norm", "DH"},
    {"chameleon", "attn_k_norm", "DG"},
    {"talkie", "attn_q_norm", "1H"},
    {NULL, "attn_q_norm", "D"},
    {NULL, "attn_k_norm", "D"},
    {NULL, "indexer.q_proj", "Ey"},
    {NULL, "indexer.k_proj", "ET"},
    {NULL, "indexer.attn_k", "ET"},
    {NULL, "indexer.attn_q_b", "Ry"},
    {NULL, "indexer.proj", "EG"},
    {NULL, "indexer.q_norm", "T"},
    {NULL, "indexer.k_norm.bias", "T"},
    {NULL, "indexer.k_norm", "T"},
    {"phi3", "ffn_up", "Ef"},
    {"chatglm", "ffn_up", "Ef"},
    {"glm4", "ffn_up", "Ef"},
    {"plamo2", "ffn_up", "Ef"},
    {"plamo3", "ffn_up", "Ef"},
    {NULL, "ffn_up", "EF"},
    {NULL, "ffn_gate", "EF"},
    {NULL, "ffn_down", "FE"},
    {NULL, "ffn_sub_norm", "F"},
    {NULL, "ffn_gate_inp.scale", "E"},
    {NULL, "ffn_gate_inp", "EN"},
    {NULL, "ffn_gate_inp_shexp", "E"},
    {NULL, "exp_probs_b.bias", "N"},
    {NULL, "exp_probs_b", "N"},
    {"nemotron_h_moe", "ffn_up_exps", "AXN"},
    {"nemotron_h_moe", "ffn_down_exps", "XAN"},
    {NULL, "ffn_latent_down", "EA"},
    {NULL, "ffn_latent_up", "AE"},
    {NULL, "ffn_up_exps", "EXN"},
    {NULL, "ffn_gate_exps", "EXN"},
    {NULL, "ffn_down_exps", "XEN"},
    {NULL, "ffn_up_chexps", "EX2"},
    {NULL, "ffn_gate_chexps", "EX2"},
    {NULL, "ffn_down_chexps", "XE2"},
    {NULL, "ffn_up_shexp", "EX"},
    {NULL, "ffn_gate_shexp", "EX"},
    {NULL, "ffn_down_shexp", "XE"},
    {NULL, "layer_output_scale", "1"},
    {NULL, "altup_proj", "EE3"},
    {NULL, "altup_unembd_proj", "EE3"},
    {"gemma3n", "per_layer_token_embd", "YV"},
    {"gemma3n", "per_layer_model_proj", "EY"},
    {"gemma3n", "per_layer_proj_norm", "W"},
    {"gemma3n", "inp_gate", "EW"},
    {"gemma3n", "proj", "WE"},
    {NULL, "per_layer_token_embd", "BV"},
    {NULL, "per_layer_model_proj", "EB"},
    {NULL, "per_layer_proj_norm", "A"},
    {NULL, "inp_gate", "EA"},
    {NULL, "proj", "AE"},
    {NULL, "altup_correct_coef", "44"},
    {NULL, "altup_correct_scale", "E"},
    {NULL, "altup_predict_coef", "4A"},
    {NULL, "altup_router", "E4"},
    {NULL, "laurel_l", "Ez"},
    {NULL, "laurel_r", "zE"},
    {"plamo2", "ssm_x", "Iw"},
    {"plamo2", "ssm_dt.bias", "H"},
    {"plamo2", "ssm_dt", "zH"},
    {"plamo2", "ssm_a", "H"},
    {"plamo2", "ssm_d", "H"},
    {"plamo2", "ssm_dt_norm", "z"},
    {"mamba", "ssm_dt.bias", "I"},
    {"jamba", "ssm_dt.bias", "I"},
    {"mamba", "ssm_a", "SI"},
    {"jamba", "ssm_a", "SI"},
    {"mamba", "ssm_d", "I"},
    {"jamba", "ssm_d", "I"},
    {"mamba", "ssm_in", "Ei"},
    {"jamba", "ssm_in", "Ei"},
    {"plamo2", "ssm_in", "Ei"},
    {"mamba", "ssm_conv1d", "4I"},
    {"jamba", "ssm_conv1d", "4I"},
    {"plamo2", "ssm_conv1d", "4I"},
    {NULL, "ssm_x", "Ix"},
    {NULL, "ssm_dt", "OI"},
    {NULL, "ssm_dt_norm", "O"},
    {NULL, "ssm_b_norm", "S"},
    {NULL, "ssm_c_norm", "S"},
    {"qwen3next", "ssm_conv1d", "4k"},
    {"qwen35*", "ssm_conv1d", "4k"},
    {"qwen3next", "ssm_norm", "S"},
    {"qwen35*", "ssm_norm", "S"},
    {"kimi-linear", "ssm_norm", "S"},
    {"qwen3next", "ssm_a", "H"},
    {"qwen35*", "ssm_a", "H"},
    {"qwen3next", "ssm_out", "vE"},
    {"qwen35*", "ssm_out", "vE"},
    {"kimi-linear", "ssm_dt.bias", "v"},
    {NULL, "ssm_conv1d", "4c"},
    {NULL, "ssm_in", "Ej"},
    {NULL, "ssm_dt.bias", "H"},
    {NULL, "ssm_a", "1H"},
    {NULL, "ssm_d", "1H"},
    {NULL, "ssm_norm", "gG"},
    {NULL, "ssm_out", "IE"},
    {NULL, "ssm_ba", "Eh"},
    {NULL, "ssm_beta", "EH"},
    {NULL, "ssm_alpha", "EH"},
    {NULL, "ssm_conv1d_q", "41v"},
    {NULL, "ssm_conv1d_k", "41v"},
    {NULL, "ssm_conv1d_v", "41v"},
    {NULL, "ssm_f_a", "ES"},
    {NULL, "ssm_f_b", "Sv"},
    {NULL, "ssm_g_a", "ES"},
    {NULL, "ssm_g_b", "Sv"},
    {NULL, "shortconv.conv", "3E"},
    {NULL, "shortconv.in_proj", "Ee"},
    {NULL, "shortconv.out_proj", "EE"},
    {"rwkv6*", "time_mix_w1", "Er"},
    {"rwkv6*", "time_mix_w2", "SE5"},
    {NULL, "time_mix_lerp_x", "E11"},
    {"rwkv6*", "time_mix_lerp_fused", "E115"},
    {NULL, "time_mix_lerp_fused", "E116"},
    {"rwkv6*", "time_mix_first", "DH"},
    {NULL, "time_mix_decay_w1", "ES"},
    {NULL, "time_mix_decay_w2", "SE"},
    {NULL, "time_mix_w1", "ES"},
    {NULL, "time_mix_w2", "SE"},
    {NULL, "time_mix_a1", "ES"},
    {NULL, "time_mix_a2", "SE"},
    {NULL, "time_mix_v1", "ES"},
    {NULL, "time_mix_v2", "SE"},
    {NULL, "time_mix_g1", "ES"},
    {NULL, "time_mix_g2", "SE"},
    {NULL, "time_mix_key", "EE"},
    {NULL, "time_mix_value", "EE"},
    {NULL, "time_mix_receptance", "EE"},
    {NULL, "time_mix_gate", "EE"},
    {NULL, "time_mix_output", "EE"},
    {NULL, "channel_mix_key", "EF"},
    {NULL, "channel_mix_value", "FE"},
    {NULL, "channel_mix_receptance", "EE"},
    {NULL, "channel_mix_lerp_k", "E11"},
    {NULL, "channel_mix_lerp_r", "E11"},
    {NULL, "nextn.eh_proj", "hE"},
};

/* Architectures with as many heads of keys as of queries, and with a fused product of both. */
const char *const tiny_many_keys[] = {"cogvlm", "qwen",    "deepseek2-ocr", "dots1",
                                      "jais2",  "olmoe",   "gpt2",          "starcoder",
                                      "bloom",  "gptneox", "mpt",           NULL};
const char *const tiny_fused[] = {"bloom",   "cogvlm", "dbrx", "falcon",    "gpt2",
                                  "gptneox", "jais",   "mpt",  "openelm",   "phi3",
                                  "plamo2",  "plamo3", "qwen", "starcoder", NULL};

bool tiny_is_in(const char *const list[], const char *name)
{
    for (size_t i = 0; list[i]; i++)
        if (strcmp(list[i], name) == 0)
            return true;
    return false;
}

static uint64_t size_of(const char *architecture, char letter)
{
    if (tiny_is_in(tiny_many_keys, architecture))
        letter = letter == 'K' ? 'Q' : letter == 'p' ? 't' : letter;
    for (size_t i = 0; i < COUNT(sizes); i++)
        if (sizes[i].letter == letter)
            return sizes[i].size;
    cr_assert_fail("no size '%c'", letter);
    return 0;
}

bool tiny_is_of(const char *architecture, const char *pattern)
{
    const size_t n = pattern ? strcspn(pattern, "*") : 0;

    return !pattern ||
           (strncmp(architecture, pattern, n) == 0 && (pattern[n] == '*' || !architecture[n]));
}

static const char *find_shape(const char *architecture, const char *name)
{
    for (size_t i = 0; i < COUNT(shapes); i++)
        if (tiny_is_of(architecture, shapes[i].architecture) && strcmp(shapes[i].name, name) == 0)
            return shapes[i].shape;
    return NULL;
}

void tiny_set_shape(const char *architecture, const char *name, uint64_t ne[4])
{
    const char *shape = find_shape(architecture, name);
    const char *suffix = strrchr(name, '.');
    const bool is_bias = suffix && strcmp(suffix, ".bias") == 0;
    char base[64];

    if (!shape && is_bias) {
        snprintf(base, sizeof base, "%.*s", (int)(suffix - name), name);
        shape = find_shape(architecture, base);
        if (shape && strlen(shape) > 1 && !strstr(base, "norm"))
            shape++; /* a bias for each row */
    }
    if (!shape)
        shape = "E"; /* norms of the residual stream */
    for (size_t i = 0; shape[i] != '\0'; i++)
        ne[i] = size_of(architecture, shape[i]);
}
