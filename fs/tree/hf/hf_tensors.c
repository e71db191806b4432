#include "fs/tree/hf/hf_tensors.h"

#include "gguf/support/grow.h"
#include "gguf/support/keyed_hash.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * No model comes near these limits: DeepSeek V3 has two pieces for each of 128 heads in 61 layers.
 * Each piece takes time and memory, however few bytes of the header ask for it.
 */
#define MAX_TENSORS     262144u
#define MAX_MORE_PIECES 32768u

#define MAX_TABLES (sizeof((struct fs_hf_row *)0)->rules / sizeof(struct fs_hf_rule *))

/* Find the rule of a row for a name. Returns NULL if there is none. */
static const struct fs_hf_rule *find_rule(const struct fs_hf_row *row, struct gguf_string name,
                                          struct fs_hf_match *match)
{
    for (size_t i = 0; i < MAX_TABLES && row->rules[i]; i++) {
        for (const struct fs_hf_rule *rule = row->rules[i]; rule->gguf; rule++) {
            if (!rule->is_key && fs_hf_matches(name, rule->gguf, match))
                return rule;
        }
    }
    return NULL;
}

static int add_line(struct gguf_buffer *lines, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Add a line, unless there are very many. */
static int add_line(struct gguf_buffer *lines, const char *format, ...)
{
    char line[512];
    va_list args;

    if (lines->length > 65536)
        return 0;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    return gguf_buffer_add_string(lines, line);
}

static int append(struct fs_hf_tensors *tensors, const struct fs_hf_tensor *tensor)
{
    struct fs_hf_tensor *grown =
        gguf_grow(tensors->list, &tensors->room, tensors->count + 1, sizeof *grown);

    if (!grown)
        return -ENOMEM;
    tensors->list = grown;
    tensors->list[tensors->count++] = *tensor;
    return 0;
}

/*
 * Check that all pieces lie in their tensors and make up the whole shape. Returns 0, -ENOMEM,
 * -E2BIG if the checkpoint would have too many pieces, or -EINVAL or -EOVERFLOW.
 */
static int check(const struct fs_hf_model *hf, const struct fs_hf_tensor *tensor,
                 struct fs_hf_tensors *tensors)
{
    char name[FS_HF_NAME_BYTES];
    struct fs_hf_arranged arranged = {.n_pieces = 1};
    uint64_t n_bytes = 0, n_elements = 1;

    if (!fs_hf_expand(tensor->rule->hf, &tensor->match, name))
        return -EINVAL;
    for (uint64_t piece = 0; piece < arranged.n_pieces; piece++) {
        int result = fs_hf_tensor_arrange(hf, tensor, piece, &arranged);
        struct fs_arranged *made;

        if (result == 0 && arranged.n_pieces > MAX_MORE_PIECES - tensors->n_more_pieces + 1)
            result = -E2BIG;
        if (result == 0)
            result = fs_arranged_make(&arranged.piece, FS_F32, &made);
        if (result < 0)
            return result;
        result = __builtin_add_overflow(n_bytes, fs_arranged_size(made), &n_bytes) ? -EINVAL : 0;
        fs_arranged_free(made);
        if (result < 0)
            return result;
    }
    for (unsigned i = 0; i < arranged.n_dims; i++) {
        if (__builtin_mul_overflow(n_elements, arranged.shape[i], &n_elements))
            return -EINVAL;
    }
    tensors->n_more_pieces += arranged.n_pieces - 1;
    return n_elements == n_bytes / sizeof(float) ? 0 : -EINVAL;
}

/* Add the checkpoint's tensors that a tensor of the file becomes by a rule. */
static int add_tensors(const struct fs_hf_model *hf, struct fs_hf_tensor *made,
                       struct fs_hf_tensors *tensors, struct gguf_buffer *obstacles)
{
    const struct gguf_quoted quoted = gguf_quote(fs_hf_tensor_name(made->tensor));
    const struct fs_hf_rule *rule = made->rule;
    const uint32_t slowest = made->tensor->n_dims > 0 ? made->tensor->n_dims - 1 : 0;
    char name[FS_HF_NAME_BYTES];
    uint64_t n_parts = 1;

    if (!made->tensor->type || !dequant_is_decodable(made->tensor->type))
        return add_line(obstacles, "Tensor %s has a type without decoder.\n", quoted.text);
    if (rule->with) {
        if (!fs_hf_expand(rule->with, &made->match, name) || !(made->with = fs_hf_tensor(hf, name)))
            return add_line(obstacles, "Tensor %s needs tensor \"%s\", which is missing.\n",
                            quoted.text, name);
        if (!made->with->type || !dequant_is_decodable(made->with->type))
            return add_line(obstacles, "Tensor \"%s\" has a type without decoder.\n", name);
    }
    made->is_part = strchr(rule->hf, '#') && !strchr(rule->gguf, '#');
    if (made->is_part)
        n_parts = made->tensor->ne[slowest];
    for (uint64_t i = 0; i < n_parts; i++) {
        int result;

        if (made->is_part)
            made->match.expert = (uint32_t)i;
        if (tensors->count == MAX_TENSORS)
            return add_line(obstacles, "Tensor %s has %" PRIu64 " experts.\n", quoted.text,
                            n_parts);
        result = check(hf, made, tensors);
        if (result == -E2BIG)
            return add_line(obstacles,
                            "Tensor %s has heads that bring the checkpoint's rearranged pieces "
                            "over %u, the limit.\n",
                            quoted.text, MAX_MORE_PIECES);
        if (result == -EINVAL || result == -EOVERFLOW)
            return add_line(obstacles,
                            "The shape of tensor %s does not fit the keys of the metadata.\n",
                            quoted.text);
        if (result == 0)
            result = append(tensors, made);
        if (result < 0)
            return result;
    }
    return 0;
}

/* Add the tensors that are numbers from keys. */
static int add_numbers(const struct fs_hf_rule *rules, uint64_t n_layer,
                       struct fs_hf_tensors *tensors)
{
    int result = 0;

    for (; result == 0 && rules->gguf; rules++) {
        for (uint32_t i = 0; result == 0 && rules->is_key && i < n_layer; i++)
            result = append(tensors, &(struct fs_hf_tensor){.rule = rules,
                                                            .match = {.layer = i, .suffix = ""}});
    }
    return result;
}

/* ---- tensors that no layer does without ---- */

/* Without these, transformers would fill weights with random numbers. */
struct need {
    const char *of; /* pattern of the tensor that needs one of those; NULL: every layer does */
    const char *any[4];
};

static const struct need needs[] = {
    {NULL, {"blk.%.attn_output", "blk.%.ssm_out", "blk.%.shortconv.out_proj"}},
    {NULL, {"blk.%.ffn_down", "blk.%.ffn_down_exps", "blk.%.ffn_down.#", "blk.%.ffn_down_shexp"}},
    {"blk.%.attn_output", {"blk.%.attn_q", "blk.%.attn_qkv", "blk.%.attn_q_b"}},
    {"blk.%.attn_q_b", {"blk.%.attn_q_a"}},
    {"blk.%.attn_q_b", {"blk.%.attn_kv_a_mqa"}},
    {"blk.%.attn_kv_a_mqa", {"blk.%.attn_kv_b", "blk.%.attn_k_b"}},
    {"blk.%.ssm_out", {"blk.%.ssm_in", "blk.%.attn_qkv"}},
    {"blk.%.shortconv.out_proj", {"blk.%.shortconv.in_proj"}},
    {"blk.%.shortconv.out_proj", {"blk.%.shortconv.conv"}},
    {"blk.%.ffn_down", {"blk.%.ffn_up"}},
    {"blk.%.ffn_down.#", {"blk.%.ffn_up.#"}},
    {"blk.%.ffn_down_exps", {"blk.%.ffn_up_exps", "blk.%.ffn_gate_up_exps"}},
    {"blk.%.ffn_down_exps", {"blk.%.ffn_gate_inp"}},
    {"blk.%.ffn_down_shexp", {"blk.%.ffn_up_shexp"}},
};

static const struct need kv_needs[] = {
    {"blk.%.attn_q", {"blk.%.attn_k", "blk.%.attn_kv_a_mqa"}},
    {"blk.%.attn_k", {"blk.%.attn_v"}},
};

struct layer {
    const struct fs_hf_model *hf;
    const struct fs_hf_row *row;
    struct fs_hf_match match;
};

/* Write the name of the layer's tensor. Returns true if the row has a rule for it. */
static bool name_of(const struct layer *layer, const char *pattern, char name[FS_HF_NAME_BYTES])
{
    struct fs_hf_match match;

    return fs_hf_expand(pattern, &layer->match, name) &&
           find_rule(layer->row, (struct gguf_string){name, strlen(name)}, &match);
}

static bool has_tensor(const struct layer *layer, const char *pattern)
{
    char name[FS_HF_NAME_BYTES];

    return name_of(layer, pattern, name) && fs_hf_tensor(layer->hf, name);
}

/* Add a line if the layer has none of the tensors of which it needs one. */
static int check_need(const struct layer *layer, const struct need *need,
                      struct gguf_buffer *obstacles)
{
    char names[4 * (FS_HF_NAME_BYTES + 8)] = "", name[FS_HF_NAME_BYTES];
    size_t length = 0;

    if (need->of && !has_tensor(layer, need->of))
        return 0;
    for (size_t i = 0; i < sizeof need->any / sizeof *need->any && need->any[i]; i++) {
        if (has_tensor(layer, need->any[i]))
            return 0;
        if (name_of(layer, need->any[i], name))
            length += (size_t)snprintf(names + length, sizeof names - length, "%s\"%s\"",
                                       length > 0 ? " or " : "", name);
    }
    return length > 0 ? add_line(obstacles, "The model has no tensor %s.\n", names) : 0;
}

static int check_layer(const struct layer *layer, struct gguf_buffer *obstacles)
{
    int result = 0;

    for (size_t i = 0; result == 0 && i < sizeof needs / sizeof *needs; i++) {
        if (needs[i].of || !layer->row->has_one_block)
            result = check_need(layer, &needs[i], obstacles);
    }
    for (size_t i = 0; result == 0 && i < sizeof kv_needs / sizeof *kv_needs; i++) {
        if (!layer->row->shares_kv)
            result = check_need(layer, &kv_needs[i], obstacles);
    }
    return result;
}

/* Check the embeddings, and the last norm of models with norms that have weights. */
static int check_ends(const struct layer *layer, struct gguf_buffer *obstacles)
{
    const bool has_norms = fs_hf_any_tensor(layer->hf, "blk.%.attn_norm") ||
                           fs_hf_any_tensor(layer->hf, "blk.%.post_attention_norm");
    const struct need embeddings = {NULL, {"token_embd"}};
    const struct need norm = {NULL, {"output_norm", "token_embd_norm"}};
    const int result = check_need(layer, &embeddings, obstacles);

    return result < 0 || !has_norms ? result : check_need(layer, &norm, obstacles);
}

/* ---- names that several tensors become ---- */

struct hashed {
    uint64_t hash; /* of the name */
    const struct fs_hf_tensor *tensor;
};

static int compare_hashed(const void *a, const void *b)
{
    const struct hashed *first = a, *second = b;
    char first_name[FS_HF_NAME_BYTES], second_name[FS_HF_NAME_BYTES];

    if (first->hash != second->hash)
        return first->hash < second->hash ? -1 : 1;
    fs_hf_tensor_write_name(first->tensor, first_name);
    fs_hf_tensor_write_name(second->tensor, second_name);
    return strcmp(first_name, second_name);
}

/* Return what a tensor is made from. */
static struct gguf_quoted quote_source(const struct fs_hf_tensor *tensor)
{
    const char *key = tensor->rule->gguf;

    return gguf_quote(tensor->tensor ? fs_hf_tensor_name(tensor->tensor)
                                     : (struct gguf_string){key, strlen(key)});
}

/* Add a line for each two tensors that have the same name in the checkpoint. */
static int find_duplicates(const struct fs_hf_tensors *tensors, struct gguf_buffer *obstacles)
{
    struct hashed *sorted = malloc((tensors->count + 1) * sizeof *sorted);
    char name[FS_HF_NAME_BYTES];
    struct gguf_hash_key key;
    int result = sorted ? gguf_hash_key_make(&key) : -ENOMEM;

    for (size_t i = 0; result == 0 && i < tensors->count; i++) {
        fs_hf_tensor_write_name(&tensors->list[i], name);
        sorted[i] = (struct hashed){gguf_hash(&key, name, strlen(name)), &tensors->list[i]};
    }
    if (result == 0)
        qsort(sorted, tensors->count, sizeof *sorted, compare_hashed);
    for (size_t i = 1; result == 0 && i < tensors->count; i++) {
        const struct fs_hf_tensor *a = sorted[i - 1].tensor, *b = sorted[i].tensor;

        if (compare_hashed(&sorted[i - 1], &sorted[i]) != 0)
            continue;
        fs_hf_tensor_write_name(a, name);
        result = add_line(obstacles, "Both %s and %s become tensor \"%s\" of the checkpoint.\n",
                          quote_source(a < b ? a : b).text, quote_source(a < b ? b : a).text, name);
    }
    free(sorted);
    return result;
}

int fs_hf_tensors_find(const struct fs_hf_model *hf, const struct fs_hf_row *row,
                       struct fs_hf_tensors *tensors, struct gguf_buffer *unused,
                       struct gguf_buffer *obstacles)
{
    /* Layers that predict further tokens come last, and have no place in the checkpoint. */
    const uint64_t n_layer = fs_hf_n_layer(hf);
    bool has_tensors[FS_HF_MAX_LAYERS] = {false};
    struct layer layer = {.hf = hf, .row = row, .match = {.suffix = ".weight"}};
    int result = 0;

    *tensors = (struct fs_hf_tensors){0};
    if (n_layer > FS_HF_MAX_LAYERS)
        return add_line(obstacles,
                        "The model says that it has %" PRIu64 " layers, over %u, the limit.\n",
                        n_layer, FS_HF_MAX_LAYERS);
    for (uint64_t i = 0; result == 0 && i < hf->model->n_tensors; i++) {
        struct fs_hf_tensor made = {.tensor = &hf->model->tensors[i]};

        made.rule = find_rule(row, fs_hf_tensor_name(made.tensor), &made.match);
        if (!made.rule || made.match.layer >= n_layer)
            result = add_line(unused, "%s\n", gguf_quote(fs_hf_tensor_name(made.tensor)).text);
        else if (made.rule->hf)
            result = add_tensors(hf, &made, tensors, obstacles);
        if (made.rule && strchr(made.rule->gguf, '%') && made.match.layer < n_layer)
            has_tensors[made.match.layer] = true;
    }
    for (size_t i = 0; result == 0 && i < MAX_TABLES && row->rules[i]; i++)
        result = add_numbers(row->rules[i], n_layer, tensors);
    if (result == 0)
        result = check_ends(&layer, obstacles);
    for (uint64_t i = 0; result == 0 && i < n_layer; i++) {
        layer.match.layer = (uint32_t)i;
        if (has_tensors[i])
            result = check_layer(&layer, obstacles);
    }
    for (uint64_t i = 0, end; result == 0 && i < n_layer; i = end) {
        for (end = i + 1; end < n_layer && has_tensors[end] == has_tensors[i]; end++)
            ;
        if (!has_tensors[i])
            result = add_line(obstacles, "Layers %" PRIu64 " to %" PRIu64 " have no tensors.\n", i,
                              end - 1);
    }
    return result < 0 ? result : find_duplicates(tensors, obstacles);
}

void fs_hf_tensors_free(struct fs_hf_tensors *tensors)
{
    free(tensors->list);
    *tensors = (struct fs_hf_tensors){0};
}

void fs_hf_tensor_write_name(const struct fs_hf_tensor *tensor, char name[FS_HF_NAME_BYTES])
{
    if (!fs_hf_expand(tensor->rule->hf, &tensor->match, name))
        name[0] = '\0';
}

/* Get the tensor, or its part for the expert of the match. */
static void get_part(const struct fs_hf_tensor *tensor, const struct gguf_tensor *of,
                     struct fs_hf_part *part)
{
    const unsigned n_of = of ? of->n_dims : 0;
    const unsigned n_dims = tensor->is_part && n_of > 0 ? n_of - 1 : n_of;
    uint64_t n_elements = 1;

    *part = (struct fs_hf_part){.tensor = of, .n_dims = n_dims};
    for (unsigned i = 0; i < n_dims; i++) {
        part->shape[n_dims - 1 - i] = of->ne[i];
        n_elements *= of->ne[i];
    }
    if (tensor->is_part)
        part->first = n_elements * tensor->match.expert;
}

int fs_hf_tensor_arrange(const struct fs_hf_model *hf, const struct fs_hf_tensor *tensor,
                         uint64_t piece, struct fs_hf_arranged *out)
{
    struct fs_hf_request request = {.hf = hf, .layer = tensor->match.layer, .piece = piece};
    int result;

    get_part(tensor, tensor->tensor, &request.parts[0]);
    if (tensor->with)
        get_part(tensor, tensor->with, &request.parts[1]);
    *out = (struct fs_hf_arranged){0};
    result = (tensor->rule->arrange ? tensor->rule->arrange : fs_hf_as_stored)(&request, out);
    out->piece.map = tensor->rule->map;
    out->piece.constant = tensor->rule->constant;
    return result;
}
