#include "fs/tree/views/kind_lines.h"

#include "fs/tree/views/summary_values.h"
#include "fs/tree/core/tree_core.h"
#include "fs/tree/facts/facts.h"
#include "fs/tree/views/importance.h"

#include <inttypes.h>
#include <stdio.h>

/* Limit of the base models that a line names. */
#define SHOWN_BASES 4

/* ---- the kind ---- */

/* The vocabulary, an array, or NULL. */
static const struct gguf_value *find_tokens(const struct gguf_model *model)
{
    const struct gguf_value *tokens = fs_summary_find(model, "tokenizer.ggml.tokens");

    return tokens && tokens->type == GGUF_ARRAY ? tokens : NULL;
}

/* Return the number that a key has, or 0. */
static uint64_t find_number(const struct gguf_model *model, const char *key)
{
    const struct gguf_value *value = fs_summary_find(model, key);

    return value && gguf_value_is_integer(value) ? value->u64 : 0;
}

static struct gguf_string find_text(const struct gguf_model *model, const char *key)
{
    const struct gguf_value *value = fs_summary_find_string(model, key);

    return value ? value->string : (struct gguf_string){0};
}

struct gguf_kind_found fs_kind_find(const struct fs_tree *tree)
{
    const struct gguf_model *model = tree->model;
    const uint64_t n_layers = find_number(model, ".block_count");
    const struct gguf_kind_metadata metadata = {
        .type = find_text(model, "general.type"),
        .architecture = find_text(model, "general.architecture"),
        .has_vocabulary = find_tokens(model),
        .has_layers = n_layers > 0,
        .has_only_nextn = n_layers > 0 && find_number(model, ".nextn_predict_layers") == n_layers,
        .pooling_type = find_number(model, ".pooling_type"),
    };
    struct gguf_kind_names names = {0};

    for (uint64_t i = 0; i < model->n_tensors; i++)
        gguf_kind_see(&names, gguf_name_of(&model->tensors[i]));
    return gguf_kind_find(&metadata, &names);
}

void fs_kind_write(struct fs_sink *sink, const struct gguf_kind_found *found)
{
    const struct gguf_kind *tensors = gguf_kind_at(found->tensors);

    fs_summary_label(sink, "kind");
    fs_sink_literal(sink, gguf_kind_at(found->id)->name);
    if (found->tensors != found->id)
        fs_sink_print(sink, " by its metadata, but the tensors are those of %s %s",
                      tensors->article, tensors->name);
    fs_sink_literal(sink, "\n");
}

/* ---- lines about keys ---- */

static void write_text_line(struct fs_sink *sink, const char *label, const char *text)
{
    fs_summary_label(sink, label);
    fs_sink_print(sink, "%s\n", text);
}

/* Write a text and general.base_model.INDEX.MEMBER. Returns false if the key is missing. */
static bool write_base_member(struct fs_sink *sink, const struct gguf_model *model, unsigned index,
                              const char *member, const char *before)
{
    const struct gguf_value *value;
    char key[64];

    snprintf(key, sizeof key, "general.base_model.%u.%s", index, member);
    value = fs_summary_find_string(model, key);
    if (!value || value->string.length_bytes == 0)
        return false;
    fs_sink_literal(sink, before);
    fs_summary_string(sink, value->string);
    return true;
}

static void write_base(struct fs_sink *sink, const struct fs_tree *tree, const char *label)
{
    const struct gguf_model *model = tree->model;
    const uint64_t n = find_number(model, "general.base_model.count");

    if (n == 0)
        return;
    fs_summary_label(sink, label);
    for (unsigned i = 0; i < n && i < SHOWN_BASES; i++) {
        fs_sink_literal(sink, i > 0 ? "; " : "");
        if (!write_base_member(sink, model, i, "name", ""))
            fs_sink_literal(sink, "a model without a name");
        write_base_member(sink, model, i, "version", " ");
        write_base_member(sink, model, i, "organization", " by ");
        write_base_member(sink, model, i, "repo_url", ", ");
    }
    if (n > SHOWN_BASES)
        fs_sink_print(sink, "; ... (%" PRIu64 " in all)", n);
    fs_sink_literal(sink, "\n");
}

static bool is_same_integer(const struct gguf_value *a, const struct gguf_value *b)
{
    return gguf_value_is_integer(a) && gguf_value_is_integer(b) && a->u64 == b->u64;
}

/* Models without attention say 0 or nothing. */
static void write_heads(struct fs_sink *sink, const struct fs_tree *tree, const char *label)
{
    const struct gguf_value *heads = fs_summary_find(tree->model, ".attention.head_count");
    const struct gguf_value *kv_heads = fs_summary_find(tree->model, ".attention.head_count_kv");

    if (!heads || !fs_summary_has_integers(heads) || !fs_summary_shows(heads))
        return;
    fs_summary_label(sink, label);
    fs_summary_range(sink, heads);
    if (kv_heads && fs_summary_has_integers(kv_heads) && !is_same_integer(heads, kv_heads)) {
        fs_sink_literal(sink, " (");
        fs_summary_range(sink, kv_heads);
        fs_sink_literal(sink, " for keys and values)");
    }
    fs_sink_literal(sink, "\n");
}

static void write_experts(struct fs_sink *sink, const struct fs_tree *tree, const char *label)
{
    const struct gguf_value *used = fs_summary_find(tree->model, ".expert_used_count");
    const uint64_t n_experts = find_number(tree->model, ".expert_count");

    if (n_experts == 0)
        return;
    fs_summary_label(sink, label);
    fs_sink_unsigned(sink, n_experts);
    if (used && fs_summary_has_integers(used)) {
        fs_sink_literal(sink, " (");
        fs_summary_range(sink, used);
        fs_sink_literal(sink, " used per token)");
    }
    fs_sink_literal(sink, "\n");
}

