#include "gguf/edit_keys.h"

#include "gguf/edit_values.h"

#include <errno.h>
#include <string.h>

/* A standard key and its type. */
enum kind { TEXT, TEXTS, BOOL, U32, COUNT, COUNT_PER_LAYER, F32, FLOATS, TOKEN_TYPES };

static const char *const kind_names[] = {
    [TEXT] = "str", [TEXTS] = "arr[str]",   [BOOL] = "bool",
    [U32] = "u32",  [COUNT] = "u32 or u64", [COUNT_PER_LAYER] = "u32, u64 or an array of integers",
    [F32] = "f32",  [FLOATS] = "arr[f32]",  [TOKEN_TYPES] = "arr[i32]",
};

/*
 * Sources: the GGUF specification (ggml/docs/gguf.md), "Standardized key-value pairs", and the keys
 * of gguf-py/gguf/constants.py. The specification asks for u64 where llama.cpp writes and reads
 * u32. A name that starts with a dot follows the architecture.
 */
static const struct {
    const char *name;
    enum kind kind;
} standard_keys[] = {
    {"general.architecture", TEXT},
    {"general.quantization_version", U32},
    {"general.alignment", U32},
    {"general.file_type", U32},
    {"general.type", TEXT},
    {"general.name", TEXT},
    {"general.author", TEXT},
    {"general.version", TEXT},
    {"general.organization", TEXT},
    {"general.basename", TEXT},
    {"general.finetune", TEXT},
    {"general.description", TEXT},
    {"general.quantized_by", TEXT},
    {"general.size_label", TEXT},
    {"general.license", TEXT},
    {"general.license.name", TEXT},
    {"general.license.link", TEXT},
    {"general.url", TEXT},
    {"general.doi", TEXT},
    {"general.uuid", TEXT},
    {"general.repo_url", TEXT},
    {"general.source.url", TEXT},
    {"general.source.doi", TEXT},
    {"general.source.uuid", TEXT},
    {"general.source.repo_url", TEXT},
    {"general.source.huggingface.repository", TEXT},
    {"general.base_model.count", U32},
    {"general.dataset.count", U32},
    {"general.tags", TEXTS},
    {"general.languages", TEXTS},

    {".vocab_size", COUNT},
    {".context_length", COUNT},
    {".embedding_length", COUNT},
    {".block_count", COUNT},
    {".leading_dense_block_count", COUNT},
    {".feed_forward_length", COUNT_PER_LAYER},
    {".expert_feed_forward_length", COUNT},
    {".use_parallel_residual", BOOL},
    {".tensor_data_layout", TEXT},
    {".expert_count", COUNT},
    {".expert_used_count", COUNT},
    {".expert_shared_count", COUNT},
    {".expert_weights_scale", F32},
    {".pooling_type", U32},
    {".logit_scale", F32},
    {".attn_logit_softcapping", F32},
    {".final_logit_softcapping", F32},
    {".attention.head_count", COUNT_PER_LAYER},
    {".attention.head_count_kv", COUNT_PER_LAYER},
    {".attention.key_length", COUNT},
    {".attention.value_length", COUNT},
    {".attention.max_alibi_bias", F32},
    {".attention.clamp_kqv", F32},
    {".attention.layer_norm_epsilon", F32},
    {".attention.layer_norm_rms_epsilon", F32},
    {".attention.scale", F32},
    {".attention.causal", BOOL},
    {".rope.dimension_count", COUNT},
    {".rope.freq_base", F32},
    {".rope.scale_linear", F32},
    {".rope.scaling.type", TEXT},
    {".rope.scaling.factor", F32},
    {".rope.scaling.attn_factor", F32},
    {".rope.scaling.original_context_length", COUNT},
    {".rope.scaling.finetuned", BOOL},
    {".ssm.conv_kernel", COUNT},
    {".ssm.inner_size", COUNT},
    {".ssm.state_size", COUNT},
    {".ssm.time_step_rank", COUNT},
    {".ssm.group_count", COUNT},

    {"tokenizer.ggml.model", TEXT},
    {"tokenizer.ggml.pre", TEXT},
    {"tokenizer.ggml.tokens", TEXTS},
    {"tokenizer.ggml.scores", FLOATS},
    {"tokenizer.ggml.token_type", TOKEN_TYPES},
    {"tokenizer.ggml.merges", TEXTS},
    {"tokenizer.ggml.added_tokens", TEXTS},
    {"tokenizer.ggml.bos_token_id", U32},
    {"tokenizer.ggml.eos_token_id", U32},
    {"tokenizer.ggml.eot_token_id", U32},
    {"tokenizer.ggml.eom_token_id", U32},
    {"tokenizer.ggml.unknown_token_id", U32},
    {"tokenizer.ggml.seperator_token_id", U32}, /* so spelled by llama.cpp */
    {"tokenizer.ggml.separator_token_id", U32},
    {"tokenizer.ggml.padding_token_id", U32},
    {"tokenizer.ggml.mask_token_id", U32},
    {"tokenizer.ggml.add_bos_token", BOOL},
    {"tokenizer.ggml.add_eos_token", BOOL},
    {"tokenizer.ggml.add_space_prefix", BOOL},
    {"tokenizer.ggml.remove_extra_whitespaces", BOOL},
    {"tokenizer.huggingface.json", TEXT},
    {"tokenizer.rwkv.world", TEXT},
    {"tokenizer.chat_template", TEXT},
};

