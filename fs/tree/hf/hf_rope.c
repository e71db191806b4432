/*
 * rope_parameters of config.json, which transformers 5 reads, and rope_scaling with rope_theta,
 * which transformers 4 reads. A model whose rotation neither can describe has no checkpoint.
 */
#include "fs/tree/hf/hf_config.h"
#include "fs/tree/output/json.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#define ATTN_FACTOR      "rope.scaling.attn_factor"
#define YARN_ATTN_FACTOR "rope.scaling.yarn_attn_factor"
#define ORIGINAL_CONTEXT "rope.scaling.original_context_length"

size_t fs_hf_get_factors(struct fs_hf_config *config, const char *name, const float **factors)
{
    const struct gguf_tensor *tensor = fs_hf_tensor(config->hf, name);
    const struct fs_hf_factors *list = tensor ? fs_hf_factors_of(config->factors, tensor) : NULL;

    const uint64_t width = fs_hf_head_dim(config->hf);
    const uint64_t n = fs_hf_number(config->hf, "rope.dimension_count", width) / 2;

    if (tensor && !list)
        fs_hf_problem(config, "tensor \"%s\" is not a list of factors", name);
    else if (tensor && tensor->n_elements != n)
        fs_hf_problem(config,
                      "tensor \"%s\" has %" PRIu64 " factors, and half of the rotated part of a "
                      "head is %" PRIu64,
                      name, tensor->n_elements, n);
    *factors = list ? list->values : NULL;
    return list && tensor->n_elements == n ? (size_t)n : 0;
}

/* ---- the kind of scaling ---- */

/* The parameters of rope_type "llama3". */
struct llama3 {
    float factor, low_frequency, high_frequency;
    uint64_t n_ctx;
};

struct scaling {
    enum { UNSCALED, LINEAR, LLAMA3, LONGROPE, YARN } type;
    double factor; /* of LINEAR and YARN */
    struct llama3 llama3;
    const float *short_factors, *long_factors; /* of LONGROPE */
    size_t n_factors;
    double attention_factor; /* of cosines and sines; 0: as rope_type implies */
    unsigned mscale_factor;  /* from the key yarn_log_multiplier to mscale_all_dim */
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

/* Return the factor of linear scaling. The first files have other keys for it. */
static double linear_factor(const struct fs_hf_model *hf)
{
    static const char *const keys[] = {"rope.scaling.factor", "rope.scale_linear", "rope.scale"};

    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        const double factor = fs_hf_float(hf, keys[i], 0);

        if (factor > 0)
            return factor;
    }
    return 1;
}

static void find_long_factors(struct fs_hf_config *config, struct scaling *scaling)
{
    scaling->type = LONGROPE;
    if (fs_hf_get_factors(config, "rope_factors_long.weight", &scaling->long_factors) > 0)
        return;
    fs_hf_problem(config, "it has no tensor \"rope_factors_long.weight\" of %zu factors",
                  scaling->n_factors);
    scaling->long_factors = scaling->short_factors;
}

/* Programs multiply positions by 1 / factor beside using the factors of tensors. */
static void refuse_both_factors(struct fs_hf_config *config)
{
    if (linear_factor(config->hf) != 1)
        fs_hf_problem(config,
                      "it has a factor of linear scaling, %g, and tensors of factors; "
                      "rope_parameters cannot have both",
                      linear_factor(config->hf));
}

/*
 * YaRN's own factor is 0.1 · ln(factor) + 1, which the key attn_factor multiplies. The key
 * yarn_attn_factor holds attention_factor of the checkpoint's config.json.
 */
static void find_yarn_attention(struct fs_hf_config *config, struct scaling *scaling)
{
    const struct fs_hf_model *hf = config->hf;
    const double more = fs_hf_float(hf, ATTN_FACTOR, 1);
    const double given = fs_hf_float(hf, YARN_ATTN_FACTOR, 0);

    if (given > 0)
        scaling->attention_factor = given * more;
    else if (more != 1 && fs_hf_float(hf, "rope.scaling.yarn_log_multiplier", 0) > 0)
        fs_hf_problem(config, "it has both keys " ATTN_FACTOR " and "
                              "rope.scaling.yarn_log_multiplier");
    else if (more != 1)
        scaling->attention_factor =
            more * (scaling->factor > 1 ? 0.1 * log(scaling->factor) + 1 : 1);
}

static struct scaling find_scaling(struct fs_hf_config *config, double theta)
{
    const struct fs_hf_model *hf = config->hf;
    const struct gguf_key *type = fs_hf_key(hf, "rope.scaling.type");
    const double attention = fs_hf_float(hf, ATTN_FACTOR, 1);
    struct scaling scaling = {.factor = linear_factor(hf)};