static void write_vocabulary(struct fs_sink *sink, const struct fs_tree *tree, const char *label)
{
    const struct gguf_value *tokens = find_tokens(tree->model);
    const struct gguf_value *kind = fs_summary_find_string(tree->model, "tokenizer.ggml.model");
    const struct gguf_value *pre = fs_summary_find_string(tree->model, "tokenizer.ggml.pre");

    if (!tokens) {
        write_text_line(sink, label, "none");
        return;
    }
    fs_summary_label(sink, label);
    fs_sink_print(sink, "%" PRIu64 " tokens", tokens->array.n_elements);
    if (kind) {
        fs_sink_literal(sink, ", tokenizer ");
        fs_summary_string(sink, kind->string);
    }
    if (pre) {
        fs_sink_literal(sink, ", pre-tokenizer ");
        fs_summary_string(sink, pre->string);
    }
    fs_sink_literal(sink, "\n");
}

static void write_vocabulary_if_any(struct fs_sink *sink, const struct fs_tree *tree,
                                    const char *label)
{
    if (find_tokens(tree->model))
        write_vocabulary(sink, tree, label);
}

static void write_chat_template(struct fs_sink *sink, const struct fs_tree *tree, const char *label)
{
    const bool has_one = fs_summary_find_string(tree->model, "tokenizer.chat_template");

    write_text_line(sink, label, has_one ? "yes" : "no");
}

static void write_pooling(struct fs_sink *sink, const struct fs_tree *tree, const char *label)
{
    const struct gguf_value *type = fs_summary_find(tree->model, ".pooling_type");
    const char *name;

    if (!type || !gguf_value_is_integer(type))
        return;
    name = gguf_pooling_name(type->u64);
    if (name)
        write_text_line(sink, label, name);
}

/* ---- lines about pairs of tensors ---- */

/* The least and the greatest rank of a low-rank adapter's pairs of factors. */
static void write_rank(struct fs_sink *sink, const struct fs_tree *tree, const char *label)
{
    const struct gguf_model *model = tree->model;
    uint64_t least = UINT64_MAX, greatest = 0;

    for (uint64_t i = 0; i < model->n_tensors; i++) {
        const struct gguf_tensor *tensor = &model->tensors[i];
        const struct fs_half half = fs_half_of(tensor);
        const struct gguf_tensor *other = fs_other_half(tree->facts->pairs, tensor);
        uint64_t rank;

        if (half.kind != FS_LORA_PAIR || half.is_second || !other)
            continue;
        rank = fs_lora_rank(tensor, other);
        if (rank > 0 && rank < least)
            least = rank;
        greatest = rank > greatest ? rank : greatest;
    }
    if (greatest == 0)
        return;
    fs_summary_label(sink, label);
    fs_sink_print(sink, least == greatest ? "%" PRIu64 "\n" : "%" PRIu64 " to %" PRIu64 "\n", least,
                  greatest);
}

static void write_importance(struct fs_sink *sink, const struct fs_tree *tree, const char *label)
{
    const struct gguf_model *model = tree->model;
    uint64_t n_covered = 0, n_wrong = 0;

    for (uint64_t i = 0; i < model->n_tensors; i++) {
        const struct gguf_tensor *tensor = &model->tensors[i];
        const struct fs_half half = fs_half_of(tensor);
        const struct gguf_tensor *other = fs_other_half(tree->facts->pairs, tensor);

        if (half.kind != FS_IMPORTANCE_PAIR || (half.is_second && other))
            continue;
        if (other && fs_importance_fits(tensor, other))
            n_covered++;
        else
            n_wrong++;
    }
    fs_summary_label(sink, label);
    fs_sink_print(sink, "%" PRIu64 " tensor%s", n_covered, n_covered == 1 ? "" : "s");
    if (n_wrong > 0)
        fs_sink_print(sink, "; sums and counts of %" PRIu64 " are not complete or do not fit",
                      n_wrong);
    fs_sink_literal(sink, "\n");
}

/* ---- all lines ---- */

typedef void fact_writer(struct fs_sink *sink, const struct fs_tree *tree, const char *label);

static fact_writer *const facts[] = {
    [GGUF_FACT_BASE] = write_base,
    [GGUF_FACT_HEADS] = write_heads,
    [GGUF_FACT_EXPERTS] = write_experts,
    [GGUF_FACT_VOCABULARY] = write_vocabulary,
    [GGUF_FACT_VOCABULARY_IF_ANY] = write_vocabulary_if_any,
    [GGUF_FACT_CHAT_TEMPLATE] = write_chat_template,
    [GGUF_FACT_POOLING] = write_pooling,
    [GGUF_FACT_RANK] = write_rank,
    [GGUF_FACT_IMPORTANCE] = write_importance,
};

void fs_kind_lines_write(struct fs_sink *sink, const struct fs_tree *tree,
                         const struct gguf_kind *kind)
{
    for (const struct gguf_kind_line *line = kind->lines; line->label; line++) {
        const struct gguf_value *value;

        if (line->fact != GGUF_FACT_VALUE) {
            facts[line->fact](sink, tree, line->label);
            continue;
        }
        value = fs_summary_find(tree->model, line->key);
        if (!value || !fs_summary_shows(value))
            continue;
        fs_summary_label(sink, line->label);
        fs_summary_value(sink, value);
        fs_sink_literal(sink, "\n");
    }
}
