#include "fs/tree/summary.h"

#include "fs/tree/tree.h"
#include "gguf/support/safe_print.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Limit in bytes of a string from the model. */
#define SHOWN_BYTES 200u

static void print_safe(struct fs_sink *sink, struct gguf_string string)
{
    const bool is_cut = string.length_bytes > SHOWN_BYTES;
    char text[GGUF_ESCAPED_BYTES * SHOWN_BYTES];

    if (is_cut)
        string.length_bytes = SHOWN_BYTES;
    fs_sink_write(sink, text, gguf_escape(string.data, (size_t)string.length_bytes, text));
    if (is_cut)
        fs_sink_literal(sink, "...");
}

static void print_label(struct fs_sink *sink, const char *label)
{
    fs_sink_print(sink, "%-16s", label);
}

/* A rounded count with a suffix: "7.24 B". */
static void print_count(struct fs_sink *sink, uint64_t count)
{
    static const char *const units[] = {"", " K", " M", " B", " T"};
    double shown = (double)count;
    size_t unit = 0;

    while (shown >= 1000 && unit + 1 < sizeof units / sizeof *units) {
        shown /= 1000;
        unit++;
    }
    if (unit == 0)
        fs_sink_unsigned(sink, count);
    else
        fs_sink_print(sink, "%.3g%s (%" PRIu64 ")", shown, units[unit], count);
}

static void print_bytes(struct fs_sink *sink, uint64_t n_bytes)
{
    static const char *const units[] = {"bytes", "KiB", "MiB", "GiB", "TiB"};
    double shown = (double)n_bytes;
    size_t unit = 0;

    while (shown >= 1024 && unit + 1 < sizeof units / sizeof *units) {
        shown /= 1024;
        unit++;
    }
    if (unit == 0)
        fs_sink_print(sink, "%" PRIu64 " bytes", n_bytes);
    else
        fs_sink_print(sink, "%.2f %s (%" PRIu64 " bytes)", shown, units[unit], n_bytes);
}

/* ---- keys ---- */

static bool is_integer(const struct gguf_value *value)
{
    return value->type != GGUF_BOOL && value->type != GGUF_FLOAT32 && value->type != GGUF_FLOAT64 &&
           value->type != GGUF_STRING && value->type != GGUF_ARRAY;
}

static const struct gguf_value *find_string(const struct gguf_model *model, const char *name)
{
    const struct gguf_key *key = gguf_find_key(model, name);

    return key && key->value.type == GGUF_STRING ? &key->value : NULL;
}

/* The value of a key whose name begins with the architecture's, or NULL. */
static const struct gguf_value *find_of_architecture(const struct gguf_model *model,
                                                     const char *name)
{
    const struct gguf_value *architecture = find_string(model, "general.architecture");
    const struct gguf_key *key;
    char full_name[128];

    if (!architecture || architecture->string.length_bytes > 64)
        return NULL;
    snprintf(full_name, sizeof full_name, "%.*s.%s", (int)architecture->string.length_bytes,
             architecture->string.data, name);
    key = gguf_find_key(model, full_name);
    return key ? &key->value : NULL;
}

/* Print an integer, or for an array that has one per layer the least and the greatest. */
static void print_integers(struct fs_sink *sink, const struct gguf_value *value)
{
    uint64_t least = UINT64_MAX, greatest = 0;
    struct gguf_value element;
    struct gguf_cursor cursor;

    if (is_integer(value)) {
        fs_sink_unsigned(sink, value->u64);
        return;
    }
    cursor = gguf_array_begin(&value->array);
    for (uint64_t i = 0; i < value->array.n_elements; i++) {
        gguf_array_next(&cursor, value->array.element_type, &element);
        least = element.u64 < least ? element.u64 : least;
        greatest = element.u64 > greatest ? element.u64 : greatest;
    }
    fs_sink_print(sink, least == greatest ? "%" PRIu64 : "%" PRIu64 " to %" PRIu64, least,
                  greatest);
}

/* Return true if the value is an integer or a short array of them. */
static bool has_integers(const struct gguf_value *value)
{
    const struct gguf_value element = {.type = value->type == GGUF_ARRAY ? value->array.element_type
                                                                         : value->type};

    return is_integer(&element) &&
           (value->type != GGUF_ARRAY ||
            (value->array.n_elements > 0 && value->array.n_elements <= 65536));
}

static void print_architecture_number(struct fs_sink *sink, const struct gguf_model *model,
                                      const char *label, const char *name)
{
    const struct gguf_value *value = find_of_architecture(model, name);

    if (!value || !has_integers(value))
        return;
    print_label(sink, label);
    print_integers(sink, value);
    fs_sink_literal(sink, "\n");
}

