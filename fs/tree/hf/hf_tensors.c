#include "fs/tree/hf/hf_tensors.h"

#include "fs/tree/hf/hf_needs.h"
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
    if (gguf_reserve(&tensors->list, &tensors->room, tensors->count + 1, sizeof *tensor) < 0)
        return -ENOMEM;
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

/* Add the second tensor of a rule. Returns false after adding a line if it cannot be used. */
static bool add_second(const struct fs_hf_presence *presence, struct fs_hf_tensor *made)
{
    char name[GGUF_NAME_BYTES];

    if (!made->rule->with)
        return true;
    if (!gguf_tensor_name_expand(made->rule->with, &made->match, name) ||
        !(made->with = fs_hf_tensor(presence->hf, name)))
        fs_hf_add_line(presence->obstacles, "Tensor %s needs tensor \"%s\", which is missing.\n",
                       gguf_quote(gguf_name_of(made->tensor)).text, name);
    else if (!made->with->type || !dequant_is_decodable(made->with->type))
        fs_hf_add_line(presence->obstacles, "Tensor \"%s\" has a type without decoder.\n", name);
    else
        return true;
    return false;
}

/* Return true if the model has another tensor with the same content, which is used instead. */
static bool is_repeated(const struct fs_hf_model *hf, const struct fs_hf_tensor *made)
{
    char name[GGUF_NAME_BYTES];

    return made->rule->unless && gguf_tensor_name_expand(made->rule->unless, &made->match, name) &&
           fs_hf_tensor(hf, name);
}

/* Add the checkpoint's tensors that a tensor of the file becomes by a rule. */
static int add_tensors(const struct fs_hf_presence *presence, struct fs_hf_tensor *made,
                       struct fs_hf_tensors *tensors)
{
    const struct gguf_tensor *tensor = made->tensor;
    const struct gguf_quoted quoted = gguf_quote(gguf_name_of(tensor));
    const bool is_part = strchr(made->rule->other, '#');
    const uint64_t n_parts = !is_part ? 1 : tensor->ne[tensor->n_dims > 0 ? tensor->n_dims - 1 : 0];
    int result = 0;

    if (is_repeated(presence->hf, made))
        return 0;
    if (!tensor->type || !dequant_is_decodable(tensor->type)) {
        fs_hf_add_line(presence->obstacles, "Tensor %s has a type without decoder.\n", quoted.text);
        return 0;
    }
    if (!add_second(presence, made))
        return 0;
    made->is_part = is_part;
    for (uint64_t i = 0; result == 0 && i < n_parts; i++) {
        if (is_part)
            made->match.expert = (uint32_t)i;
        if (tensors->count == GGUF_MAX_TENSORS) {
            fs_hf_add_line(presence->obstacles, "Tensor %s has %" PRIu64 " experts.\n", quoted.text,
                           n_parts);
            return 0;
        }
        result = check(presence->hf, made, tensors);
        if (result == 0)
            result = append(tensors, made);
    }
    if (result == -E2BIG)
        fs_hf_add_line(presence->obstacles,
                       "Tensor %s has heads that bring the checkpoint's rearranged pieces "
                       "over %u, the limit.\n",
                       quoted.text, MAX_MORE_PIECES);
    else if (result == -EINVAL || result == -EOVERFLOW)
        fs_hf_add_line(presence->obstacles,
                       "The shape of tensor %s does not fit the keys of the metadata.\n",
                       quoted.text);
    else if (result < 0)
        return result;
    return 0;
}

/* Add the tensors that are numbers from keys. */
static int add_numbers(const struct fs_hf_presence *presence, struct fs_hf_tensors *tensors)
{
    int result = 0;

    for (size_t n = 0; n < presence->names->count; n++) {
        const struct gguf_rename *rule = &presence->names->list[n];

        for (uint32_t i = 0; result == 0 && rule->is_key && i < presence->n_layer; i++)
            result = append(
                tensors, &(struct fs_hf_tensor){.rule = rule, .match = {.layer = i, .suffix = ""}});
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
    return gguf_quote(tensor->tensor ? gguf_name_of(tensor->tensor)
                                     : gguf_string_of(tensor->rule->name));
}

/* Add a line for each two tensors that have the same name in the checkpoint. */
static int find_duplicates(const struct fs_hf_tensors *tensors, struct fs_hf_lines *obstacles)
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
        fs_hf_add_line(obstacles, "Both %s and %s become tensor \"%s\" of the checkpoint.\n",
                       quote_source(a < b ? a : b).text, quote_source(a < b ? b : a).text, name);
    }
    free(sorted);
    return result;
}

