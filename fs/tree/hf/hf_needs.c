#include "fs/tree/hf/hf_needs.h"

#include "fs/tree/hf/hf_lines.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
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
    *presence = (struct fs_hf_presence){
        .hf = hf, .row = row, .n_layer = n_layer, .n_rules = fs_hf_n_rules(row)};
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
                        const struct fs_hf_match *match)
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

/* ---- what every row needs, if it has a rule for it ---- */

#define MAX_CHOICES 4

struct need {
    const char *of[2]; /* patterns of the tensors that need one of those; none: every layer does */
    const char *any[MAX_CHOICES];
    enum { ALWAYS, IF_TWO_BLOCKS, IF_OWN_KV, IF_GATED } when;
};

static const struct need needs[] = {
    {{NULL},
     {"blk.%.attn_output.weight", "blk.%.ssm_out.weight", "blk.%.shortconv.out_proj.weight"},
     IF_TWO_BLOCKS},
    {{NULL},
     {"blk.%.ffn_down.weight", "blk.%.ffn_down_exps.weight", "blk.%.ffn_down.#.weight",
      "blk.%.ffn_down_shexp.weight"},
     IF_TWO_BLOCKS},
    {{"blk.%.attn_output.weight"},
     {"blk.%.attn_q.weight", "blk.%.attn_qkv.weight", "blk.%.attn_q_b.weight"},
     ALWAYS},
    {{"blk.%.attn_qkv.weight"}, {"blk.%.attn_output.weight", "blk.%.ssm_out.weight"}, ALWAYS},
    {{"blk.%.attn_kv_a_mqa.weight"}, {"blk.%.attn_kv_b.weight", "blk.%.attn_k_b.weight"}, ALWAYS},
    {{"blk.%.attn_q.weight"}, {"blk.%.attn_k.weight", "blk.%.attn_kv_a_mqa.weight"}, IF_OWN_KV},
    {{"blk.%.attn_k.weight"}, {"blk.%.attn_v.weight"}, IF_OWN_KV},
    {{"blk.%.attn_q_norm.weight"}, {"blk.%.attn_k_norm.weight"}, IF_OWN_KV},
    {{"blk.%.ssm_out.weight"}, {"blk.%.ssm_in.weight", "blk.%.attn_qkv.weight"}, ALWAYS},
    {{"blk.%.ffn_down.weight"}, {"blk.%.ffn_gate.weight"}, IF_GATED},
    {{"blk.%.ffn_down_exps.weight"},
     {"blk.%.ffn_up_exps.weight", "blk.%.ffn_gate_up_exps.weight"},
     ALWAYS},
    {{"blk.%.ffn_down_exps.weight"},
     {"blk.%.ffn_gate_exps.weight", "blk.%.ffn_gate_up_exps.weight"},
     ALWAYS},
};

#define N_NEEDS (sizeof needs / sizeof *needs)

