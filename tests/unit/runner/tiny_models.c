#include "tests/unit/runner/tiny_models.h"

#include "contrib/runner/compute/thread_pool.h"
#include "gguf/models/key_lists.h"
#include "gguf/models/tensor_lists.h"

#include <criterion/criterion.h>

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* ---- tensors ---- */

/* Optional tensors that are left out: other forms of the ones that are made. */
static const struct {
    const char *architecture, *name;
} left_out[] = {
    {"falcon", "attn_qkv.bias"},
    {"falcon", "attn_output.bias"},
    {"falcon", "ffn_down.bias"},
    {"falcon", "ffn_up.bias"},
    {"deepseek2-ocr", "attn_q.bias"},
    {"deepseek2-ocr", "attn_k.bias"},
    {"deepseek2-ocr", "attn_v.bias"},
    {"deci", "attn_qkv"},
    {"phi3", "attn_qkv.bias"},
    {NULL, "blk.0.rope_freqs"},
    {NULL, "rope_factors_long"},
    {NULL, "rope_factors_short"},
    {NULL, "blk.0.rope_factors_long"},
    {NULL, "blk.0.rope_factors_short"},
    {NULL, "dense_2"},
    {NULL, "dense_2.bias"},
    {NULL, "exp_probs_b"},
    {"mpt", "position_embd"},
    {"mpt", "attn_q_norm.bias"},
    {"mpt", "attn_k_norm.bias"},
    {"command-r", "attn_q_norm"},
    {"command-r", "attn_k_norm"},
    {"grok", "ffn_gate"},
    {"grok", "ffn_up"},
    {"grok", "ffn_down"},
    {"rwkv", "time_mix_gate"}, /* of version 5 */
    {"rwkv", "time_mix_lerp_g"},
    {"rwkv", "time_mix_ln"},
    {"rwkv", "time_mix_ln.bias"},
    {"rwkv6*", "time_mix_lerp_w"},
    {"rwkv6*", "time_mix_lerp_k"},
    {"rwkv6*", "time_mix_lerp_v"},
    {"rwkv6*", "time_mix_lerp_r"},
    {"rwkv6*", "time_mix_lerp_g"},
};

const char *tiny_kind(const struct tiny_tensor *tensor)
{
    const char *name = tensor->name;

    return strncmp(name, "blk.", 4) == 0 ? strchr(name + 4, '.') + 1 : name;
}

/* Add a tensor, unless it is there. */
static void add_tensor(struct tiny_model *model, const char *prefix, const char *name)
{
    static const struct {
        const char *architecture, *name;
    } bare[] = {
        {NULL, "ssm_a"},
        {NULL, "ssm_d"},
        {"plamo*", "post_attention_norm"},
        {"plamo*", "post_ffw_norm"},
        {"plamo2", "ssm_dt_norm"},
        {"plamo2", "ssm_b_norm"},
        {"plamo2", "ssm_c_norm"},
        {"falcon-h1", "ffn_norm"},
    };
    struct tiny_tensor tensor = {.is_kind = true};
    const char *end = strrchr(name, '.');
    bool has_weight = !end || (strcmp(end, ".bias") != 0 && strcmp(end, ".scale") != 0);

    for (size_t i = 0; i < COUNT(bare); i++)
        has_weight &= strcmp(name, bare[i].name) != 0 ||
                      !tiny_is_of(model->architecture, bare[i].architecture);
    snprintf(tensor.name, sizeof tensor.name, "%s%s%s", prefix, name, has_weight ? ".weight" : "");
    for (size_t i = 0; i < model->n_tensors; i++) {
        if (strcmp(model->tensors[i].name, tensor.name) == 0)
            return;
        if (strcmp(tiny_kind(&model->tensors[i]), tiny_kind(&tensor)) == 0)
            tensor.is_kind = false;
    }
    tiny_set_shape(model->architecture, name, tensor.ne);
    cr_assert_lt(model->n_tensors, (size_t)TINY_MAX_TENSORS);
    model->tensors[model->n_tensors++] = tensor;
}

struct list_maker {
    struct tiny_model *model;
    char prefix[16];
    const char *word; /* end of the word whose first alternative was made */
};

