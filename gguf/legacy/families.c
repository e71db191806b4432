#include "gguf/legacy/families.h"

#include "gguf/models/tensor_names.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* ---- llama ---- */

static const struct gguf_hyperparameter llama_numbers[] = {
    {"n_vocab", ".vocab_size", GGUF_ROLE_VOCABULARY},
    {"n_embd", ".embedding_length", GGUF_ROLE_WIDTH},
    {"n_mult", NULL, GGUF_ROLE_NONE},
    {"n_head", ".attention.head_count", GGUF_ROLE_HEADS},
    {"n_layer", ".block_count", GGUF_ROLE_LAYERS},
    {"n_rot", ".rope.dimension_count", GGUF_ROLE_HEAD_WIDTH},
    {"ftype", NULL, GGUF_ROLE_FILE_TYPE},
    {0},
};

static const char llama_names[] =
    "layers.% tok_embeddings.>token_embd. norm.>output_norm. output.>output. "
    ".attention.wq.>attn_q. .attention.wk.>attn_k. .attention.wv.>attn_v. "
    ".attention.wo.>attn_output. .attention_norm.>attn_norm. .feed_forward.w1.>ffn_gate. "
    ".feed_forward.w2.>ffn_down. .feed_forward.w3.>ffn_up. .ffn_norm.>ffn_norm.";

/* llama.cpp warned above this context length; ggml_rms_norm() had this epsilon built in. */
static const struct gguf_constant llama_constants[] = {
    {".context_length", 2048, false},
    {".attention.layer_norm_rms_epsilon", 1e-6f, true},
    {"tokenizer.ggml.unknown_token_id", 0, false},
    {"tokenizer.ggml.bos_token_id", 1, false},
    {"tokenizer.ggml.eos_token_id", 2, false},
    {0},
};

/* ggml_norm() had this epsilon built in. */
static const struct gguf_constant norm_constants[] = {
    {".attention.layer_norm_epsilon", 1e-5f, true},
    {0},
};

/* ---- gpt-2, starcoder ---- */

#define GPT_NUMBERS                                                                                \
    {"n_vocab", ".vocab_size", GGUF_ROLE_VOCABULARY},                                              \
        {"n_ctx", ".context_length", GGUF_ROLE_NONE},                                              \
        {"n_embd", ".embedding_length", GGUF_ROLE_WIDTH},                                          \
        {"n_head", ".attention.head_count", GGUF_ROLE_HEADS},                                      \
    {                                                                                              \
        "n_layer", ".block_count", GGUF_ROLE_LAYERS                                                \
    }

static const struct gguf_hyperparameter gpt2_numbers[] = {
    GPT_NUMBERS,
    {"ftype", NULL, GGUF_ROLE_FILE_TYPE},
    {0},
};

static const char gpt2_names[] =
    "model/h% model/wte>token_embd. model/wpe>position_embd. model/lm_head>output.? "
    "model/ln_f/g>output_norm. model/ln_f/b>output_norm.bias /ln_1/g>attn_norm. "
    "/ln_1/b>attn_norm.bias /attn/c_attn/w>attn_qkv. /attn/c_attn/b>attn_qkv.bias "
    "/attn/c_proj/w>attn_output. /attn/c_proj/b>attn_output.bias /ln_2/g>ffn_norm. "
    "/ln_2/b>ffn_norm.bias /mlp/c_fc/w>ffn_up. /mlp/c_fc/b>ffn_up.bias /mlp/c_proj/w>ffn_down. "
    "/mlp/c_proj/b>ffn_down.bias";

/* ---- gpt-j ---- */

static const struct gguf_hyperparameter gptj_numbers[] = {
    GPT_NUMBERS,
    {"n_rot", ".rope.dimension_count", GGUF_ROLE_ROTATED},
    {"ftype", NULL, GGUF_ROLE_FILE_TYPE},
    {0},
};