    scaling.n_factors =
        fs_hf_get_factors(config, "rope_factors_short.weight", &scaling.short_factors);
    if (scaling.n_factors > 0) {
        find_long_factors(config, &scaling);
        refuse_both_factors(config);
        scaling.attention_factor = attention;
        return scaling;
    }
    scaling.n_factors = fs_hf_get_factors(config, "rope_freqs.weight", &scaling.short_factors);
    if (scaling.n_factors > 0) {
        refuse_both_factors(config);
        scaling.long_factors = scaling.short_factors;
        scaling.attention_factor = attention;
        scaling.type = attention == 1 && find_llama3(scaling.short_factors, scaling.n_factors,
                                                     theta, &scaling.llama3)
                           ? LLAMA3
                           : LONGROPE;
        return scaling;
    }
    if (fs_hf_text_is(hf, "rope.scaling.type", "yarn")) {
        scaling.type = YARN;
        find_yarn_attention(config, &scaling);
        return scaling;
    }
    if (attention != 1)
        fs_hf_problem(config,
                      "its key " ATTN_FACTOR " is %g, which rope_parameters can only have "
                      "with factors or YaRN",
                      attention);
    /* Without a type, a factor is linear. */
    if (!type || fs_hf_text_is(hf, "rope.scaling.type", "linear"))
        scaling.type = scaling.factor != 1 ? LINEAR : UNSCALED;
    else if (!fs_hf_text_is(hf, "rope.scaling.type", "none"))
        fs_hf_problem(config, "it has no factors for its key \"%.*s.rope.scaling.type\"",
                      (int)hf->architecture.length_bytes, hf->architecture.data);
    return scaling;
}

/* ---- its members ---- */

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
    write_optional(config, "original_max_position_embeddings", ORIGINAL_CONTEXT);
}

static void write_longrope(struct fs_hf_config *config, const struct scaling *scaling)
{
    fs_hf_member_json(config, "rope_type", "\"longrope\"");
    write_factors(config, "short_factor", scaling->short_factors, scaling->n_factors);
    write_factors(config, "long_factor", scaling->long_factors, scaling->n_factors);
    /* These scales are in no key; all published models have this one. */
    if (gguf_string_equals(config->hf->architecture, "phimoe")) {
        fs_hf_member_json(config, "short_mscale", "1.243163121016122");
        fs_hf_member_json(config, "long_mscale", "1.243163121016122");
    }
    fs_hf_member_float(config, "attention_factor", scaling->attention_factor);
    write_original_context(config);
}

/* The ends of the range of frequencies are not rounded in gpt-oss, which no key says. */
static bool has_exact_range(const struct fs_hf_model *hf)
{
    return gguf_string_equals(hf->architecture, "gpt-oss") &&
           fs_hf_number(hf, ORIGINAL_CONTEXT, 0) == 4096;
}

static void write_yarn(struct fs_hf_config *config, const struct scaling *scaling)
{
    /* The file has a single number, since both are equal in all published models. */
    const double mscale = fs_hf_float(config->hf, "rope.scaling.yarn_log_multiplier", 0) *
                          (scaling->mscale_factor > 0 ? scaling->mscale_factor : 1);

    fs_hf_member_json(config, "rope_type", "\"yarn\"");
    fs_hf_member_float(config, "factor", scaling->factor);
    write_original_context(config);
    write_optional(config, "beta_fast", "rope.scaling.yarn_beta_fast");
    write_optional(config, "beta_slow", "rope.scaling.yarn_beta_slow");
    if (scaling->attention_factor > 0)
        fs_hf_member_float(config, "attention_factor", scaling->attention_factor);
    write_optional(config, "llama_4_scaling_beta", "attention.temperature_scale");
    if (mscale > 0) {
        fs_hf_member_float(config, "mscale", mscale);
        fs_hf_member_float(config, "mscale_all_dim", mscale);
    }
    if (has_exact_range(config->hf))
        fs_hf_member_json(config, "truncate", "false");
}

static void write_scaling(struct fs_hf_config *config, const struct scaling *scaling)
{
    switch (scaling->type) {
    case UNSCALED:
        fs_hf_member_json(config, "rope_type", "\"default\"");
        break;
    case LINEAR:
        fs_hf_member_json(config, "rope_type", "\"linear\"");
        fs_hf_member_float(config, "factor", scaling->factor);
        break;
    case LLAMA3:
        fs_hf_member_json(config, "rope_type", "\"llama3\"");
        fs_hf_member_float(config, "factor", (double)scaling->llama3.factor);
        fs_hf_member_float(config, "low_freq_factor", (double)scaling->llama3.low_frequency);
        fs_hf_member_float(config, "high_freq_factor", (double)scaling->llama3.high_frequency);
        fs_hf_member_unsigned(config, "original_max_position_embeddings", scaling->llama3.n_ctx);
        break;
    case LONGROPE:
        write_longrope(config, scaling);
        break;
    case YARN:
        write_yarn(config, scaling);
        break;
    }
}

/* Write the members of rope_parameters. */
static void write_parameters(struct fs_hf_config *config, double theta, double part,
                             const struct scaling *scaling)
{
    fs_hf_member_float(config, "rope_theta", theta);
    if (part > 0)
        fs_hf_member_ratio(config, "partial_rotary_factor", part);
    write_scaling(config, scaling);
}