/* Make the first of several names, but of separate and fused products the model's own form. */
static int make_tensor(void *user, const char *name, size_t length, bool is_required)
{
    struct list_maker *maker = user;
    const bool has_next = name[length] == '|';
    const bool has_previous = maker->word == name;
    const char *last = has_next ? name + length + 1 : name;
    const bool is_last_wanted =
        strncmp(last, "attn_qkv", 8) == 0 && tiny_is_in(tiny_fused, maker->model->architecture);
    char text[40];

    maker->word = has_next ? name + length + 1 : NULL;
    if ((has_next && is_last_wanted) || (has_previous && !is_last_wanted))
        return 0;
    snprintf(text, sizeof text, "%.*s", (int)length, name);
    /* an optional bias of the form of product that is not made */
    if (!is_required && !has_previous && !has_next &&
        (strcmp(text, "attn_qkv.bias") == 0 ||
         (length == 11 && strncmp(text, "attn_", 5) == 0 && strchr("qkv", text[5]))) &&
        (text[6] == 'k') != tiny_is_in(tiny_fused, maker->model->architecture))
        return 0;
    for (size_t i = 0; i < COUNT(left_out); i++)
        if (!is_required && strcmp(text, left_out[i].name) == 0 &&
            tiny_is_of(maker->model->architecture, left_out[i].architecture))
            return 0;
    add_tensor(maker->model, maker->prefix, text);
    return 0;
}

static void make_list(struct tiny_model *model, int layer, const char *list)
{
    struct list_maker maker = {.model = model};

    if (layer >= 0)
        snprintf(maker.prefix, sizeof maker.prefix, "blk.%d.", layer);
    gguf_list_walk(list, make_tensor, &maker);
}

bool tiny_model_may_have_experts(const struct gguf_architecture *row)
{
    return row->tensors.experts && gguf_key_rule(row, "expert_count", NULL) != GGUF_KEY_REQUIRED &&
           strcmp(row->name, "jamba") != 0;
}

/* The parts of layer i: recurrence and a dense feed-forward first, attention and experts last. */
static void make_layers(struct tiny_model *model)
{
    const struct gguf_tensor_lists *lists = &model->row->tensors;
    const bool is_pruned = strcmp(model->architecture, "deci") == 0;
    const char *const first = lists->recurrence ? lists->recurrence
                              : is_pruned       ? "attn_norm attn_output"
                                                : lists->attention;
    const char *const last = lists->attention ? lists->attention : lists->recurrence;
    const bool is_split = tiny_model_may_have_experts(model->row);
    const char *const experts = is_split && !model->has_experts ? NULL : lists->experts;
    const bool has_both = strcmp(model->architecture, "gemma4") == 0;
    const char *const dense = is_split && model->has_experts ? NULL : lists->dense;

    if (model->row->blocks == GGUF_ONE_BLOCK) {
        const char *const all[] = {lists->recurrence, lists->attention, dense, experts};

        for (size_t i = 0; i < COUNT(all); i++) {
            if (!all[i])
                continue;
            make_list(model, (int)model->n_layer, lists->layer);
            make_list(model, (int)model->n_layer++, all[i]);
        }
        return;
    }
    for (int i = 0; i < TINY_N_LAYER; i++) {
        make_list(model, i, lists->layer);
        make_list(model, i, i == 0 ? first : last);
        if (has_both)
            make_list(model, i, lists->dense);
        make_list(model, i, i == 0 ? (dense ? dense : experts) : (experts ? experts : dense));
    }
    model->n_layer = TINY_N_LAYER;
}

size_t tiny_n_elements(const struct tiny_tensor *tensor)
{
    size_t n = 1;

    for (size_t i = 0; i < 4 && tensor->ne[i] > 0; i++)
        n *= tensor->ne[i];
    return n;
}

void tiny_fill(const struct tiny_tensor *tensor, float *values)
{
    const size_t n = tiny_n_elements(tensor);
    const bool is_decay = strstr(tensor->name, "ssm_a") && !strstr(tensor->name, "alpha");
    uint64_t random = 88172645463325252u;

    for (const char *c = tensor->name; *c != '\0'; c++)
        random = (random ^ (unsigned char)*c) * 1099511628211u;
    for (size_t i = 0; i < n; i++) {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        values[i] = (float)(random >> 40) / (float)(1 << 24) - 0.5f;
        if (tensor->ne[1] == 0)
            values[i] += 0.75f; /* norms, biases */
        if (is_decay)
            values[i] = -1 - values[i];
    }
}

/* ---- keys ---- */

