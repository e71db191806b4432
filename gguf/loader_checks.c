#include "gguf/loader_checks.h"

#include "gguf/models/key_lists.h"
#include "gguf/models/pretokenizers.h"
#include "gguf/models/tensor_lists.h"
#include "gguf/models/tensor_names.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Limits of llama.cpp: LLAMA_MAX_LAYERS, GGML_MAX_NAME, GGML_TYPE_COUNT, TENSOR_ALIGNMENT. */
enum { MAX_LAYERS = 512, NAME_ROOM = 64, N_TYPES = 43, LEAST_ALIGNMENT = 32 };

/* A model, its architecture and its tensors. */
struct checked {
    const struct gguf_model *model;
    struct gguf_report *report;
    char name[64];                       /* general.architecture; "" if it is missing or longer */
    const struct gguf_architecture *row; /* NULL: unknown */
    const struct gguf_tensor **by_name;
    uint64_t n_layers; /* block_count; 0 if it is missing */
};

/* Return the value of a key for a layer, or `missing` without a positive integer. */
static uint64_t number_at(const struct checked *checked, const char *name, uint64_t layer,
                          uint64_t missing)
{
    const uint64_t number = gguf_arch_number(checked->model, name, layer);

    return number > 0 && number <= INT64_MAX ? number : missing;
}

/* Return the size of a head of keys, or 0. */
static uint64_t key_length(const struct checked *checked, uint64_t layer)
{
    const uint64_t n_head = number_at(checked, "attention.head_count", layer, 0);
    const uint64_t n_embd = number_at(checked, "embedding_length", 0, 0);

    return number_at(checked, "attention.key_length", layer, n_head > 0 ? n_embd / n_head : 0);
}

static const struct gguf_tensor *find(const struct checked *checked, const char *name)
{
    return gguf_find_tensor(checked->by_name, checked->model->n_tensors, gguf_string_of(name));
}

static bool has_tensor(const void *user, const char *name)
{
    return find(user, name);
}

/* Returns false if out of memory, which is reported. */
static bool begin(struct checked *checked, const struct gguf_model *model,
                  struct gguf_report *report)
{
    *checked = (struct checked){.model = model, .report = report};
    gguf_get_text(model, "general.architecture", checked->name, sizeof checked->name);
    checked->row = gguf_architecture_find(checked->name);
    checked->n_layers = number_at(checked, "block_count", 0, 0);
    checked->by_name = gguf_tensors_by_name(model);
    if (!checked->by_name)
        gguf_system_error(report, -ENOMEM, GGUF_NO_PLACE);
    return checked->by_name;
}

/* ---- tensors ---- */

static void warn_of_missing(const struct checked *checked,
                            const struct gguf_missing_tensor *missing)
{
    if (missing->part)
        gguf_warning(checked->report, GGUF_RULE_TENSOR_LIST, GGUF_NO_PLACE,
                     "tensors %s: no %s, which layers of the architecture %s have", missing->name,
                     missing->part, checked->name);
    else
        gguf_warning(checked->report, GGUF_RULE_TENSOR_LIST, GGUF_NO_PLACE,
                     "there is no tensor \"%s\", which %s requires", missing->name,
                     missing->because[0] != '\0' ? missing->because : checked->name);
}

static void check_missing(const struct checked *checked)
{
    struct gguf_missing_tensor missing;

    if (!gguf_check_model_tensors(checked->row, has_tensor, checked, &missing))
        warn_of_missing(checked, &missing);
    for (uint32_t i = 0; i < checked->n_layers && i < MAX_LAYERS; i++)
        if (!gguf_check_layer_tensors(checked->row, has_tensor, checked, i, &missing)) {
            warn_of_missing(checked, &missing);
            return;
        }
}

/* Return true if the tensor belongs to an encoder of pictures or sound, or to Ollama's MTP. */
static bool is_of_another_part(struct gguf_string name)
{
    static const char *const starts[] = {"v.", "mm.", "a.", "s.", "mtp.", "model.vision_tower."};
    size_t i = 0;

    while (i < COUNT(starts) && !gguf_string_starts_with(name, starts[i]))
        i++;
    return i < COUNT(starts);
}

