/*
 * rope_parameters of config.json, which transformers 5 reads, and rope_scaling with rope_theta,
 * which transformers 4 reads. A model whose rotation neither can describe has no checkpoint.
 */
#include "fs/tree/hf/hf_config.h"
#include "fs/tree/output/shortest.h"
#include "gguf/elements.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#define ATTN_FACTOR      "rope.scaling.attn_factor"
#define YARN_ATTN_FACTOR "rope.scaling.yarn_attn_factor"
#define ORIGINAL_CONTEXT "rope.scaling.original_context_length"

/* ---- factors ---- */

enum { FREQUENCIES, SHORT_FACTORS, LONG_FACTORS };

static const char *const names[FS_HF_N_FACTORS] = {"rope_freqs.weight", "rope_factors_short.weight",
                                                   "rope_factors_long.weight"};

int fs_hf_factors_read(const struct fs_hf_model *hf, struct fs_hf_all_factors *all)
{
    int result = 0;

    pthread_mutex_lock(&all->lock);
    for (size_t i = 0; result == 0 && !all->are_read && i < FS_HF_N_FACTORS; i++) {
        struct fs_hf_factors *list = &all->lists[i];

        if (list->tensor)
            result = gguf_elements_read(
                &(struct gguf_elements){.model = hf->model,
                                        .tensor = list->tensor,
                                        .type = dequant_type_by_id(DEQUANT_F32)},
                0, (size_t)list->tensor->n_elements * sizeof *list->values, (char *)list->values);
    }
    all->are_read = result == 0;
    pthread_mutex_unlock(&all->lock);
    return result;
}

void fs_hf_factors_find(const struct fs_hf_model *hf, struct fs_hf_all_factors *all)
{
    for (size_t i = 0; i < FS_HF_N_FACTORS; i++) {
        const struct gguf_tensor *tensor = fs_hf_tensor(hf, names[i]);

        if (tensor && tensor->n_elements <= FS_HF_MAX_FACTORS && tensor->type &&
            dequant_is_decodable(tensor->type))
            all->lists[i].tensor = tensor;
    }
}

size_t fs_hf_factors_text_bytes(const struct fs_hf_all_factors *all)
{
    size_t n_bytes = 512; /* the members whose values or presence depend on factors */

    for (size_t i = 0; i < FS_HF_N_FACTORS; i++) {
        /* rope_parameters and rope_scaling have each list, rope_freqs.weight twice. */
        if (all->lists[i].tensor)
            n_bytes += 4 * (size_t)all->lists[i].tensor->n_elements * (FS_NUMBER_BYTES + 2);
    }
    return n_bytes;
}

/*
 * Set *factors to the elements of a list, half as many as a head has. Returns their number, or 0 if
 * there are none.
 */
static size_t get_factors(struct fs_hf_config *config, size_t index, const float **factors)
{
    const struct gguf_tensor *tensor = fs_hf_tensor(config->hf, names[index]);
    const struct fs_hf_factors *list = &config->factors->lists[index];
    const uint64_t width = fs_hf_head_dim(config->hf);
    const uint64_t n = fs_hf_number(config->hf, "rope.dimension_count", width) / 2;

    if (tensor && !list->tensor)
        fs_hf_problem(config, "tensor \"%s\" is not a list of factors", names[index]);
    else if (tensor && tensor->n_elements != n)
        fs_hf_problem(config,
                      "tensor \"%s\" has %" PRIu64 " factors, and half of the rotated part of a "
                      "head is %" PRIu64,
                      names[index], tensor->n_elements, n);
    *factors = list->values;
    return list->tensor && tensor->n_elements == n ? (size_t)n : 0;
}

/* ---- the kind of scaling ---- */

struct scaling {
    enum { UNSCALED, LINEAR, LLAMA3, LONGROPE, YARN } type;
    double factor;                             /* of LINEAR, LLAMA3 and YARN */
    uint64_t n_context;                        /* the original one, of LLAMA3 */
    const float *short_factors, *long_factors; /* of LONGROPE */
    size_t n_factors;
    double attention_factor; /* of cosines and sines; 0: as rope_type implies */
    unsigned mscale_factor;  /* from the key yarn_log_multiplier to mscale_all_dim */
};

/* The frequencies of LLAMA3 in all published models. */
#define LOW_FREQUENCY  1.0
#define HIGH_FREQUENCY 4.0

/* Return the factor by which llama3 divides a frequency. */
static double llama3_factor(double factor, double n_context, double frequency)
{
    const double turns = n_context * frequency / (2 * M_PI);
    const double smooth = (turns - LOW_FREQUENCY) / (HIGH_FREQUENCY - LOW_FREQUENCY);

    if (turns > HIGH_FREQUENCY)
        return 1;
    return turns < LOW_FREQUENCY ? factor : 1 / ((1 - smooth) / factor + smooth);
}