static const struct {
    const char *architecture, *name, *value; /* as in the table of shapes */
} values[] = {
    {NULL, "context_length", "64"},
    {NULL, "embedding_length", "32"},
    {"qwen", "feed_forward_length", "96"},
    {"nemotron_h*", "feed_forward_length", "[0, 0, 48]"},
    {NULL, "feed_forward_length", "48"},
    {NULL, "attention.layer_norm_rms_epsilon", "0.01"},
    {NULL, "attention.layer_norm_epsilon", "0.01"},
    {"deepseek2", "attention.head_count_kv", "1"},
    {"deepseek32", "attention.head_count_kv", "1"},
    {"glm-dsa", "attention.head_count_kv", "1"},
    {"mistral4", "attention.head_count_kv", "1"},
    {"minicpm3", "attention.head_count_kv", "4"},
    {"plm", "attention.head_count_kv", "4"},
    {NULL, "rope.freq_base", "500"},
    {NULL, "expert_used_count", "2"},
    {NULL, "expert_count", "4"},
    {NULL, "leading_dense_block_count", "1"},
    {NULL, "logit_scale", "0.25"},
    {NULL, "residual_scale", "0.5"},
    {NULL, "embedding_scale", "3.0"},
    {NULL, "attention.scale", "0.5"},
    {NULL, "attention.output_scale", "0.5"},
    {NULL, "attention.value_scale", "0.5"},
    {NULL, "attention.clamp_kqv", "0.4"},
    {NULL, "attention.max_alibi_bias", "4.0"},
    {NULL, "attn_logit_softcapping", "2.0"},
    {NULL, "final_logit_softcapping", "3.0"},
    {NULL, "attention.sliding_window", "3"},
    {"mimo2", "attention.sliding_window_pattern", "[1, 0]"},
    {"step35", "attention.sliding_window_pattern", "[1, 0]"},
    {"gemma4", "attention.sliding_window_pattern", "[1, 0]"},
    {"cohere2moe", "attention.sliding_window_pattern", "[1, 0]"},
    {"mellum", "attention.sliding_window_pattern", "[1, 0]"},
    {NULL, "rope.freq_base_swa", "50"},
    {NULL, "attention.key_length_swa", "8"},
    {NULL, "attention.value_length_swa", "8"},
    {NULL, "rope.dimension_count", "4"},
    {NULL, "expert_gating_func", "2"},
    {NULL, "expert_weights_norm", "true"},
    {NULL, "expert_weights_scale", "1.5"},
    {NULL, "experts_per_group", "2"},
    {NULL, "expert_group_scale", "0.5"},
    {NULL, "attention.kv_lora_rank", "12"},
    {NULL, "attention.q_lora_rank", "12"},
    {"deepseek2", "attention.key_length", "16"},
    {"deepseek32", "attention.key_length", "16"},
    {"glm-dsa", "attention.key_length", "16"},
    {"mistral4", "attention.key_length", "16"},
    {"deepseek2", "attention.value_length", "12"},
    {"deepseek32", "attention.value_length", "12"},
    {"glm-dsa", "attention.value_length", "12"},
    {"mistral4", "attention.value_length", "12"},
    {"deepseek2", "attention.key_length_mla", "8"},
    {"deepseek32", "attention.key_length_mla", "8"},
    {"glm-dsa", "attention.key_length_mla", "8"},
    {"mistral4", "attention.key_length_mla", "8"},
    {"kimi-linear", "attention.key_length_mla", "8"},
    {"deepseek2", "attention.value_length_mla", "8"},
    {"deepseek32", "attention.value_length_mla", "8"},
    {"glm-dsa", "attention.value_length_mla", "8"},
    {"mistral4", "attention.value_length_mla", "8"},
    {"kimi-linear", "attention.value_length_mla", "8"},
    {"minicpm3", "attention.key_length", "8"},
    {"plm", "attention.key_length", "8"},
    {"minicpm3", "attention.value_length", "8"},
    {"plm", "attention.value_length", "8"},
    {NULL, "swin_norm", "true"},
    {NULL, "use_parallel_residual", "true"},
    {NULL, "num_loops", "2"},
    {NULL, "skip_loop_final_norm", "true"},
    {NULL, "attention.indexer.head_count", "2"},
    {NULL, "attention.indexer.key_length", "8"},
    {NULL, "attention.indexer.top_k", "2"},
    {"minimax-m3", "attention.indexer.block_size", "2"},
    {"minimax-m3", "attention.indexer.local_blocks", "1"},
    {NULL, "attention.shared_kv_layers", "0"},
    {NULL, "embedding_length_per_layer_input", "16"},
    {NULL, "swiglu_clamp_exp", "[0.1, 0.1]"},
    {NULL, "swiglu_clamp_shexp", "[0.1, 0.1]"},
    {NULL, "ssm.group_count", "2"},
    {NULL, "wkv.head_size", "8"},
    {NULL, "rescale_every_n_layers", "1"},
    {NULL, "ssm.dt_b_c_rms", "true"},
    {NULL, "/xielu.alpha_n", "[0.5, 0.75]"},
    {NULL, "/xielu.alpha_p", "[0.25, 0.5]"},
    {NULL, "/xielu.beta", "[0.5, 0.5]"},
    {NULL, "/xielu.eps", "[-1e-06, -1e-06]"},
    {"rwkv", "architecture_version", "4"},
};

