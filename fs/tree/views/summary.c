#include "fs/tree/views/view_files.h"

#include "fs/tree/views/kind_lines.h"
#include "fs/tree/views/summary_values.h"
#include "fs/tree/facts/facts.h"
#include "fs/tree/core/tree_core.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Divide a number by a power of `base` so that it is below `base`. Returns the exponent, up to 4.
 */
static unsigned scale(double *number, double base)
{
    unsigned n = 0;

    for (; *number >= base && n < 4; n++)
        *number /= base;
    return n;
}

/* A rounded count with a suffix: "7.24 B". */
static void print_count(struct fs_sink *sink, uint64_t count)
{
    double shown = (double)count;
    const unsigned unit = scale(&shown, 1000);

    if (unit == 0)
        fs_sink_unsigned(sink, count);
    else
        fs_sink_print(sink, "%.3g %c (%" PRIu64 ")", shown, " KMBT"[unit], count);
}

static void print_bytes(struct fs_sink *sink, uint64_t n_bytes)
{
    double shown = (double)n_bytes;
    const unsigned unit = scale(&shown, 1024);

    if (unit == 0)
        fs_sink_print(sink, "%" PRIu64 " bytes", n_bytes);
    else
        fs_sink_print(sink, "%.2f %ciB (%" PRIu64 " bytes)", shown, " KMGT"[unit], n_bytes);
}

/* ---- types ---- */

/* The names of general.file_type: enum llama_ftype of llama.cpp's include/llama.h. */
static const char *const file_types[] = {
    [0] = "F32",     [1] = "F16",      [2] = "Q4_0",     [3] = "Q4_1",       [4] = "Q4_1, some F16",
    [7] = "Q8_0",    [8] = "Q5_0",     [9] = "Q5_1",     [10] = "Q2_K",      [11] = "Q3_K_S",
    [12] = "Q3_K_M", [13] = "Q3_K_L",  [14] = "Q4_K_S",  [15] = "Q4_K_M",    [16] = "Q5_K_S",
    [17] = "Q5_K_M", [18] = "Q6_K",    [19] = "IQ2_XXS", [20] = "IQ2_XS",    [21] = "Q2_K_S",
    [22] = "IQ3_XS", [23] = "IQ3_XXS", [24] = "IQ1_S",   [25] = "IQ4_NL",    [26] = "IQ3_S",
    [27] = "IQ3_M",  [28] = "IQ2_S",   [29] = "IQ2_M",   [30] = "IQ4_XS",    [31] = "IQ1_M",
    [32] = "BF16",   [36] = "TQ1_0",   [37] = "TQ2_0",   [38] = "MXFP4_MOE",
};

/* File types that llama.cpp has removed, and file types of ik_llama.cpp. */
static const struct {
    uint32_t id;
    const char *name;
} more_file_types[] = {
    {33, "Q4_0_4_4"},   {34, "Q4_0_4_8"},    {35, "Q4_0_8_8"},   {135, "Q6_0"},
    {136, "IQ1_BN"},    {137, "IQ2_BN"},     {138, "IQ2_K"},     {139, "IQ3_K"},
    {140, "IQ4_K"},     {141, "IQ5_K"},      {142, "IQ6_K"},     {145, "IQ4_KS"},
    {146, "IQ3_KL"},    {147, "IQ2_KS"},     {148, "IQ4_KSS"},   {149, "Q8_KV"},
    {150, "IQ5_KS"},    {151, "IQ2_KT"},     {152, "IQ3_KT"},    {153, "IQ4_KT"},
    {154, "IQ3_KS"},    {155, "IQ2_KL"},     {156, "IQ1_KT"},    {202, "Q4_0_R8"},
    {207, "Q8_0_R8"},   {208, "Q5_0_R4"},    {210, "Q2_K_R4"},   {211, "Q3_K_R4"},
    {214, "Q4_K_R4"},   {216, "Q5_K_R4"},    {218, "Q6_K_R4"},   {219, "IQ2_XXS_R4"},
    {220, "IQ2_XS_R4"}, {223, "IQ3_XXS_R4"}, {224, "IQ1_S_R4"},  {225, "IQ4_NL_R4"},
    {226, "IQ3_S_R4"},  {229, "IQ2_M_R4"},   {230, "IQ4_XS_R8"}, {231, "IQ1_M_R4"},
    {232, "BF16_R16"},  {335, "Q6_0_R4"},    {337, "IQ2_BN_R4"}, {338, "IQ2_K_R4"},
    {339, "IQ3_K_R4"},  {340, "IQ4_K_R4"},   {341, "IQ5_K_R4"},  {345, "IQ4_KS_R4"},
    {350, "IQ5_KS_R4"}, {398, "Q8_KV_R8"},   {399, "Q8_K_R8"},
};

