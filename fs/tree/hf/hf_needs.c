#include "fs/tree/hf/hf_needs.h"

#include "fs/tree/hf/hf_config.h"
#include "gguf/loader_checks.h"
#include "gguf/models/key_lists.h"
#include "gguf/models/tensor_lists.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/param.h>

/* The suffixes that a match can have. */
static const char *const suffixes[] = {"", ".weight", ".bias"};
#define N_SUFFIXES (sizeof suffixes / sizeof *suffixes)

static uint8_t *suffixes_of(const struct fs_hf_presence *presence, uint64_t layer, size_t name)
{
    return &presence->suffixes[layer * presence->names->count + name];
}

static bool has_any(const struct fs_hf_presence *presence, uint64_t layer)
{
    for (size_t i = 0; i < presence->names->count; i++) {
        if (*suffixes_of(presence, layer, i) != 0)
            return true;
    }
    return false;
}

/* ---- what the format requires ---- */

static bool has_tensor(const void *hf, const char *name)
{
    return fs_hf_tensor(hf, name);
}

static void add_missing(const struct gguf_missing_tensor *missing, struct fs_hf_lines *obstacles)
{
    if (missing->part)
        fs_hf_add_line(obstacles, "The model has no tensors \"%s\" of a layer's %s.\n",
                       missing->name, missing->part);
    else if (missing->because[0] != '\0')
        fs_hf_add_line(obstacles, "The model has no tensor \"%s\", but \"%s\".\n", missing->name,
                       missing->because);
    else if (missing->others[0] != '\0')
        fs_hf_add_line(obstacles, "The model has no tensor \"%s\", nor %s instead.\n",
                       missing->name, missing->others);
    else
        fs_hf_add_line(obstacles, "The model has no tensor \"%s\".\n", missing->name);
}

static bool has_key(const void *hf, const char *key)
{
    return fs_hf_key(hf, key[0] == '/' ? key + 1 : key);
}

static void check_keys(const struct fs_hf_model *hf, struct fs_hf_lines *obstacles)
{
    struct gguf_string missing = gguf_string_of("expert_used_count");

    if (gguf_check_keys(hf->listed, has_key, hf, &missing) &&
        (fs_hf_key(hf, missing.data) || !fs_hf_any_tensor(hf, "blk.%.ffn_gate_inp")))
        return;
    if (missing.data[0] == '/')
        fs_hf_add_line(obstacles, "The model has no key \"%.*s\".\n", (int)missing.length_bytes - 1,
                       missing.data + 1);
    else
        fs_hf_add_line(obstacles, "The model has no key \"%.*s.%.*s\".\n",
                       (int)hf->architecture.length_bytes, hf->architecture.data,
                       (int)missing.length_bytes, missing.data);
}

void fs_hf_check_types(const struct fs_hf_model *hf, const struct fs_hf_row *row,
                       struct fs_hf_lines *obstacles)
{
    for (uint64_t i = 0; i < hf->model->n_keys; i++) {
        const struct gguf_key *key = hf->keys[i];
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
            fs_hf_add_line(obstacles,
                           "The type of key %s is %s, and must be %s: correct it with "
                           "ggufs --set.\n",
                           gguf_quote(key->name).text, gguf_value_type_name(key->value.type), type);
    }
}

static void check_lists(const struct fs_hf_presence *presence)
{
    const struct fs_hf_model *hf = presence->hf;
    struct gguf_missing_tensor missing;

    check_keys(hf, presence->obstacles);
    if (!gguf_check_model_tensors(hf->listed, has_tensor, hf, &missing))
        add_missing(&missing, presence->obstacles);
    for (uint32_t i = 0; i < presence->n_layer; i++) {
        if (has_any(presence, i) &&
            !gguf_check_layer_tensors(hf->listed, has_tensor, hf, i, &missing))
            add_missing(&missing, presence->obstacles);
    }
}