static void add_key(struct tiny_model *model, const char *name, const char *value)
{
    struct tiny_key *key = &model->keys[model->n_keys++];

    cr_assert_lt(model->n_keys, (size_t)TINY_MAX_KEYS);
    key->listed = name;
    if (name[0] == '/')
        snprintf(key->name, sizeof key->name, "%s", name + 1);
    else
        snprintf(key->name, sizeof key->name, "%s.%s", model->architecture, name);
    snprintf(key->value, sizeof key->value, "%s", value);
}

static bool has_name(const struct tiny_model *model, const char *name)
{
    for (size_t i = 0; i < model->n_keys; i++)
        if (strcmp(model->keys[i].listed, name) == 0)
            return true;
    return false;
}

/* Layers whose mixer is recurrent have no heads, nor has a pruned one. */
static void add_heads(struct tiny_model *model)
{
    const struct gguf_tensor_lists *lists = &model->row->tensors;
    char q[64] = "[", kv[64] = "[";

    if (strcmp(model->architecture, "deci") != 0 &&
        (!lists->recurrence || !lists->attention ||
         strncmp(model->architecture, "qwen3", 5) == 0)) {
        if (gguf_key_rule(model->row, "attention.head_count", NULL) == GGUF_KEY_REQUIRED) {
            add_key(model, "attention.head_count", "4");
            if (!has_name(model, "attention.head_count_kv"))
                add_key(model, "attention.head_count_kv",
                        tiny_is_in(tiny_many_keys, model->architecture) ? "4" : "2");
        }
        return;
    }
    for (unsigned i = 0; i < model->n_layer; i++) {
        const bool has_heads = i == 1;

        snprintf(q + strlen(q), sizeof q - strlen(q), "%s4", i ? ", " : "");
        snprintf(kv + strlen(kv), sizeof kv - strlen(kv), "%s%d", i ? ", " : "", has_heads ? 2 : 0);
    }
    add_key(model, "attention.head_count", strcat(q, "]"));
    add_key(model, "attention.head_count_kv", strcat(kv, "]"));
}

static void make_keys(struct tiny_model *model)
{
    char n_layer[8];

    snprintf(n_layer, sizeof n_layer, "%u", model->n_layer);
    add_key(model, "block_count", n_layer);
    for (size_t i = 0; i < COUNT(values); i++) {
        const enum gguf_key_rule rule = gguf_key_rule(model->row, values[i].name, NULL);
        const bool is_rotation = strcmp(values[i].name, "rope.dimension_count") == 0;
        const bool is_expert = strncmp(values[i].name, "expert_", 7) == 0;

        if (rule == GGUF_KEY_UNUSED || (rule == GGUF_KEY_OPTIONAL && is_rotation) ||
            has_name(model, values[i].name) ||
            !tiny_is_of(model->architecture, values[i].architecture))
            continue;
        if (is_expert && (!model->row->tensors.experts ||
                          (tiny_model_may_have_experts(model->row) && !model->has_experts)))
            continue;
        add_key(model, values[i].name, values[i].value);
    }
    add_heads(model);
}

void tiny_model_make(const char *architecture, bool has_experts, struct tiny_model *model)
{
    *model = (struct tiny_model){.architecture = architecture,
                                 .row = gguf_architecture_find(architecture),
                                 .has_experts = has_experts};
    cr_assert_not_null(model->row, "%s", architecture);
    make_list(model, -1, model->row->tensors.model);
    make_layers(model);
    make_keys(model);
}

void tiny_write(const struct run_files *files, const struct tiny_tensor *tensor, float scale)
{
    const uint64_t *ne = tensor->ne;
    const size_t n = tiny_n_elements(tensor);
    float *scaled = calloc(n, sizeof *scaled);

    cr_assert_not_null(scaled);
    tiny_fill(tensor, scaled);
    for (size_t i = 0; i < n; i += 2) /* not all, since norms remove a common factor */
        scaled[i] *= scale;
    run_files_floats(files, tensor->name, ne[0], ne[1], ne[3] ? ne[2] * ne[3] : ne[2], scaled);
    free(scaled);
}

void tiny_model_write(const struct tiny_model *model, struct run_files *files)
{
    char text[8000];
    size_t n = (size_t)snprintf(text, sizeof text, "{\"general.architecture\": \"%s\"",
                                model->architecture);

    for (size_t i = 0; i < model->n_keys; i++)
        n += (size_t)snprintf(text + n, sizeof text - n, ", \"%s\": %s", model->keys[i].name,
                              model->keys[i].value);
    snprintf(text + n, sizeof text - n, "}");
    run_files_make(files);
    run_thread_pool_end(); /* tiny products are faster in one thread */
    run_thread_pool_start(1);
    run_files_metadata(files, text);
    for (size_t i = 0; i < model->n_tensors; i++)
        tiny_write(files, &model->tensors[i], 1);
}