/* Return NULL if the number is unknown. */
static const char *name_of_file_type(uint64_t id)
{
    if (id < COUNT(file_types) && file_types[id])
        return file_types[id];
    for (size_t i = 0; i < COUNT(more_file_types); i++) {
        if (more_file_types[i].id == id)
            return more_file_types[i].name;
    }
    return NULL;
}

/* The tensors of one type. */
struct share {
    const struct dequant_type *type; /* NULL: all unknown types */
    uint64_t n_tensors, n_elements, n_bytes;
};

static void add_share(struct share *shares, size_t *n_shares, const struct gguf_tensor *tensor)
{
    size_t i = 0;

    while (i < *n_shares && shares[i].type != tensor->type)
        i++;
    if (i == *n_shares)
        shares[(*n_shares)++] = (struct share){.type = tensor->type};
    shares[i].n_tensors++;
    /* Tensors may overlap, so a sum may be larger than any file; a wrong figure does no harm. */
    shares[i].n_elements += tensor->n_elements;
    shares[i].n_bytes += tensor->type ? tensor->size_bytes : tensor->extent_bytes;
}

static int compare_shares(const void *a, const void *b)
{
    const struct share *first = a, *second = b;

    if (first->n_bytes != second->n_bytes)
        return first->n_bytes > second->n_bytes ? -1 : 1;
    return (first->n_tensors < second->n_tensors) - (first->n_tensors > second->n_tensors);
}

static void print_share(struct fs_sink *sink, const char *name, const struct share *share,
                        uint64_t all_bytes)
{
    fs_sink_print(sink, "%-10s %7" PRIu64 " %15" PRIu64 " %15" PRIu64 "  %5.1f %%", name,
                  share->n_tensors, share->n_elements, share->n_bytes,
                  all_bytes > 0 ? 100 * (double)share->n_bytes / (double)all_bytes : 0);
    if (share->n_elements > 0)
        fs_sink_print(sink, "  %15.2f", 8 * (double)share->n_bytes / (double)share->n_elements);
    fs_sink_literal(sink, "\n");
}

static void print_shares(struct fs_sink *sink, const struct share *shares, size_t n_shares)
{
    struct share all = {0};

    for (size_t i = 0; i < n_shares; i++) {
        all.n_tensors += shares[i].n_tensors;
        all.n_elements += shares[i].n_elements;
        all.n_bytes += shares[i].n_bytes;
    }
    fs_sink_literal(sink, "\ntype       tensors        elements           bytes    share  "
                          "bits per weight\n");
    for (size_t i = 0; i < n_shares; i++)
        print_share(sink, shares[i].type ? shares[i].type->name : "unknown", &shares[i],
                    all.n_bytes);
    if (n_shares > 1)
        print_share(sink, "all", &all, all.n_bytes);
}

/* The name that the file gives its mix of types, or else the type that has most bytes. */
static void print_quantization(struct fs_sink *sink, const struct gguf_model *model,
                               const struct share *shares, size_t n_shares)
{
    const struct gguf_key *key = gguf_find_key(model, "general.file_type");

    if (key && gguf_value_is_integer(&key->value)) {
        const uint64_t id = key->value.u64;
        const char *name = name_of_file_type(id);

        fs_summary_label(sink, "quantization");
        if (name)
            fs_sink_print(sink, "%s\n", name);
        else
            fs_sink_print(sink, "file type %" PRIu64 "\n", id);
    } else if (n_shares > 0) {
        fs_summary_label(sink, "quantization");
        fs_sink_print(sink, "%s%s\n", n_shares > 1 ? "mostly " : "",
                      shares[0].type ? shares[0].type->name : "unknown");
    }
}

/* ---- the whole ---- */

static void print_name(struct fs_sink *sink, const struct gguf_model *model)
{
    const struct gguf_value *value = fs_summary_find_string(model, "general.name");

    if (!value)
        return;
    fs_summary_label(sink, "name");
    fs_summary_string(sink, value->string);
    fs_sink_literal(sink, "\n");
}