static bool is_array_of(const struct gguf_value *value, enum gguf_value_type type)
{
    return value->type == GGUF_ARRAY && value->array.element_type == type;
}

static bool is_of_kind(const struct gguf_value *value, enum kind kind)
{
    switch (kind) {
    case TEXT:
        return value->type == GGUF_STRING;
    case TEXTS:
        return is_array_of(value, GGUF_STRING);
    case BOOL:
        return value->type == GGUF_BOOL;
    case U32:
        return value->type == GGUF_UINT32;
    case COUNT_PER_LAYER:
        if (value->type == GGUF_ARRAY)
            return gguf_value_type_is_integer(value->array.element_type);
        return value->type == GGUF_UINT32 || value->type == GGUF_UINT64;
    case COUNT:
        return value->type == GGUF_UINT32 || value->type == GGUF_UINT64;
    case F32:
        return value->type == GGUF_FLOAT32;
    case FLOATS:
        return is_array_of(value, GGUF_FLOAT32);
    case TOKEN_TYPES:
        return is_array_of(value, GGUF_INT32);
    }
    return true;
}

static bool have_same_type(const struct gguf_value *a, const struct gguf_value *b)
{
    return a->type == b->type &&
           (a->type != GGUF_ARRAY || a->array.element_type == b->array.element_type);
}

/* The row of a key, or -1. */
static int find_standard_key(const struct gguf_model *model, struct gguf_string key)
{
    const struct gguf_key *architecture = gguf_find_key(model, "general.architecture");
    struct gguf_string prefix = {0}, rest = {0};

    if (architecture && architecture->value.type == GGUF_STRING)
        prefix = architecture->value.string;
    if (prefix.length_bytes > 0 && key.length_bytes > prefix.length_bytes &&
        memcmp(key.data, prefix.data, prefix.length_bytes) == 0)
        rest = (struct gguf_string){key.data + prefix.length_bytes,
                                    key.length_bytes - prefix.length_bytes};
    for (size_t i = 0; i < sizeof standard_keys / sizeof *standard_keys; i++) {
        const char *name = standard_keys[i].name;

        if (gguf_string_equals(*name == '.' ? rest : key, name))
            return (int)i;
    }
    return -1;
}

int gguf_edit_check_type(const struct gguf_model *model, struct gguf_string key,
                         const struct gguf_value *value, struct gguf_report *report)
{
    const int row = find_standard_key(model, key);
    const struct gguf_key *there = gguf_find_key(model, key.data);

    if (row < 0 || is_of_kind(value, standard_keys[row].kind) ||
        (there && have_same_type(&there->value, value)))
        return 0;
    return gguf_error(report, GGUF_RULE_EDIT, -EINVAL, gguf_at_key(key, GGUF_NO_OFFSET),
                      "an edit gives it the type %s, the GGUF specification wants %s",
                      gguf_edit_type_name(value->type), kind_names[standard_keys[row].kind]);
}
