#include "fs/tree/views/view_files.h"

#include "fs/tree/views/kind_lines.h"
#include "fs/tree/views/summary_values.h"
#include "fs/tree/facts/facts.h"
#include "fs/tree/core/tree_core.h"
#include "fs/tree/output/json.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* A rounded count with a suffix: "7.24 B". */
static void print_count(const struct fs_summary *summary, uint64_t count)
{
    double shown = (double)count;
    const unsigned unit = fs_summary_scale(&shown, 1000);

    if (summary->is_json || unit == 0)
        fs_sink_unsigned(summary->sink, count);
    else
        fs_sink_print(summary->sink, "%.3g %c (%" PRIu64 ")", shown, " KMBT"[unit], count);
}

/* ---- types ---- */

/*
 * The names of general.file_type: enum llama_ftype in include/llama.h of llama.cpp, which has
 * removed 33 to 35, and of ik_llama.cpp.
 */
/* clang-format would put each on a line: */
/* clang-format off */
static const struct {
    uint32_t id;
    const char *name;
} file_types[] = {
    {0, "F32"}, {1, "F16"}, {2, "Q4_0"}, {3, "Q4_1"}, {4, "Q4_1, some F16"}, {7, "Q8_0"},
    {8, "Q5_0"}, {9, "Q5_1"}, {10, "Q2_K"}, {11, "Q3_K_S"}, {12, "Q3_K_M"}, {13, "Q3_K_L"},
    {14, "Q4_K_S"}, {15, "Q4_K_M"}, {16, "Q5_K_S"}, {17, "Q5_K_M"}, {18, "Q6_K"}, {19, "IQ2_XXS"},
    {20, "IQ2_XS"}, {21, "Q2_K_S"}, {22, "IQ3_XS"}, {23, "IQ3_XXS"}, {24, "IQ1_S"}, {25, "IQ4_NL"},
    {26, "IQ3_S"}, {27, "IQ3_M"}, {28, "IQ2_S"}, {29, "IQ2_M"}, {30, "IQ4_XS"}, {31, "IQ1_M"},
    {32, "BF16"}, {33, "Q4_0_4_4"}, {34, "Q4_0_4_8"}, {35, "Q4_0_8_8"}, {36, "TQ1_0"},
    {37, "TQ2_0"}, {38, "MXFP4_MOE"}, {135, "Q6_0"}, {136, "IQ1_BN"}, {137, "IQ2_BN"},
    {138, "IQ2_K"}, {139, "IQ3_K"}, {140, "IQ4_K"}, {141, "IQ5_K"}, {142, "IQ6_K"},
    {145, "IQ4_KS"}, {146, "IQ3_KL"}, {147, "IQ2_KS"}, {148, "IQ4_KSS"}, {149, "Q8_KV"},
    {150, "IQ5_KS"}, {151, "IQ2_KT"}, {152, "IQ3_KT"}, {153, "IQ4_KT"}, {154, "IQ3_KS"},
    {155, "IQ2_KL"}, {156, "IQ1_KT"}, {202, "Q4_0_R8"}, {207, "Q8_0_R8"}, {208, "Q5_0_R4"},
    {210, "Q2_K_R4"}, {211, "Q3_K_R4"}, {214, "Q4_K_R4"}, {216, "Q5_K_R4"}, {218, "Q6_K_R4"},
    {219, "IQ2_XXS_R4"}, {220, "IQ2_XS_R4"}, {223, "IQ3_XXS_R4"}, {224, "IQ1_S_R4"},
    {225, "IQ4_NL_R4"}, {226, "IQ3_S_R4"}, {229, "IQ2_M_R4"}, {230, "IQ4_XS_R8"},
    {231, "IQ1_M_R4"}, {232, "BF16_R16"}, {335, "Q6_0_R4"}, {337, "IQ2_BN_R4"}, {338, "IQ2_K_R4"},
    {339, "IQ3_K_R4"}, {340, "IQ4_K_R4"}, {341, "IQ5_K_R4"}, {345, "IQ4_KS_R4"},
    {350, "IQ5_KS_R4"}, {398, "Q8_KV_R8"}, {399, "Q8_K_R8"},
};
/* clang-format on */

/* Return NULL if the number is unknown. */
static const char *name_of_file_type(uint64_t id)
{
    for (size_t i = 0; i < COUNT(file_types); i++)
        if (file_types[i].id == id)
            return file_types[i].name;
    return NULL;
}

static void print_share(struct fs_sink *sink, const char *name, const struct fs_share *share,
                        uint64_t all_bytes)
{
    fs_sink_print(sink, "%-10s %7" PRIu64 " %15" PRIu64 " %15" PRIu64 "  %5.1f %%", name,
                  share->n_tensors, share->n_elements, share->n_bytes,
                  all_bytes > 0 ? 100 * (double)share->n_bytes / (double)all_bytes : 0);
    if (share->n_elements > 0)
        fs_sink_print(sink, "  %15.2f", 8 * (double)share->n_bytes / (double)share->n_elements);
    fs_sink_literal(sink, "\n");
}