/* ---- numbers of rows ---- */

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
static void check_rows(const struct fs_hf_presence *presence, const char *pattern, uint64_t n_heads,
                       const struct widths *widths, uint32_t layer)
{
    const struct fs_hf_model *hf = presence->hf;
    const uint64_t width = widths->of_layer[is_windowed(hf, layer)];
    char name[GGUF_NAME_BYTES];
    const struct gguf_tensor *tensor = fs_hf_layer_tensor(hf, layer, pattern, name);

    if (tensor && tensor->n_dims == 2 && tensor->ne[1] != n_heads * width)
        fs_hf_add_line(presence->obstacles,
                       "Tensor \"%s\" has %" PRIu64 " rows, and the keys "
                       "attention.head_count_kv%s and %s%s say %" PRIu64 " heads of %" PRIu64 ".\n",
                       name, tensor->ne[1], hf->n_head_kv ? "" : " (missing)", widths->key,
                       fs_hf_key(hf, widths->key) ? "" : " (missing)", n_heads, width);
}

/* Return true if attn_qkv has the rows of q, k and v one after the other. */
static bool is_qkv_in_parts(const struct fs_hf_presence *presence)
{
    struct gguf_name_match match;
    const struct gguf_rename *rename =
        gguf_rename_of(presence->names, gguf_string_of("blk.0.attn_qkv.weight"), &match);

    return rename && rename->order == GGUF_SAME_ORDER && !rename->with &&
           /* its converter writes 1 as head_count_kv */
           presence->row->naming != gguf_naming_gpt_bigcode;
}

/* Check that keys and values have as many rows as the metadata says. */
static void check_heads(const struct fs_hf_presence *presence)
{
    const struct fs_hf_model *hf = presence->hf;
    const struct widths of_keys = find_widths(hf, "attention.key_length");
    const struct widths of_values = find_widths(hf, "attention.value_length");
    const bool has_parts = is_qkv_in_parts(presence);

    for (uint32_t i = 0; i < presence->n_layer; i++) {
        const uint64_t n_head_kv = fs_hf_n_head_kv(hf, i);

        if (n_head_kv == 0)
            continue;
        check_rows(presence, "blk.%.attn_k.weight", n_head_kv, &of_keys, i);
        check_rows(presence, "blk.%.attn_v.weight", n_head_kv, &of_values, i);
        if (has_parts)
            check_rows(presence, "blk.%.attn_qkv.weight", fs_hf_n_head(hf, i) + 2 * n_head_kv,
                       &of_keys, i);
    }
}

static void check_absent_layers(const struct fs_hf_presence *presence)
{
    for (uint64_t i = 0, end; i < presence->n_layer; i = end + 1) {
        for (end = i; end < presence->n_layer && !has_any(presence, end); end++)
            ;
        if (end > i)
            fs_hf_add_line(presence->obstacles,
                           "Layers %" PRIu64 " to %" PRIu64 " have no tensors.\n", i, end - 1);
    }
}

/* ---- what the class always has ---- */

