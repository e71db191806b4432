#include "fs/tree/hf/hf_arrange.h"

#include <errno.h>
#include <string.h>

static void set_shape(struct fs_hf_arranged *out, unsigned n_dims, const uint64_t *shape)
{
    out->n_dims = n_dims;
    memcpy(out->shape, shape, n_dims * sizeof *shape);
}

/* Set a piece that has all dimensions and strides given, of the request's part. */
static int arrange(const struct fs_hf_request *request, unsigned part, unsigned n_dims,
                   const uint64_t *size, const uint64_t *stride, struct fs_hf_arranged *out)
{
    out->n_pieces = 1;
    out->piece = (struct fs_arrangement){.tensors = {request->parts[part].tensor},
                                         .first = {request->parts[part].first},
                                         .n_dims = n_dims};
    memcpy(out->piece.size, size, n_dims * sizeof *size);
    memcpy(out->piece.stride, stride, n_dims * sizeof *stride);
    return 0;
}

static uint64_t count_elements(const struct fs_hf_part *part)
{
    uint64_t n = 1;

    for (unsigned i = 0; i < part->n_dims; i++)
        n *= part->shape[i];
    return n;
}

/* The elements of the first part in their order. */
static int in_order(const struct fs_hf_request *request, struct fs_hf_arranged *out)
{
    return arrange(request, 0, 1, (uint64_t[]){count_elements(&request->parts[0])}, (uint64_t[]){1},
                   out);
}

int fs_hf_as_stored(const struct fs_hf_request *request, struct fs_hf_arranged *out)
{
    set_shape(out, request->parts[0].n_dims, request->parts[0].shape);
    return in_order(request, out);
}

int fs_hf_flat(const struct fs_hf_request *request, struct fs_hf_arranged *out)
{
    set_shape(out, 1, (uint64_t[]){count_elements(&request->parts[0])});
    return in_order(request, out);
}

int fs_hf_matrix(const struct fs_hf_request *request, struct fs_hf_arranged *out)
{
    const struct fs_hf_part *part = &request->parts[0];

    if (part->n_dims != 1)
        return fs_hf_as_stored(request, out);
    set_shape(out, 2, (uint64_t[]){1, part->shape[0]});
    return in_order(request, out);
}

int fs_hf_with_middle_axis(const struct fs_hf_request *request, struct fs_hf_arranged *out)
{
    const struct fs_hf_part *part = &request->parts[0];
    const uint64_t last = part->n_dims > 1 ? part->shape[part->n_dims - 1] : 0;

    if (last == 0)
        return -EINVAL;
    set_shape(out, 3, (uint64_t[]){count_elements(part) / last, 1, last});
    return in_order(request, out);
}

int fs_hf_in_third_axis(const struct fs_hf_request *request, struct fs_hf_arranged *out)
{
    set_shape(out, 4, (uint64_t[]){1, 1, count_elements(&request->parts[0]), 1});
    return in_order(request, out);
}

int fs_hf_transposed(const struct fs_hf_request *request, struct fs_hf_arranged *out)
{
    const struct fs_hf_part *part = &request->parts[0];
    const uint64_t *shape = part->shape;

    if (part->n_dims == 1)
        return fs_hf_as_stored(request, out);
    if (part->n_dims == 2) {
        set_shape(out, 2, (uint64_t[]){shape[1], shape[0]});
        return arrange(request, 0, 2, out->shape, (uint64_t[]){1, shape[1]}, out);
    }
    if (part->n_dims != 3)
        return -EINVAL;
    set_shape(out, 3, (uint64_t[]){shape[0], shape[2], shape[1]});
    return arrange(request, 0, 3, out->shape, (uint64_t[]){shape[1] * shape[2], 1, shape[2]}, out);
}

/* ---- attention ---- */

/* Return the elements of a row: of a bias, one. */
static uint64_t row_elements(const struct fs_hf_part *part)
{
    return part->shape[0] > 0 ? count_elements(part) / part->shape[0] : 0;
}

static int rotated(const struct fs_hf_request *request, uint64_t n_head, struct fs_hf_arranged *out)
{
    const struct fs_hf_part *part = &request->parts[0];
    const uint64_t n = row_elements(part), half = n_head > 0 ? part->shape[0] / n_head / 2 : 0;

    if (n_head == 0 || half * 2 * n_head != part->shape[0])
        return -EINVAL;
    set_shape(out, part->n_dims, part->shape);
    return arrange(request, 0, 4, (uint64_t[]){n_head, 2, half, n},
                   (uint64_t[]){2 * half * n, n, 2 * n, 1}, out);
}

