/* Members of config.json whose values are computed. */
#include "fs/tree/hf/hf_config.h"
#include "fs/tree/json.h"

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
    fs_hf_member_unsigned(config, entry->name, fs_hf_head_dim(config->hf));
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

void fs_hf_write_sliding_window(struct fs_hf_config *config, const struct fs_hf_entry *entry)
{
    const uint64_t size = fs_hf_number(config->hf, "attention.sliding_window", 0);

    if (size > 0)
        fs_hf_member_unsigned(config, entry->name, size);
    else
        fs_hf_member_json(config, entry->name, "null");
}

/* ---- rotary position embedding ---- */

size_t fs_hf_get_factors(struct fs_hf_config *config, const char *name, const float **factors)
{
    const struct gguf_tensor *tensor = fs_hf_tensor(config->hf, name);
    const struct fs_hf_factors *list = tensor ? fs_hf_factors_of(config->factors, tensor) : NULL;

    if (tensor && !list)
        fs_hf_problem(config, "tensor \"%s\" is no list of factors", name);
    *factors = list ? list->values : NULL;
    return list ? (size_t)tensor->n_elements : 0;
}

/* The parameters of rope_type "llama3". */
struct llama3 {
    float factor, low_frequency, high_frequency;
    uint64_t n_ctx;
};

/* Return the factor by which llama3 divides a frequency. */
static double llama3_factor(const struct llama3 *rope, double frequency)
{
    const double turns = (double)rope->n_ctx * frequency / (2 * M_PI);
    const double smooth = (turns - (double)rope->low_frequency) /
                          (double)(rope->high_frequency - rope->low_frequency);

    if (turns > (double)rope->high_frequency)
        return 1;
    if (turns < (double)rope->low_frequency)
        return (double)rope->factor;
    return 1 / ((1 - smooth) / (double)rope->factor + smooth);
}

/*
 * Find the parameters of llama3 that give these factors, with low and high frequencies 1 and 4 as
 * in all published models. Returns false if there are none.
 */
static bool find_llama3(const float *factors, size_t n, double theta, struct llama3 *rope)
{
    static const uint32_t contexts[] = {8192, 4096, 16384, 32768, 65536, 131072, 2048,
                                        1024, 512,  256,   128,   64,    32,     16};

    *rope = (struct llama3){.factor = factors[n - 1], .low_frequency = 1, .high_frequency = 4};
    for (size_t i = 0; i < sizeof contexts / sizeof *contexts; i++) {
        size_t n_fitting = 0;

        rope->n_ctx = contexts[i];
        for (size_t j = 0; j < n; j++) {
            const double expected = llama3_factor(rope, pow(theta, -(double)j / (double)n));

            n_fitting += fabs((double)factors[j] - expected) <= 1e-5 * expected;
        }
        if (n_fitting == n)
            return true;
    }
    return false;
}

static void write_factors(struct fs_hf_config *config, const char *name, const float *factors,
                          size_t n)
{
    fs_hf_member(config, name);
    for (size_t i = 0; i < n; i++) {
        fs_sink_literal(config->sink, i == 0 ? "[" : ", ");
        fs_json_scalar(config->sink, &(struct gguf_value){.type = GGUF_FLOAT32, .f32 = factors[i]});
    }
    fs_sink_literal(config->sink, "]");
}

/* Write a member for a key, if there is that key. */
static void write_optional(struct fs_hf_config *config, const char *name, const char *key)
{
    const struct gguf_key *found = fs_hf_key(config->hf, key);

    if (found)
        fs_hf_member_key(config, name, found);
}

static void write_original_context(struct fs_hf_config *config)
{
    write_optional(config, "original_max_position_embeddings",
                   "rope.scaling.original_context_length");
}

/* The file has a single number, since both are equal in all published models. */
static void write_mscale(struct fs_hf_config *config, unsigned factor)
{
    const double multiplier = fs_hf_float(config->hf, "rope.scaling.yarn_log_multiplier", 0);

    if (multiplier <= 0)
        return;
    fs_hf_member_float(config, "mscale", multiplier * factor);
    fs_hf_member_float(config, "mscale_all_dim", multiplier * factor);
}

static void write_longrope(struct fs_hf_config *config, const float *short_factors,
                           const float *long_factors, size_t n)
{
    fs_hf_member_json(config, "rope_type", "\"longrope\"");
    write_factors(config, "short_factor", short_factors, n);
    write_factors(config, "long_factor", long_factors, n);
    /* These scales are in no key; all published models have this one. */
    if (gguf_string_equals(config->hf->architecture, "phimoe")) {
        fs_hf_member_json(config, "short_mscale", "1.243163121016122");
        fs_hf_member_json(config, "long_mscale", "1.243163121016122");
    }
}