/* Return the original context with which llama3 gives these factors; 0: not found. */
static uint64_t find_llama3(const float *factors, size_t n, double theta)
{
    static const uint32_t contexts[] = {8192, 4096, 16384, 32768, 65536, 131072, 2048,
                                        1024, 512,  256,   128,   64,    32,     16};

    for (size_t i = 0; i < sizeof contexts / sizeof *contexts; i++) {
        size_t n_fitting = 0;

        for (size_t j = 0; j < n; j++) {
            const double frequency = pow(theta, -(double)j / (double)n);
            const double expected = llama3_factor((double)factors[n - 1], contexts[i], frequency);

            n_fitting += fabs((double)factors[j] - expected) <= 1e-5 * expected;
        }
        if (n_fitting == n)
            return contexts[i];
    }
    return 0;
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
    const double attention = fs_hf_float(hf, ATTN_FACTOR, 1);
    struct scaling scaling = {.factor = linear_factor(hf)};

    scaling.n_factors = get_factors(config, SHORT_FACTORS, &scaling.short_factors);
    if (scaling.n_factors > 0 && get_factors(config, LONG_FACTORS, &scaling.long_factors) == 0) {
        fs_hf_problem(config, "it has no tensor \"rope_factors_long.weight\" of %zu factors",
                      scaling.n_factors);
        scaling.long_factors = scaling.short_factors;
    } else if (scaling.n_factors == 0) {
        scaling.n_factors = get_factors(config, FREQUENCIES, &scaling.short_factors);
        scaling.long_factors = scaling.short_factors;
        if (scaling.n_factors > 0 && attention == 1)
            scaling.n_context = find_llama3(scaling.short_factors, scaling.n_factors, theta);
    }
    if (scaling.n_factors > 0) {
        refuse_both_factors(config);
        scaling.attention_factor = attention;
        scaling.type = scaling.n_context > 0 ? LLAMA3 : LONGROPE;
        if (scaling.type == LLAMA3)
            scaling.factor = (double)scaling.short_factors[scaling.n_factors - 1];
    } else if (fs_hf_text_is(hf, "rope.scaling.type", "yarn")) {
        scaling.type = YARN;
        find_yarn_attention(config, &scaling);
    } else {
        if (attention != 1)
            fs_hf_problem(config,
                          "its key " ATTN_FACTOR " is %g, which rope_parameters can only have "
                          "with factors or YaRN",
                          attention);
        /* Without a type, a factor is linear. */
        if (!fs_hf_key(hf, "rope.scaling.type") || fs_hf_text_is(hf, "rope.scaling.type", "linear"))
            scaling.type = scaling.factor != 1 ? LINEAR : UNSCALED;
        else if (!fs_hf_text_is(hf, "rope.scaling.type", "none"))
            fs_hf_problem(config, "it has no factors for its key \"%.*s.rope.scaling.type\"",
                          (int)hf->architecture.length_bytes, hf->architecture.data);
    }
    return scaling;
}

/* ---- its members ---- */

static void write_list(struct fs_hf_config *config, const char *name, const float *factors,
                       size_t n)
{
    fs_hf_begin_array(config, name);
    for (size_t i = 0; i < n; i++)
        fs_hf_element(config, &(struct gguf_value){.type = GGUF_FLOAT32, .f32 = factors[i]});
    fs_hf_end_array(config);
}

static void write_factors(struct fs_hf_config *config, const struct scaling *scaling)
{
    write_list(config, "short_factor", scaling->short_factors, scaling->n_factors);
    write_list(config, "long_factor", scaling->long_factors, scaling->n_factors);
}

static void write_original_context(struct fs_hf_config *config)
{
    fs_hf_member_key(config, "original_max_position_embeddings", ORIGINAL_CONTEXT);
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

    fs_hf_member_float(config, "factor", scaling->factor);
    write_original_context(config);
    fs_hf_member_key(config, "beta_fast", "rope.scaling.yarn_beta_fast");
    fs_hf_member_key(config, "beta_slow", "rope.scaling.yarn_beta_slow");
    if (scaling->attention_factor > 0)
        fs_hf_member_float(config, "attention_factor", scaling->attention_factor);
    fs_hf_member_key(config, "llama_4_scaling_beta", "attention.temperature_scale");
    if (mscale > 0) {
        fs_hf_member_float(config, "mscale", mscale);
        fs_hf_member_float(config, "mscale_all_dim", mscale);
    }
    if (has_exact_range(config->hf))
        fs_hf_member_json(config, "truncate", "false");
}