int fs_hf_rotated_q(const struct fs_hf_request *request, struct fs_hf_arranged *out)
{
    if (fs_hf_n_head_kv(request->hf, request->layer) == 0)
        return fs_hf_as_stored(request, out);
    return rotated(request, fs_hf_n_head(request->hf, request->layer), out);
}

int fs_hf_rotated_k(const struct fs_hf_request *request, struct fs_hf_arranged *out)
{
    if (fs_hf_n_head_kv(request->hf, request->layer) == 0)
        return fs_hf_as_stored(request, out);
    return rotated(request, fs_hf_n_head_kv(request->hf, request->layer), out);
}

int fs_hf_qkv_by_head(const struct fs_hf_request *request, struct fs_hf_arranged *out)
{
    const struct fs_hf_part *part = &request->parts[0];
    const uint64_t n = row_elements(part), n_head = fs_hf_n_head(request->hf, request->layer);
    const uint64_t width = n_head > 0 ? part->shape[0] / n_head / 3 : 0;

    if (n_head == 0 || width * 3 * n_head != part->shape[0])
        return -EINVAL;
    set_shape(out, part->n_dims, part->shape);
    return arrange(request, 0, 3, (uint64_t[]){n_head, 3, width * n},
                   (uint64_t[]){width * n, n_head * width * n, 1}, out);
}

int fs_hf_qkv_by_group(const struct fs_hf_request *request, struct fs_hf_arranged *out)
{
    const struct fs_hf_part *part = &request->parts[0];
    const uint64_t n_head = fs_hf_n_head(request->hf, request->layer);
    const uint64_t n_group = fs_hf_n_head_kv(request->hf, request->layer);
    const uint64_t n_heads = n_head + 2 * n_group, group = request->piece / 3;
    const uint64_t n_q = n_group > 0 ? n_head / n_group : 0;
    uint64_t head; /* elements of a head */

    if (n_q == 0 || n_q * n_group != n_head || n_heads < n_head || part->shape[0] % n_heads != 0)
        return -EINVAL;
    head = part->shape[0] / n_heads * row_elements(part);
    set_shape(out, part->n_dims, part->shape);
    arrange(request, 0, 1, (uint64_t[]){request->piece % 3 == 0 ? n_q * head : head},
            (uint64_t[]){1}, out);
    if (request->piece % 3 == 0)
        out->piece.first[0] += group * n_q * head;
    else
        out->piece.first[0] += (n_head + (request->piece % 3 - 1) * n_group + group) * head;
    out->n_pieces = 3 * n_group;
    return 0;
}

int fs_hf_joined_rows(const struct fs_hf_request *request, struct fs_hf_arranged *out)
{
    const uint64_t *shape = request->parts[0].shape;

    if (request->parts[0].n_dims != 3)
        return -EINVAL;
    set_shape(out, 2, (uint64_t[]){shape[0] * shape[1], shape[2]});
    return in_order(request, out);
}

int fs_hf_joined_columns(const struct fs_hf_request *request, struct fs_hf_arranged *out)
{
    const uint64_t *shape = request->parts[0].shape;

    if (request->parts[0].n_dims != 3 || fs_hf_transposed(request, out) < 0)
        return -EINVAL;
    set_shape(out, 2, (uint64_t[]){shape[0] * shape[2], shape[1]});
    return 0;
}

int fs_hf_latent_kv(const struct fs_hf_request *request, struct fs_hf_arranged *out)
{
    /* k_b is [head, rank, key width], v_b [head, value width, rank] */
    const struct fs_hf_part *k = &request->parts[0], *v = &request->parts[1];
    const uint64_t n_head = k->shape[0], rank = k->shape[1], key = k->shape[2];
    const uint64_t value = v->shape[1], head = request->piece / 2;

    if (k->n_dims != 3 || v->n_dims != 3 || v->shape[0] != n_head || v->shape[2] != rank)
        return -EINVAL;
    set_shape(out, 2, (uint64_t[]){n_head * (key + value), rank});
    if (request->piece % 2 == 0)
        arrange(request, 0, 2, (uint64_t[]){key, rank}, (uint64_t[]){1, key}, out);
    else
        arrange(request, 1, 1, (uint64_t[]){value * rank}, (uint64_t[]){1}, out);
    out->piece.first[0] += head * (request->piece % 2 == 0 ? rank * key : value * rank);
    out->n_pieces = 2 * n_head;
    return 0;
}