static bool is_foreign(const struct checked *checked, struct gguf_string name)
{
    char text[GGUF_LIST_NAME_BYTES];
    struct gguf_string layer, rest;

    if (name.length_bytes >= sizeof text || (gguf_tensor_name_split(name, &layer, &rest) &&
                                             gguf_layer_number(layer) >= checked->n_layers))
        return true;
    snprintf(text, sizeof text, "%.*s", (int)name.length_bytes, name.data);
    return !gguf_lists_have(checked->row, text);
}

/* Warn once of tensors that the architecture lacks, and once of parts of a fused file. */
static void check_foreign(const struct checked *checked)
{
    static const char *const texts[] = {
        "the architecture %s has no such tensor, as for %" PRIu64 " of %" PRIu64 " tensors",
        "it belongs to no text model of the architecture %s, as %" PRIu64 " of %" PRIu64
        " tensors: the file is for Ollama",
    };
    static const enum gguf_rule rules[] = {GGUF_RULE_TENSOR_LIST, GGUF_RULE_FUSED};
    const struct gguf_tensor *first[COUNT(rules)] = {NULL};
    uint64_t counts[COUNT(rules)] = {0};

    for (uint64_t i = 0; i < checked->model->n_tensors; i++) {
        const struct gguf_tensor *tensor = &checked->model->tensors[i];
        const bool other = is_of_another_part(gguf_name_of(tensor));

        if (is_foreign(checked, gguf_name_of(tensor)) && counts[other]++ == 0)
            first[other] = tensor;
    }
    for (size_t i = 0; i < COUNT(rules); i++)
        if (first[i])
            gguf_warning(checked->report, rules[i], gguf_tensor_place(first[i]), texts[i],
                         checked->name, counts[i], checked->model->n_tensors);
}

/* Warn if a tensor is there and a dimension is another than `expected`, unless that is 0. */
static void check_dim(const struct checked *checked, const struct gguf_tensor *tensor, int dim,
                      uint64_t expected, const char *why)
{
    if (tensor && expected > 0 && tensor->ne[dim] != expected)
        gguf_warning(checked->report, GGUF_RULE_TENSOR_LIST, gguf_tensor_place(tensor),
                     "its dimension %d is %" PRIu64 ", it must be %" PRIu64 ", %s", dim,
                     tensor->ne[dim], expected, why);
}

static const struct gguf_tensor *find_in_layer(const struct checked *checked, uint64_t layer,
                                               const char *name)
{
    char text[GGUF_LIST_NAME_BYTES];

    snprintf(text, sizeof text, "blk.%" PRIu64 ".%s.weight", layer, name);
    return find(checked, text);
}

static void check_layer_shapes(const struct checked *checked, uint64_t layer, uint64_t n_embd)
{
    static const struct {
        const char *name;
        int dim;
    } rows[] = {{"attn_norm", 0}, {"ffn_norm", 0}, {"attn_q", 0},
                {"attn_k", 0},    {"attn_v", 0},   {"ffn_gate", 0},
                {"ffn_up", 0},    {"ffn_down", 1}, {"attn_output", 1}};
    const struct gguf_tensor *down = find_in_layer(checked, layer, "ffn_down");
    const uint64_t n_head = number_at(checked, "attention.head_count", layer, 0);
    const uint64_t n_kv = number_at(checked, "attention.head_count_kv", layer, n_head);
    const bool has_one_size = !gguf_find_arch_key(checked->model, "attention.key_length_swa") &&
                              !gguf_find_arch_key(checked->model, "attention.key_length_mla");

    for (size_t i = 0; i < COUNT(rows); i++)
        check_dim(checked, find_in_layer(checked, layer, rows[i].name), rows[i].dim, n_embd,
                  "the embedding_length");
    if (has_one_size)
        check_dim(checked, find_in_layer(checked, layer, "attn_k"), 1,
                  n_kv * key_length(checked, layer),
                  "attention.head_count_kv times the size of a head");
    if (down)
        check_dim(checked, find_in_layer(checked, layer, "ffn_gate"), 1, down->ne[0],
                  "the row of ffn_down");
}