static void write_scaling(struct fs_hf_config *config, const struct scaling *scaling)
{
    static const char *const types[] = {
        [UNSCALED] = "default", [LINEAR] = "linear",     [LLAMA3] = "llama3",
        [YARN] = "yarn",        [LONGROPE] = "longrope",
    };

    fs_hf_member_text(config, "rope_type", types[scaling->type]);
    if (scaling->type == YARN) {
        write_yarn(config, scaling);
    } else if (scaling->type == LONGROPE) {
        write_factors(config, scaling);
        /* These scales are in no key; all published models have this one. */
        if (gguf_string_equals(config->hf->architecture, "phimoe")) {
            fs_hf_member_json(config, "short_mscale", "1.243163121016122");
            fs_hf_member_json(config, "long_mscale", "1.243163121016122");
        }
        fs_hf_member_float(config, "attention_factor", scaling->attention_factor);
        write_original_context(config);
    } else if (scaling->type != UNSCALED) {
        fs_hf_member_float(config, "factor", scaling->factor);
    }
    if (scaling->type == LLAMA3) {
        fs_hf_member_float(config, "low_freq_factor", LOW_FREQUENCY);
        fs_hf_member_float(config, "high_freq_factor", HIGH_FREQUENCY);
        fs_hf_member_unsigned(config, "original_max_position_embeddings", scaling->n_context);
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

static void write_rope(struct fs_hf_config *config, const struct fs_hf_member *member, bool is_phi3)
{
    const struct fs_hf_model *hf = config->hf;
    const double theta = fs_hf_float(hf, "rope.freq_base", 10000);
    const bool is_partial = strcmp(member->name, "rope") != 0;
    const double part = is_partial ? rotated_part(hf, "rope.dimension_count") : 0;
    struct scaling scaling = find_scaling(config, theta);

    scaling.mscale_factor = (unsigned)fs_hf_argument(member, 0);
    fs_hf_begin_object(config, "rope_parameters");
    write_parameters(config, theta, part, &scaling);
    fs_hf_end_object(config);
    fs_hf_member_float(config, "rope_theta", theta);
    if (is_partial)
        fs_hf_member_ratio(config, member->name, part);
    if (!is_phi3)
        write_rope_scaling(config, &scaling);
    if (!is_phi3 || scaling.type != LONGROPE)
        return;
    /* Its class of transformers 4 refuses other members. */
    fs_hf_begin_object(config, "rope_scaling");
    fs_hf_member_text(config, "type", "longrope");
    write_factors(config, &scaling);
    fs_hf_end_object(config);
}

/*
 * rope_parameters, rope_theta and rope_scaling. The member's name is "rope" if heads are rotated
 * whole, else the name of the member with the part that is rotated. The argument is the factor from
 * the key yarn_log_multiplier to mscale_all_dim; default: 1.
 */
void fs_hf_write_rope(struct fs_hf_config *config, const struct fs_hf_member *member)
{
    write_rope(config, member, false);
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

/* The same in the form that Phi3Config accepts. */
void fs_hf_write_phi3_rope(struct fs_hf_config *config, const struct fs_hf_member *member)
{
    check_phi3_attention(config);
    write_original_context(config);
    write_rope(config, member, true);
}

/*
 * rope_parameters for each kind of attention. The argument is the base of windowed layers if the
 * key rope.freq_base_swa is missing; default: the base of the other layers. "new" after it: classes
 * that transformers 4 lacks do not accept rope_scaling.
 */
void fs_hf_write_rope_by_type(struct fs_hf_config *config, const struct fs_hf_member *member)
{
    const struct fs_hf_model *hf = config->hf;
    const double theta = fs_hf_float(hf, "rope.freq_base", 10000);
    const uint64_t base = fs_hf_argument(member, 0);
    const double windowed_theta =
        fs_hf_float(hf, "rope.freq_base_swa", base > 0 ? (double)base : theta);
    const char *windowed_count = fs_hf_key(hf, "rope.dimension_count_swa")
                                     ? "rope.dimension_count_swa"
                                     : "rope.dimension_count";
    const bool is_partial = strcmp(member->name, "rope") != 0;
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
    if (!member->arguments[1])
        write_rope_scaling(config, &scaling);
}

/* Gemma 4: factors are 1 for the rotated part of a head, and without effect for the rest. */
void fs_hf_write_gemma4_rope(struct fs_hf_config *config, const struct fs_hf_member *member)
{
    const struct fs_hf_model *hf = config->hf;
    const float *factors;
    const size_t n = get_factors(config, FREQUENCIES, &factors);
    size_t n_rotated = 0;

    for (size_t i = 0; i < n; i++)
        n_rotated += factors[i] == 1;
    fs_hf_begin_object(config, "rope_parameters");
    fs_hf_begin_object(config, "full_attention");
    fs_hf_member_text(config, "rope_type", "proportional");
    fs_hf_member_float(config, "rope_theta", fs_hf_float(hf, "rope.freq_base", 10000));
    fs_hf_member_ratio(config, "partial_rotary_factor", n > 0 ? (double)n_rotated / (double)n : 1);
    fs_hf_end_object(config);
    fs_hf_begin_object(config, "sliding_attention");
    fs_hf_member_text(config, "rope_type", "default");
    fs_hf_member_float(config, "rope_theta", fs_hf_float(hf, "rope.freq_base_swa", 10000));
    fs_hf_end_object(config);
    fs_hf_end_object(config);
}