static void print_shares(struct fs_sink *sink, const struct fs_share *shares, size_t n_shares)
{
    const struct fs_share all = fs_shares_sum(shares, n_shares);

    fs_sink_literal(sink, "\ntype       tensors        elements           bytes    share  "
                          "bits per weight\n");
    for (size_t i = 0; i < n_shares; i++)
        print_share(sink, shares[i].type ? shares[i].type->name : "unknown", &shares[i],
                    all.n_bytes);
    if (n_shares > 1)
        print_share(sink, "all", &all, all.n_bytes);
}

static void write_shares_json(struct fs_sink *sink, const struct fs_share *shares, size_t n_shares)
{
    fs_json_member(sink, "types", false);
    fs_sink_literal(sink, "[");
    for (size_t i = 0; i < n_shares; i++) {
        fs_sink_literal(sink, i > 0 ? ",{" : "{");
        fs_json_member(sink, "type", true);
        fs_json_text(sink, shares[i].type ? shares[i].type->name : NULL);
        fs_json_count(sink, "n_tensors", shares[i].n_tensors);
        fs_json_count(sink, "n_elements", shares[i].n_elements);
        fs_json_count(sink, "n_bytes", shares[i].n_bytes);
        fs_sink_literal(sink, "}");
    }
    fs_sink_literal(sink, "]");
}

/* The name that the file gives its mix of types, or else the type that has most bytes. */
static void print_quantization(const struct fs_summary *summary, const struct fs_share *shares,
                               size_t n_shares)
{
    const struct gguf_key *key = gguf_find_key(summary->tree->model, "general.file_type");

    if (key && gguf_value_is_integer(&key->value)) {
        const uint64_t id = key->value.u64;
        const char *name = name_of_file_type(id);

        fs_summary_label(summary, "quantization", "general.file_type");
        if (summary->is_json || !name) {
            fs_summary_part(summary, "file type ", NULL);
            fs_sink_unsigned(summary->sink, id);
        }
        fs_summary_part(summary, "", "quantization");
        if (summary->is_json || name)
            fs_summary_text(summary, name);
        fs_summary_part(summary, "\n", NULL);
    } else if (n_shares > 0 && !summary->is_json) {
        fs_summary_label(summary, "quantization", NULL);
        fs_sink_print(summary->sink, "%s%s\n", n_shares > 1 ? "mostly " : "",
                      shares[0].type ? shares[0].type->name : "unknown");
    }
}

/* ---- the whole ---- */

static void print_name(const struct fs_summary *summary)
{
    const struct gguf_value *value = fs_summary_find_string(summary->tree->model, "general.name");

    if (!value)
        return;
    fs_summary_label(summary, "name", "name");
    fs_summary_string(summary, value->string);
    fs_summary_part(summary, "\n", NULL);
}

static void print_architecture(const struct fs_summary *summary,
                               const struct gguf_kind_found *found)
{
    const struct gguf_value *value =
        fs_summary_find_string(summary->tree->model, "general.architecture");
    const char *of_tensors = found->is_by_tensors ? found->architecture : NULL;

    if (!value && gguf_kind_at(found->id)->is_no_network)
        return;
    fs_summary_label(summary, "architecture", value ? "architecture" : NULL);
    if (value)
        fs_summary_string(summary, value->string);
    if (of_tensors) {
        fs_summary_part(summary, value ? " (" : "", "architecture_by_tensors");
        fs_summary_text(summary, of_tensors);
        fs_summary_part(summary, value ? " by its tensors)" : " (by its tensors)", NULL);
    }
    fs_summary_part(summary, value || of_tensors ? "\n" : "not given\n", NULL);
}