/* Tensors that a layer has with others. */
static const struct {
    const char *of[2];
    const char *all[16];
} companions[] = {
    {{"blk.%.attn_q.weight"}, {"blk.%.attn_output.weight"}},
    {{"blk.%.attn_k_norm.weight"}, {"blk.%.attn_q_norm.weight"}},
    {{"blk.%.attn_q_a.weight"}, {"blk.%.attn_q_b.weight"}},
    {{"blk.%.attn_q_b.weight"},
     {"blk.%.attn_q_a.weight", "blk.%.attn_q_a_norm.weight", "blk.%.attn_kv_a_mqa.weight"}},
    {{"blk.%.attn_kv_a_mqa.weight"},
     {"blk.%.attn_output.weight", "blk.%.attn_kv_a_norm.weight", "blk.%.indexer.k_norm.weight",
      "blk.%.indexer.k_norm.bias", "blk.%.indexer.proj.weight", "blk.%.indexer.attn_k.weight",
      "blk.%.indexer.attn_q_b.weight"}},
    {{"blk.%.attn_q.bias"}, {"blk.%.attn_k.bias", "blk.%.attn_v.bias"}},
    {{"blk.%.attn_k.bias"}, {"blk.%.attn_q.bias"}},
    {{"blk.%.attn_v.bias"}, {"blk.%.attn_q.bias"}},
    {{"blk.%.attn_norm.bias", "blk.%.ffn_norm.weight"}, {"blk.%.ffn_norm.bias"}},
    {{"blk.%.attn_norm.bias", "blk.%.attn_norm_2.weight"}, {"blk.%.attn_norm_2.bias"}},
    {{"blk.%.ffn_norm.bias"}, {"blk.%.attn_norm.bias"}},

    {{"blk.%.ssm_in.weight"}, {"blk.%.ssm_out.weight"}},
    {{"blk.%.ssm_out.weight"},
     {"blk.%.ssm_a", "blk.%.ssm_d", "blk.%.ssm_conv1d.weight", "blk.%.ssm_x.weight",
      "blk.%.ssm_dt.weight", "blk.%.ssm_dt.bias", "blk.%.ssm_b_norm.weight",
      "blk.%.ssm_c_norm.weight", "blk.%.ssm_dt_norm.weight", "blk.%.ssm_ba.weight",
      "blk.%.ssm_alpha.weight", "blk.%.ssm_beta.weight", "blk.%.attn_gate.weight"}},
    /* linear attention of Kimi */
    {{"blk.%.ssm_conv1d_q.weight"},
     {"blk.%.ssm_a", "blk.%.ssm_dt.bias", "blk.%.ssm_conv1d_k.weight", "blk.%.ssm_conv1d_v.weight",
      "blk.%.ssm_beta.weight", "blk.%.ssm_f_a.weight", "blk.%.ssm_f_b.weight",
      "blk.%.ssm_g_a.weight", "blk.%.ssm_g_b.weight", "blk.%.ssm_norm.weight"}},
    {{"blk.%.ssm_a"}, {"blk.%.ssm_conv1d_q.weight"}},
    {{"blk.%.shortconv.out_proj.weight"},
     {"blk.%.shortconv.in_proj.weight", "blk.%.shortconv.conv.weight"}},
    {{"blk.%.shortconv.in_proj.weight"}, {"blk.%.shortconv.out_proj.weight"}},

    {{"blk.%.ffn_up.weight"}, {"blk.%.ffn_down.weight"}},
    {{"blk.%.ffn_down.weight"}, {"blk.%.ffn_up.weight"}},
    {{"blk.%.ffn_up.bias"}, {"blk.%.ffn_down.bias"}},
    {{"blk.%.ffn_down.bias"}, {"blk.%.ffn_up.bias"}},
    {{"blk.%.ffn_down.bias", "blk.%.ffn_gate.weight"}, {"blk.%.ffn_gate.bias"}},
    {{"blk.%.ffn_down.#.weight"}, {"blk.%.ffn_up.#.weight", "blk.%.ffn_gate.#.weight"}},
    {{"blk.%.ffn_up_exps.weight"}, {"blk.%.ffn_down_exps.weight"}},
    {{"blk.%.ffn_gate_up_exps.weight"}, {"blk.%.ffn_down_exps.weight"}},
    {{"blk.%.ffn_down_exps.weight"}, {"blk.%.ffn_gate_inp.weight"}},
    {{"blk.%.ffn_up_exps.bias"}, {"blk.%.ffn_down_exps.bias", "blk.%.ffn_gate_exps.bias"}},
    {{"blk.%.ffn_down_exps.bias"}, {"blk.%.ffn_up_exps.bias", "blk.%.ffn_gate_inp.bias"}},
    {{"blk.%.ffn_up_shexp.weight"}, {"blk.%.ffn_down_shexp.weight"}},
    {{"blk.%.ffn_down_shexp.weight"}, {"blk.%.ffn_up_shexp.weight", "blk.%.ffn_gate_shexp.weight"}},
};

#define N_COMPANIONS (sizeof companions / sizeof *companions)

/* The rule for a pattern of a need, and the suffix that follows the rule's pattern. */
struct place {
    bool has_rule;
    size_t rule, suffix;
};

static struct place find_place(const struct fs_hf_row *row, const char *pattern)
{
    struct fs_hf_match match = {.suffix = ""};
    struct place place = {.has_rule = false};
    char name[FS_HF_NAME_BYTES];

