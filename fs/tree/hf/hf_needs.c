#include "fs/tree/hf/hf_needs.h"

#include "fs/tree/hf/hf_config_file.h"
#include "gguf/key_checks.h"
#include "gguf/models/key_lists.h"
#include "gguf/models/tensor_lists.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Suffixes of a match: none, ".weight", ".bias". */
#define N_SUFFIXES 3

static size_t suffix_index(const char *suffix)
{
    return suffix[0] == '\0' ? 0 : suffix[1] == 'w' ? 1 : 2;
}

int fs_hf_presence_begin(struct fs_hf_presence *presence, const struct fs_hf_model *hf,
                         const struct fs_hf_row *row, uint64_t n_layer)
{
    *presence = (struct fs_hf_presence){.hf = hf,
                                        .row = row,
                                        .n_layer = n_layer,
                                        .n_all = fs_hf_number(hf, "block_count", 0),
                                        .n_rules = gguf_rename_count(row->naming)};
    presence->counts = calloc(n_layer * presence->n_rules + 1, N_SUFFIXES * sizeof(uint32_t));
    return presence->counts ? 0 : -ENOMEM;
}

void fs_hf_presence_end(struct fs_hf_presence *presence)
{
    free(presence->counts);
    presence->counts = NULL;
}

static uint32_t *count_at(const struct fs_hf_presence *presence, uint64_t layer, size_t rule,
                          size_t suffix)
{
    return &presence->counts[(layer * presence->n_rules + rule) * N_SUFFIXES + suffix];
}

void fs_hf_presence_add(struct fs_hf_presence *presence, size_t index,
                        const struct gguf_name_match *match)
{
    ++*count_at(presence, match->layer, index, suffix_index(match->suffix));
}

static bool has_any(const struct fs_hf_presence *presence, uint64_t layer)
{
    const uint32_t *counts = count_at(presence, layer, 0, 0);

    for (size_t i = 0; i < presence->n_rules * N_SUFFIXES; i++) {
        if (counts[i] > 0)
            return true;
    }
    return false;
}

/* ---- what the format requires ---- */

static bool has_tensor(const void *hf, const char *name)
{
    return fs_hf_tensor(hf, name);
}

static int add_missing(const struct gguf_missing_tensor *missing, struct gguf_buffer *obstacles)
{
    if (missing->part)
        return fs_hf_add_line(obstacles, "The model has no tensors \"%s\" of a layer's %s.\n",
                              missing->name, missing->part);
    if (missing->because[0] != '\0')
        return fs_hf_add_line(obstacles, "The model has no tensor \"%s\", but \"%s\".\n",
                              missing->name, missing->because);
    if (missing->others[0] != '\0')
        return fs_hf_add_line(obstacles, "The model has no tensor \"%s\", nor %s instead.\n",
                              missing->name, missing->others);
    return fs_hf_add_line(obstacles, "The model has no tensor \"%s\".\n", missing->name);
}

static bool has_key(const void *hf, const char *key)
{
    return fs_hf_key(hf, key[0] == '/' ? key + 1 : key);
}

static int check_keys(const struct fs_hf_model *hf, struct gguf_buffer *obstacles)
{
    const char *missing = "expert_used_count";
    size_t length = strlen(missing);

    if (gguf_check_keys(hf->listed, has_key, hf, &missing, &length) &&
        (fs_hf_key(hf, missing) || !fs_hf_any_tensor(hf, "blk.%.ffn_gate_inp")))
        return 0;
    if (missing[0] == '/')
        return fs_hf_add_line(obstacles, "The model has no key \"%.*s\".\n", (int)length - 1,
                              missing + 1);
    return fs_hf_add_line(obstacles, "The model has no key \"%.*s.%.*s\".\n",
                          (int)hf->architecture.length_bytes, hf->architecture.data, (int)length,
                          missing);
}

int fs_hf_check_types(const struct fs_hf_model *hf, const struct fs_hf_row *row,
                      struct gguf_buffer *obstacles)
{
    int result = 0;

