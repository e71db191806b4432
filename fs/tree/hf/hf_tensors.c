#include "fs/tree/hf/hf_tensors.h"

#include "fs/tree/hf/hf_places.h"
#include "gguf/support/arrays.h"
#include "gguf/support/keyed_hash.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * No model comes near these limits: DeepSeek V3 has two pieces for each of 128 heads in 61 layers.
 * Each piece takes time and memory, however few bytes of the header ask for it.
 */
#define MAX_MORE_PIECES 32768u

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
    char name[GGUF_NAME_BYTES];
    struct fs_hf_arranged arranged = {.n_pieces = 1};
    uint64_t n_bytes = 0, n_elements = 1;

    if (!gguf_tensor_name_expand(tensor->rule->other, &tensor->match, name))
        return -EINVAL;
    for (uint64_t piece = 0; piece < arranged.n_pieces; piece++) {
        int result = fs_hf_tensor_arrange(hf, tensor, piece, &arranged);
        struct fs_arranged *made = NULL;

        if (result == 0 && arranged.n_pieces > MAX_MORE_PIECES - tensors->n_more_pieces + 1)
            result = -E2BIG;
        if (result == 0)
            result = fs_arranged_make(&arranged.piece, dequant_type_by_id(DEQUANT_F32), &made);
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

/*
 * Add the second tensor of a rule. Returns 0, a negative errno, or 1 with a line if it cannot be
 * used.
 */
static int add_second(const struct fs_hf_model *hf, struct fs_hf_tensor *made,
                      struct gguf_buffer *obstacles)
{
    char name[GGUF_NAME_BYTES];
    int result = 0;

    if (!made->rule->with)
        return 0;
    if (!gguf_tensor_name_expand(made->rule->with, &made->match, name) ||
        !(made->with = fs_hf_tensor(hf, name)))
        result = fs_hf_add_line(obstacles, "Tensor %s needs tensor \"%s\", which is missing.\n",
                                gguf_quote(gguf_name_of(made->tensor)).text, name);
    else if (!made->with->type || !dequant_is_decodable(made->with->type))
        result = fs_hf_add_line(obstacles, "Tensor \"%s\" has a type without decoder.\n", name);
    else
        return 0;
    return result < 0 ? result : 1;
}

/* Return true if the model has another tensor with the same content, which is used instead. */
static bool is_repeated(const struct fs_hf_model *hf, const struct fs_hf_tensor *made)
{
    char name[GGUF_NAME_BYTES];

    return made->rule->unless && gguf_tensor_name_expand(made->rule->unless, &made->match, name) &&
           fs_hf_tensor(hf, name);
}

/* Add a line about the result of check() for a tensor, if it is about the model. */
static int add_fault(int result, const struct gguf_tensor *tensor, struct gguf_buffer *obstacles)
{
    const struct gguf_quoted quoted = gguf_quote(gguf_name_of(tensor));

    if (result == -E2BIG)
        return fs_hf_add_line(obstacles,
                              "Tensor %s has heads that bring the checkpoint's rearranged pieces "
                              "over %u, the limit.\n",
                              quoted.text, MAX_MORE_PIECES);
    if (result == -EINVAL || result == -EOVERFLOW)
        return fs_hf_add_line(obstacles,
                              "The shape of tensor %s does not fit the keys of the metadata.\n",
                              quoted.text);
    return result;
}

/* Facts about a tensor and its twins. */
struct known {
    struct fs_hf_place place; /* of the name; the zeros before it is found have no match.suffix */
    const struct gguf_tensor *checked; /* a tensor that check() accepted as one piece; or NULL */
    uint32_t checked_layer;
};

/* Return true if check() would accept a tensor, as it has accepted its twin. */
static bool is_checked(const struct fs_hf_model *hf, const struct fs_hf_tensor *made,
                       const struct known *known)
{
    const struct gguf_tensor *tensor = made->tensor, *other = known->checked;

    return other && !made->with && tensor->n_dims == other->n_dims &&
           memcmp(tensor->ne, other->ne, tensor->n_dims * sizeof *tensor->ne) == 0 &&
           (made->rule->order == GGUF_SAME_ORDER ||
            (fs_hf_n_head(hf, made->match.layer) == fs_hf_n_head(hf, known->checked_layer) &&
             fs_hf_n_head_kv(hf, made->match.layer) == fs_hf_n_head_kv(hf, known->checked_layer)));
}

/* Add the checkpoint's tensors that a tensor of the file becomes by a rule. */
static int add_tensors(const struct fs_hf_model *hf, struct fs_hf_tensor *made, struct known *known,
                       struct fs_hf_tensors *tensors, struct gguf_buffer *obstacles)
{
    const struct gguf_tensor *tensor = made->tensor;
    const uint64_t n_more_pieces = tensors->n_more_pieces;
    bool must_check;
    const uint32_t slowest = tensor->n_dims > 0 ? tensor->n_dims - 1 : 0;
    uint64_t n_parts = 1;
    int result;

    if (is_repeated(hf, made))
        return 0;
    if (!tensor->type || !dequant_is_decodable(tensor->type))
        return fs_hf_add_line(obstacles, "Tensor %s has a type without decoder.\n",
                              gguf_quote(gguf_name_of(tensor)).text);
    result = add_second(hf, made, obstacles);
    if (result != 0)
        return result < 0 ? result : 0;
    made->is_part = strchr(made->rule->other, '#');
    if (made->is_part)
        n_parts = tensor->ne[slowest];
    must_check = !is_checked(hf, made, known);
    for (uint64_t i = 0; i < n_parts; i++) {
        if (made->is_part)
            made->match.expert = (uint32_t)i;
        if (tensors->count == GGUF_MAX_TENSORS)
            return fs_hf_add_line(obstacles, "Tensor %s has %" PRIu64 " experts.\n",
                                  gguf_quote(gguf_name_of(tensor)).text, n_parts);
        result = must_check ? check(hf, made, tensors) : 0;
        if (result < 0)
            return add_fault(result, tensor, obstacles);
        result = append(tensors, made);
        if (result < 0)
            return result;
    }
    if (must_check && tensors->n_more_pieces == n_more_pieces) {
        known->checked = tensor;
        known->checked_layer = made->match.layer;
    }
    return 0;
}

/* Add the tensors that are numbers from keys. */
static int add_numbers(const struct gguf_rename *rules, uint64_t n_layer,
                       struct fs_hf_tensors *tensors)
{
    int result = 0;

    for (; result == 0 && rules->name; rules++) {
        for (uint32_t i = 0; result == 0 && rules->is_key && i < n_layer; i++)
            result = append(tensors, &(struct fs_hf_tensor){.rule = rules,
                                                            .match = {.layer = i, .suffix = ""}});
    }
    return result;
}

/* ---- names that several tensors become ---- */

struct hashed {
    uint64_t hash; /* of the name */
    const struct fs_hf_tensor *tensor;
};

static int compare_hashed(const void *a, const void *b)
{
    const struct hashed *first = a, *second = b;
    char first_name[GGUF_NAME_BYTES], second_name[GGUF_NAME_BYTES];

    if (first->hash != second->hash)
        return first->hash < second->hash ? -1 : 1;
    fs_hf_tensor_write_name(first->tensor, first_name);
    fs_hf_tensor_write_name(second->tensor, second_name);
    return strcmp(first_name, second_name);
}

/* Return what a tensor is made from. */
static struct gguf_quoted quote_source(const struct fs_hf_tensor *tensor)
{
    const char *key = tensor->rule->name;

    return gguf_quote(tensor->tensor ? gguf_name_of(tensor->tensor)
                                     : (struct gguf_string){key, strlen(key)});
}

/* Add a line for each two tensors that have the same name in the checkpoint. */
static int find_duplicates(const struct fs_hf_tensors *tensors, struct gguf_buffer *obstacles)
{
    struct hashed *sorted = malloc((tensors->count + 1) * sizeof *sorted);
    char name[GGUF_NAME_BYTES];
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
        result = fs_hf_add_line(
            obstacles, "Both %s and %s become tensor \"%s\" of the checkpoint.\n",
            quote_source(a < b ? a : b).text, quote_source(a < b ? b : a).text, name);
    }
    free(sorted);
    return result;
}