/* ---- two tensors in one ---- */

/* Let the index in dimension `which` of the piece choose the part; return -EINVAL unless equal. */
static int choose_part(const struct fs_hf_request *request, unsigned which,
                       struct fs_hf_arranged *out)
{
    const struct fs_hf_part *a = &request->parts[0], *b = &request->parts[1];

    if (a->n_dims != b->n_dims || memcmp(a->shape, b->shape, a->n_dims * sizeof *a->shape) != 0)
        return -EINVAL;
    out->piece.tensors[1] = b->tensor;
    out->piece.first[1] = b->first;
    out->piece.which_dim = which;
    return 0;
}

int fs_hf_concatenated(const struct fs_hf_request *request, struct fs_hf_arranged *out)
{
    const struct fs_hf_part *part = &request->parts[0];
    const uint64_t n = row_elements(part);

    if (part->n_dims < 2)
        return -EINVAL;
    set_shape(out, part->n_dims, part->shape);
    out->shape[1] *= 2;
    arrange(request, 0, 3, (uint64_t[]){part->shape[0], 2, n}, (uint64_t[]){n, 0, 1}, out);
    return choose_part(request, 1, out);
}

int fs_hf_concatenated_rows(const struct fs_hf_request *request, struct fs_hf_arranged *out)
{
    const struct fs_hf_part *part = &request->parts[0];

    set_shape(out, part->n_dims, part->shape);
    out->shape[0] *= 2;
    arrange(request, 0, 2, (uint64_t[]){2, count_elements(part)}, (uint64_t[]){0, 1}, out);
    return choose_part(request, 0, out);
}

int fs_hf_concatenated_columns(const struct fs_hf_request *request, struct fs_hf_arranged *out)
{
    const struct fs_hf_part *part = &request->parts[0];
    const uint64_t *shape = part->shape;

    if (part->n_dims != 3)
        return -EINVAL;
    set_shape(out, 3, (uint64_t[]){shape[0], shape[2], 2 * shape[1]});
    arrange(request, 0, 4, (uint64_t[]){shape[0], shape[2], 2, shape[1]},
            (uint64_t[]){shape[1] * shape[2], 1, 0, shape[2]}, out);
    return choose_part(request, 2, out);
}

int fs_hf_alternating_columns(const struct fs_hf_request *request, struct fs_hf_arranged *out)
{
    const struct fs_hf_part *part = &request->parts[0];
    const uint64_t *shape = part->shape;

    if (part->n_dims != 3)
        return -EINVAL;
    set_shape(out, 3, (uint64_t[]){shape[0], shape[2], 2 * shape[1]});
    arrange(request, 0, 4, (uint64_t[]){shape[0], shape[2], shape[1], 2},
            (uint64_t[]){shape[1] * shape[2], 1, shape[2], 0}, out);
    return choose_part(request, 3, out);
}

int fs_hf_alternating(const struct fs_hf_request *request, struct fs_hf_arranged *out)
{
    const struct fs_hf_part *part = &request->parts[0];

    if (part->n_dims != 2)
        return -EINVAL;
    set_shape(out, 2, (uint64_t[]){part->shape[0], 2 * part->shape[1]});
    arrange(request, 0, 2, (uint64_t[]){count_elements(part), 2}, (uint64_t[]){1, 0}, out);
    return choose_part(request, 1, out);
}

/* ---- linear attention ---- */

struct linear_attention {
    uint64_t n_k, width_k; /* heads of keys and their width */
    uint64_t n_v, width_v; /* heads of values and their width */
    uint64_t per_k;        /* heads of values for one of keys */
};