    for (uint64_t i = 0; result == 0 && i < hf->n_keys; i++) {
        const struct gguf_key *key = hf->keys[i].key;
        const uint64_t start = hf->architecture.length_bytes + 1;
        char name[GGUF_KEY_NAME_BYTES];
        const char *type = NULL;

        if (key->name.length_bytes <= start || key->name.length_bytes - start >= sizeof name ||
            memcmp(key->name.data, hf->architecture.data, start - 1) != 0 ||
            key->name.data[start - 1] != '.')
            continue;
        snprintf(name, sizeof name, "%.*s", (int)(key->name.length_bytes - start),
                 key->name.data + start);
        if (gguf_key_rule(hf->listed, name, NULL) != GGUF_KEY_UNUSED || fs_hf_row_reads(row, name))
            type = gguf_wrong_type(name, &key->value, true);
        if (type)
            result = fs_hf_add_line(obstacles,
                                    "The type of key %s is %s, and must be %s: correct it with "
                                    "ggufs --set.\n",
                                    gguf_quote(key->name).text,
                                    gguf_value_type_name(key->value.type), type);
    }
    return result;
}

static int check_lists(const struct fs_hf_presence *presence, struct gguf_buffer *obstacles)
{
    const struct fs_hf_model *hf = presence->hf;
    struct gguf_missing_tensor missing;
    bool is_complete[GGUF_MAX_LAYERS] = {false};
    int result = check_keys(hf, obstacles);

    if (result == 0 && !gguf_check_model_tensors(hf->listed, has_tensor, hf, &missing))
        result = add_missing(&missing, obstacles);
    for (uint32_t i = 0; result == 0 && i < presence->n_layer; i++) {
        const uint32_t twin = hf->twin_layers[i];

        if (!has_any(presence, i) || (twin < i && is_complete[twin]))
            continue;
        is_complete[i] = gguf_check_layer_tensors(hf->listed, has_tensor, hf, i, &missing);
        if (!is_complete[i])
            result = add_missing(&missing, obstacles);
    }
    return result;
}

static bool is_windowed(const struct fs_hf_model *hf, uint32_t layer)
{
    return fs_hf_number_at(hf, "attention.sliding_window_pattern", layer, 0) != 0;
}

/* A key of the width of heads, and the widths that it gives to layers without and with a window. */
struct widths {
    const char *key;
    uint64_t of_layer[2];
};

static struct widths find_widths(const struct fs_hf_model *hf, const char *key)
{
    const uint64_t n_head = fs_hf_number(hf, "attention.head_count", 0);
    const uint64_t n_embd = fs_hf_number(hf, "embedding_length", 0);
    const uint64_t width = fs_hf_number(hf, key, n_head > 0 ? n_embd / n_head : 0);
    char windowed_key[64];

    snprintf(windowed_key, sizeof windowed_key, "%s_swa", key);
    return (struct widths){key, {width, fs_hf_number(hf, windowed_key, width)}};
}

/* Add a line if an attention tensor lacks the rows of n_heads heads. */
static int check_rows(const struct fs_hf_model *hf, const char *pattern, uint64_t n_heads,
                      const struct widths *widths, uint32_t layer, struct gguf_buffer *obstacles)
{
    const struct gguf_name_match match = {.layer = layer, .suffix = ""};
    const uint64_t width = widths->of_layer[is_windowed(hf, layer)];
    char name[GGUF_NAME_BYTES];
    const struct gguf_tensor *tensor;

    if (!gguf_tensor_name_expand(pattern, &match, name) || !(tensor = fs_hf_tensor(hf, name)) ||
        tensor->n_dims != 2 || tensor->ne[1] == n_heads * width)
        return 0;
    return fs_hf_add_line(obstacles,
                          "Tensor \"%s\" has %" PRIu64 " rows, and the keys "
                          "attention.head_count_kv%s and %s%s say %" PRIu64 " heads of %" PRIu64
                          ".\n",
                          name, tensor->ne[1], hf->n_head_kv ? "" : " (missing)", widths->key,
                          fs_hf_key(hf, widths->key) ? "" : " (missing)", n_heads, width);
}

/* Return true if attn_qkv has the rows of q, k and v one after the other. */
static bool is_qkv_in_parts(const struct gguf_naming *naming)
{
    static const struct gguf_string name = {"blk.0.attn_qkv.weight", 21};
    struct gguf_name_match match;
    size_t index;
    const struct gguf_rename *rename = gguf_rename_of(naming, name, &match, &index);

    return rename && rename->order == GGUF_SAME_ORDER && !rename->with &&
           naming != &gguf_naming_gpt_bigcode; /* its converter writes 1 as head_count_kv */
}