static const char gptj_names[] =
    "transformer.h.% transformer.wte.>token_embd. transformer.ln_f*>output_norm* "
    "lm_head*>output* .ln_1*>attn_norm* .attn.q_proj.>attn_q. .attn.k_proj.>attn_k. "
    ".attn.v_proj.>attn_v. .attn.out_proj.>attn_output. .mlp.fc_in*>ffn_up* "
    ".mlp.fc_out*>ffn_down*";

/* ---- gpt-neox, stablelm ---- */

static const struct gguf_hyperparameter neox_numbers[] = {
    GPT_NUMBERS,
    {"n_rot", ".rope.dimension_count", GGUF_ROLE_ROTATED},
    {"par_res", ".use_parallel_residual", GGUF_ROLE_BOOL},
    {"ftype", NULL, GGUF_ROLE_FILE_TYPE},
    {0},
};

/* query_key_value has its rows ordered by head, unlike GGUF's attn_qkv. */
static const char neox_names[] =
    "gpt_neox.layers.% gpt_neox.embed_in.>token_embd. gpt_neox.final_layer_norm*>output_norm* "
    "embed_out.>output. .input_layernorm*>attn_norm* .attention.query_key_value* "
    ".attention.dense*>attn_output* .post_attention_layernorm*>ffn_norm* "
    ".mlp.dense_h_to_4h*>ffn_up* .mlp.dense_4h_to_h*>ffn_down*";

/* ---- mpt ---- */

static const struct gguf_hyperparameter mpt_numbers[] = {
    {"d_model", ".embedding_length", GGUF_ROLE_WIDTH},
    {"max_seq_len", ".context_length", GGUF_ROLE_NONE},
    {"n_heads", ".attention.head_count", GGUF_ROLE_HEADS},
    {"n_layers", ".block_count", GGUF_ROLE_LAYERS},
    {"n_vocab", ".vocab_size", GGUF_ROLE_VOCABULARY},
    {"alibi_bias_max", ".attention.max_alibi_bias", GGUF_ROLE_FLOAT},
    {"clip_qkv", ".attention.clamp_kqv", GGUF_ROLE_FLOAT},
    {"ftype", NULL, GGUF_ROLE_FILE_TYPE},
    {0},
};

static const char mpt_names[] =
    "transformer.blocks.% transformer.wte.>token_embd. transformer.norm_f*>output_norm*? "
    ".norm_1*>attn_norm*? .attn.Wqkv*>attn_qkv*? .attn.out_proj*>attn_output*? "
    ".norm_2*>ffn_norm*? .ffn.up_proj*>ffn_up*? .ffn.down_proj*>ffn_down*?";

/* ---- bloom ---- */

static const struct gguf_hyperparameter bloom_numbers[] = {
    {"n_vocab", ".vocab_size", GGUF_ROLE_VOCABULARY},
    {"n_embd", ".embedding_length", GGUF_ROLE_WIDTH},
    {"n_mult", NULL, GGUF_ROLE_NONE},
    {"n_head", ".attention.head_count", GGUF_ROLE_HEADS},
    {"n_layer", ".block_count", GGUF_ROLE_LAYERS},
    {"ftype", NULL, GGUF_ROLE_FILE_TYPE},
    {0},
};

static const char bloom_names[] =
    "layers.% tok_embeddings.>token_embd. norm*>token_embd_norm* output_norm*>output_norm* "
    "output.>output. .attention_norm*>attn_norm* .attention.query_key_value*>attn_qkv* "
    ".attention.wo*>attn_output* .ffn_norm*>ffn_norm* .feed_forward.w1*>ffn_up* "
    ".feed_forward.w2*>ffn_down*";

/* ---- whisper ---- */