static void check_row(const struct fs_hf_presence *presence)
{
    const char *needed = presence->row->needs;
    const struct fs_hf_model *hf = presence->hf;
    char name[GGUF_NAME_BYTES];

    for (uint32_t i = 0; needed && i < presence->n_layer; i++) {
        const unsigned part =
            gguf_text_starts_with(needed, "blk.%.exp_") ? GGUF_PART_EXPERTS : GGUF_PART_ATTENTION;

        if (!fs_hf_layer_tensor(hf, i, needed, name) &&
            gguf_layer_parts(hf->listed, has_tensor, hf, i) & part)
            fs_hf_add_line(presence->obstacles, "The model has no tensor \"%s\".\n", name);
    }
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
static void compare_layers(const struct fs_hf_presence *presence, size_t rule, size_t suffix,
                           const uint8_t kind[GGUF_MAX_LAYERS])
{
    uint64_t others[N_KINDS]; /* a layer of the kind that has the tensor */
    char name[GGUF_NAME_BYTES];

    memset(others, 0xff, sizeof others);
    for (uint64_t i = 0; i < presence->n_layer; i++) {
        if (*suffixes_of(presence, i, rule) & 1u << suffix)
            others[kind[i]] = i;
    }
    for (uint64_t i = 0; i < presence->n_layer; i++) {
        const struct gguf_name_match match = {.layer = (uint32_t)i, .suffix = suffixes[suffix]};
        const uint64_t other = others[kind[i]];

        if (other < presence->n_layer && !(*suffixes_of(presence, i, rule) & 1u << suffix) &&
            gguf_tensor_name_expand(presence->names->list[rule].name, &match, name))
            fs_hf_add_line(presence->obstacles,
                           "The model has no tensor \"%s\", which layer %" PRIu64 " has.\n", name,
                           other);
    }
}

static void check_kinds(const struct fs_hf_presence *presence)
{
    const struct fs_hf_model *hf = presence->hf;
    uint8_t kind[GGUF_MAX_LAYERS];

    for (uint32_t i = 0; i < presence->n_layer; i++)
        kind[i] =
            (uint8_t)(gguf_layer_parts(hf->listed, has_tensor, hf, i) << 1 | is_windowed(hf, i));
    for (size_t i = 0; i < presence->names->count; i++) {
        for (size_t j = 0; j < N_SUFFIXES; j++) {
            if (!may_differ(presence->row, &presence->names->list[i]))
                compare_layers(presence, i, j, kind);
        }
    }
}

void fs_hf_check_needs(const struct fs_hf_presence *presence)
{
    const size_t length = presence->obstacles->text.length;

    check_lists(presence);
    check_row(presence);
    check_heads(presence);
    check_absent_layers(presence);
    /* Else it would repeat much of that. */
    if (presence->obstacles->text.length == length)
        check_kinds(presence);
}

/* ---- places ---- */

void fs_hf_take_place(struct fs_hf_presence *presence, const struct gguf_tensor *tensor,
                      const struct fs_hf_place *place)
{
    const struct fs_hf_model *hf = presence->hf;
    const char *suffix = place->match.suffix;
    const struct gguf_key *key;
    uint64_t n_experts, n_expected;

    if (strchr(place->rule->name, '%'))
        *suffixes_of(presence, place->match.layer, (size_t)(place->rule - presence->names->list)) |=
            suffix[0] == '\0'  ? 1
            : suffix[1] == 'w' ? 2
                               : 4;
    if (!place->counts_experts || tensor->n_dims == 0)
        return;
    key = fs_hf_key(hf, "expert_count");
    n_experts = tensor->ne[tensor->n_dims - 1];
    n_expected = fs_hf_number_at(hf, "expert_count", place->match.layer, 0);
    if (n_experts != n_expected && !key)
        fs_hf_add_line(presence->obstacles,
                       "The model has no key \"%.*s.expert_count\", but tensor %s has "
                       "%" PRIu64 " experts.\n",
                       (int)hf->architecture.length_bytes, hf->architecture.data,
                       gguf_quote(gguf_name_of(tensor)).text, n_experts);
    else if (n_experts != n_expected)
        fs_hf_add_line(presence->obstacles,
                       "Key %s is %" PRIu64 ", but tensor %s has %" PRIu64 " experts.\n",
                       gguf_quote(key->name).text, n_expected,
                       gguf_quote(gguf_name_of(tensor)).text, n_experts);
}

static bool ends_with(const char *text, const char *end)
{
    return gguf_string_ends_with(gguf_string_of(text), end);
}

/* Return true if a tensor that matches a rule ends in ".weight" or ".bias" exactly if it must. */
static bool has_right_suffix(const struct fs_hf_place *place)
{
    const struct gguf_rename *rule = place->rule;

    if (!rule->other || ends_with(rule->name, ".weight") || ends_with(rule->name, ".bias") ||
        ends_with(rule->name, ".scale") || ends_with(rule->other, ".weight"))
        return true; /* the rule has it */
    return (ends_with(rule->name, ".ssm_a") || ends_with(rule->name, ".ssm_d") ||
            ends_with(rule->name, ".exp_probs_b")) == (place->match.suffix[0] == '\0');
}

/*
 * Return true if the class has a tensor that is not a bias, or has this bias; otherwise, a line is
 * added. transformers ignores other biases without an error.
 */
static bool class_has_bias(const struct fs_hf_presence *presence, const struct fs_hf_place *place)
{
    static const char in_layer[] = "blk.%.";
    const char *name = place->rule->name;
    const struct gguf_name_match *match = &place->match;
    struct fs_hf_member member;
    char full[GGUF_NAME_BYTES], needed[GGUF_NAME_BYTES] = "";
    bool has_switch;

    if (strcmp(match->suffix, ".bias") != 0 || !gguf_tensor_name_expand(name, match, full) ||
        gguf_lists_require_bias(presence->hf->listed, full))
        return true;
    if (gguf_text_starts_with(name, in_layer))
        name += sizeof in_layer - 1;
    has_switch = fs_hf_find_switch(presence->row, name, &member);
    if (has_switch && fs_hf_layer_tensor(presence->hf, match->layer, member.arguments[0], needed))
        return true;
    fs_hf_add_line(presence->obstacles,
                   "Class %s has no place for the bias \"%s\"%s%s%s: transformers would "
                   "ignore it, and ggufs-run does not.\n",
                   presence->row->class_name, full, has_switch ? " without \"" : "", needed,
                   has_switch ? "\"" : "");
    return false;
}

/* Copy a name, or what fits of it. */
static const char *text_of(struct gguf_string name, char text[GGUF_NAME_BYTES])
{
    snprintf(text, GGUF_NAME_BYTES, "%.*s", (int)MIN(name.length_bytes, GGUF_NAME_BYTES),
             name.data);
    return text;
}

bool fs_hf_has_place(const struct fs_hf_presence *presence, const struct gguf_tensor *tensor,
                     const struct fs_hf_place *place)
{
    const struct gguf_string string = gguf_name_of(tensor);
    const struct gguf_quoted quoted = gguf_quote(string);
    const char *suffix = place->match.suffix;
    struct gguf_string digits, rest;
    char text[GGUF_NAME_BYTES];
    const bool is_layer = gguf_tensor_name_split(string, &digits, &rest);
    const uint64_t layer = is_layer ? gguf_layer_number(digits) : 0;

    if (is_layer && layer >= presence->n_all)
        fs_hf_add_line(presence->obstacles,
                       "Tensor %s is in a layer that the key block_count, %" PRIu64
                       ", does not count.\n",
                       quoted.text, presence->n_all);
    else if ((is_layer && layer >= presence->n_layer) ||
             (!place->is_listed && !is_layer && !gguf_any_lists_have(text_of(string, text))))
        fs_hf_add_line(presence->unused, "%s\n", quoted.text);
    else if (!place->is_listed)
        fs_hf_add_line(presence->obstacles, "The architecture %s has no tensor %s.\n",
                       gguf_quote(presence->hf->architecture).text, quoted.text);
    else if (!place->rule)
        fs_hf_add_line(presence->obstacles, "A checkpoint of %s has no place for tensor %s.\n",
                       presence->row->class_name, quoted.text);
    else if (!has_right_suffix(place))
        fs_hf_add_line(presence->obstacles,
                       "The name of tensor %s ends in %s \".weight\" %s \".bias\".\n", quoted.text,
                       suffix[0] ? "either" : "neither", suffix[0] ? "or" : "nor");
    else
        return class_has_bias(presence, place);
    return false;
}

struct fs_hf_place fs_hf_find_place(const struct fs_hf_presence *presence, struct gguf_string name)
{
    static const char *const of_experts[] = {
        "blk.%.ffn_gate_inp",  "blk.%.ffn_gate_exps",    "blk.%.ffn_up_exps",
        "blk.%.ffn_down_exps", "blk.%.ffn_gate_up_exps",
    };
    struct fs_hf_place place = {.rule = NULL};
    char text[GGUF_NAME_BYTES];

    for (size_t i = 0; i < sizeof of_experts / sizeof *of_experts; i++)
        place.counts_experts |= gguf_tensor_name_matches(name, of_experts[i], &place.match);
    place.rule = gguf_rename_of(presence->names, name, &place.match);
    place.is_listed = gguf_lists_have(presence->hf->listed, text_of(name, text));
    return place;
}