static int find_tensors(struct fs_hf_presence *presence, struct fs_hf_tensors *tensors)
{
    const struct fs_hf_model *hf = presence->hf;
    int result = 0;

    for (uint64_t i = 0; result == 0 && i < hf->model->n_tensors; i++) {
        const struct gguf_tensor *tensor = &hf->model->tensors[i];
        const struct fs_hf_place place = fs_hf_find_place(presence, gguf_name_of(tensor));

        if (!fs_hf_has_place(presence, tensor, &place))
            continue;
        fs_hf_take_place(presence, tensor, &place);
        if (place.rule->other)
            result = add_tensors(
                presence,
                &(struct fs_hf_tensor){.tensor = tensor, .rule = place.rule, .match = place.match},
                tensors);
    }
    return result == 0 ? add_numbers(presence, tensors) : result;
}

static int find_all(struct fs_hf_presence *presence, struct fs_hf_tensors *tensors)
{
    int result = gguf_names_read(presence->row->naming, &tensors->names);

    if (result < 0)
        return result;
    presence->names = &tensors->names;
    presence->suffixes = calloc(presence->n_layer, tensors->names.count);
    result = presence->suffixes ? find_tensors(presence, tensors) : -ENOMEM;
    if (result == 0)
        fs_hf_check_needs(presence);
    free(presence->suffixes);
    return result < 0 ? result : find_duplicates(tensors, presence->obstacles);
}

int fs_hf_tensors_find(const struct fs_hf_model *hf, const struct fs_hf_row *row,
                       struct fs_hf_tensors *tensors, struct fs_hf_lines *unused,
                       struct fs_hf_lines *obstacles)
{
    struct fs_hf_presence presence = {.hf = hf,
                                      .row = row,
                                      .unused = unused,
                                      .obstacles = obstacles,
                                      .n_layer = fs_hf_n_layer(hf),
                                      .n_all = fs_hf_number(hf, "block_count", 0)};
    int result = 0;

    *tensors = (struct fs_hf_tensors){0};
    fs_hf_check_types(hf, row, obstacles);
    if (obstacles->text.length > 0)
        return obstacles->error;
    if (presence.n_layer == 0)
        fs_hf_add_line(obstacles,
                       "The model has no key \"%.*s.block_count\", or it is 0: set it to the "
                       "number of layers with ggufs --set.\n",
                       (int)hf->architecture.length_bytes, hf->architecture.data);
    else if (presence.n_layer > GGUF_MAX_LAYERS)
        fs_hf_add_line(obstacles,
                       "The model says that it has %" PRIu64 " layers, over %u, the limit.\n",
                       presence.n_layer, GGUF_MAX_LAYERS);
    else
        result = find_all(&presence, tensors);
    return result < 0 ? result : obstacles->error < 0 ? obstacles->error : unused->error;
}

void fs_hf_tensors_free(struct fs_hf_tensors *tensors)
{
    free(tensors->list);
    gguf_names_free(&tensors->names);
    *tensors = (struct fs_hf_tensors){0};
}

void fs_hf_tensor_write_name(const struct fs_hf_tensor *tensor, char name[GGUF_NAME_BYTES])
{
    if (!gguf_tensor_name_expand(tensor->rule->other, &tensor->match, name))
        name[0] = '\0';
}

/* ---- arrangements ---- */

/* A tensor of the file, or the part of one that belongs to an expert. */
struct part {
    const struct gguf_tensor *tensor;
    uint64_t first; /* element of the tensor */
    struct gguf_order_shape shape;
};

static bool has_same_axes(const struct gguf_order_segment *a, const struct gguf_order_segment *b)
{
    bool is_same = a->n_axes == b->n_axes;

    for (unsigned i = 0; is_same && i < a->n_axes; i++)
        is_same = a->axes[i].size == b->axes[i].size && a->axes[i].here == b->axes[i].here &&
                  a->axes[i].there == b->axes[i].there;
    return is_same;
}

/* Return the size of the slowest axis if all segments share it: then it divides them into pieces.
 */
static uint64_t outer_size(const struct gguf_placement *placement)
{
    const struct gguf_order_segment *first = &placement->segments[0];

    for (unsigned i = 0; i < placement->n_segments; i++) {
        const struct gguf_order_segment *segment = &placement->segments[i];

        if (segment->n_axes == 0 || first->n_axes == 0 ||
            segment->axes[0].size != first->axes[0].size ||
            segment->axes[0].there != first->axes[0].there)
            return 1;
    }
    return first->axes[0].size;
}