static const struct gguf_hyperparameter whisper_numbers[] = {
    {"n_vocab", ".vocab_size", GGUF_ROLE_VOCABULARY},
    {"n_audio_ctx", ".encoder.context_length", GGUF_ROLE_NONE},
    {"n_audio_state", ".encoder.embedding_length", GGUF_ROLE_WIDTH},
    {"n_audio_head", ".encoder.attention.head_count", GGUF_ROLE_HEADS},
    {"n_audio_layer", ".encoder.block_count", GGUF_ROLE_LAYERS},
    {"n_text_ctx", ".decoder.context_length", GGUF_ROLE_NONE},
    {"n_text_state", ".decoder.embedding_length", GGUF_ROLE_NONE},
    {"n_text_head", ".decoder.attention.head_count", GGUF_ROLE_NONE},
    {"n_text_layer", ".decoder.block_count", GGUF_ROLE_MORE_LAYERS},
    {"n_mels", ".encoder.mels_count", GGUF_ROLE_NONE},
    {"ftype", NULL, GGUF_ROLE_FILE_TYPE},
    {0},
};

/* GGUF has no names for these. Source of the old names: whisper.cpp's src/whisper-arch.h. */
static const char whisper_names[] =
    "encoder.blocks.% encoder.positional_embedding encoder.conv1* encoder.conv2* "
    "encoder.ln_post* decoder.positional_embedding decoder.token_embedding. decoder.ln* "
    ".attn_ln* .attn.query* .attn.key. .attn.value* .attn.out* .mlp_ln* .mlp.0* .mlp.2* "
    "decoder.blocks.#.attn_ln* decoder.blocks.#.attn.query* decoder.blocks.#.attn.key. "
    "decoder.blocks.#.attn.value* decoder.blocks.#.attn.out* decoder.blocks.#.mlp_ln* "
    "decoder.blocks.#.mlp.0* decoder.blocks.#.mlp.2* decoder.blocks.#.cross_attn_ln* "
    "decoder.blocks.#.cross_attn.query* decoder.blocks.#.cross_attn.key. "
    "decoder.blocks.#.cross_attn.value* decoder.blocks.#.cross_attn.out*";

/* ---- Silero's voice detector for whisper.cpp ---- */

static const struct gguf_hyperparameter vad_numbers[] = {
    {"version_major", NULL, GGUF_ROLE_NONE},
    {"version_minor", NULL, GGUF_ROLE_NONE},
    {"version_patch", NULL, GGUF_ROLE_NONE},
    {"window_size", NULL, GGUF_ROLE_NONE},
    {"context_size", NULL, GGUF_ROLE_NONE},
    {"n_encoder_layers", ".block_count", GGUF_ROLE_LAYERS},
    {0},
};

static const char vad_names[] =
    "_model.encoder.% .reparam_conv* _model.decoder.rnn.weight_ih _model.decoder.rnn.weight_hh "
    "_model.decoder.rnn.bias_ih _model.decoder.rnn.bias_hh _model.decoder.decoder.2* "
    "_model.stft.forward_basis_buffer";

/* It wants the magic ggml. Source: whisper_model_load() and whisper_vad_init_with_params(). */
static const char for_whisper_cpp[] =
    "for no program known: whisper.cpp reads no GGUF; give it the file itself";

static const struct gguf_family families[] = {
    {"llama", "llama", false, true, llama_numbers, GGUF_VOCABULARY_SCORED, "llama", llama_names,
     llama_constants, GGUF_EXTRA_NONE, NULL},
    {"whisper", "whisper", false, true, whisper_numbers, GGUF_VOCABULARY_COUNTED, "gpt2",
     whisper_names, NULL, GGUF_EXTRA_MEL_FILTERS, for_whisper_cpp},
    {"gpt-2", "gpt2", false, false, gpt2_numbers, GGUF_VOCABULARY_COUNTED, "gpt2", gpt2_names,
     norm_constants, GGUF_EXTRA_NONE, NULL},
    {"starcoder", "starcoder", true, false, gpt2_numbers, GGUF_VOCABULARY_COUNTED, "gpt2",
     gpt2_names, norm_constants, GGUF_EXTRA_NONE, NULL},
    {"gpt-j", "gptj", false, false, gptj_numbers, GGUF_VOCABULARY_COUNTED, "gpt2", gptj_names,
     norm_constants, GGUF_EXTRA_NONE, NULL},
    {"gpt-neox", "gptneox", false, false, neox_numbers, GGUF_VOCABULARY_PLAIN, "gpt2", neox_names,
     norm_constants, GGUF_EXTRA_NONE, NULL},
    /* StableLM's models of that time are GPT-NeoX. */
    {"stablelm", "gptneox", true, false, neox_numbers, GGUF_VOCABULARY_PLAIN, "gpt2", neox_names,
     norm_constants, GGUF_EXTRA_NONE, NULL},
    {"mpt", "mpt", false, false, mpt_numbers, GGUF_VOCABULARY_PLAIN, "gpt2", mpt_names,
     norm_constants, GGUF_EXTRA_NONE, NULL},
    {"bloom", "bloom", false, false, bloom_numbers, GGUF_VOCABULARY_PLAIN, "gpt2", bloom_names,
     norm_constants, GGUF_EXTRA_NONE, NULL},
    {"silero-vad", "silero-vad", false, false, vad_numbers, GGUF_VOCABULARY_NONE, NULL, vad_names,
     NULL, GGUF_EXTRA_VAD, for_whisper_cpp},
};