static void check_shapes(const struct checked *checked)
{
    const struct gguf_key *tokens = gguf_find_key(checked->model, "tokenizer.ggml.tokens");
    const struct gguf_tensor *embeddings = find(checked, "token_embd.weight");
    const uint64_t n_embd = number_at(checked, "embedding_length", 0, 0);
    const uint64_t n_tokens =
        tokens && tokens->value.type == GGUF_ARRAY ? tokens->value.array.n_elements : 0;

    check_dim(checked, embeddings, 0, n_embd, "the embedding_length");
    check_dim(checked, embeddings, 1, n_tokens, "the number of tokens");
    check_dim(checked, find(checked, "output.weight"), 1, embeddings->ne[1],
              "the rows of token_embd.weight");
    for (uint64_t i = 0; i < checked->n_layers && i < MAX_LAYERS; i++)
        check_layer_shapes(checked, i, n_embd);
}

void gguf_check_tensors(const struct gguf_model *model, struct gguf_report *report)
{
    struct checked checked;

    if (begin(&checked, model, report) && checked.row && find(&checked, "token_embd.weight")) {
        check_missing(&checked);
        check_foreign(&checked);
        check_shapes(&checked);
    }
    free(checked.by_name);
}

/* ---- what a loader alone refuses ---- */

#define REFUSE(checked, place, ...)                                                                \
    gguf_error((checked)->report, GGUF_RULE_LOADER, -EINVAL, place, __VA_ARGS__)

/* Refuse a key, or all without one. */
static void refuse_key(const struct checked *checked, const struct gguf_key *key, const char *text)
{
    REFUSE(checked, key ? gguf_key_place(key) : GGUF_NO_PLACE, "%s", text);
}

static void check_format(const struct checked *checked)
{
    const struct gguf_model *model = checked->model;
    const struct gguf_key *alignment = gguf_find_key(model, "general.alignment");

    if (strcmp(model->format, "GGUF v2") != 0 && strcmp(model->format, "GGUF v3") != 0) {
        REFUSE(checked, GGUF_NO_PLACE, "the file is %s; loaders take GGUF v2 and v3",
               model->format);
        return;
    }
    if (model->big_endian)
        refuse_key(checked, NULL, "the file is big-endian; loaders on other processors refuse it");
    if (alignment && model->alignment_bytes < LEAST_ALIGNMENT)
        refuse_key(checked, alignment, "below 32, loaders may end at the first token");
}

/* Return true if llama.cpp has no type with the id: removed, or of ik_llama.cpp alone. */
static bool is_unknown_to_llama(uint32_t id)
{
    return id >= N_TYPES || id == 4 || id == 5 || (id >= 31 && id <= 33) || (id >= 36 && id <= 38);
}

/* Check a tensor. *end is where the data of the tensor before it end, or 0. */
static void check_entry(const struct checked *checked, const struct gguf_tensor *tensor,
                        uint64_t *end)
{
    const uint64_t mask = checked->model->alignment_bytes - 1;
    const bool is_ik = checked->report->loader == GGUF_LOADER_IK;
    const struct gguf_place place = gguf_tensor_place(tensor);

    if (!is_ik && tensor->name.length_bytes >= NAME_ROOM)
        REFUSE(checked, place, "its name is longer than 63 bytes");
    if (!is_ik && tensor->type && is_unknown_to_llama(tensor->type_id))
        REFUSE(checked, place, "llama.cpp has no type %" PRIu32 ", %s", tensor->type_id,
               tensor->type->name);
    if (!is_ik && *end > 0 && tensor->file_offset != *end)
        REFUSE(checked, place,
               "its data begin at byte %" PRIu64 ", not at %" PRIu64
               ", where those of the tensor before it end",
               tensor->file_offset, *end);
    if (tensor->n_elements == 0)
        REFUSE(checked, place, "it has no elements; loaders divide by zero");
    if (gguf_string_ends_with(tensor->name, "norm.weight") && tensor->n_dims == 1 && tensor->type &&
        tensor->type->id != DEQUANT_F32)
        REFUSE(checked, place, "a norm must be F32; loaders end at the first token");
    *end = ((tensor->file_offset + tensor->size_bytes) + mask) & ~mask;
}

static void check_entries(const struct checked *checked)
{
    const struct gguf_model *model = checked->model;
    uint64_t end = 0;

    for (uint64_t i = 0; i < model->n_tensors; i++) {
        /* A model that is composed of others lies in their files as it is written only in a copy.
         */
        if (model->n_borrowed_files > 0 ||
            (i > 0 && model->tensors[i].file_index != model->tensors[i - 1].file_index))
            end = 0;
        check_entry(checked, &model->tensors[i], &end);
    }
}