/* The ends of the range of frequencies are not rounded in gpt-oss, which no key says. */
static bool has_exact_range(const struct fs_hf_model *hf)
{
    return gguf_string_equals(hf->architecture, "gpt-oss") &&
           fs_hf_number(hf, "rope.scaling.original_context_length", 0) == 4096;
}

/* Write the members that describe the scaling of rotations. Returns false if there is none. */
static bool write_scaling(struct fs_hf_config *config, double theta, unsigned mscale_factor)
{
    const struct fs_hf_model *hf = config->hf;
    const struct gguf_key *type = fs_hf_key(hf, "rope.scaling.type");
    const float *factors, *long_factors;
    struct llama3 rope;
    size_t n;

    if ((n = fs_hf_get_factors(config, "rope_factors_short.weight", &factors)) > 0) {
        const size_t n_long = fs_hf_get_factors(config, "rope_factors_long.weight", &long_factors);

        if (!fs_hf_tensor(hf, "rope_factors_long.weight"))
            fs_hf_problem(config, "it has no tensor \"rope_factors_long.weight\" of %zu factors",
                          n);
        else if (n_long != n)
            fs_hf_problem(config,
                          "tensor \"rope_factors_long.weight\" has %zu factors, and "
                          "\"rope_factors_short.weight\" has %zu",
                          n_long, n);
        else
            write_longrope(config, factors, long_factors, n);
        write_original_context(config);
        return true;
    }
    if ((n = fs_hf_get_factors(config, "rope_freqs.weight", &factors)) > 0) {
        if (find_llama3(factors, n, theta, &rope)) {
            fs_hf_member_json(config, "rope_type", "\"llama3\"");
            fs_hf_member_float(config, "factor", (double)rope.factor);
            fs_hf_member_float(config, "low_freq_factor", (double)rope.low_frequency);
            fs_hf_member_float(config, "high_freq_factor", (double)rope.high_frequency);
            fs_hf_member_unsigned(config, "original_max_position_embeddings", rope.n_ctx);
        } else {
            write_longrope(config, factors, factors, n);
            fs_hf_member_json(config, "attention_factor", "1.0");
        }
        return true;
    }
    /* Without a type, a factor is linear. The first files have another key for it. */
    if (!type || fs_hf_text_is(hf, "rope.scaling.type", "linear")) {
        const double factor =
            fs_hf_float(hf, "rope.scaling.factor", fs_hf_float(hf, "rope.scale_linear", 0));

        if (factor <= 0 || factor == 1)
            return false;
        fs_hf_member_json(config, "rope_type", "\"linear\"");
        fs_hf_member_float(config, "factor", factor);
        return true;
    }
    if (fs_hf_text_is(hf, "rope.scaling.type", "yarn")) {
        fs_hf_member_json(config, "rope_type", "\"yarn\"");
        write_optional(config, "factor", "rope.scaling.factor");
        write_original_context(config);
        write_optional(config, "beta_fast", "rope.scaling.yarn_beta_fast");
        write_optional(config, "beta_slow", "rope.scaling.yarn_beta_slow");
        write_optional(config, "attention_factor", "rope.scaling.yarn_attn_factor");
        write_optional(config, "llama_4_scaling_beta", "attention.temperature_scale");
        write_mscale(config, mscale_factor);
        if (has_exact_range(hf))
            fs_hf_member_json(config, "truncate", "false");
        return true;
    }
    if (!fs_hf_text_is(hf, "rope.scaling.type", "none"))
        fs_hf_problem(config, "it has no factors for its key \"%.*s.rope.scaling.type\"",
                      (int)hf->architecture.length_bytes, hf->architecture.data);
    return false;
}

/* Write the members of rope_parameters. */
static void write_rope(struct fs_hf_config *config, double theta, double part, bool is_scaled,
                       unsigned mscale_factor)
{
    fs_hf_member_float(config, "rope_theta", theta);
    if (part > 0)
        fs_hf_member_ratio(config, "partial_rotary_factor", part);
    if (!is_scaled || !write_scaling(config, theta, mscale_factor))
        fs_hf_member_json(config, "rope_type", "\"default\"");
}

/*
 * Return the part of a head that is rotated. Where the converter does not write the width of a
 * head, it takes the part of n_embd / n_head.
 */
static double rotated_part(const struct fs_hf_model *hf, const char *key)
{
    const uint64_t n_head = fs_hf_n_head(hf, 0), n_embd = fs_hf_number(hf, "embedding_length", 0);
    const uint64_t head_dim =
        fs_hf_number(hf, "attention.key_length", n_head > 0 ? n_embd / n_head : 0);
    const uint64_t rotated = fs_hf_number(hf, key, head_dim);
    const double part = head_dim > 0 ? (double)rotated / (double)head_dim : 1;

    /* transformers truncates the product */
    return part * (double)head_dim < (double)rotated ? nextafter(part, 2) : part;
}