static int get_linear(const struct fs_hf_model *hf, struct linear_attention *linear)
{
    const uint64_t inner = fs_hf_number(hf, "ssm.inner_size", 0);

    linear->n_k = fs_hf_number(hf, "ssm.group_count", 0);
    linear->width_k = fs_hf_number(hf, "ssm.state_size", 0);
    linear->n_v = fs_hf_number(hf, "ssm.time_step_rank", 0);
    linear->width_v = linear->n_v > 0 ? inner / linear->n_v : 0;
    linear->per_k = linear->n_k > 0 ? linear->n_v / linear->n_k : 0;
    return linear->per_k > 0 && linear->per_k * linear->n_k == linear->n_v ? 0 : -EINVAL;
}

int fs_hf_qkvz_by_group(const struct fs_hf_request *request, struct fs_hf_arranged *out)
{
    const struct fs_hf_part *qkv = &request->parts[0], *z = &request->parts[1];
    const uint64_t n = row_elements(qkv), head = request->piece / 4, kind = request->piece % 4;
    struct linear_attention linear;
    uint64_t k_elements, v_elements; /* of all that belongs to a head of keys */

    if (get_linear(request->hf, &linear) < 0 || qkv->n_dims != 2 || z->n_dims != 2)
        return -EINVAL;
    k_elements = linear.width_k * n;
    v_elements = linear.per_k * linear.width_v * n;
    set_shape(out, 2, (uint64_t[]){qkv->shape[0] + z->shape[0], qkv->shape[1]});
    arrange(request, kind == 3, 1, (uint64_t[]){kind < 2 ? k_elements : v_elements},
            (uint64_t[]){1}, out);
    if (kind < 2)
        out->piece.first[0] += (kind * linear.n_k + head) * k_elements;
    else
        out->piece.first[0] += (kind == 2 ? 2 * linear.n_k * k_elements : 0) + head * v_elements;
    out->n_pieces = 4 * linear.n_k;
    return 0;
}

/* Arrange the rows of value heads from row `first` on. */
static int value_rows(const struct fs_hf_request *request, uint64_t first,
                      struct fs_hf_arranged *out)
{
    const struct fs_hf_part *part = &request->parts[0];
    struct linear_attention linear;
    uint64_t n;

    if (get_linear(request->hf, &linear) < 0 || first > part->shape[0])
        return -EINVAL;
    n = (part->shape[0] - first) / linear.n_v * row_elements(part); /* elements of a head */
    set_shape(out, part->n_dims, part->shape);
    arrange(request, 0, 3, (uint64_t[]){linear.n_k, linear.per_k, n},
            (uint64_t[]){n, linear.n_k * n, 1}, out);
    out->piece.first[0] += first * row_elements(part);
    return 0;
}

int fs_hf_value_rows(const struct fs_hf_request *request, struct fs_hf_arranged *out)
{
    return value_rows(request, 0, out);
}

int fs_hf_value_rows_of_qkv(const struct fs_hf_request *request, struct fs_hf_arranged *out)
{
    const struct fs_hf_part *part = &request->parts[0];
    struct linear_attention linear;
    int result = get_linear(request->hf, &linear);

    if (result < 0)
        return result;
    result = value_rows(request, 2 * linear.n_k * linear.width_k, out);
    if (result == 0 && request->piece == 0) /* q and k */
        arrange(request, 0, 1, (uint64_t[]){2 * linear.n_k * linear.width_k * row_elements(part)},
                (uint64_t[]){1}, out);
    out->n_pieces = 2;
    return result;
}

int fs_hf_value_rows_of_convolution(const struct fs_hf_request *request, struct fs_hf_arranged *out)
{
    const int result = fs_hf_value_rows_of_qkv(request, out);

    if (request->parts[0].n_dims != 2)
        return -EINVAL;
    set_shape(out, 3, (uint64_t[]){request->parts[0].shape[0], 1, request->parts[0].shape[1]});
    return result;
}

int fs_hf_value_columns(const struct fs_hf_request *request, struct fs_hf_arranged *out)
{
    const struct fs_hf_part *part = &request->parts[0];
    struct linear_attention linear;
    uint64_t n;

    if (get_linear(request->hf, &linear) < 0 || part->n_dims != 2)
        return -EINVAL;
    n = part->shape[1] / linear.n_v;
    set_shape(out, 2, part->shape);
    return arrange(request, 0, 4, (uint64_t[]){part->shape[0], linear.n_k, linear.per_k, n},
                   (uint64_t[]){part->shape[1], n, linear.n_k * n, 1}, out);
}