static bool is_same_integer(const struct gguf_value *a, const struct gguf_value *b)
{
    return is_integer(a) && is_integer(b) && a->u64 == b->u64;
}

/* Models without attention say 0 or nothing. */
static void print_heads(struct fs_sink *sink, const struct gguf_model *model)
{
    const struct gguf_value *heads = find_of_architecture(model, "attention.head_count");
    const struct gguf_value *kv_heads = find_of_architecture(model, "attention.head_count_kv");

    if (!heads || !has_integers(heads) || is_same_integer(heads, &(struct gguf_value){.u64 = 0}))
        return;
    print_label(sink, "heads");
    print_integers(sink, heads);
    if (kv_heads && has_integers(kv_heads) && !is_same_integer(heads, kv_heads)) {
        fs_sink_literal(sink, " (");
        print_integers(sink, kv_heads);
        fs_sink_literal(sink, " for keys and values)");
    }
    fs_sink_literal(sink, "\n");
}

static void print_experts(struct fs_sink *sink, const struct gguf_model *model)
{
    const struct gguf_value *experts = find_of_architecture(model, "expert_count");
    const struct gguf_value *used = find_of_architecture(model, "expert_used_count");

    if (!experts || !is_integer(experts) || experts->u64 == 0)
        return;
    print_label(sink, "experts");
    print_integers(sink, experts);
    if (used && has_integers(used)) {
        fs_sink_literal(sink, " (");
        print_integers(sink, used);
        fs_sink_literal(sink, " used per token)");
    }
    fs_sink_literal(sink, "\n");
}

/* The vocabulary, an array, or NULL. */
static const struct gguf_value *find_tokens(const struct gguf_model *model)
{
    const struct gguf_key *key = gguf_find_key(model, "tokenizer.ggml.tokens");

    return key && key->value.type == GGUF_ARRAY ? &key->value : NULL;
}

