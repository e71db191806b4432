/* Members of config.json whose values are computed. */
#include "fs/tree/hf/hf_config.h"
#include "fs/tree/output/json.h"
#include "gguf/models/key_lists.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

static uint64_t n_vocab(const struct fs_hf_model *hf)
{
    const struct gguf_tensor *tensor = fs_hf_tensor(hf, "token_embd.weight");

    return tensor ? tensor->ne[1] : 0;
}

void fs_hf_write_vocab_size(struct fs_hf_config *config, const struct fs_hf_entry *entry)
{
    (void)entry;
    if (n_vocab(config->hf) == 0)
        fs_hf_problem(config, "it has no tensor \"token_embd.weight\"");
    fs_hf_member_unsigned(config, "vocab_size", n_vocab(config->hf));
}

/* The id must name a row of the embeddings: torch refuses others. */
static void write_token_id(struct fs_hf_config *config, const char *name, const char *key)
{
    const uint64_t id = fs_hf_number(config->hf, key, UINT64_MAX);

    if (id < n_vocab(config->hf))
        fs_hf_member_unsigned(config, name, id);
    else
        fs_hf_member_json(config, name, "null");
}

void fs_hf_write_token_ids(struct fs_hf_config *config, const struct fs_hf_entry *entry)
{
    (void)entry;
    write_token_id(config, "bos_token_id", "tokenizer.ggml.bos_token_id");
    write_token_id(config, "eos_token_id", "tokenizer.ggml.eos_token_id");
    write_token_id(config, "pad_token_id", "tokenizer.ggml.padding_token_id");
}

void fs_hf_write_head_dim(struct fs_hf_config *config, const struct fs_hf_entry *entry)
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
    fs_hf_member_unsigned(config, entry->name, fs_hf_head_dim(hf));
}

void fs_hf_write_n_head_kv(struct fs_hf_config *config, const struct fs_hf_entry *entry)
{
    const struct gguf_key *key = fs_hf_key(config->hf, "attention.head_count_kv");

    if (!key)
        key = fs_hf_key(config->hf, "attention.head_count");
    if (key)
        fs_hf_member_key(config, entry->name, key);
}

void fs_hf_write_hybrid_n_head_kv(struct fs_hf_config *config, const struct fs_hf_entry *entry)
{
    const struct fs_hf_model *hf = config->hf;
    const struct gguf_tensor *k = fs_hf_any_tensor(hf, "blk.%.attn_k.weight");
    const uint64_t head_dim = fs_hf_head_dim(hf);
    const uint64_t n_head_kv = fs_hf_number(hf, "attention.head_count_kv", 0);

    fs_hf_member_unsigned(config, entry->name,
                          n_head_kv == 0 && k && head_dim > 0 ? k->ne[1] / head_dim : n_head_kv);
}

void fs_hf_write_n_layer(struct fs_hf_config *config, const struct fs_hf_entry *entry)
{
    if (fs_hf_number(config->hf, "block_count", 0) == 0)
        fs_hf_problem(config, "its metadata has no key \"%.*s.block_count\"",
                      (int)config->hf->architecture.length_bytes, config->hf->architecture.data);
    fs_hf_member_unsigned(config, entry->name, fs_hf_n_layer(config->hf));
}

/* Return the size of the window, or 0 if the model has none. */
static uint64_t window_of(const struct fs_hf_model *hf)
{
    static const char key[] = "attention.sliding_window";
    double otherwise = 0;

    gguf_key_rule(hf->listed, key, &otherwise);
    return fs_hf_number(hf, key, (uint64_t)otherwise);
}

void fs_hf_write_sliding_window(struct fs_hf_config *config, const struct fs_hf_entry *entry)
{
    const uint64_t size = window_of(config->hf);

    if (size > 0)
        fs_hf_member_unsigned(config, entry->name, size);
    else
        fs_hf_member_json(config, entry->name, "null");
}