const struct gguf_family *gguf_family_at(size_t index)
{
    return index < COUNT(families) ? &families[index] : NULL;
}

const char *gguf_family_name_at(size_t index)
{
    const struct gguf_family *family = gguf_family_at(index);

    return family ? family->name : NULL;
}

const struct gguf_family *gguf_family_by_name(const char *name)
{
    for (size_t i = 0; i < COUNT(families); i++) {
        if (strcmp(families[i].name, name) == 0)
            return &families[i];
    }
    return NULL;
}

bool gguf_matches_rule(const char *pattern, struct gguf_string name, uint32_t n_layers,
                       uint32_t n_more, uint32_t *layer)
{
    const bool has_layer = strchr(pattern, '%'), has_more = strchr(pattern, '#');
    struct gguf_name_match match;

    if (!gguf_tensor_name_matches(name, pattern, &match) || *match.suffix != '\0')
        return false;
    *layer = has_more ? match.expert : match.layer;
    return (!has_layer || match.layer < n_layers) && (!has_more || match.expert < n_more);
}

/* Write one side of a word, whose mark at the end stands for `suffix` or ".weight". */
static void write_name(char name[GGUF_RULE_NAME_BYTES], const char *prefix, size_t prefix_length,
                       const char *side, size_t length, const char *suffix)
{
    const char end = length > 0 ? side[length - 1] : '\0';
    const int n = snprintf(name, GGUF_RULE_NAME_BYTES, "%.*s%.*s%s", (int)prefix_length, prefix,
                           (int)length - (end == '*'), side,
                           end == '*'   ? suffix
                           : end == '.' ? "weight"
                                        : "");

    assert(n < GGUF_RULE_NAME_BYTES);
}

size_t gguf_name_rules_read(const char *text, struct gguf_name_rule rules[GGUF_MAX_NAME_RULES])
{
    static const char *const suffixes[] = {".weight", ".bias"};
    const char *prefix = text, *word = text + strcspn(text, " ");
    const size_t prefix_length = (size_t)(word - text);
    size_t n = 0;

    while (*word != '\0') {
        const char *old = word + 1, *name = old + strcspn(old, "> ?");
        const size_t old_length = (size_t)(name - old);
        const bool is_pair = name[-1] == '*', is_of_layer = *old == '.' || *old == '/';
        const size_t length = *name == '>' ? strcspn(name + 1, " ?") : 0;

        word = name + (*name == '>') + length;
        for (size_t i = 0; i < (is_pair ? 2 : 1); i++) {
            assert(n < GGUF_MAX_NAME_RULES);
            rules[n] = (struct gguf_name_rule){.is_optional = *word == '?' && (!is_pair || i == 1)};
            write_name(rules[n].old_name, prefix, is_of_layer ? prefix_length : 0, old, old_length,
                       suffixes[i]);
            if (length > 0)
                write_name(rules[n].name, "blk.%.", is_of_layer ? 6 : 0, name + 1, length,
                           suffixes[i]);
            n++;
        }
        word += *word == '?';
    }
    return n;
}
