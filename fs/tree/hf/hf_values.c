/* Members of config.json whose values are computed, for many models. */
#include "fs/tree/hf/hf_config.h"
#include "gguf/models/key_lists.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static uint64_t n_vocab(const struct fs_hf_model *hf)
{
    const struct gguf_tensor *tensor = fs_hf_tensor(hf, "token_embd.weight");

    return tensor ? tensor->ne[1] : 0;
}

void fs_hf_write_vocab_size(struct fs_hf_config *config, const struct fs_hf_member *member)
{
    if (n_vocab(config->hf) == 0)
        fs_hf_problem(config, "it has no tensor \"token_embd.weight\"");
    fs_hf_member_unsigned(config, member->name, n_vocab(config->hf));
}

static uint64_t token_id(const struct fs_hf_model *hf, const char *kind)
{
    char key[64];

    snprintf(key, sizeof key, "tokenizer.ggml.%s_token_id", kind);
    return fs_hf_number(hf, key, UINT64_MAX);
}

/* The id of a kind of token. It must name a row of the embeddings: torch refuses others. */
void fs_hf_write_token_id(struct fs_hf_config *config, const struct fs_hf_member *member)
{
    const uint64_t id = token_id(config->hf, member->arguments[0]);

    if (id < n_vocab(config->hf))
        fs_hf_member_unsigned(config, member->name, id);
    else
        fs_hf_member_json(config, member->name, "null");
}

/* The ids of all tokens that end a text: one number, or an array. */
void fs_hf_write_ends(struct fs_hf_config *config, const struct fs_hf_member *member)
{
    static const char *const kinds[] = {"eos", "eot", "eom"};
    uint64_t ids[sizeof kinds / sizeof *kinds] = {0};
    size_t n = 0;

    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        const uint64_t id = token_id(config->hf, kinds[i]);
        bool is_new = id <= UINT32_MAX;

        for (size_t j = 0; j < n; j++)
            is_new &= ids[j] != id;
        if (is_new)
            ids[n++] = id;
    }
    if (n == 1) {
        fs_hf_member_unsigned(config, member->name, ids[0]);
    } else if (n > 1) {
        fs_hf_begin_array(config, member->name);
        for (size_t i = 0; i < n; i++)
            fs_hf_element_unsigned(config, ids[i]);
        fs_hf_end_array(config);
    }
}

/* ---- numbers ---- */

/* True if a tensor matches the pattern. */
void fs_hf_write_has(struct fs_hf_config *config, const struct fs_hf_member *member)
{
    fs_hf_member_bool(config, member->name, fs_hf_any_tensor(config->hf, member->arguments[0]));
}

void fs_hf_write_lacks(struct fs_hf_config *config, const struct fs_hf_member *member)
{
    fs_hf_member_bool(config, member->name, !fs_hf_any_tensor(config->hf, member->arguments[0]));
}

/* PATTERN[/JSON]: the number of rows of tensors of a pattern; without them JSON, or no member. */
void fs_hf_write_rows(struct fs_hf_config *config, const struct fs_hf_member *member)
{
    const struct gguf_tensor *tensor = fs_hf_any_tensor(config->hf, member->arguments[0]);

    if (tensor)
        fs_hf_member_unsigned(config, member->name, tensor->ne[1]);
    else if (member->arguments[1])
        fs_hf_member_json(config, member->name, member->arguments[1]);
}

/* The number of their columns. */
void fs_hf_write_columns(struct fs_hf_config *config, const struct fs_hf_member *member)
{
    const struct gguf_tensor *tensor = fs_hf_any_tensor(config->hf, member->arguments[0]);

    if (tensor)
        fs_hf_member_unsigned(config, member->name, tensor->ne[0]);
}

/* The largest number of an array. */
void fs_hf_write_largest(struct fs_hf_config *config, const struct fs_hf_member *member)
{
    fs_hf_member_unsigned(config, member->name, fs_hf_number(config->hf, member->arguments[0], 0));
}

/* The quotient of two keys. */
void fs_hf_write_quotient(struct fs_hf_config *config, const struct fs_hf_member *member)
{
    const char *const *keys = member->arguments;
    const uint64_t dividend = fs_hf_number(config->hf, keys[0], 0);
    const uint64_t divisor = fs_hf_number(config->hf, keys[1], 0);

    if (dividend == 0 || divisor == 0)
        fs_hf_problem(config, "its keys %s and %s are missing or 0", keys[0], keys[1]);
    fs_hf_member_unsigned(config, member->name, divisor > 0 ? dividend / divisor : 0);
}