void fs_hf_write_rope(struct fs_hf_config *config, const struct fs_hf_entry *entry)
{
    const double theta = fs_hf_float(config->hf, "rope.freq_base", 10000);
    const bool is_partial = strcmp(entry->name, "rope") != 0;
    const double part = is_partial ? rotated_part(config->hf, "rope.dimension_count") : 0;

    fs_hf_begin_object(config, "rope_parameters");
    write_rope(config, theta, part, true, entry->number > 0 ? entry->number : 1);
    fs_hf_end_object(config);
    /* The same for transformers before 5. */
    fs_hf_member_float(config, "rope_theta", theta);
    if (is_partial)
        fs_hf_member_ratio(config, entry->name, part);
}

void fs_hf_write_rope_by_type(struct fs_hf_config *config, const struct fs_hf_entry *entry)
{
    const struct fs_hf_model *hf = config->hf;
    const double theta = fs_hf_float(hf, "rope.freq_base", 10000);
    const double windowed_theta =
        fs_hf_float(hf, "rope.freq_base_swa", entry->number > 0 ? (double)entry->number : theta);
    const char *windowed_count = fs_hf_key(hf, "rope.dimension_count_swa")
                                     ? "rope.dimension_count_swa"
                                     : "rope.dimension_count";
    const bool is_partial = strcmp(entry->name, "rope") != 0;

    fs_hf_begin_object(config, "rope_parameters");
    fs_hf_begin_object(config, "full_attention");
    write_rope(config, theta, is_partial ? rotated_part(hf, "rope.dimension_count") : 0, true, 1);
    fs_hf_end_object(config);
    fs_hf_begin_object(config, "sliding_attention");
    write_rope(config, windowed_theta, is_partial ? rotated_part(hf, windowed_count) : 0, false, 1);
    fs_hf_end_object(config);
    fs_hf_end_object(config);
    /* The same for transformers before 5. */
    fs_hf_member_float(config, "rope_theta", theta);
    fs_hf_member_float(config, "rope_local_base_freq", windowed_theta);
}

/* ---- kinds of layers ---- */

bool fs_hf_layer_has(const struct fs_hf_model *hf, uint64_t layer, const char *pattern)
{
    const struct fs_hf_match match = {.layer = (uint32_t)layer, .suffix = ""};
    char name[FS_HF_NAME_BYTES];

    return fs_hf_expand(pattern, &match, name) && fs_hf_tensor(hf, name);
}

static bool has_window(const struct fs_hf_model *hf, uint64_t layer, unsigned default_period)
{
    static const char pattern[] = "attention.sliding_window_pattern";
    const struct gguf_key *key = fs_hf_key(hf, pattern);
    uint64_t period = default_period;

    if (fs_hf_number(hf, "attention.sliding_window", 0) == 0)
        return false;
    if (key && key->value.type == GGUF_ARRAY)
        return fs_hf_number_at(hf, pattern, layer, 0) != 0;
    period = fs_hf_number(hf, pattern, default_period);
    return period > 0 && (layer + 1) % period != 0;
}

void fs_hf_write_layer_types(struct fs_hf_config *config, const struct fs_hf_entry *entry)
{
    const uint64_t n_layer = fs_hf_n_layer(config->hf);

    fs_hf_begin_array(config, entry->name);
    for (uint64_t i = 0; i < n_layer; i++)
        fs_hf_element_text(config, has_window(config->hf, i, entry->number) ? "sliding_attention"
                                                                            : "full_attention");
    fs_hf_end_array(config);
}

static bool has_experts(const struct fs_hf_model *hf, uint64_t layer)
{
    return fs_hf_layer_has(hf, layer, "blk.%.ffn_gate_inp.weight");
}

void fs_hf_write_mlp_types(struct fs_hf_config *config, const struct fs_hf_entry *entry)
{
    const uint64_t n_layer = fs_hf_n_layer(config->hf);

    fs_hf_begin_array(config, entry->name);
    for (uint64_t i = 0; i < n_layer; i++)
        fs_hf_element_text(config, has_experts(config->hf, i) ? "sparse" : "dense");
    fs_hf_end_array(config);
}

void fs_hf_write_n_dense(struct fs_hf_config *config, const struct fs_hf_entry *entry)
{
    const uint64_t n_layer = fs_hf_n_layer(config->hf);
    uint64_t n = 0;

    while (n < n_layer && !has_experts(config->hf, n))
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
