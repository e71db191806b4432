#include "gguf/models/key_lists.h"

#include <stdlib.h>
#include <string.h>

/*
 * Keys of every architecture. Rows list keys again to require them or to give them a default.
 * Numbers of heads are required by the rows that have attention.
 */
static const char common[] =
    "block_count embedding_length context_length? feed_forward_length? attention.head_count_kv? "
    "attention.key_length? attention.value_length? attention.key_length_mla? "
    "attention.value_length_mla? rope.dimension_count? rope.freq_base=10000 rope.scaling.type? "
    "rope.scaling.factor? rope.scale_linear? rope.scaling.original_context_length? "
    "rope.scaling.attn_factor? rope.scaling.yarn_ext_factor? rope.scaling.yarn_beta_fast=32 "
    "rope.scaling.yarn_beta_slow=1 expert_count? expert_used_count? expert_group_count? "
    "expert_group_used_count? leading_dense_block_count? tensor_data_layout?";

/* The key "NAME", "NAME?", "NAME=VALUE", "NAME:VALUE" or "NAME|NAME" at the beginning of a word. */
static bool is_named(const char *word, size_t length, const char *key)
{
    const size_t n = strlen(key);

    while (length > 0) {
        const size_t end = strcspn(word, "|?=: ");

        if (end == n && memcmp(word, key, n) == 0)
            return true;
        if (end >= length || word[end] != '|')
            return false;
        word += end + 1;
        length -= end + 1;
    }
    return false;
}

/* Return the word of a list that names the key, or NULL. */
static const char *find_word(const char *list, const char *key)
{
    for (const char *at = list; *at != '\0';) {
        const size_t length = strcspn(at, " ");

        if (is_named(at, length, key))
            return at;
        at += length + strspn(at + length, " ");
    }
    return NULL;
}

enum gguf_key_rule gguf_key_rule(const struct gguf_architecture *architecture, const char *key,
                                 double *value)
{
    const char *word = find_word(architecture->keys, key);
    size_t length;

    if (!word)
        word = find_word(common, key);
    if (!word)
        return GGUF_KEY_UNUSED;
    length = strcspn(word, " ");
    if (word[length - 1] == '?')
        return GGUF_KEY_OPTIONAL;
    word += strcspn(word, "=: ");
    if (*word != '=' && *word != ':')
        return GGUF_KEY_REQUIRED;
    if (value)
        *value = strtod(word + 1, NULL);
    return *word == ':' ? GGUF_KEY_FIXED : GGUF_KEY_HAS_DEFAULT;
}

enum gguf_key_type gguf_key_type(const char *key)
{
    static const char floats[] =
        "attention.layer_norm_epsilon attention.layer_norm_rms_epsilon attention.clamp_kqv "
        "attention.max_alibi_bias attention.scale attention.output_scale attention.value_scale "
        "attention.temperature_scale attn_logit_softcapping final_logit_softcapping logit_scale "
        "residual_scale embedding_scale expert_weights_scale expert_group_scale rope.freq_base "
        "rope.freq_base_swa rope.scale_linear rope.scaling.factor rope.scaling.attn_factor "
        "rope.scaling.alpha rope.scaling.yarn_ext_factor rope.scaling.yarn_beta_fast "
        "rope.scaling.yarn_beta_slow rope.scaling.yarn_log_multiplier swiglu_clamp_exp "
        "swiglu_clamp_shexp";
    static const char bools[] = "expert_weights_norm rope.scaling.finetuned ssm.dt_b_c_rms "
                                "swin_norm skip_loop_final_norm use_parallel_residual";
    static const char strings[] = "rope.scaling.type tensor_data_layout";

    return find_word(floats, key)    ? GGUF_KEY_FLOAT32
           : find_word(bools, key)   ? GGUF_KEY_BOOL
           : find_word(strings, key) ? GGUF_KEY_STRING
                                     : GGUF_KEY_UINT32;
}

bool gguf_key_may_be_array(const char *key)
{
    return find_word("attention.head_count attention.head_count_kv attention.indexer.types "
                     "attention.sliding_window_pattern feed_forward_length "
                     "rope.dimension_sections swiglu_clamp_exp swiglu_clamp_shexp",
                     key);
}

static bool is_required(const char *word, size_t length)
{
    return word[length - 1] != '?' && !memchr(word, '=', length) && !memchr(word, ':', length);
}

/* Return true if one of the keys of a word is there. */
static bool is_met(const char *word, size_t length, gguf_key_finder *has, const void *user)
{
    char key[GGUF_KEY_NAME_BYTES];

    for (size_t at = 0, n; at < length; at += n + 1) {
        n = strcspn(word + at, "| ");
        if (n >= sizeof key)
            return false;
        memcpy(key, word + at, n);
        key[n] = '\0';
        if (has(user, key))
            return true;
    }
    return false;
}

bool gguf_check_keys(const struct gguf_architecture *architecture, gguf_key_finder *has,
                     const void *user, const char **missing, size_t *length)
{
    const char *const lists[] = {common, architecture->keys};

    for (size_t i = 0; i < 2; i++) {
        for (const char *at = lists[i]; *at != '\0';) {
            const size_t n = strcspn(at, " ");

            if (is_required(at, n) && !is_met(at, n, has, user)) {
                *missing = at;
                *length = n;
                return false;
            }
            at += n + strspn(at + n, " ");
        }
    }
    return true;
}