/* KEY/DEFAULT/NUMBER/JSON/OTHER: JSON if the key is the number, else OTHER. */
void fs_hf_write_equals(struct fs_hf_config *config, const struct fs_hf_member *member)
{
    const char *const *arguments = member->arguments;
    const uint64_t number = fs_hf_number(config->hf, arguments[0], fs_hf_argument(member, 1));

    fs_hf_member_json(config, member->name, arguments[number == fs_hf_argument(member, 2) ? 3 : 4]);
}

void fs_hf_write_head_dim(struct fs_hf_config *config, const struct fs_hf_member *member)
{
    const struct fs_hf_model *hf = config->hf;
    const struct gguf_tensor *q = fs_hf_any_tensor(hf, "blk.%.attn_q.weight");
    const uint64_t n_head = fs_hf_number(hf, "attention.head_count", 0);

    if (!fs_hf_key(hf, "attention.key_length") && q && q->ne[1] != n_head * fs_hf_head_dim(hf))
        fs_hf_problem(config,
                      "it has no key \"%.*s.attention.key_length\", and the %" PRIu64
                      " rows of tensor \"blk.%%.attn_q.weight\" are not of %" PRIu64
                      " heads of width %" PRIu64,
                      (int)hf->architecture.length_bytes, hf->architecture.data, q->ne[1], n_head,
                      fs_hf_head_dim(hf));
    fs_hf_member_unsigned(config, member->name, fs_hf_head_dim(hf));
}

void fs_hf_write_n_head_kv(struct fs_hf_config *config, const struct fs_hf_member *member)
{
    if (!fs_hf_member_key(config, member->name, "attention.head_count_kv"))
        fs_hf_member_key(config, member->name, "attention.head_count");
}

/*
 * The number of key heads in layers with attention. If the key is 0 for all layers, which the
 * converter writes if it recognizes no layer as attention, the shape of attn_k gives the number.
 */
void fs_hf_write_hybrid_n_head_kv(struct fs_hf_config *config, const struct fs_hf_member *member)
{
    const struct fs_hf_model *hf = config->hf;
    const struct gguf_tensor *k = fs_hf_any_tensor(hf, "blk.%.attn_k.weight");
    const uint64_t head_dim = fs_hf_head_dim(hf);
    const uint64_t n_head_kv = fs_hf_number(hf, "attention.head_count_kv", 0);

    fs_hf_member_unsigned(config, member->name,
                          n_head_kv == 0 && k && head_dim > 0 ? k->ne[1] / head_dim : n_head_kv);
}

void fs_hf_write_n_layer(struct fs_hf_config *config, const struct fs_hf_member *member)
{
    if (fs_hf_number(config->hf, "block_count", 0) == 0)
        fs_hf_problem(config, "its metadata has no key \"%.*s.block_count\"",
                      (int)config->hf->architecture.length_bytes, config->hf->architecture.data);
    fs_hf_member_unsigned(config, member->name, fs_hf_n_layer(config->hf));
}

/* The scale of scores; 1 / √(width of a head) without the key. */
void fs_hf_write_attention_scale(struct fs_hf_config *config, const struct fs_hf_member *member)
{
    const double head_dim = (double)fs_hf_head_dim(config->hf);

    if (fs_hf_float(config->hf, "attention.scale", 0) != 0)
        fs_hf_member_key(config, member->name, "attention.scale");
    else
        fs_hf_member_ratio(config, member->name, head_dim > 0 ? 1 / sqrt(head_dim) : 1);
}

/* ---- windows ---- */

/* Return the size of the window, or 0 if the model has none. */
static uint64_t window_of(const struct fs_hf_model *hf)
{
    static const char key[] = "attention.sliding_window";
    double otherwise = 0;

    gguf_key_rule(hf->listed, key, &otherwise);
    return fs_hf_number(hf, key, (uint64_t)otherwise);
}

void fs_hf_write_window(struct fs_hf_config *config, const struct fs_hf_member *member)
{
    const uint64_t size = window_of(config->hf);

    if (size > 0)
        fs_hf_member_unsigned(config, member->name, size);
    else
        fs_hf_member_json(config, member->name, "null");
}

/*
 * Attention with or without a window, for each layer. The argument is the period if the model has
 * no key for it: the last layer of each period has no window, with "first" after it the first one;
 * 0: no layer has a window. "key": the key is required and, if it is a period (Cohere), the first
 * layer of each has no window.
 */