static void add_dim(struct fs_arrangement *piece, uint64_t size, uint64_t stride)
{
    piece->size[piece->n_dims] = size;
    piece->stride[piece->n_dims++] = stride;
}

/* Two segments of two tensors with the same axes are one array, in which an index is the tensor's.
 */
static void interleave(const struct gguf_placement *placement, struct fs_arrangement *piece)
{
    const struct gguf_order_segment *segment = &placement->segments[0];
    const uint64_t apart = placement->segments[1].there - segment->there;
    unsigned i = 0;

    for (; i < segment->n_axes && segment->axes[i].there > apart; i++)
        add_dim(piece, segment->axes[i].size, segment->axes[i].here);
    piece->which_dim = piece->n_dims;
    add_dim(piece, 2, 0);
    for (; i < segment->n_axes; i++)
        add_dim(piece, segment->axes[i].size, segment->axes[i].here);
}

/*
 * Get the shape and piece `index` of the tensor that parts[0] and, for some orders, parts[1]
 * become. Returns 0, or -EINVAL if shapes and sizes do not fit.
 */
static int arrange(enum gguf_order order, const struct gguf_order_sizes *sizes,
                   const struct part parts[2], uint64_t index, struct fs_hf_arranged *out)
{
    const struct gguf_order_shape here[2] = {parts[0].shape, parts[1].shape};
    const bool is_joined = gguf_order_joins(order);
    struct gguf_placement placement;
    const struct gguf_order_segment *segment;
    const struct part *part;
    uint64_t n_outer;
    bool is_divided;

    if (gguf_order_from_here(order, sizes, here, &placement) < 0)
        return -EINVAL;
    *out = (struct fs_hf_arranged){.n_dims = placement.there.n_dims, .n_pieces = 1};
    memcpy(out->shape, placement.there.size, out->n_dims * sizeof *out->shape);
    if (is_joined && placement.n_segments == 2 &&
        has_same_axes(&placement.segments[0], &placement.segments[1])) {
        out->piece.tensors[0] = parts[0].tensor;
        out->piece.tensors[1] = parts[1].tensor;
        out->piece.first[0] = parts[0].first;
        out->piece.first[1] = parts[1].first;
        interleave(&placement, &out->piece);
        return 0;
    }
    is_divided = placement.n_segments > 1 && outer_size(&placement) > 1;
    n_outer = is_divided ? outer_size(&placement) : 1;
    out->n_pieces = n_outer * placement.n_segments;
    segment = &placement.segments[index % placement.n_segments];
    part = &parts[segment->tensor];
    out->piece.tensors[0] = part->tensor;
    out->piece.first[0] = part->first + segment->here;
    if (is_divided)
        out->piece.first[0] += index / placement.n_segments * segment->axes[0].here;
    for (unsigned i = is_divided; i < segment->n_axes; i++)
        add_dim(&out->piece, segment->axes[i].size, segment->axes[i].here);
    return 0;
}

/* Get the tensor, or its part for the expert of the match. Returns 0 or -EINVAL. */
static int get_part(const struct fs_hf_tensor *tensor, const struct gguf_tensor *of,
                    struct part *part)
{
    const unsigned n_of = of ? of->n_dims : 0;
    const unsigned n_dims = tensor->is_part && n_of > 0 ? n_of - 1 : n_of;
    uint64_t n_elements = 1;

    *part = (struct part){.tensor = of, .shape.n_dims = n_dims};
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
    struct part parts[2];

    if (tensor->rule->order != GGUF_SAME_ORDER)
        sizes = sizes_of(hf, tensor->match.layer);
    if (get_part(tensor, tensor->tensor, &parts[0]) < 0 ||
        get_part(tensor, tensor->with, &parts[1]) < 0 ||
        arrange(order_of(hf, tensor->rule, &sizes), &sizes, parts, piece, out) < 0)
        return -EINVAL;
    out->piece.map = tensor->rule->change == GGUF_PLUS_ONE    ? GGUF_MAP_ADD
                     : tensor->rule->change == GGUF_MINUS_EXP ? GGUF_MAP_LOG_OF_NEGATED
                                                              : GGUF_MAP_NONE;
    out->piece.constant = -1; /* for GGUF_MAP_ADD */
    return 0;
}