/* Check that keys and values have as many rows as the metadata says. */
static int check_heads(const struct fs_hf_presence *presence, struct gguf_buffer *obstacles)
{
    const struct fs_hf_model *hf = presence->hf;
    const struct widths of_keys = find_widths(hf, "attention.key_length");
    const struct widths of_values = find_widths(hf, "attention.value_length");
    const bool has_parts = is_qkv_in_parts(presence->row->naming);
    int result = 0;

    for (uint32_t i = 0; result == 0 && i < presence->n_layer; i++) {
        const uint64_t n_head_kv = fs_hf_n_head_kv(hf, i);

        if (n_head_kv == 0)
            continue;
        result = check_rows(hf, "blk.%.attn_k.weight", n_head_kv, &of_keys, i, obstacles);
        if (result == 0)
            result = check_rows(hf, "blk.%.attn_v.weight", n_head_kv, &of_values, i, obstacles);
        if (result == 0 && has_parts)
            result = check_rows(hf, "blk.%.attn_qkv.weight", fs_hf_n_head(hf, i) + 2 * n_head_kv,
                                &of_keys, i, obstacles);
    }
    return result;
}

static int check_absent_layers(const struct fs_hf_presence *presence, struct gguf_buffer *obstacles)
{
    int result = 0;

    for (uint64_t i = 0, end; result == 0 && i < presence->n_layer; i = end) {
        for (end = i; end < presence->n_layer && !has_any(presence, end); end++)
            ;
        if (end > i)
            result = fs_hf_add_line(
                obstacles, "Layers %" PRIu64 " to %" PRIu64 " have no tensors.\n", i, end - 1);
        else
            end++;
    }
    return result;
}

/* ---- what the class always has ---- */

/* Return true if a layer has the part that a tensor of this name belongs to. */
static bool has_part_of(const struct fs_hf_presence *presence, uint32_t layer, const char *pattern)
{
    static const struct {
        const char *start;
        unsigned parts;
    } parts[] = {
        {"blk.%.exp_", GGUF_PART_EXPERTS}, {"blk.%.ffn_gate_inp", GGUF_PART_EXPERTS},
        {"blk.%.ffn_", GGUF_PART_DENSE},   {"blk.%.ssm_", GGUF_PART_RECURRENCE},
        {"blk.%.attn_norm", UINT_MAX},     {"blk.%.attn_", GGUF_PART_ATTENTION},
    };

    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        if (gguf_text_starts_with(pattern, parts[i].start))
            return gguf_layer_parts(presence->hf->listed, has_tensor, presence->hf, layer) &
                   parts[i].parts;
    }
    return true;
}

static int check_row(const struct fs_hf_presence *presence, struct gguf_buffer *obstacles)
{
    const char *const *needed = presence->row->needs;
    int result = 0;

    for (size_t i = 0; result == 0 && i < FS_HF_MAX_NEEDS && needed[i]; i++) {
        const uint64_t n = strchr(needed[i], '%') ? presence->n_layer : 1;

        for (uint32_t layer = 0; result == 0 && layer < n; layer++) {
            const struct gguf_name_match match = {.layer = layer, .suffix = ""};
            char name[GGUF_NAME_BYTES];

            if (gguf_tensor_name_expand(needed[i], &match, name) &&
                !fs_hf_tensor(presence->hf, name) && has_part_of(presence, layer, needed[i]))
                result = fs_hf_add_line(obstacles, "The model has no tensor \"%s\".\n", name);
        }
    }
    return result;
}

/* ---- experts ---- */

/* Add a line that there are n_experts, if the key expert_count says something else. */
static int compare_experts(const struct fs_hf_model *hf, uint64_t layer, uint64_t n_experts,
                           const char *quoted, struct gguf_buffer *obstacles)
{
    const struct gguf_key *key = fs_hf_key(hf, "expert_count");
    const uint64_t n_expected = fs_hf_number_at(hf, "expert_count", layer, 0);

    if (n_experts == n_expected)
        return 0;
    if (!key)
        return fs_hf_add_line(obstacles,
                              "The model has no key \"%.*s.expert_count\", but tensor %s has "
                              "%" PRIu64 " experts.\n",
                              (int)hf->architecture.length_bytes, hf->architecture.data, quoted,
                              n_experts);
    return fs_hf_add_line(obstacles,
                          "Key %s is %" PRIu64 ", but tensor %s has %" PRIu64 " experts.\n",
                          gguf_quote(key->name).text, n_expected, quoted, n_experts);
}