void fs_hf_write_layer_types(struct fs_hf_config *config, const struct fs_hf_member *member)
{
    static const char pattern[] = "attention.sliding_window_pattern";
    const struct fs_hf_model *hf = config->hf;
    const struct gguf_key *key = fs_hf_key(hf, pattern);
    const uint64_t n_layer = fs_hf_n_layer(hf);
    const bool is_by_key = strcmp(member->arguments[0], "key") == 0;
    const bool is_first = is_by_key || member->arguments[1];
    const uint64_t period = fs_hf_number(hf, pattern, fs_hf_argument(member, 0));

    if (is_by_key && !key)
        fs_hf_problem(config, "it has no key \"%.*s.attention.sliding_window_pattern\"",
                      (int)hf->architecture.length_bytes, hf->architecture.data);
    fs_hf_begin_array(config, member->name);
    for (uint64_t i = 0; i < n_layer; i++) {
        bool has_window = period > 0 && (i + !is_first) % period != 0;

        if (key && key->value.type == GGUF_ARRAY)
            has_window = fs_hf_number_at(hf, pattern, i, 0) != 0;
        fs_hf_element_text(config, has_window && window_of(hf) > 0 ? "sliding_attention"
                                                                   : "full_attention");
    }
    fs_hf_end_array(config);
}

/* ---- layers ---- */

/* The kind of each layer: PATTERN/KIND/…/OTHERS, the kind of layers with that tensor, …, others. */
void fs_hf_write_kinds(struct fs_hf_config *config, const struct fs_hf_member *member)
{
    const uint64_t n_layer = fs_hf_n_layer(config->hf);

    fs_hf_begin_array(config, member->name);
    for (uint64_t i = 0; i < n_layer; i++) {
        const char *const *kind = member->arguments;

        while (kind[1] && !fs_hf_layer_has(config->hf, i, kind[0]))
            kind += 2;
        fs_hf_element_text(config, kind[1] ? kind[1] : kind[0]);
    }
    fs_hf_end_array(config);
}

/* The numbers of layers that have a tensor of the pattern. */
void fs_hf_write_layers_with(struct fs_hf_config *config, const struct fs_hf_member *member)
{
    const uint64_t n_layer = fs_hf_n_layer(config->hf);

    fs_hf_begin_array(config, member->name);
    for (uint64_t i = 0; i < n_layer; i++) {
        if (fs_hf_layer_has(config->hf, i, member->arguments[0]))
            fs_hf_element_unsigned(config, i);
    }
    fs_hf_end_array(config);
}

void fs_hf_write_last_layer(struct fs_hf_config *config, const struct fs_hf_member *member)
{
    const uint64_t n_layer = fs_hf_n_layer(config->hf);

    fs_hf_member_unsigned(config, member->name, n_layer > 0 ? n_layer - 1 : 0);
}

/* The number of leading layers without experts. */
void fs_hf_write_n_dense(struct fs_hf_config *config, const struct fs_hf_member *member)
{
    const uint64_t n_layer = fs_hf_n_layer(config->hf);
    uint64_t n = 0;

    while (n < n_layer && !fs_hf_layer_has(config->hf, n, "blk.%.ffn_gate_inp.weight"))
        n++;
    fs_hf_member_unsigned(config, member->name, n);
}

/* ---- experts ---- */

void fs_hf_write_n_shared(struct fs_hf_config *config, const struct fs_hf_member *member)
{
    if (!fs_hf_member_key(config, member->name, "expert_shared_count") &&
        fs_hf_any_tensor(config->hf, "blk.%.ffn_down_shexp"))
        fs_hf_problem(config, "it has shared experts, and no key expert_shared_count");
}

/* No member: the class has only this function of expert_gating_func. */
void fs_hf_write_gating(struct fs_hf_config *config, const struct fs_hf_member *member)
{
    const uint64_t expected = fs_hf_argument(member, 0);
    double otherwise = 0;
    uint64_t gating;

    gguf_key_rule(config->hf->listed, member->name, &otherwise);
    gating = fs_hf_number(config->hf, member->name, (uint64_t)otherwise);
    if (gating != expected)
        fs_hf_problem(config,
                      "its key expert_gating_func is %" PRIu64 ", and its class has %" PRIu64,
                      gating, expected);
}

/* No member: the class always divides the weights of the chosen experts by their sum. */
void fs_hf_write_normed(struct fs_hf_config *config, const struct fs_hf_member *member)
{
    if (!fs_hf_bool(config->hf, "expert_weights_norm", false))
        fs_hf_problem(config, "its key expert_weights_norm is not true");
}