    if (pattern && fs_hf_expand(pattern, &match, name) &&
        fs_hf_find_rule(row, (struct gguf_string){name, strlen(name)}, &match, &place.rule)) {
        place.has_rule = true;
        place.suffix = suffix_index(match.suffix);
    }
    return place;
}

static bool has(const struct fs_hf_presence *presence, uint64_t layer, const struct place *place)
{
    return place->has_rule && *count_at(presence, layer, place->rule, place->suffix) > 0;
}

static bool is_needed(const struct fs_hf_row *row, const struct need *need)
{
    return need->when == ALWAYS || (need->when == IF_TWO_BLOCKS && !row->has_one_block) ||
           (need->when == IF_OWN_KV && !row->shares_kv) ||
           (need->when == IF_GATED && !row->has_no_gate);
}

/* Add a line if a layer has none of the tensors of which it needs one. */
static int check_layer(const struct fs_hf_presence *presence, const struct need *need,
                       const struct place *places, uint64_t layer, struct gguf_buffer *obstacles)
{
    const struct fs_hf_match match = {.layer = (uint32_t)layer, .suffix = ""};
    char names[MAX_CHOICES * (FS_HF_NAME_BYTES + 8)] = "", name[FS_HF_NAME_BYTES];
    size_t length = 0;

    for (size_t i = 0; i < MAX_CHOICES && need->any[i]; i++) {
        if (has(presence, layer, &places[i]))
            return 0;
        if (places[i].has_rule && fs_hf_expand(need->any[i], &match, name))
            length += (size_t)snprintf(names + length, sizeof names - length, "%s\"%s\"",
                                       length > 0 ? " or " : "", name);
    }
    return length > 0 ? fs_hf_add_line(obstacles, "The model has no tensor %s.\n", names) : 0;
}

static int check_need(const struct fs_hf_presence *presence, const struct need *need,
                      struct gguf_buffer *obstacles)
{
    const struct place of[2] = {find_place(presence->row, need->of[0]),
                                find_place(presence->row, need->of[1])};
    struct place places[MAX_CHOICES];
    int result = 0;

    for (size_t i = 0; i < MAX_CHOICES; i++)
        places[i] = find_place(presence->row, need->any[i]);
    for (uint64_t i = 0; result == 0 && i < presence->n_layer; i++) {
        if (has_any(presence, i) && (!need->of[0] || has(presence, i, &of[0])) &&
            (!need->of[1] || has(presence, i, &of[1])))
            result = check_layer(presence, need, places, i, obstacles);
    }
    return result;
}