static int find_tensors(const struct fs_hf_model *hf, struct fs_hf_presence *presence,
                        struct fs_hf_tensors *tensors, struct gguf_buffer *unused,
                        struct gguf_buffer *obstacles)
{
    struct known *all = calloc((size_t)hf->model->n_tensors + 1, sizeof *all);
    int result = all ? 0 : -ENOMEM;

    for (uint64_t i = 0; result == 0 && i < hf->model->n_tensors; i++) {
        const struct gguf_tensor *tensor = &hf->model->tensors[i];
        const struct gguf_tensor *twin = &hf->model->tensors[hf->twins[i]];
        struct known *known = &all[hf->twins[i]];
        struct fs_hf_place place;
        uint64_t layer;

        if (!known->place.match.suffix)
            known->place = fs_hf_find_place(presence, gguf_name_of(twin));
        place = known->place;
        if (twin != tensor && fs_hf_is_in_layer(gguf_name_of(tensor), &layer))
            place.match.layer = (uint32_t)layer;
        if (!fs_hf_has_place(presence, tensor, &place, unused, obstacles, &result))
            continue;
        if (strchr(place.rule->name, '%'))
            fs_hf_presence_add(presence, place.index, &place.match);
        if (place.counts_experts)
            result = fs_hf_check_experts(hf, tensor, place.match.layer, obstacles);
        if (result == 0 && place.rule->other)
            result = add_tensors(
                hf,
                &(struct fs_hf_tensor){.tensor = tensor, .rule = place.rule, .match = place.match},
                known, tensors, obstacles);
    }
    free(all);
    for (size_t i = 0; result == 0 && i < GGUF_MAX_NAME_TABLES && presence->row->naming->tables[i];
         i++)
        result = add_numbers(presence->row->naming->tables[i], presence->n_layer, tensors);
    return result;
}