void fs_hf_write_attention_scale(struct fs_hf_config *config, const struct fs_hf_entry *entry)
{
    const double head_dim = (double)fs_hf_head_dim(config->hf);

    if (fs_hf_float(config->hf, "attention.scale", 0) != 0)
        fs_hf_member_key(config, entry->name, fs_hf_key(config->hf, "attention.scale"));
    else
        fs_hf_member_ratio(config, entry->name, head_dim > 0 ? 1 / sqrt(head_dim) : 1);
}

/* ---- kinds of layers ---- */

static bool has_window(const struct fs_hf_model *hf, uint64_t layer, unsigned default_period)
{
    static const char pattern[] = "attention.sliding_window_pattern";
    const struct gguf_key *key = fs_hf_key(hf, pattern);
    uint64_t period = default_period;

    if (window_of(hf) == 0)
        return false;
    if (key && key->value.type == GGUF_ARRAY)
        return fs_hf_number_at(hf, pattern, layer, 0) != 0;
    period = fs_hf_number(hf, pattern, default_period);
    if (default_period == FS_HF_BY_KEY)
        return period > 0 && layer % period != 0;
    return period > 0 && (layer + 1) % period != 0;
}

void fs_hf_write_layer_types(struct fs_hf_config *config, const struct fs_hf_entry *entry)
{
    const uint64_t n_layer = fs_hf_n_layer(config->hf);

    if (entry->number == FS_HF_BY_KEY && !fs_hf_key(config->hf, "attention.sliding_window_pattern"))
        fs_hf_problem(config, "it has no key \"%.*s.attention.sliding_window_pattern\"",
                      (int)config->hf->architecture.length_bytes, config->hf->architecture.data);
    fs_hf_begin_array(config, entry->name);
    for (uint64_t i = 0; i < n_layer; i++)
        fs_hf_element_text(config, has_window(config->hf, i, entry->number) ? "sliding_attention"
                                                                            : "full_attention");
    fs_hf_end_array(config);
}

void fs_hf_write_layers_with(struct fs_hf_config *config, const struct fs_hf_entry *entry)
{
    const uint64_t n_layer = fs_hf_n_layer(config->hf);

    fs_hf_begin_array(config, entry->name);
    for (uint64_t i = 0; i < n_layer; i++) {
        if (fs_hf_layer_has(config->hf, i, entry->key))
            fs_hf_element_unsigned(config, i);
    }
    fs_hf_end_array(config);
}

void fs_hf_demand_gating(struct fs_hf_config *config, const struct fs_hf_entry *entry)
{
    double otherwise = 0;
    uint64_t gating;

    gguf_key_rule(config->hf->listed, entry->name, &otherwise);
    gating = fs_hf_number(config->hf, entry->name, (uint64_t)otherwise);
    if (gating != entry->number)
        fs_hf_problem(config, "its key expert_gating_func is %" PRIu64 ", and its class has %u",
                      gating, entry->number);
}

void fs_hf_write_n_dense(struct fs_hf_config *config, const struct fs_hf_entry *entry)
{
    const uint64_t n_layer = fs_hf_n_layer(config->hf);
    uint64_t n = 0;

    while (n < n_layer && !fs_hf_layer_has(config->hf, n, "blk.%.ffn_gate_inp.weight"))
        n++;
    fs_hf_member_unsigned(config, entry->name, n);
}

void fs_hf_write_rows(struct fs_hf_config *config, const struct fs_hf_entry *entry)
{
    const struct gguf_tensor *tensor = fs_hf_any_tensor(config->hf, entry->key);

    if (tensor)
        fs_hf_member_unsigned(config, entry->name, tensor->ne[1]);
}

void fs_hf_write_largest(struct fs_hf_config *config, const struct fs_hf_entry *entry)
{
    fs_hf_member_unsigned(config, entry->name, fs_hf_number(config->hf, entry->key, 0));
}
