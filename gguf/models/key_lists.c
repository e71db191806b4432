#include "gguf/models/key_lists.h"

#include <stdio.h>
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

/* Return the bytes of the names in a word "NAME", "NAME?", "NAME=VALUE", "NAME:VALUE" or "A|B". */
static size_t names_bytes(struct gguf_string word)
{
    return strcspn(word.data, "?=: ");
}

/* Return the word of a list that names the key, or an empty one. */
static struct gguf_string find_word(const char *list, const char *key)
{
    struct gguf_string word = {0}, names, name;

    while (gguf_next_word(&list, &word)) {
        names = (struct gguf_string){word.data, names_bytes(word)};
        while (gguf_next_part(&names, '|', &name))
            if (gguf_string_equals(name, key))
                return word;
    }
    return word;
}

static bool has_word(const char *list, const char *key)
{
    return find_word(list, key).length_bytes > 0;
}

enum gguf_key_rule gguf_key_rule(const struct gguf_architecture *architecture, const char *key,
                                 double *value)
{
    const bool is_own = has_word(architecture->keys, key);
    const struct gguf_string word = find_word(is_own ? architecture->keys : common, key);
    const char *mark = word.data + names_bytes(word);

    if (word.length_bytes == 0)
        return GGUF_KEY_UNUSED;
    if (*mark == '?')
        return GGUF_KEY_OPTIONAL;
    if (*mark != '=' && *mark != ':')
        return GGUF_KEY_REQUIRED;
    if (value)
        *value = strtod(mark + 1, NULL);
    return *mark == ':' ? GGUF_KEY_FIXED : GGUF_KEY_HAS_DEFAULT;
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

    return has_word(floats, key)    ? GGUF_KEY_FLOAT32
           : has_word(bools, key)   ? GGUF_KEY_BOOL
           : has_word(strings, key) ? GGUF_KEY_STRING
                                    : GGUF_KEY_UINT32;
}

bool gguf_key_may_be_array(const char *key)
{
    return has_word("attention.head_count attention.head_count_kv attention.indexer.types "
                    "attention.sliding_window_pattern feed_forward_length "
                    "rope.dimension_sections swiglu_clamp_exp swiglu_clamp_shexp",
                    key);
}

/* Return true if one of the keys "A|B" is there. */
static bool is_met(struct gguf_string names, gguf_key_finder *has, const void *user)
{
    struct gguf_string name;
    char key[GGUF_KEY_NAME_BYTES];

    while (gguf_next_part(&names, '|', &name) && name.length_bytes < sizeof key) {
        snprintf(key, sizeof key, "%.*s", (int)name.length_bytes, name.data);
        if (has(user, key))
            return true;
    }
    return false;
}

bool gguf_check_keys(const struct gguf_architecture *architecture, gguf_key_finder *has,
                     const void *user, struct gguf_string *missing)
{
    const char *lists[] = {common, architecture->keys};
    struct gguf_string word;

    for (size_t i = 0; i < 2; i++) {
        while (gguf_next_word(&lists[i], &word)) {
            if (names_bytes(word) < word.length_bytes || is_met(word, has, user))
                continue;
            *missing = word;
            return false;
        }
    }
    return true;
}
