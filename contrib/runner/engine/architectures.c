#include "contrib/runner/engine/architectures.h"

#include "gguf/support/strings.h"

static const struct run_architecture rows[] = {
    /* ---- no rotation, or only in models whose keys ask for it ---- */

    {"refact mamba mamba2 jamba kimi-linear rwkv rwkv6 rwkv7 rwkv6qwen2 arwkv7", RUN_ROTARY_NONE,
     RUN_SILU, 0, 0},
    {"gpt2 starcoder", RUN_ROTARY_NONE, RUN_GELU, 0, 0},
    {"bloom", RUN_ROTARY_NONE, RUN_GELU, 0, RUN_REFERENCE_GROUPS},
    {"mpt", RUN_ROTARY_NONE, RUN_GELU_ERF, 0, 0},
    {"jais", RUN_ROTARY_NONE, RUN_SILU, 0, RUN_SCALE_BY_WIDTH},
    {"nemotron_h nemotron_h_moe", RUN_ROTARY_NONE, RUN_RELU_SQUARED, 0, 0},

    /* ---- neighbouring elements are rotated ---- */

    {"chatglm ernie4_5 ernie4_5-moe internlm2 nanbeige deepseek bailingmoe", RUN_ROTARY_NORMAL,
     RUN_SILU, 0, 0},
    {"llama xverse", RUN_ROTARY_NORMAL, RUN_SILU, 0, RUN_REFERENCE_NEOX},
    {"baichuan", RUN_ROTARY_NORMAL, RUN_SILU, 0, RUN_REFERENCE_NEOX | RUN_BIG_ALIBI},
    {"olmo", RUN_ROTARY_NORMAL, RUN_SILU, RUN_PLAIN_LAYER_NORMS, 0},
    {"granite granitemoe granitehybrid", RUN_ROTARY_NORMAL, RUN_SILU, RUN_LOGITS_DIVIDED, 0},
    {"minicpm", RUN_ROTARY_NORMAL, RUN_SILU, RUN_MINICPM_DEFAULTS | RUN_LOGITS_DIVIDED, 0},
    {"gptj", RUN_ROTARY_NORMAL, RUN_GELU, RUN_PARALLEL, 0},
    {"command-r", RUN_ROTARY_NORMAL, RUN_SILU, RUN_PARALLEL, 0},
    {"cohere2", RUN_ROTARY_NORMAL, RUN_SILU, RUN_PARALLEL, RUN_ROTATES_WINDOWED},
    {"cohere2moe", RUN_ROTARY_NORMAL, RUN_SILU,
     RUN_NEXTN_NORMED | RUN_PARALLEL | RUN_HALF_OF_EXPERTS, RUN_ROTATES_LEADING},
    {"glm4", RUN_ROTARY_NORMAL, RUN_SILU, 0, RUN_SECTIONS_MEAN_NEOX},
    {"smollm3", RUN_ROTARY_NORMAL, RUN_SILU, 0, RUN_ROTATES_NOT_EVERY_FOURTH},
    {"arcee plm", RUN_ROTARY_NORMAL, RUN_RELU_SQUARED, 0, 0},
    {"maincoder", RUN_ROTARY_NORMAL, RUN_SILU, 0, RUN_QK_NORM_AFTER_ROTARY},
    {"chameleon", RUN_ROTARY_NORMAL, RUN_SILU, 0, RUN_QK_LAYER_NORM},
    {"deci", RUN_ROTARY_NORMAL, RUN_SILU, 0, RUN_PRUNED_LAYERS},
    {"llama4", RUN_ROTARY_NORMAL, RUN_SILU, RUN_WEIGHTS_BEFORE,
     RUN_QK_PLAIN_NORM | RUN_CHUNKED_WINDOWS | RUN_ROTATES_NOT_EVERY_FOURTH |
         RUN_BIG_WITHOUT_QK_NORM},
    {"mistral3", RUN_ROTARY_NORMAL, RUN_SILU, 0, RUN_MULTIPLIER_DIVIDES},
    {"deepseek2", RUN_ROTARY_NORMAL, RUN_SILU, RUN_NEXTN_NORMED, RUN_MULTIPLIER_SCALES},
    {"mistral4", RUN_ROTARY_NORMAL, RUN_SILU, 0, RUN_MULTIPLIER_SCALES},
    {"deepseek32", RUN_ROTARY_NORMAL, RUN_SILU, 0, RUN_INDEXER_NEOX | RUN_MULTIPLIER_SCALES},
    {"glm-dsa", RUN_ROTARY_NORMAL, RUN_SILU, 0, RUN_INDEXER_NORMAL},
    {"arctic", RUN_ROTARY_NORMAL, RUN_SILU, RUN_EXPERTS_TAKE_INPUT, 0},

    /* ---- elements of both halves of a head are rotated ---- */

    {"qwen qwen2 qwen2moe qwen2vl qwen3 qwen3moe qwen3vl qwen3vlmoe phi3 phimoe exaone "
     "seed_oss openelm orion pangu-embedded bitnet paddleocr cogvlm olmoe minimax-m2 dots1 "
     "dbrx grovemoe bailingmoe2 deepseek2-ocr falcon-h1 plamo2 lfm2 lfm2moe",
     RUN_ROTARY_NEOX, RUN_SILU, 0, 0},
    {"olmo2 plamo3 mellum", RUN_ROTARY_NEOX, RUN_SILU, 0, RUN_UNSCALED_WINDOWS},
    {"exaone4 exaone-moe", RUN_ROTARY_NEOX, RUN_SILU, 0, RUN_ROTATES_WINDOWED},
    {"glm4moe hy_v3 qwen3next qwen35 qwen35moe", RUN_ROTARY_NEOX, RUN_SILU, RUN_NEXTN_NORMED, 0},
    {"hunyuan-dense hunyuan_vl hunyuan-moe", RUN_ROTARY_NEOX, RUN_SILU, 0,
     RUN_QK_NORM_AFTER_ROTARY},
    {"gemma", RUN_ROTARY_NEOX, RUN_GELU, RUN_EMBEDDING_BY_ROOT, 0},
    {"gemma2", RUN_ROTARY_NEOX, RUN_GELU, RUN_EMBEDDING_BY_ROOT, RUN_BIG_SCALE_BY_N_EMBD},
    {"gemma3", RUN_ROTARY_NEOX, RUN_GELU, RUN_EMBEDDING_BY_ROOT,
     RUN_UNSCALED_WINDOWS | RUN_BIG_SCALE_BY_N_EMBD},
    {"gemma3n", RUN_ROTARY_NEOX, RUN_GELU, RUN_EMBEDDING_BY_ROOT | RUN_SPARSE_GATES,
     RUN_PLAIN_V_NORM | RUN_UNSCALED_WINDOWS},
    {"gemma4", RUN_ROTARY_NEOX, RUN_GELU, RUN_EMBEDDING_BY_ROOT,
     RUN_PLAIN_V_NORM | RUN_KEYS_ARE_VALUES | RUN_UNSCALED_WINDOWS},
    {"phi2", RUN_ROTARY_NEOX, RUN_GELU, RUN_PARALLEL, 0},
    {"stablelm", RUN_ROTARY_NEOX, RUN_SILU, RUN_PARALLEL_WITHOUT_FFN_NORM, 0},
    {"starcoder2 codeshell", RUN_ROTARY_NEOX, RUN_GELU, 0, 0},
    {"gptneox", RUN_ROTARY_NEOX, RUN_GELU_ERF, RUN_PARALLEL_BY_KEY, RUN_REFERENCE_GROUPS},
    {"falcon", RUN_ROTARY_NEOX, RUN_GELU_ERF, RUN_PARALLEL, RUN_REFERENCE_GROUPS},
    {"nemotron jais2", RUN_ROTARY_NEOX, RUN_RELU_SQUARED, 0, 0},
    {"apertus", RUN_ROTARY_NEOX, RUN_XIELU, 0, 0},
    {"minicpm3", RUN_ROTARY_NEOX, RUN_SILU, RUN_MINICPM_DEFAULTS | RUN_LOGITS_DIVIDED, 0},
    {"plamo", RUN_ROTARY_NEOX, RUN_SILU, RUN_PARALLEL, 0},
    {"talkie", RUN_ROTARY_NEOX, RUN_SILU,
     RUN_SCALES_EMBEDDINGS | RUN_PLAIN_LAYER_NORMS | RUN_PLAIN_EMBEDDING_NORM,
     RUN_PLAIN_K_NORM | RUN_QK_NORM_AFTER_ROTARY},
    {"afmoe", RUN_ROTARY_NEOX, RUN_SILU, RUN_EMBEDDING_BY_ROOT, RUN_ROTATES_NOT_EVERY_FOURTH},
    {"laguna", RUN_ROTARY_NEOX, RUN_SILU, 0, RUN_SOFTPLUS_GATES | RUN_UNSCALED_WINDOWS},
    {"smallthinker", RUN_ROTARY_NEOX, RUN_RELU, RUN_ROUTER_TAKES_INPUT, RUN_ROTATES_WINDOWED},
    {"mimo2", RUN_ROTARY_NEOX, RUN_SILU, RUN_NEXTN_RAW, RUN_UNSCALED_WINDOWS},
    {"step35", RUN_ROTARY_NEOX, RUN_SILU, RUN_NEXTN_RAW, RUN_UNSCALED_WINDOWS | RUN_HALVES_DENSE},
    {"grok", RUN_ROTARY_NEOX, RUN_GELU, RUN_ROOT_HALF_OF_EXPERTS, 0},
    {"minimax-m3", RUN_ROTARY_NEOX, RUN_SWIGLU_OAI, 0, RUN_INDEXER_NEOX},
    {"gpt-oss", RUN_ROTARY_NEOX, RUN_SWIGLU_OAI, 0, 0},
};

const struct run_architecture *run_architecture_find(const char *name)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (gguf_words_have(rows[i].names, gguf_string_of(name)))
            return &rows[i];
    return NULL;
}