static int check_companions(const struct fs_hf_presence *presence, struct gguf_buffer *obstacles)
{
    int result = 0;

    for (size_t i = 0; i < N_COMPANIONS; i++) {
        const char *const *all = companions[i].all;

        for (size_t j = 0; result == 0 && j < sizeof companions[i].all / sizeof *all && all[j]; j++)
            result = check_need(
                presence,
                &(struct need){.of = {companions[i].of[0], companions[i].of[1]}, .any = {all[j]}},
                obstacles);
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

/* Check the tensors that the row lists. */
static int check_row(const struct fs_hf_presence *presence, struct gguf_buffer *obstacles)
{
    static const struct {
        const char *start;
        const char *of; /* the tensor that layers with such tensors have */
    } parts[] = {
        {"blk.%.exp_", "blk.%.ffn_down_exps.weight"},
        {"blk.%.ffn_gate_inp_shexp", "blk.%.ffn_down_shexp.weight"},
        {"blk.%.ffn_", "blk.%.ffn_down.weight"},
        {"blk.%.ssm_", "blk.%.ssm_out.weight"},
        {"blk.%.attn_norm", NULL},
        {"blk.%.attn_", "blk.%.attn_output.weight"},
        {"blk.%.", NULL},
    };
    const char *const *needed = presence->row->needs;
    int result = 0;

    for (size_t i = 0; result == 0 && i < FS_HF_MAX_NEEDS && needed[i]; i++) {
        size_t part = 0;

        if (!strchr(needed[i], '%')) {
            if (!fs_hf_tensor(presence->hf, needed[i]))
                result = fs_hf_add_line(obstacles, "The model has no tensor \"%s\".\n", needed[i]);
            continue;
        }
        while (!gguf_text_starts_with(needed[i], parts[part].start))
            part++;
        result = check_need(presence, &(struct need){.of = {parts[part].of}, .any = {needed[i]}},
                            obstacles);
    }
    return result;
}

/* Check the embeddings, and the last norm of models with norms that have weights. */
static int check_ends(const struct fs_hf_presence *presence, struct gguf_buffer *obstacles)
{
    const struct fs_hf_model *hf = presence->hf;
    const struct {
        const char *name;
        bool is_needed;
    } ends[] = {
        {"token_embd.weight", true},
        {"output_norm.weight", (fs_hf_any_tensor(hf, "blk.%.attn_norm") ||
                                fs_hf_any_tensor(hf, "blk.%.post_attention_norm")) &&
                                   !(fs_hf_tensor(hf, "token_embd_norm.weight") &&
                                     find_place(presence->row, "token_embd_norm.weight").has_rule)},
        {"output_norm.bias", fs_hf_any_tensor(hf, "blk.%.attn_norm.bias")},
    };
    int result = 0;

    for (size_t i = 0; result == 0 && i < sizeof ends / sizeof *ends; i++) {
        if (ends[i].is_needed && !fs_hf_tensor(hf, ends[i].name) &&
            find_place(presence->row, ends[i].name).has_rule)
            result = fs_hf_add_line(obstacles, "The model has no tensor \"%s\".\n", ends[i].name);
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

/*
 * Add a line if a tensor of one expert is of none that the key expert_count counts: experts 0, 1
 * and 5 are three, but not those of the checkpoint.
 */
static int check_expert(const struct fs_hf_model *hf, const struct fs_hf_match *match,
                        const char *quoted, struct gguf_buffer *obstacles)
{
    const struct gguf_key *key = fs_hf_key(hf, "expert_count");
    const uint64_t n_experts = fs_hf_number_at(hf, "expert_count", match->layer, 0);

    if (!key || match->expert < n_experts) /* count_experts() says that there is no key */
        return 0;
    return fs_hf_add_line(obstacles,
                          "Tensor %s is of expert %" PRIu32 ", but key %s is %" PRIu64
                          ", and experts count from 0.\n",
                          quoted, match->expert, gguf_quote(key->name).text, n_experts);
}

int fs_hf_check_experts(const struct fs_hf_model *hf, const struct fs_hf_rule *rule,
                        const struct gguf_tensor *tensor, const struct fs_hf_match *match,
                        struct gguf_buffer *obstacles)
{
    /* Their slowest dimension is that of the experts. */
    static const char *const of_experts[] = {
        "blk.%.ffn_gate_inp",  "blk.%.ffn_gate_exps",    "blk.%.ffn_up_exps",
        "blk.%.ffn_down_exps", "blk.%.ffn_gate_up_exps",
    };
    const struct gguf_string name = gguf_name_of(tensor);
    struct fs_hf_match any;

    if (strchr(rule->gguf, '#'))
        return check_expert(hf, match, gguf_quote(name).text, obstacles);
    for (size_t i = 0; i < sizeof of_experts / sizeof *of_experts; i++) {
        if (tensor->n_dims > 0 && fs_hf_matches(name, of_experts[i], &any))
            return compare_experts(hf, match->layer, tensor->ne[tensor->n_dims - 1],
                                   gguf_quote(name).text, obstacles);
    }
    return 0;
}

/* Check the number of experts that are tensors of their own. */
static int count_experts(const struct fs_hf_presence *presence, struct gguf_buffer *obstacles)
{
    const size_t suffix = suffix_index(".weight");
    char quoted[FS_HF_NAME_BYTES];
    int result = 0;

    for (size_t rule = 0; rule < presence->n_rules; rule++) {
        const char *pattern = fs_hf_rule_at(presence->row, rule)->gguf;

        for (uint64_t i = 0; result == 0 && strchr(pattern, '#') && i < presence->n_layer; i++) {
            const uint32_t n_experts = *count_at(presence, i, rule, suffix);

            snprintf(quoted, sizeof quoted, "\"blk.%" PRIu64 "%s.weight\"", i,
                     pattern + strlen("blk.%"));
            if (n_experts > 0)
                result = compare_experts(presence->hf, i, n_experts, quoted, obstacles);
        }
    }
    return result;
}

/* ---- layers of a kind ---- */

/* Layers that have the same of these are of one kind, and have the same tensors. */
static const char *const kinds[] = {
    "blk.%.attn_output.weight",        "blk.%.attn_kv_a_mqa.weight", "blk.%.ssm_out.weight",
    "blk.%.shortconv.out_proj.weight", "blk.%.ffn_down.weight",      "blk.%.ffn_down_exps.weight",
};

#define N_KINDS     (sizeof kinds / sizeof *kinds)
#define N_KIND_BITS (N_KINDS + 1)

/* Return a number that layers of one kind share. Layers with a window are of kinds of their own. */
static uint8_t kind_of(const struct fs_hf_presence *presence, const struct place *places,
                       uint64_t layer)
{
    unsigned kind =
        fs_hf_number_at(presence->hf, "attention.sliding_window_pattern", layer, 0) != 0;

    for (size_t i = 0; i < N_KINDS; i++)
        kind = kind << 1 | has(presence, layer, &places[i]);
    static_assert(N_KIND_BITS <= 8, "a kind is a uint8_t");
    return (uint8_t)kind;
}

/* Return true if layers of one kind may differ in tensors of this rule. */
static bool may_differ(const struct fs_hf_row *row, const struct fs_hf_rule *rule)
{
    static const char *const of_keys[] = {"blk.%.attn_k", "blk.%.attn_v", "blk.%.attn_k_norm"};

    for (size_t i = 0; row->shares_kv && i < sizeof of_keys / sizeof *of_keys; i++) {
        if (strcmp(rule->gguf, of_keys[i]) == 0)
            return true;
    }
    return !rule->hf || strchr(rule->gguf, '#');
}

/* Add a line for each layer that lacks a tensor which another one of its kind has. */
static int compare_layers(const struct fs_hf_presence *presence, size_t rule, const char *suffix,
                          const uint8_t kind[FS_HF_MAX_LAYERS], struct gguf_buffer *obstacles)
{
    const char *pattern = fs_hf_rule_at(presence->row, rule)->gguf;
    uint64_t others[1u << N_KIND_BITS]; /* a layer of the kind that has the tensor */
    char name[FS_HF_NAME_BYTES];
    int result = 0;

    memset(others, 0xff, sizeof others);
    for (uint64_t i = 0; i < presence->n_layer; i++) {
        if (*count_at(presence, i, rule, suffix_index(suffix)) > 0)
            others[kind[i]] = i;
    }
    for (uint64_t i = 0; result == 0 && i < presence->n_layer; i++) {
        const struct fs_hf_match match = {.layer = (uint32_t)i, .suffix = suffix};
        const uint64_t other = others[kind[i]];

        if (other < presence->n_layer && fs_hf_expand(pattern, &match, name) &&
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
    uint8_t kind[FS_HF_MAX_LAYERS];
    struct place places[N_KINDS];
    int result = 0;

    for (size_t i = 0; i < N_KINDS; i++)
        places[i] = find_place(presence->row, kinds[i]);
    for (uint64_t i = 0; i < presence->n_layer; i++)
        kind[i] = kind_of(presence, places, i);
    for (size_t i = 0; i < presence->n_rules; i++) {
        for (size_t j = 0; result == 0 && j < N_SUFFIXES; j++) {
            if (!may_differ(presence->row, fs_hf_rule_at(presence->row, i)))
                result = compare_layers(presence, i, suffixes[j], kind, obstacles);
        }
    }
    return result;
}

int fs_hf_check_needs(const struct fs_hf_presence *presence, struct gguf_buffer *obstacles)
{
    const size_t length = obstacles->length;
    int result = check_ends(presence, obstacles);

    for (size_t i = 0; result == 0 && i < N_NEEDS; i++) {
        if (is_needed(presence->row, &needs[i]))
            result = check_need(presence, &needs[i], obstacles);
    }
    if (result == 0)
        result = check_companions(presence, obstacles);
    if (result == 0)
        result = check_row(presence, obstacles);
    if (result == 0)
        result = check_absent_layers(presence, obstacles);
    if (result == 0)
        result = count_experts(presence, obstacles);
    /* Else it would repeat much of that. */
    return result < 0 || obstacles->length > length ? result : check_kinds(presence, obstacles);
}