static void print_tokenizer(struct fs_sink *sink, const struct gguf_model *model)
{
    const struct gguf_value *tokens = find_tokens(model);
    const struct gguf_value *kind = find_string(model, "tokenizer.ggml.model");
    const struct gguf_value *pre = find_string(model, "tokenizer.ggml.pre");

    print_label(sink, "vocabulary");
    if (tokens)
        fs_sink_print(sink, "%" PRIu64 " tokens", tokens->array.n_elements);
    else
        fs_sink_literal(sink, "none");
    if (kind) {
        fs_sink_literal(sink, ", tokenizer ");
        print_safe(sink, kind->string);
    }
    if (pre) {
        fs_sink_literal(sink, ", pre-tokenizer ");
        print_safe(sink, pre->string);
    }
    fs_sink_literal(sink, "\n");
    print_label(sink, "chat template");
    fs_sink_literal(sink, find_string(model, "tokenizer.chat_template") ? "yes\n" : "no\n");
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

/* Those that llama.cpp has removed, and those of ik_llama.cpp. */
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

static void print_shares(struct fs_sink *sink, const struct share *shares, size_t n_shares)
{
    double all_bytes = 0;

    for (size_t i = 0; i < n_shares; i++)
        all_bytes += (double)shares[i].n_bytes;
    fs_sink_literal(sink, "\ntype       tensors        elements           bytes    share  "
                          "bits per weight\n");
    for (size_t i = 0; i < n_shares; i++) {
        const struct share *share = &shares[i];

        fs_sink_print(sink, "%-10s %7" PRIu64 " %15" PRIu64 " %15" PRIu64 "  %5.1f %%",
                      share->type ? share->type->name : "unknown", share->n_tensors,
                      share->n_elements, share->n_bytes,
                      all_bytes > 0 ? 100 * (double)share->n_bytes / all_bytes : 0);
        if (share->n_elements > 0)
            fs_sink_print(sink, "  %15.2f", 8 * (double)share->n_bytes / (double)share->n_elements);
        fs_sink_literal(sink, "\n");
    }
}

/* The name that the file gives its mix of types, or else the type that has most bytes. */
static void print_quantization(struct fs_sink *sink, const struct gguf_model *model,
                               const struct share *shares, size_t n_shares)
{
    const struct gguf_key *key = gguf_find_key(model, "general.file_type");

    if (key && is_integer(&key->value)) {
        const uint64_t id = key->value.u64;
        const char *name = name_of_file_type(id);

        print_label(sink, "quantization");
        if (name)
            fs_sink_print(sink, "%s\n", name);
        else
            fs_sink_print(sink, "file type %" PRIu64 "\n", id);
    } else if (n_shares > 0) {
        print_label(sink, "quantization");
        fs_sink_print(sink, "%s%s\n", n_shares > 1 ? "mostly " : "",
                      shares[0].type ? shares[0].type->name : "unknown");
    }
}

/* ---- the whole ---- */

static void print_string_key(struct fs_sink *sink, const struct gguf_model *model,
                             const char *label, const char *name)
{
    const struct gguf_value *value = find_string(model, name);

    if (!value)
        return;
    print_label(sink, label);
    print_safe(sink, value->string);
    fs_sink_literal(sink, "\n");
}

static void print_tensor_count(struct fs_sink *sink, const struct gguf_model *model)
{
    print_label(sink, "tensors");
    fs_sink_print(sink, "%" PRIu64 "%s\n", model->n_tensors,
                  model->n_tensors == 0 && find_tokens(model) ? " (a vocabulary only)" : "");
}

static void print_files(struct fs_sink *sink, const struct gguf_model *model)
{
    const struct gguf_source *file = &model->files[0];
    uint64_t n_bytes = 0;

    for (uint32_t i = 0; i < model->n_files; i++)
        n_bytes += gguf_source_end(&model->files[i]) - model->files[i].start_offset;
    print_label(sink, "format");
    fs_sink_print(sink, "%s, %s-endian", model->format, model->big_endian ? "big" : "little");
    if (model->n_files > 1)
        fs_sink_print(sink, ", %" PRIu32 " shards", model->n_files);
    fs_sink_literal(sink, "\n");
    print_label(sink, "size");
    print_bytes(sink, n_bytes);
    fs_sink_literal(sink, model->files[0].is_growing ? ", still being written\n" : "\n");
    if (file->start_offset > 0 && model->n_files == 1) {
        print_label(sink, "place");
        fs_sink_print(sink, "from byte %" PRIu64 " of a file of %" PRIu64 " bytes\n",
                      file->start_offset, file->size_bytes);
    }
}

static void print_findings(struct fs_sink *sink, const struct fs_findings *findings)
{
    print_label(sink, "check");
    if (findings->n_findings == 0) {
        fs_sink_literal(sink, "OK\n");
        return;
    }
    if (findings->n_findings > 1)
        fs_sink_print(sink, "%zu notes; the first: ", findings->n_findings);
    fs_sink_print(sink, "%s\n", findings->first);
}

static void print_remark(struct fs_sink *sink, const struct gguf_model *model)
{
    if (!model->gguf_remark)
        return;
    print_label(sink, "model.gguf");
    fs_sink_print(sink, "%s\n", model->gguf_remark);
}

/* Print why there is no model.safetensors, if there is none. */
static void print_obstacle(struct fs_sink *sink, const struct fs_tree *tree)
{
    const char *obstacle = fs_safetensors_obstacle(tree);

    if (!obstacle)
        return;
    print_label(sink, "safetensors");
    fs_sink_print(sink, "no model.safetensors: %s\n", obstacle);
}

int fs_summary_write(const struct fs_tree *tree, const void *subject, struct fs_place *place,
                     struct fs_sink *sink)
{
    const struct gguf_model *model = tree->model;
    struct share *shares = calloc(dequant_type_count() + 1, sizeof *shares);
    uint64_t n_elements = 0;
    size_t n_shares = 0;

    (void)subject;
    (void)place;
    if (!shares)
        return -ENOMEM;
    for (uint64_t i = 0; i < model->n_tensors; i++) {
        add_share(shares, &n_shares, &model->tensors[i]);
        n_elements += model->tensors[i].n_elements;
    }
    qsort(shares, n_shares, sizeof *shares, compare_shares);

    print_string_key(sink, model, "name", "general.name");
    if (find_string(model, "general.architecture"))
        print_string_key(sink, model, "architecture", "general.architecture");
    else
        fs_sink_literal(sink, "architecture    not given\n");
    print_label(sink, "parameters");
    print_count(sink, n_elements);
    fs_sink_literal(sink, "\n");
    print_tensor_count(sink, model);
    print_quantization(sink, model, shares, n_shares);
    print_files(sink, model);
    print_architecture_number(sink, model, "context length", "context_length");
    print_architecture_number(sink, model, "layers", "block_count");
    print_architecture_number(sink, model, "embedding width", "embedding_length");
    print_heads(sink, model);
    print_experts(sink, model);
    print_tokenizer(sink, model);
    print_findings(sink, &tree->findings);
    print_remark(sink, model);
    print_obstacle(sink, tree);
    if (n_shares > 0)
        print_shares(sink, shares, n_shares);
    free(shares);
    return 0;
}
