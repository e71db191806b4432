#include "fs/tree/views/kind_lines.h"

#include "fs/tree/views/summary_values.h"
#include "fs/tree/core/tree_core.h"
#include "fs/tree/facts/facts.h"
#include "fs/tree/views/memory_lines.h"

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

struct gguf_kind_found fs_kind_find(const struct fs_tree *tree)
{
    const struct gguf_model *model = tree->model;
    const struct gguf_value *type = fs_summary_find_string(model, "general.type");
    const uint64_t n_layers = find_number(model, ".block_count");
    const struct gguf_kind_metadata metadata = {
        .type = type ? type->string : (struct gguf_string){0},
        .architecture = gguf_architecture_of(model),
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

void fs_kind_write(const struct fs_summary *summary, const struct gguf_kind_found *found)
{
    const struct gguf_kind *tensors = gguf_kind_at(found->tensors);

    fs_summary_label(summary, "kind", "kind");
    fs_summary_text(summary, gguf_kind_at(found->id)->name);
    if (found->tensors != found->id) {
        fs_summary_part(summary, " by its metadata, but the tensors are those of ", NULL);
        fs_summary_part(summary, gguf_kind_article(tensors), NULL);
        fs_summary_part(summary, " ", "kind_by_tensors");
        fs_summary_text(summary, tensors->name);
    }
    fs_summary_part(summary, "\n", NULL);
}

/* ---- lines about keys ---- */

/* Write a value of general.base_model.INDEX, or `missing`. */
static void write_base_member(const struct fs_summary *summary, uint64_t index, const char *member,
                              const char *before, const char *missing)
{
    const struct gguf_value *value;
    char key[64];

    snprintf(key, sizeof key, "general.base_model.%" PRIu64 ".%s", index, member);
    value = fs_summary_find_string(summary->tree->model, key);
    if (value && value->string.length_bytes > 0) {
        fs_summary_part(summary, before, missing ? NULL : member);
        fs_summary_string(summary, value->string);
    } else if (missing) {
        fs_sink_literal(summary->sink, missing);
    }
}

static void write_base(const struct fs_summary *summary, const char *label)
{
    static const char *const first[] = {"", "[{\"name\":"}, *const next[] = {"; ", ",{\"name\":"};
    const uint64_t n = find_number(summary->tree->model, "general.base_model.count");
    const bool is_json = summary->is_json;

    if (n == 0)
        return;
    fs_summary_label(summary, label, "general.base_model.count");
    if (is_json)
        fs_sink_unsigned(summary->sink, n);
    fs_summary_part(summary, "", "base_models");
    for (uint64_t i = 0; i < n && i < SHOWN_BASES; i++) {
        fs_sink_literal(summary->sink, (i == 0 ? first : next)[is_json]);
        write_base_member(summary, i, "name", "", is_json ? "null" : "a model without a name");
        write_base_member(summary, i, "version", " ", NULL);
        write_base_member(summary, i, "organization", " by ", NULL);
        write_base_member(summary, i, "repo_url", ", ", NULL);
        fs_sink_literal(summary->sink, is_json ? "}" : "");
    }
    if (!is_json && n > SHOWN_BASES)
        fs_sink_print(summary->sink, "; ... (%" PRIu64 " in all)", n);
    fs_sink_literal(summary->sink, is_json ? "]" : "\n");
}

static bool is_same_integer(const struct gguf_value *a, const struct gguf_value *b)
{
    return gguf_value_is_integer(a) && gguf_value_is_integer(b) && a->u64 == b->u64;
}

/* Write a count, and another one in parentheses; in a text only if `is_needed` or if it differs. */
static void write_counts(const struct fs_summary *summary, const char *label, const char *key,
                         const char *other_key, const char *after, bool is_needed)
{
    const struct gguf_value *count = fs_summary_find(summary->tree->model, key);
    const struct gguf_value *other = fs_summary_find(summary->tree->model, other_key);

    /* Models without attention or experts say 0 or nothing. */
    if (!count || !fs_summary_has_integers(count) || !fs_summary_shows(count))
        return;
    fs_summary_label(summary, label, key + 1);
    fs_summary_range(summary, count);
    if (other && fs_summary_has_integers(other) &&
        (summary->is_json || is_needed || !is_same_integer(count, other))) {
        fs_summary_part(summary, " (", other_key + 1);
        fs_summary_range(summary, other);
        fs_summary_part(summary, after, NULL);
    }
    fs_summary_part(summary, "\n", NULL);
}

static void write_heads(const struct fs_summary *summary, const char *label)
{
    write_counts(summary, label, ".attention.head_count", ".attention.head_count_kv",
                 " for keys and values)", false);
}

static void write_experts(const struct fs_summary *summary, const char *label)
{
    write_counts(summary, label, ".expert_count", ".expert_used_count", " used per token)", true);
}

static void write_vocabulary(const struct fs_summary *summary, const char *label)
{
    const struct gguf_model *model = summary->tree->model;
    const struct gguf_value *tokens = find_tokens(model);
    const struct gguf_value *kind = fs_summary_find_string(model, "tokenizer.ggml.model");
    const struct gguf_value *pre = fs_summary_find_string(model, "tokenizer.ggml.pre");

    if (!tokens)
        return;
    fs_summary_label(summary, label, "n_tokens");
    fs_sink_unsigned(summary->sink, tokens->array.n_elements);
    fs_summary_part(summary, " tokens", NULL);
    if (kind) {
        fs_summary_part(summary, ", tokenizer ", "tokenizer.ggml.model");
        fs_summary_string(summary, kind->string);
    }
    if (pre) {
        fs_summary_part(summary, ", pre-tokenizer ", "tokenizer.ggml.pre");
        fs_summary_string(summary, pre->string);
    }
    fs_summary_part(summary, "\n", NULL);
}

/* Write whether a kind that reads texts has a vocabulary and a chat template. */
static void write_text_lines(const struct fs_summary *summary)
{
    const struct gguf_value has_template = {
        .type = GGUF_BOOL,
        .boolean = fs_summary_find_string(summary->tree->model, "tokenizer.chat_template")};

    if (!find_tokens(summary->tree->model)) {
        fs_summary_label(summary, "vocabulary", "n_tokens");
        fs_sink_literal(summary->sink, summary->is_json ? "0" : "none\n");
    }
    fs_summary_label(summary, "chat template", "has_chat_template");
    fs_summary_value(summary, &has_template);
    fs_summary_part(summary, "\n", NULL);
}

static void write_pooling(const struct fs_summary *summary, const char *label)
{
    const struct gguf_value *type = fs_summary_find(summary->tree->model, ".pooling_type");
    const char *name = type && gguf_value_is_integer(type) ? gguf_pooling_name(type->u64) : NULL;

    fs_summary_line(summary, label, "", "pooling", name);
}

/* ---- lines about tensors ---- */

/* The least and the greatest rank of a low-rank adapter: the width of its second factors. */
static void write_rank(const struct fs_summary *summary, const char *label)
{
    static const char *const suffixes[] = {".lora_b", ".lora_B.weight", ".lora_up.weight"};
    const struct gguf_model *model = summary->tree->model;
    uint64_t least = UINT64_MAX, greatest = 0;

    for (uint64_t i = 0; i < model->n_tensors; i++) {
        const uint64_t rank = model->tensors[i].ne[0];

        for (size_t j = 0; j < sizeof suffixes / sizeof *suffixes; j++) {
            if (rank == 0 || !gguf_string_ends_with(model->tensors[i].name, suffixes[j]))
                continue;
            least = rank < least ? rank : least;
            greatest = rank > greatest ? rank : greatest;
        }
    }
    if (greatest == 0)
        return;
    fs_summary_label(summary, label, "least_rank");
    fs_sink_unsigned(summary->sink, least);
    if (summary->is_json || least != greatest) {
        fs_summary_part(summary, " to ", "greatest_rank");
        fs_sink_unsigned(summary->sink, greatest);
    }
    fs_summary_part(summary, "\n", NULL);
}

/* The number of tensors with sums in an importance matrix. */
static void write_covered(const struct fs_summary *summary, const char *label)
{
    const struct gguf_model *model = summary->tree->model;
    uint64_t n = 0;

    for (uint64_t i = 0; i < model->n_tensors; i++)
        n += gguf_string_ends_with(model->tensors[i].name, ".in_sum2");
    if (n == 0)
        return;
    fs_summary_label(summary, label, "n_covered");
    fs_sink_unsigned(summary->sink, n);
    fs_summary_part(summary, n == 1 ? " tensor\n" : " tensors\n", NULL);
}

/* ---- all lines ---- */

/*
 * The lines of all kinds. A line is left out if the model lacks the key or fact. Sources of the
 * keys: gguf-py/gguf/constants.py, tools/quantize/quantize.cpp, tools/mtmd/clip-impl.h and
 * tools/cvector-generator/cvector-generator.cpp of llama.cpp, docs/gguf.md of ggml, and the
 * converters of CrispASR (models/).
 */
static const struct {
    const char *label; /* at most 15 bytes */
    const char *key;   /* whose value it is; one that begins with '.' is the architecture's */
    void (*write)(const struct fs_summary *summary, const char *label); /* if `key` is NULL */
} lines[] = {
    {"sample rate", ".sample_rate", NULL},
    {"mel bands", ".n_mels", NULL},
    {"mel bands", ".encoder.mels_count", NULL},
    {"audio context", ".encoder.context_length", NULL},
    {"audio layers", ".encoder.block_count", NULL},
    {"audio width", ".encoder.embedding_length", NULL},
    {"text context", ".decoder.context_length", NULL},
    {"text layers", ".decoder.block_count", NULL},
    {"text width", ".decoder.embedding_length", NULL},
    {"layers", ".n_layers", NULL},
    {"width", ".d_model", NULL},
    {"context length", ".context_length", NULL},
    {"layers", ".block_count", NULL},
    {"embedding width", ".embedding_length", NULL},
    {"heads", NULL, write_heads},
    {"experts", NULL, write_experts},
    {"MTP layers", ".nextn_predict_layers", NULL},
    {"target layers", ".target_layers", NULL},
    {"target width", ".target_hidden_size", NULL},
    {"block size", ".block_size", NULL},
    {"voices", ".voices", NULL},
    {"pooling", NULL, write_pooling},
    {"base", NULL, write_base},
    {"method", "adapter.type", NULL},
    {"task", "adapter.lora.task_name", NULL},
    {"prompt prefix", "adapter.lora.prompt_prefix", NULL},
    {"rank", NULL, write_rank},
    {"alpha", "adapter.lora.alpha", NULL},
    {"invoked by", "adapter.alora.invocation_tokens", NULL},
    {"images", "clip.has_vision_encoder", NULL},
    {"sound", "clip.has_audio_encoder", NULL},
    {"projector", "clip.projector_type", NULL},
    {"image projector", "clip.vision.projector_type", NULL},
    {"image size", "clip.vision.image_size", NULL},
    {"patch size", "clip.vision.patch_size", NULL},
    {"image layers", "clip.vision.block_count", NULL},
    {"image width", "clip.vision.embedding_length", NULL},
    {"image output", "clip.vision.projection_dim", NULL},
    {"audio projector", "clip.audio.projector_type", NULL},
    {"mel bands", "clip.audio.num_mel_bins", NULL},
    {"audio layers", "clip.audio.block_count", NULL},
    {"audio width", "clip.audio.embedding_length", NULL},
    {"audio output", "clip.audio.projection_dim", NULL},
    {"model hint", "controlvector.model_hint", NULL},
    {"layers", "controlvector.layer_count", NULL},
    {"datasets", "imatrix.datasets", NULL},
    {"chunks", "imatrix.chunk_count", NULL},
    {"chunk size", "imatrix.chunk_size", NULL},
    {"covers", NULL, write_covered},
    {"imatrix", "quantize.imatrix.file", NULL},
    {"imatrix text", "quantize.imatrix.dataset", NULL},
    {"vocabulary", NULL, write_vocabulary},
};

void fs_kind_lines_write(const struct fs_summary *summary, enum gguf_kind_id kind)
{
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        const struct gguf_value *value;

        if (!lines[i].key) {
            lines[i].write(summary, lines[i].label);
            continue;
        }
        value = fs_summary_find(summary->tree->model, lines[i].key);
        if (!value || !fs_summary_shows(value))
            continue;
        fs_summary_label(summary, lines[i].label, lines[i].key + (lines[i].key[0] == '.'));
        fs_summary_value(summary, value);
        fs_summary_part(summary, "\n", NULL);
    }
    if (kind == GGUF_LANGUAGE_MODEL || kind == GGUF_EMBEDDING || kind == GGUF_VOCABULARY)
        write_text_lines(summary);
    if (kind == GGUF_LANGUAGE_MODEL)
        fs_memory_write(summary);
}
