#include "fs/tree/views/kind_tensors.h"

#include "fs/tree/views/importance.h"
#include "fs/tree/views/summary_values.h"
#include "fs/tree/facts/facts.h"
#include "fs/tree/core/tree_core.h"
#include "gguf/models/kinds.h"

#include <inttypes.h>
#include <string.h>

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static struct gguf_string after(struct gguf_string string, uint64_t n_bytes)
{
    return (struct gguf_string){string.data + n_bytes, string.length_bytes - n_bytes};
}

/*
 * Read the number at the start of a string, which ends there or at a '.'. Returns its length in
 * bytes, or 0.
 */
static size_t read_number(struct gguf_string string, uint64_t *number)
{
    size_t n = 0;

    *number = 0;
    while (n < string.length_bytes && n < 9 && is_digit(string.data[n]))
        *number = *number * 10 + (uint64_t)(string.data[n++] - '0');
    return n == string.length_bytes || string.data[n] == '.' ? n : 0;
}

/* ---- adapters ---- */

struct ranks {
    uint64_t least, greatest; /* of the pairs that fit */
    uint64_t n_alone;         /* halves without the other one, or of another shape */
};

static struct ranks find_ranks(const struct fs_tree *tree)
{
    const struct gguf_model *model = tree->model;
    struct ranks ranks = {UINT64_MAX, 0, 0};

    for (uint64_t i = 0; i < model->n_tensors; i++) {
        const struct gguf_tensor *tensor = &model->tensors[i];
        const struct fs_half half = fs_half_of(tensor);
        const struct gguf_tensor *other = fs_other_half(tree->facts->pairs, tensor);
        uint64_t rank;

        if (half.kind != FS_LORA_PAIR || (half.is_second && other))
            continue;
        rank = other ? fs_lora_rank(tensor, other) : 0;
        if (rank == 0) {
            ranks.n_alone++;
            continue;
        }
        ranks.least = rank < ranks.least ? rank : ranks.least;
        ranks.greatest = rank > ranks.greatest ? rank : ranks.greatest;
    }
    return ranks;
}

void fs_kind_write_rank(struct fs_sink *sink, const struct fs_tree *tree, const char *label)
{
    const struct ranks ranks = find_ranks(tree);

    if (ranks.greatest == 0 && ranks.n_alone == 0)
        return;
    fs_summary_label(sink, label);
    if (ranks.greatest == 0)
        fs_sink_literal(sink, "unknown");
    else
        fs_sink_print(sink, ranks.least == ranks.greatest ? "%" PRIu64 : "%" PRIu64 " to %" PRIu64,
                      ranks.least, ranks.greatest);
    if (ranks.n_alone > 0)
        fs_sink_print(sink, " (%" PRIu64 " factors without a fitting other one)", ranks.n_alone);
    fs_sink_literal(sink, "\n");
}

/*
 * Source for the scale: llama_adapter_lora_weight::get_scale(), src/llama-adapter.h of llama.cpp.
 */
void fs_kind_write_alpha(struct fs_sink *sink, const struct fs_tree *tree, const char *label)
{
    const struct gguf_value *alpha = fs_summary_find(tree->model, "adapter.lora.alpha");
    const struct ranks ranks = find_ranks(tree);

    if (!alpha || alpha->type != GGUF_FLOAT32)
        return;
    fs_summary_label(sink, label);
    fs_sink_print(sink, "%g", (double)alpha->f32);
    if (alpha->f32 == 0)
        fs_sink_literal(sink, " (the scale is 1)");
    else if (ranks.greatest > 0 && ranks.least == ranks.greatest)
        fs_sink_print(sink, " (the scale is %g)", (double)alpha->f32 / (double)ranks.least);
    else
        fs_sink_literal(sink, " (the scale is this divided by the rank)");
    fs_sink_literal(sink, "\n");
}

/* Names of tensors without the number of their layer. */
struct targets {
    char names[24][80];
    size_t n, n_tensors, n_more; /* tensors whose names had no room */
};

/* Write a name with '#' for its numbers, without "blk.#." and ".weight". */
static void write_module(struct gguf_string name, char module[80])
{
    size_t n = 0;

    if (name.length_bytes > 7 && gguf_string_ends_with(name, ".weight"))
        name.length_bytes -= 7;
    for (uint64_t i = 0; i < name.length_bytes && n + 1 < 80;) {
        uint64_t number;
        const size_t n_digits =
            i == 0 || name.data[i - 1] == '.' ? read_number(after(name, i), &number) : 0;

        module[n++] = n_digits > 0 ? '#' : name.data[i];
        i += n_digits > 0 ? n_digits : 1;
        if (n == 6 && memcmp(module, "blk.#.", n) == 0)
            n = 0;
    }
    module[n] = '\0';
}