bool gguf_reads_gate_up_exps(struct gguf_string architecture)
{
    return gguf_words_have("cohere2moe deepseek2 deepseek2ocr hy-v3 qwen35moe qwen3next",
                           architecture);
}

/* Refuse experts in a form that llama.cpp does not read of the architecture. */
static void check_fused_experts(const struct checked *checked)
{
    const struct gguf_tensor *tensor = NULL;

    for (uint64_t i = 0; !tensor && i < checked->n_layers && i < MAX_LAYERS; i++)
        tensor = find_in_layer(checked, i, "ffn_gate_up_exps");
    if (tensor && checked->report->loader == GGUF_LOADER_LLAMA &&
        !gguf_reads_gate_up_exps(gguf_string_of(checked->name)))
        REFUSE(checked, gguf_tensor_place(tensor),
               "llama.cpp reads ffn_gate_exps and ffn_up_exps of this architecture, which "
               "--unfuse gate_up_exps makes");
}

/*
 * Refuse numbers with which llama.cpp ends: of layers, of experts that cannot be used, and of heads
 * that are rotated in part, for architectures that rotate whole heads.
 */
static void check_numbers(const struct checked *checked)
{
    const uint64_t n_experts = number_at(checked, "expert_count", 0, 0);
    const uint64_t n_used = number_at(checked, "expert_used_count", 0, 0);
    const uint64_t n_groups = number_at(checked, "expert_group_count", 0, 0);
    const uint64_t n_groups_used = number_at(checked, "expert_group_used_count", 0, 0);
    const uint64_t n_key = key_length(checked, 0);
    const bool has_group = n_groups > 0 && n_groups < n_experts;
    const bool divides = has_group && n_experts % n_groups == 0;
    const struct {
        bool is_wrong;
        const char *name, *text;
    } rules[] = {
        {checked->n_layers == 0 || checked->n_layers > MAX_LAYERS, "block_count",
         "it must be 1 to 512"},
        {n_experts > 0 ? n_used == 0 || n_used > n_experts : n_used > 0, "expert_used_count",
         "it must be 1 to expert_count"},
        {n_groups > 0 && !has_group, "expert_group_count", "it must be below expert_count"},
        {has_group && !divides, "expert_group_count", "it must divide expert_count"},
        {divides && n_groups > 1 && (n_groups_used == 0 || n_groups_used >= n_groups),
         "expert_group_used_count", "it must be 1 to expert_group_count - 1"},
        {gguf_words_have("llama deci falcon llama-embed", gguf_string_of(checked->name)) &&
             n_key > 0 && gguf_find_arch_key(checked->model, "rope.dimension_count") &&
             number_at(checked, "rope.dimension_count", 0, 0) != n_key,
         "rope.dimension_count", "it must be the size of a head"},
    };

    for (size_t i = 0; i < COUNT(rules); i++)
        if (rules[i].is_wrong)
            refuse_key(checked, gguf_find_arch_key(checked->model, rules[i].name), rules[i].text);
}

static void check_keys(const struct checked *checked)
{
    static const struct {
        const char *name;
        enum gguf_value_type type;
        const char *text;
    } split[] = {{"split.no", GGUF_UINT16, "its type must be uint16"},
                 {"split.count", GGUF_UINT16, "its type must be uint16"},
                 {"split.tensors.count", GGUF_INT32, "its type must be int32"}};

    check_numbers(checked);
    check_fused_experts(checked);
    for (size_t i = 0; i < COUNT(split); i++) {
        const struct gguf_key *key = gguf_find_key(checked->model, split[i].name);

        if (key && key->value.type != split[i].type)
            refuse_key(checked, key, split[i].text);
    }
    for (uint64_t i = 0; i < checked->model->n_keys; i++) {
        const struct gguf_key *key = &checked->model->keys[i];

        if (key->name.length_bytes == 0)
            refuse_key(checked, key, "the key has no name");
        if (key->value.type == GGUF_ARRAY && key->value.array.element_type == GGUF_ARRAY)
            refuse_key(checked, key, "loaders do not read arrays of arrays");
        else if (key->value.type == GGUF_ARRAY && key->value.array.n_elements > MAX_LAYERS &&
                 gguf_string_starts_with(key->name, checked->name) &&
                 !gguf_string_starts_with(key->name, "tokenizer."))
            refuse_key(checked, key, "loaders read at most 512 elements");
    }
}