bool fs_hf_counts_experts(struct gguf_string name)
{
    static const char *const of_experts[] = {
        "blk.%.ffn_gate_inp",  "blk.%.ffn_gate_exps",    "blk.%.ffn_up_exps",
        "blk.%.ffn_down_exps", "blk.%.ffn_gate_up_exps",
    };
    struct gguf_name_match any;

    for (size_t i = 0; i < sizeof of_experts / sizeof *of_experts; i++) {
        if (gguf_tensor_name_matches(name, of_experts[i], &any))
            return true;
    }
    return false;
}

int fs_hf_check_experts(const struct fs_hf_model *hf, const struct gguf_tensor *tensor,
                        uint32_t layer, struct gguf_buffer *obstacles)
{
    if (tensor->n_dims == 0)
        return 0;
    return compare_experts(hf, layer, tensor->ne[tensor->n_dims - 1],
                           gguf_quote(gguf_name_of(tensor)).text, obstacles);
}

/* ---- layers of a kind ---- */

/* A kind is a set of parts, with or without a window. Its layers have the same tensors. */
#define N_KINDS 64

/* Return true if layers of one kind may differ in tensors of this rule. */
static bool may_differ(const struct fs_hf_row *row, const struct gguf_rename *rule)
{
    static const char *const of_keys[] = {"blk.%.attn_k", "blk.%.attn_v", "blk.%.attn_k_norm"};

    for (size_t i = 0; row->shares_kv && i < sizeof of_keys / sizeof *of_keys; i++) {
        if (strcmp(rule->name, of_keys[i]) == 0)
            return true;
    }
    return !rule->other;
}

/* Add a line for each layer that lacks a tensor that others of its kind have. */
static int compare_layers(const struct fs_hf_presence *presence, size_t rule, const char *suffix,
                          const uint8_t kind[GGUF_MAX_LAYERS], struct gguf_buffer *obstacles)
{
    const char *pattern = gguf_rename_at(presence->row->naming, rule)->name;
    uint64_t others[N_KINDS]; /* a layer of the kind that has the tensor */
    char name[GGUF_NAME_BYTES];
    int result = 0;

    memset(others, 0xff, sizeof others);
    for (uint64_t i = 0; i < presence->n_layer; i++) {
        if (*count_at(presence, i, rule, suffix_index(suffix)) > 0)
            others[kind[i]] = i;
    }
    for (uint64_t i = 0; result == 0 && i < presence->n_layer; i++) {
        const struct gguf_name_match match = {.layer = (uint32_t)i, .suffix = suffix};
        const uint64_t other = others[kind[i]];

        if (other < presence->n_layer && gguf_tensor_name_expand(pattern, &match, name) &&
            *count_at(presence, i, rule, suffix_index(suffix)) == 0)
            result = fs_hf_add_line(
                obstacles, "The model has no tensor \"%s\", which layer %" PRIu64 " has.\n", name,
                other);
    }
    return result;
}

static int check_kinds(const struct fs_hf_presence *presence, struct gguf_buffer *obstacles)
{
    static const char *const suffixes[N_SUFFIXES] = {"", ".weight", ".bias"};
    const struct fs_hf_model *hf = presence->hf;
    unsigned parts[GGUF_MAX_LAYERS];
    uint8_t kind[GGUF_MAX_LAYERS];
    int result = 0;

    for (uint32_t i = 0; i < presence->n_layer; i++) {
        const uint32_t twin = hf->twin_layers[i];

        parts[i] = twin < i ? parts[twin] : gguf_layer_parts(hf->listed, has_tensor, hf, i);
        kind[i] = (uint8_t)(parts[i] << 1 | is_windowed(hf, i));
    }
    for (size_t i = 0; i < presence->n_rules; i++) {
        for (size_t j = 0; result == 0 && j < N_SUFFIXES; j++) {
            if (!may_differ(presence->row, gguf_rename_at(presence->row->naming, i)))
                result = compare_layers(presence, i, suffixes[j], kind, obstacles);
        }
    }
    return result;
}

int fs_hf_check_needs(const struct fs_hf_presence *presence, struct gguf_buffer *obstacles)
{
    const size_t length = obstacles->length;
    int result = check_lists(presence, obstacles);

    if (result == 0)
        result = check_row(presence, obstacles);
    if (result == 0)
        result = check_heads(presence, obstacles);
    if (result == 0)
        result = check_absent_layers(presence, obstacles);
    /* Else it would repeat much of that. */
    return result < 0 || obstacles->length > length ? result : check_kinds(presence, obstacles);
}