int fs_hf_tensors_find(const struct fs_hf_model *hf, const struct fs_hf_row *row,
                       struct fs_hf_tensors *tensors, struct gguf_buffer *unused,
                       struct gguf_buffer *obstacles)
{
    const uint64_t n_layer = fs_hf_n_layer(hf);
    struct fs_hf_presence presence;
    int result;

    *tensors = (struct fs_hf_tensors){0};
    result = fs_hf_check_types(hf, row, obstacles);
    if (result < 0 || obstacles->length > 0)
        return result;
    if (n_layer == 0)
        return fs_hf_add_line(
            obstacles,
            "The model has no key \"%.*s.block_count\", or it is 0: set it to the "
            "number of layers with ggufs --set.\n",
            (int)hf->architecture.length_bytes, hf->architecture.data);
    if (n_layer > GGUF_MAX_LAYERS)
        return fs_hf_add_line(
            obstacles, "The model says that it has %" PRIu64 " layers, over %u, the limit.\n",
            n_layer, GGUF_MAX_LAYERS);
    result = fs_hf_presence_begin(&presence, hf, row, n_layer);
    if (result == 0)
        result = find_tensors(hf, &presence, tensors, unused, obstacles);
    if (result == 0)
        result = fs_hf_check_needs(&presence, obstacles);
    fs_hf_presence_end(&presence);
    return result < 0 ? result : find_duplicates(tensors, obstacles);
}

void fs_hf_tensors_free(struct fs_hf_tensors *tensors)
{
    free(tensors->list);
    *tensors = (struct fs_hf_tensors){0};
}

void fs_hf_tensor_write_name(const struct fs_hf_tensor *tensor, char name[GGUF_NAME_BYTES])
{
    if (!gguf_tensor_name_expand(tensor->rule->other, &tensor->match, name))
        name[0] = '\0';
}

/* Get the tensor, or its part for the expert of the match. Returns 0 or -EINVAL. */
static int get_part(const struct fs_hf_tensor *tensor, const struct gguf_tensor *of,
                    struct fs_hf_part *part)
{
    const unsigned n_of = of ? of->n_dims : 0;
    const unsigned n_dims = tensor->is_part && n_of > 0 ? n_of - 1 : n_of;
    uint64_t n_elements = 1;

    *part = (struct fs_hf_part){.tensor = of, .shape.n_dims = n_dims};
    if (n_dims > GGUF_ORDER_DIMS)
        return -EINVAL;
    for (unsigned i = 0; i < n_dims; i++) {
        part->shape.size[n_dims - 1 - i] = of->ne[i];
        n_elements *= of->ne[i];
    }
    if (tensor->is_part)
        part->first = n_elements * tensor->match.expert;
    return 0;
}

static struct gguf_order_sizes sizes_of(const struct fs_hf_model *hf, uint64_t layer)
{
    const uint64_t n_v = fs_hf_number(hf, "ssm.time_step_rank", 0);

    return (struct gguf_order_sizes){
        .n_head = fs_hf_n_head(hf, layer),
        .n_head_kv = fs_hf_n_head_kv(hf, layer),
        .n_rot = fs_hf_number(hf, "rope.dimension_count", 0),
        .width = fs_hf_head_dim(hf),
        .n_k = fs_hf_number(hf, "ssm.group_count", 0),
        .width_k = fs_hf_number(hf, "ssm.state_size", 0),
        .n_v = n_v,
        .width_v = n_v > 0 ? fs_hf_number(hf, "ssm.inner_size", 0) / n_v : 0,
    };
}

/*
 * Return the order of a tensor. In a layer without heads of keys, which the converter took for
 * recurrent, rows are as they were.
 */
static enum gguf_order order_of(const struct fs_hf_model *hf, const struct gguf_rename *rule,
                                const struct gguf_order_sizes *sizes)
{
    const bool is_pairs = rule->order == GGUF_PAIRS_Q || rule->order == GGUF_PAIRS_K;

    if ((hf->is_reference && gguf_order_is_layout(rule->order)) ||
        (is_pairs && sizes->n_head_kv == 0))
        return GGUF_SAME_ORDER;
    return rule->order;
}

int fs_hf_tensor_arrange(const struct fs_hf_model *hf, const struct fs_hf_tensor *tensor,
                         uint64_t piece, struct fs_hf_arranged *out)
{
    struct gguf_order_sizes sizes = {0};
    struct fs_hf_part parts[2];

    if (tensor->rule->order != GGUF_SAME_ORDER)
        sizes = sizes_of(hf, tensor->match.layer);
    if (get_part(tensor, tensor->tensor, &parts[0]) < 0 ||
        get_part(tensor, tensor->with, &parts[1]) < 0 ||
        fs_hf_arrange(order_of(hf, tensor->rule, &sizes), &sizes, parts, piece, out) < 0)
        return -EINVAL;
    out->piece.map = tensor->rule->change == GGUF_PLUS_ONE    ? GGUF_MAP_ADD
                     : tensor->rule->change == GGUF_MINUS_EXP ? GGUF_MAP_LOG_OF_NEGATED
                                                              : GGUF_MAP_NONE;
    out->piece.constant = -1; /* for GGUF_MAP_ADD */
    return 0;
}