static void print_architecture(struct fs_sink *sink, const struct gguf_model *model,
                               const struct gguf_kind_found *found)
{
    const struct gguf_value *value = fs_summary_find_string(model, "general.architecture");
    const char *of_tensors = found->is_by_tensors ? found->architecture : NULL;

    if (!value && gguf_kind_at(found->id)->is_no_network)
        return;
    fs_summary_label(sink, "architecture");
    if (value) {
        fs_summary_string(sink, value->string);
        if (of_tensors)
            fs_sink_print(sink, " (%s by its tensors)", of_tensors);
    } else if (of_tensors) {
        fs_sink_print(sink, "%s (by its tensors)", of_tensors);
    } else {
        fs_sink_literal(sink, "not given");
    }
    fs_sink_literal(sink, "\n");
}

static void print_files(struct fs_sink *sink, const struct gguf_model *model)
{
    const struct gguf_source *file = &model->files[0].source;
    uint64_t n_bytes = 0;

    for (uint32_t i = 0; i < model->n_files; i++)
        n_bytes += gguf_source_end(&model->files[i].source) - model->files[i].source.start_offset;
    fs_summary_label(sink, "format");
    fs_sink_print(sink, "%s, %s-endian", model->format, model->big_endian ? "big" : "little");
    if (model->n_files > 1)
        fs_sink_print(sink, ", %" PRIu32 " shards", model->n_files);
    fs_sink_literal(sink, "\n");
    fs_summary_label(sink, "size");
    print_bytes(sink, n_bytes);
    fs_sink_literal(sink, model->files[0].source.is_growing ? ", still being written\n" : "\n");
    if (file->start_offset > 0 && model->n_files == 1) {
        fs_summary_label(sink, "place");
        fs_sink_print(sink, "from byte %" PRIu64 " of a file of %" PRIu64 " bytes\n",
                      file->start_offset, file->size_bytes);
    }
}

static void print_findings(struct fs_sink *sink, const struct fs_findings *findings)
{
    fs_summary_label(sink, "check");
    if (findings->n_findings == 0) {
        fs_sink_literal(sink, "OK\n");
        return;
    }
    if (findings->n_findings > 1)
        fs_sink_print(sink, "%zu findings; the first: ", findings->n_findings);
    fs_sink_print(sink, "%s\n", findings->first);
}

static void print_remark(struct fs_sink *sink, const struct gguf_model *model)
{
    if (!model->gguf_remark)
        return;
    fs_summary_label(sink, "model.gguf");
    fs_sink_print(sink, "%s\n", model->gguf_remark);
}

/* Print the reason if model.safetensors is missing. */
static void print_obstacle(struct fs_sink *sink, const struct fs_tree *tree)
{
    const char *obstacle = fs_safetensors_obstacle(tree);

    if (!obstacle)
        return;
    fs_summary_label(sink, "safetensors");
    fs_sink_print(sink, "no model.safetensors: %s\n", obstacle);
}

void fs_summary_write(const struct fs_tree *tree, const void *subject, struct fs_sink *sink)
{
    const struct gguf_model *model = tree->model;
    const struct gguf_kind_found found = fs_kind_find(tree);
    const struct gguf_kind *kind = gguf_kind_at(found.id);
    struct share *shares = calloc(dequant_type_count() + 1, sizeof *shares);
    uint64_t n_elements = 0;
    size_t n_shares = 0;

    (void)subject;
    if (!shares) {
        fs_sink_fail(sink, -ENOMEM);
        return;
    }
    for (uint64_t i = 0; i < model->n_tensors; i++) {
        add_share(shares, &n_shares, &model->tensors[i]);
        n_elements += model->tensors[i].n_elements;
    }
    qsort(shares, n_shares, sizeof *shares, compare_shares);

    print_name(sink, model);
    fs_kind_write(sink, &found);
    print_architecture(sink, model, &found);
    if (!kind->is_no_network) {
        fs_summary_label(sink, "parameters");
        print_count(sink, n_elements);
        fs_sink_literal(sink, "\n");
    }
    fs_summary_label(sink, "tensors");
    fs_sink_print(sink, "%" PRIu64 "\n", model->n_tensors);
    if (!kind->is_no_network)
        print_quantization(sink, model, shares, n_shares);
    print_files(sink, model);
    fs_kind_lines_write(sink, tree, kind);
    print_findings(sink, &tree->facts->findings);
    print_remark(sink, model);
    print_obstacle(sink, tree);
    if (n_shares > 0)
        print_shares(sink, shares, n_shares);
    free(shares);
}