static void print_files(const struct fs_summary *summary)
{
    const struct gguf_model *model = summary->tree->model;
    const struct gguf_source *file = &model->files[0].source;
    const bool is_composed = model->n_borrowed_files > 0;
    uint64_t n_bytes = 0;

    for (uint64_t i = 0; is_composed && i < model->n_tensors; i++)
        n_bytes += model->tensors[i].extent_bytes + model->tensors[i].size_bytes;
    for (uint32_t i = 0; !is_composed && i < model->n_files; i++)
        n_bytes += gguf_source_end(&model->files[i].source) - model->files[i].source.start_offset;
    fs_summary_label(summary, "format", "format");
    fs_summary_text(summary, model->format);
    fs_summary_part(summary, ", ", "byte_order");
    fs_summary_text(summary, model->big_endian ? "big" : "little");
    fs_summary_part(summary, "-endian", NULL);
    if (summary->is_json || model->n_files > 1) {
        fs_summary_part(summary, ", ", "n_files");
        fs_sink_unsigned(summary->sink, is_composed ? model->n_borrowed_files : model->n_files);
        fs_summary_part(summary, is_composed ? " files with tensors of it" : " shards", NULL);
    }
    fs_summary_part(summary, "\n", NULL);
    fs_summary_label(summary, "size", "n_bytes");
    fs_summary_bytes(summary, n_bytes, true);
    if (file->is_growing) {
        fs_summary_part(summary, ", still being written", "partial");
        fs_sink_literal(summary->sink, summary->is_json ? "true" : "");
    }
    fs_summary_part(summary, "\n", NULL);
    if (file->start_offset > 0 && model->n_files == 1) {
        fs_summary_label(summary, "place", "offset");
        fs_summary_part(summary, "from byte ", NULL);
        fs_sink_unsigned(summary->sink, file->start_offset);
        fs_summary_part(summary, " of a file of ", "file_bytes");
        fs_sink_unsigned(summary->sink, file->size_bytes);
        fs_summary_part(summary, " bytes\n", NULL);
    }
}

static void print_findings(const struct fs_summary *summary, const struct fs_findings *findings)
{
    fs_summary_label(summary, "check", "n_findings");
    if (summary->is_json || findings->n_findings > 1)
        fs_sink_unsigned(summary->sink, findings->n_findings);
    fs_summary_part(summary, findings->n_findings > 1 ? " findings; the first: " : "",
                    findings->n_findings > 0 ? "first_finding" : NULL);
    if (findings->n_findings > 0)
        fs_summary_text(summary, findings->first);
    fs_summary_part(summary, findings->n_findings > 0 ? "\n" : "OK\n", NULL);
}

/* Return what is to be said of model.gguf, or NULL. */
static const char *translation_remark(const struct fs_tree *tree)
{
    const struct gguf_translation *translation = &tree->facts->translation;

    return translation->refusal ? translation->refusal
           : translation->text && translation->projector
               ? "translated from Ollama's file for llama.cpp, with mmproj.gguf; the file itself "
                 "is "
                 "original.gguf"
           : gguf_is_translated(translation)
               ? "translated from Ollama's file for llama.cpp; the file itself is original.gguf"
               : tree->model->gguf_remark;
}

static void print_summary(const struct fs_summary *summary)
{
    const struct gguf_model *model = summary->tree->model;
    const struct fs_facts *facts = summary->tree->facts;
    const struct gguf_kind_found found = fs_kind_find(summary->tree);
    const struct gguf_kind *kind = gguf_kind_at(found.id);
    struct fs_share *shares = calloc(dequant_type_count() + 1, sizeof *shares);
    size_t n_shares = 0;

    if (!shares) {
        fs_sink_fail(summary->sink, -ENOMEM);
        return;
    }
    for (uint64_t i = 0; i < model->n_tensors; i++)
        fs_shares_add(shares, &n_shares, &model->tensors[i]);
    fs_shares_sort(shares, n_shares);

    print_name(summary);
    fs_kind_write(summary, &found);
    print_architecture(summary, &found);
    if (summary->is_json || !kind->is_no_network) {
        fs_summary_label(summary, "parameters", "n_elements");
        print_count(summary, fs_shares_sum(shares, n_shares).n_elements);
        fs_summary_part(summary, "\n", NULL);
    }
    fs_summary_label(summary, "tensors", "n_tensors");
    fs_sink_unsigned(summary->sink, model->n_tensors);
    fs_summary_part(summary, "\n", NULL);
    if (!kind->is_no_network)
        print_quantization(summary, shares, n_shares);
    print_files(summary);
    fs_kind_lines_write(summary, found.id);
    print_findings(summary, &facts->findings);
    fs_summary_line(summary, "model.gguf", "", "model_gguf", translation_remark(summary->tree));
    fs_summary_line(summary, "ollama.gguf", "no ollama.gguf: ", "no_ollama_gguf", facts->no_ollama);
    fs_summary_line(summary, "safetensors", "no model.safetensors: ", "no_safetensors",
                    fs_safetensors_obstacle(summary->tree));
    if (summary->is_json)
        write_shares_json(summary->sink, shares, n_shares);
    else if (n_shares > 0)
        print_shares(summary->sink, shares, n_shares);
    free(shares);
}

void fs_summary_write(const struct fs_tree *tree, const void *subject, struct fs_sink *sink)
{
    fs_summary_print(tree, NULL, false, sink);
}

void fs_summary_print(const struct fs_tree *tree, const struct fs_cache_choice *cache, bool is_json,
                      struct fs_sink *sink)
{
    print_summary(&(struct fs_summary){tree, sink, is_json, cache});
}
