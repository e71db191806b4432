#include "gguf/legacy/families.h"

#include "gguf/models/tensor_names.h"

#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* clang-format off */
/* A weight and its bias. */
#define PAIR(old, today, may_lack_bias) \
    {old ".weight", today ".weight", false}, {old ".bias", today ".bias", may_lack_bias}
#define WITH_BIAS(old, today)  PAIR(old, today, false)
#define MAYBE_BIAS(old, today) PAIR(old, today, true)
#define WITHOUT_TODAY(old)     {old ".weight", NULL, false}, {old ".bias", NULL, false}
/* clang-format on */

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

static const struct gguf_name_rule llama_names[] = {
    {"tok_embeddings.weight", "token_embd.weight", false},
    {"norm.weight", "output_norm.weight", false},
    {"output.weight", "output.weight", false},
    {"layers.%.attention.wq.weight", "blk.%.attn_q.weight", false},
    {"layers.%.attention.wk.weight", "blk.%.attn_k.weight", false},
    {"layers.%.attention.wv.weight", "blk.%.attn_v.weight", false},
    {"layers.%.attention.wo.weight", "blk.%.attn_output.weight", false},
    {"layers.%.attention_norm.weight", "blk.%.attn_norm.weight", false},
    {"layers.%.feed_forward.w1.weight", "blk.%.ffn_gate.weight", false},
    {"layers.%.feed_forward.w2.weight", "blk.%.ffn_down.weight", false},
    {"layers.%.feed_forward.w3.weight", "blk.%.ffn_up.weight", false},
    {"layers.%.ffn_norm.weight", "blk.%.ffn_norm.weight", false},
    {0},
};

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

/* A weight, which is called `weight`, and its bias. */
#define GPT2_PAIR(old, weight, today)                                                              \
    {old weight, today ".weight", false},                                                          \
    {                                                                                              \
        old "b", today ".bias", false                                                              \
    }

static const struct gguf_name_rule gpt2_names[] = {
    {"model/wte", "token_embd.weight", false},
    {"model/wpe", "position_embd.weight", false},
    {"model/lm_head", "output.weight", true},
    GPT2_PAIR("model/ln_f/", "g", "output_norm"),
    GPT2_PAIR("model/h%/ln_1/", "g", "blk.%.attn_norm"),
    GPT2_PAIR("model/h%/attn/c_attn/", "w", "blk.%.attn_qkv"),
    GPT2_PAIR("model/h%/attn/c_proj/", "w", "blk.%.attn_output"),
    GPT2_PAIR("model/h%/ln_2/", "g", "blk.%.ffn_norm"),
    GPT2_PAIR("model/h%/mlp/c_fc/", "w", "blk.%.ffn_up"),
    GPT2_PAIR("model/h%/mlp/c_proj/", "w", "blk.%.ffn_down"),
    {0},
};

/* ---- gpt-j ---- */

static const struct gguf_hyperparameter gptj_numbers[] = {
    GPT_NUMBERS,
    {"n_rot", ".rope.dimension_count", GGUF_ROLE_ROTATED},
    {"ftype", NULL, GGUF_ROLE_FILE_TYPE},
    {0},
};

static const struct gguf_name_rule gptj_names[] = {
    {"transformer.wte.weight", "token_embd.weight", false},
    WITH_BIAS("transformer.ln_f", "output_norm"),
    WITH_BIAS("lm_head", "output"),
    WITH_BIAS("transformer.h.%.ln_1", "blk.%.attn_norm"),
    {"transformer.h.%.attn.q_proj.weight", "blk.%.attn_q.weight", false},
    {"transformer.h.%.attn.k_proj.weight", "blk.%.attn_k.weight", false},
    {"transformer.h.%.attn.v_proj.weight", "blk.%.attn_v.weight", false},
    {"transformer.h.%.attn.out_proj.weight", "blk.%.attn_output.weight", false},
    WITH_BIAS("transformer.h.%.mlp.fc_in", "blk.%.ffn_up"),
    WITH_BIAS("transformer.h.%.mlp.fc_out", "blk.%.ffn_down"),
    {0},
};

/* ---- gpt-neox, stablelm ---- */

static const struct gguf_hyperparameter neox_numbers[] = {
    GPT_NUMBERS,
    {"n_rot", ".rope.dimension_count", GGUF_ROLE_ROTATED},
    {"par_res", ".use_parallel_residual", GGUF_ROLE_BOOL},
    {"ftype", NULL, GGUF_ROLE_FILE_TYPE},
    {0},
};