/* ---- the members of config.json ---- */

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

/* Write rope_scaling, which transformers 4 reads and, with the same result, 5. */
static void write_rope_scaling(struct fs_hf_config *config, const struct scaling *scaling)
{
    if (scaling->type == UNSCALED)
        return;
    fs_hf_begin_object(config, "rope_scaling");
    write_scaling(config, scaling);
    fs_hf_end_object(config);
    if (scaling->type == LONGROPE)
        write_original_context(config);
}

static void write_rope(struct fs_hf_config *config, const struct fs_hf_entry *entry, bool is_phi3)
{
    const struct fs_hf_model *hf = config->hf;
    const double theta = fs_hf_float(hf, "rope.freq_base", 10000);
    const bool is_partial = strcmp(entry->name, "rope") != 0;
    const double part = is_partial ? rotated_part(hf, "rope.dimension_count") : 0;
    struct scaling scaling = find_scaling(config, theta);

    scaling.mscale_factor = entry->number;
    fs_hf_begin_object(config, "rope_parameters");
    write_parameters(config, theta, part, &scaling);
    fs_hf_end_object(config);
    fs_hf_member_float(config, "rope_theta", theta);
    if (is_partial)
        fs_hf_member_ratio(config, entry->name, part);
    if (!is_phi3)
        write_rope_scaling(config, &scaling);
    if (!is_phi3 || scaling.type != LONGROPE)
        return;
    /* Its class of transformers 4 refuses other members. */
    fs_hf_begin_object(config, "rope_scaling");
    fs_hf_member_json(config, "type", "\"longrope\"");
    write_factors(config, "short_factor", scaling.short_factors, scaling.n_factors);
    write_factors(config, "long_factor", scaling.long_factors, scaling.n_factors);
    fs_hf_end_object(config);
}

void fs_hf_write_rope(struct fs_hf_config *config, const struct fs_hf_entry *entry)
{
    write_rope(config, entry, false);
}

/* Check that attn_factor is the number that the class computes from the lengths of contexts. */
static void check_phi3_attention(struct fs_hf_config *config)
{
    const struct fs_hf_model *hf = config->hf;
    const double n_original = fs_hf_float(hf, ORIGINAL_CONTEXT, 0);
    const double n_context = fs_hf_float(hf, "context_length", 0);
    const double factor = fs_hf_float(hf, ATTN_FACTOR, 1);
    const double expected = n_original > 1 && n_context > n_original
                                ? sqrt(1 + log(n_context / n_original) / log(n_original))
                                : 1;

    if (fs_hf_tensor(hf, "rope_factors_short.weight") && fabs(factor - expected) > 1e-5 * expected)
        fs_hf_problem(config,
                      "its key " ATTN_FACTOR " is %g, and the class Phi3ForCausalLM computes %g",
                      factor, expected);
}

void fs_hf_write_phi3_rope(struct fs_hf_config *config, const struct fs_hf_entry *entry)
{
    check_phi3_attention(config);
    write_optional(config, "original_max_position_embeddings", ORIGINAL_CONTEXT);
    write_rope(config, entry, true);
}

static void write_rope_by_type(struct fs_hf_config *config, const struct fs_hf_entry *entry,
                               bool has_rope_scaling)
{
    const struct fs_hf_model *hf = config->hf;
    const double theta = fs_hf_float(hf, "rope.freq_base", 10000);
    const double windowed_theta =
        fs_hf_float(hf, "rope.freq_base_swa", entry->number > 0 ? (double)entry->number : theta);
    const char *windowed_count = fs_hf_key(hf, "rope.dimension_count_swa")
                                     ? "rope.dimension_count_swa"
                                     : "rope.dimension_count";
    const bool is_partial = strcmp(entry->name, "rope") != 0;
    const struct scaling scaling = find_scaling(config, theta);

    fs_hf_begin_object(config, "rope_parameters");
    fs_hf_begin_object(config, "full_attention");
    write_parameters(config, theta, is_partial ? rotated_part(hf, "rope.dimension_count") : 0,
                     &scaling);
    fs_hf_end_object(config);
    fs_hf_begin_object(config, "sliding_attention");
    write_parameters(config, windowed_theta, is_partial ? rotated_part(hf, windowed_count) : 0,
                     &(struct scaling){.type = UNSCALED});
    fs_hf_end_object(config);
    fs_hf_end_object(config);
    fs_hf_member_float(config, "rope_theta", theta);
    fs_hf_member_float(config, "rope_local_base_freq", windowed_theta);
    if (has_rope_scaling)
        write_rope_scaling(config, &scaling);
}

void fs_hf_write_rope_by_type(struct fs_hf_config *config, const struct fs_hf_entry *entry)
{
    write_rope_by_type(config, entry, true);
}

void fs_hf_write_new_rope_by_type(struct fs_hf_config *config, const struct fs_hf_entry *entry)
{
    write_rope_by_type(config, entry, false);
}