/* llama.cpp ends if two tokens are equal. */
static void check_twins(const struct checked *checked, const struct gguf_key *tokens)
{
    const struct gguf_array *array = &tokens->value.array;
    struct gguf_cursor cursor = gguf_array_begin(array);
    struct gguf_string *texts = calloc(array->n_elements, sizeof *texts);

    if (!texts) {
        gguf_system_error(checked->report, -ENOMEM, GGUF_NO_PLACE);
        return;
    }
    for (uint64_t i = 0; i < array->n_elements; i++) {
        struct gguf_value token;

        gguf_array_next(&cursor, array->element_type, &token);
        texts[i] = token.string;
    }
    qsort(texts, array->n_elements, sizeof *texts, gguf_string_order);
    for (uint64_t i = 1; i < array->n_elements; i++)
        if (texts[i].length_bytes > 0 && gguf_string_compare(texts[i - 1], texts[i]) == 0) {
            REFUSE(checked, gguf_key_place(tokens), "the token %s is there twice",
                   gguf_quote(texts[i]).text);
            break;
        }
    free(texts);
}

static void check_vocabulary(const struct checked *checked)
{
    static const char kinds[] =
        "no_vocab none llama bert gpt2 hybriddna whitespace t5 rwkv plamo2 gemma4";
    const struct gguf_key *model = gguf_find_key(checked->model, "tokenizer.ggml.model");
    const struct gguf_key *tokens = gguf_find_key(checked->model, "tokenizer.ggml.tokens");
    const struct gguf_key *pre_key = gguf_find_key(checked->model, "tokenizer.ggml.pre");
    char kind[24], pre[64];
    bool is_pairs;

    gguf_get_text(checked->model, "tokenizer.ggml.model", kind, sizeof kind);
    gguf_get_text(checked->model, "tokenizer.ggml.pre", pre, sizeof pre);
    is_pairs = gguf_words_have("gpt2 gemma4", gguf_string_of(kind));
    if (!model)
        refuse_key(checked, NULL, "there is no key \"tokenizer.ggml.model\"");
    else if (!gguf_words_have(kinds, gguf_string_of(kind)))
        refuse_key(checked, model, "no loader has a tokenizer of this name");
    else if (gguf_words_have("no_vocab none", gguf_string_of(kind)))
        return;
    if (is_pairs && !gguf_find_key(checked->model, "tokenizer.ggml.merges"))
        refuse_key(checked, NULL, "there is no key \"tokenizer.ggml.merges\"");
    if (is_pairs && pre_key && !gguf_pretokenizer_find(pre))
        refuse_key(checked, pre_key, "no loader has a pre-tokenizer of this name");
    if (!tokens || tokens->value.type != GGUF_ARRAY ||
        tokens->value.array.element_type != GGUF_STRING || tokens->value.array.n_elements == 0)
        refuse_key(checked, tokens, "there is no list of tokens, \"tokenizer.ggml.tokens\"");
    else
        check_twins(checked, tokens);
}

void gguf_check_loader(const struct gguf_model *model, struct gguf_report *report)
{
    const bool is_projector = gguf_string_equals(gguf_architecture_of(model), "clip");
    struct checked checked;

    if (begin(&checked, model, report)) {
        check_format(&checked);
        check_entries(&checked);
        if (!checked.row && strcmp(checked.name, "gemma-embedding") != 0)
            refuse_key(&checked, gguf_find_key(model, "general.architecture"),
                       is_projector ? "it is a projector, which loaders take beside a model only"
                                    : "ggufs knows no language model of this architecture");
        else if (checked.row && !find(&checked, "token_embd.weight"))
            refuse_key(&checked, NULL, "there is no tensor \"token_embd.weight\"");
        else if (checked.row)
            check_keys(&checked);
        if (!is_projector)
            check_vocabulary(&checked);
    }
    free(checked.by_name);
}