/* query_key_value has its rows ordered by head, unlike GGUF's attn_qkv. */
static const struct gguf_name_rule neox_names[] = {
    {"gpt_neox.embed_in.weight", "token_embd.weight", false},
    WITH_BIAS("gpt_neox.final_layer_norm", "output_norm"),
    {"embed_out.weight", "output.weight", false},
    WITH_BIAS("gpt_neox.layers.%.input_layernorm", "blk.%.attn_norm"),
    WITHOUT_TODAY("gpt_neox.layers.%.attention.query_key_value"),
    WITH_BIAS("gpt_neox.layers.%.attention.dense", "blk.%.attn_output"),
    WITH_BIAS("gpt_neox.layers.%.post_attention_layernorm", "blk.%.ffn_norm"),
    WITH_BIAS("gpt_neox.layers.%.mlp.dense_h_to_4h", "blk.%.ffn_up"),
    WITH_BIAS("gpt_neox.layers.%.mlp.dense_4h_to_h", "blk.%.ffn_down"),
    {0},
};

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

static const struct gguf_name_rule mpt_names[] = {
    {"transformer.wte.weight", "token_embd.weight", false},
    MAYBE_BIAS("transformer.norm_f", "output_norm"),
    MAYBE_BIAS("transformer.blocks.%.norm_1", "blk.%.attn_norm"),
    MAYBE_BIAS("transformer.blocks.%.attn.Wqkv", "blk.%.attn_qkv"),
    MAYBE_BIAS("transformer.blocks.%.attn.out_proj", "blk.%.attn_output"),
    MAYBE_BIAS("transformer.blocks.%.norm_2", "blk.%.ffn_norm"),
    MAYBE_BIAS("transformer.blocks.%.ffn.up_proj", "blk.%.ffn_up"),
    MAYBE_BIAS("transformer.blocks.%.ffn.down_proj", "blk.%.ffn_down"),
    {0},
};

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

static const struct gguf_name_rule bloom_names[] = {
    {"tok_embeddings.weight", "token_embd.weight", false},
    WITH_BIAS("norm", "token_embd_norm"),
    WITH_BIAS("output_norm", "output_norm"),
    {"output.weight", "output.weight", false},
    WITH_BIAS("layers.%.attention_norm", "blk.%.attn_norm"),
    WITH_BIAS("layers.%.attention.query_key_value", "blk.%.attn_qkv"),
    WITH_BIAS("layers.%.attention.wo", "blk.%.attn_output"),
    WITH_BIAS("layers.%.ffn_norm", "blk.%.ffn_norm"),
    WITH_BIAS("layers.%.feed_forward.w1", "blk.%.ffn_up"),
    WITH_BIAS("layers.%.feed_forward.w2", "blk.%.ffn_down"),
    {0},
};

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

#define WHISPER_ATTENTION(old)                                                                     \
    WITHOUT_TODAY(old ".query"), {old ".key.weight", NULL, false}, WITHOUT_TODAY(old ".value"),    \
        WITHOUT_TODAY(old ".out")
#define WHISPER_LAYER(old)                                                                         \
    WITHOUT_TODAY(old ".attn_ln"), WHISPER_ATTENTION(old ".attn"), WITHOUT_TODAY(old ".mlp_ln"),   \
        WITHOUT_TODAY(old ".mlp.0"), WITHOUT_TODAY(old ".mlp.2")

/* GGUF has no names for these. Source of the old names: whisper.cpp's src/whisper-arch.h. */
static const struct gguf_name_rule whisper_names[] = {
    {"encoder.positional_embedding", NULL, false},
    WITHOUT_TODAY("encoder.conv1"),
    WITHOUT_TODAY("encoder.conv2"),
    WITHOUT_TODAY("encoder.ln_post"),
    {"decoder.positional_embedding", NULL, false},
    {"decoder.token_embedding.weight", NULL, false},
    WITHOUT_TODAY("decoder.ln"),
    WHISPER_LAYER("encoder.blocks.%"),
    WHISPER_LAYER("decoder.blocks.#"),
    WITHOUT_TODAY("decoder.blocks.#.cross_attn_ln"),
    WHISPER_ATTENTION("decoder.blocks.#.cross_attn"),
    {0},
};

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

static const struct gguf_name_rule vad_names[] = {
    WITHOUT_TODAY("_model.encoder.%.reparam_conv"),
    {"_model.decoder.rnn.weight_ih", NULL, false},
    {"_model.decoder.rnn.weight_hh", NULL, false},
    {"_model.decoder.rnn.bias_ih", NULL, false},
    {"_model.decoder.rnn.bias_hh", NULL, false},
    WITHOUT_TODAY("_model.decoder.decoder.2"),
    {"_model.stft.forward_basis_buffer", NULL, false},
    {0},
};

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

const struct gguf_name_rule *gguf_rule_of(const struct gguf_name_rule *rules,
                                          struct gguf_string old_name, uint32_t n_layers,
                                          uint32_t n_more, uint32_t *layer)
{
    for (; rules->old_name; rules++) {
        if (gguf_matches_rule(rules->old_name, old_name, n_layers, n_more, layer))
            return rules;
    }
    return NULL;
}