static void add_target(struct targets *targets, struct gguf_string name)
{
    char module[80];

    targets->n_tensors++;
    write_module(name, module);
    for (size_t i = 0; i < targets->n; i++)
        if (strcmp(targets->names[i], module) == 0)
            return;
    if (targets->n == sizeof targets->names / sizeof *targets->names)
        targets->n_more++;
    else
        memcpy(targets->names[targets->n++], module, sizeof module);
}

void fs_kind_write_targets(struct fs_sink *sink, const struct fs_tree *tree, const char *label)
{
    const struct gguf_model *model = tree->model;
    struct targets targets = {.n = 0};

    for (uint64_t i = 0; i < model->n_tensors; i++) {
        const struct fs_half half = fs_half_of(&model->tensors[i]);

        if (half.kind == FS_LORA_PAIR && half.is_second)
            add_target(&targets, half.base);
    }
    if (targets.n == 0)
        return;
    fs_summary_label(sink, label);
    for (size_t i = 0; i < targets.n; i++) {
        fs_sink_literal(sink, i > 0 ? ", " : "");
        fs_summary_string(sink, (struct gguf_string){targets.names[i], strlen(targets.names[i])});
    }
    fs_sink_print(sink, "%s (%zu tensor%s)\n", targets.n_more > 0 ? ", ..." : "", targets.n_tensors,
                  targets.n_tensors == 1 ? "" : "s");
}

/* ---- importance matrices ---- */

void fs_kind_write_importance(struct fs_sink *sink, const struct fs_tree *tree, const char *label)
{
    const struct gguf_model *model = tree->model;
    uint64_t n_covered = 0, n_experts = 0, n_wrong = 0;

    for (uint64_t i = 0; i < model->n_tensors; i++) {
        const struct gguf_tensor *tensor = &model->tensors[i];
        const struct fs_half half = fs_half_of(tensor);
        const struct gguf_tensor *other = fs_other_half(tree->facts->pairs, tensor);

        if (half.kind != FS_IMPORTANCE_PAIR || (half.is_second && other))
            continue;
        if (other && fs_importance_fits(tensor, other)) {
            n_covered++;
            n_experts += other->n_elements > 1;
        } else {
            n_wrong++;
        }
    }
    fs_summary_label(sink, label);
    fs_sink_print(sink, "%" PRIu64 " tensor%s", n_covered, n_covered == 1 ? "" : "s");
    if (n_experts > 0)
        fs_sink_print(sink, ", %" PRIu64 " by expert", n_experts);
    if (n_wrong > 0)
        fs_sink_print(sink, "; sums and counts of %" PRIu64 " are not complete or do not fit",
                      n_wrong);
    fs_sink_literal(sink, "\n");
}

/* ---- control vectors ---- */

void fs_kind_write_directions(struct fs_sink *sink, const struct fs_tree *tree, const char *label)
{
    const struct gguf_model *model = tree->model;
    uint64_t n_layers = 0, first = UINT64_MAX, last = 0, width = 0;
    bool has_one_width = true;

    for (uint64_t i = 0; i < model->n_tensors; i++) {
        const struct gguf_tensor *tensor = &model->tensors[i];
        uint64_t layer;

        if (!gguf_string_starts_with(tensor->name, "direction.") ||
            read_number(after(tensor->name, sizeof "direction." - 1), &layer) == 0)
            continue;
        first = layer < first ? layer : first;
        last = layer > last ? layer : last;
        has_one_width = has_one_width && (n_layers == 0 || width == tensor->n_elements);
        width = tensor->n_elements;
        n_layers++;
    }
    if (n_layers == 0)
        return;
    fs_summary_label(sink, label);
    fs_sink_unsigned(sink, n_layers);
    fs_sink_print(sink, first == last ? " (%" PRIu64 ")" : " (%" PRIu64 " to %" PRIu64 ")", first,
                  last);
    if (has_one_width)
        fs_sink_print(sink, ", %" PRIu64 " wide\n", width);
    else
        fs_sink_literal(sink, ", of different widths\n");
}

/* ---- the other kinds ---- */

static bool is_true(const struct gguf_model *model, const char *key)
{
    const struct gguf_value *value = fs_summary_find(model, key);

    return value && value->type == GGUF_BOOL && value->boolean;
}

static bool has_prefix(const struct gguf_model *model, const char *prefix)
{
    for (uint64_t i = 0; i < model->n_tensors; i++)
        if (gguf_string_starts_with(model->tensors[i].name, prefix))
            return true;
    return false;
}

void fs_kind_write_encoders(struct fs_sink *sink, const struct fs_tree *tree, const char *label)
{
    const struct gguf_model *model = tree->model;
    const bool has_images = is_true(model, "clip.has_vision_encoder") || has_prefix(model, "v.");
    const bool has_sound = is_true(model, "clip.has_audio_encoder") || has_prefix(model, "a.");

    if (!has_images && !has_sound)
        return;
    fs_summary_label(sink, label);
    fs_sink_print(sink, "%s%s%s\n", has_images ? "images" : "", has_images && has_sound ? ", " : "",
                  has_sound ? "sound" : "");
}
