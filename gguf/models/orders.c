#include "gguf/models/orders.h"

#include <errno.h>

/* A tensor of GGUF as e matrices of r rows and c columns. */
struct box {
    uint64_t e, r, c;
};

static uint64_t count(const struct gguf_order_shape *shape)
{
    uint64_t n = 1;

    for (unsigned i = 0; i < shape->n_dims; i++)
        n *= shape->size[i];
    return n;
}

static struct box box_of(const struct gguf_order_shape *shape)
{
    const unsigned n = shape->n_dims;
    struct box box = {1,
                      n > 1   ? shape->size[n - 2]
                      : n > 0 ? shape->size[0]
                              : 1,
                      n > 1 ? shape->size[n - 1] : 1};

    for (unsigned i = 0; i + 2 < n; i++)
        box.e *= shape->size[i];
    return box;
}

#define SHAPE(n, ...) ((struct gguf_order_shape){n, {__VA_ARGS__}})

/* Return true if a · b is n, which is not 0. */
static bool is_product(uint64_t n, uint64_t a, uint64_t b)
{
    return a > 0 && n > 0 && n % a == 0 && n / a == b;
}

static struct gguf_order_segment *add_segment(struct gguf_placement *out, unsigned tensor,
                                              uint64_t here, uint64_t there)
{
    struct gguf_order_segment *segment = &out->segments[out->n_segments++];

    *segment = (struct gguf_order_segment){.tensor = tensor, .here = here, .there = there};
    return segment;
}

/* Add an axis, unless it has one element only. The slowest axis elsewhere comes first. */
static void add_axis(struct gguf_order_segment *segment, uint64_t size, uint64_t here,
                     uint64_t there)
{
    if (size != 1)
        segment->axes[segment->n_axes++] = (struct gguf_order_axis){size, here, there};
}

/* ---- heads ---- */

/* Pairs of rotated rows are neighbours on one side, and half a head apart on the other. */
static int place_pairs(uint64_t n_head, uint64_t width, struct box box, struct gguf_placement *out)
{
    const uint64_t half = n_head > 0 ? box.r / n_head / 2 : 0;
    struct gguf_order_segment *segment = add_segment(out, 0, 0, 0);

    if (half == 0 || !is_product(box.r, n_head, 2 * half) || (width > 0 && width != 2 * half))
        return -EINVAL;
    add_axis(segment, n_head, 2 * half * box.c, 2 * half * box.c);
    add_axis(segment, 2, box.c, half * box.c);
    add_axis(segment, half, 2 * box.c, box.c);
    add_axis(segment, box.c, 1, 1);
    return 0;
}

/* The inverse, for the first n_rot rows of each head. */
static int place_halves(uint64_t n_head, uint64_t n_rot, struct box box, struct gguf_placement *out)
{
    const uint64_t width = n_head > 0 ? box.r / n_head : 0, half = n_rot / 2;
    struct gguf_order_segment *segment = add_segment(out, 0, 0, 0);

    if (half == 0 || n_rot % 2 != 0 || n_rot > width || !is_product(box.r, n_head, width))
        return -EINVAL;
    add_axis(segment, n_head, width * box.c, width * box.c);
    add_axis(segment, half, box.c, 2 * box.c);
    add_axis(segment, 2, half * box.c, box.c);
    add_axis(segment, box.c, 1, 1);
    if (n_rot == width)
        return 0;
    segment = add_segment(out, 0, n_rot * box.c, n_rot * box.c);
    add_axis(segment, n_head, width * box.c, width * box.c);
    add_axis(segment, (width - n_rot) * box.c, 1, 1);
    return 0;
}

/* Elsewhere, each group has n[i] rows of part i; in GGUF, all rows of a part follow one another. */
static void place_groups(uint64_t n_groups, uint64_t columns, unsigned n_parts, const uint64_t *n,
                         const unsigned *tensors, struct gguf_placement *out)
{
    uint64_t group = 0, here[2] = {0}, there = 0;

    for (unsigned i = 0; i < n_parts; i++)
        group += n[i] * columns;
    for (unsigned i = 0; i < n_parts; i++) {
        struct gguf_order_segment *segment = add_segment(out, tensors[i], here[tensors[i]], there);

        add_axis(segment, n_groups, n[i] * columns, group);
        add_axis(segment, n[i] * columns, 1, 1);
        here[tensors[i]] += n_groups * n[i] * columns;
        there += n[i] * columns;
    }
}

static int place_qkv_by_head(uint64_t n_head, struct box box, struct gguf_placement *out)
{
    const uint64_t n = n_head > 0 ? box.r / n_head / 3 * box.c : 0; /* elements of a head's part */
    struct gguf_order_segment *segment = add_segment(out, 0, 0, 0);

    if (n == 0 || !is_product(box.r, n_head, 3 * (n / box.c)))
        return -EINVAL;
    add_axis(segment, n_head, n, 3 * n);
    add_axis(segment, 3, n_head * n, n);
    add_axis(segment, n, 1, 1);
    return 0;
}

static int place_qkv_by_group(const struct gguf_order_sizes *sizes, struct box box,
                              struct gguf_placement *out)
{
    const uint64_t n_groups = sizes->n_head_kv, n_q = n_groups > 0 ? sizes->n_head / n_groups : 0;
    const uint64_t width = n_q > 0 && n_q < UINT32_MAX ? box.r / n_groups / (n_q + 2) : 0;

    if (width == 0 || (sizes->width > 0 && width != sizes->width) ||
        !is_product(sizes->n_head, n_groups, n_q) ||
        !is_product(box.r, n_groups, (n_q + 2) * width))
        return -EINVAL;
    place_groups(n_groups, box.c, 3, (uint64_t[]){n_q * width, width, width}, (unsigned[]){0, 0, 0},
                 out);
    return 0;
}

/* ---- linear attention ---- */

static uint64_t values_per_key(const struct gguf_order_sizes *sizes)
{
    const uint64_t per_key = sizes->n_k > 0 ? sizes->n_v / sizes->n_k : 0;

    return per_key > 0 && per_key * sizes->n_k == sizes->n_v ? per_key : 0;
}

/* Heads of values in `n` elements at `first`: axes k and per_k are exchanged. */
static int place_values(const struct gguf_order_sizes *sizes, uint64_t first, uint64_t n,
                        uint64_t n_rows, uint64_t row, struct gguf_placement *out)
{
    const uint64_t per_key = values_per_key(sizes), width = sizes->n_v > 0 ? n / sizes->n_v : 0;
    struct gguf_order_segment *segment = add_segment(out, 0, first, first);

    if (per_key == 0 || !is_product(n, sizes->n_v, width))
        return -EINVAL;
    if (n_rows > 1)
        add_axis(segment, n_rows, row, row);
    add_axis(segment, sizes->n_k, width, per_key * width);
    add_axis(segment, per_key, sizes->n_k * width, width);
    add_axis(segment, width, 1, 1);
    return 0;
}

static int place_values_after_qk(const struct gguf_order_sizes *sizes, struct box box,
                                 struct gguf_placement *out)
{
    uint64_t first;

    if (__builtin_mul_overflow(sizes->n_k, sizes->width_k, &first) || first == 0 ||
        first > box.r / 2)
        return -EINVAL;
    first *= 2; /* queries have as many heads */
    add_axis(add_segment(out, 0, 0, 0), first * box.c, 1, 1);
    return place_values(sizes, first * box.c, (box.r - first) * box.c, 1, 0, out);
}

static int place_qkvz(const struct gguf_order_sizes *sizes, struct box qkv, struct box z,
                      struct gguf_placement *out)
{
    const uint64_t k = sizes->width_k, n_k = sizes->n_k;
    const uint64_t values = n_k > 0 ? z.r / n_k : 0; /* rows of the values of a head of keys */

    if (values_per_key(sizes) == 0 || k > UINT32_MAX || !is_product(z.r, n_k, values) ||
        !is_product(qkv.r, n_k, 2 * k + values) || z.c != qkv.c)
        return -EINVAL;
    place_groups(n_k, qkv.c, 4, (uint64_t[]){k, k, values, values}, (unsigned[]){0, 0, 0, 1}, out);
    return 0;
}

/* ---- two tensors ---- */

/* `k` is head, rank, key; `v` is head, value, rank. */
static int place_latent(struct box k, struct box v, struct gguf_placement *out)
{
    const uint64_t rank = k.r, head = (k.c + v.r) * rank;
    struct gguf_order_segment *segment;

    if (k.e != v.e || v.c != rank)
        return -EINVAL;
    segment = add_segment(out, 0, 0, 0);
    add_axis(segment, k.e, rank * k.c, head);
    add_axis(segment, k.c, 1, rank);
    add_axis(segment, rank, k.c, 1);
    segment = add_segment(out, 1, 0, k.c * rank);
    add_axis(segment, v.e, v.r * rank, head);
    add_axis(segment, v.r * rank, 1, 1);
    return 0;
}

/* Rows and columns of two equal tensors; `apart` is how far their elements are apart elsewhere. */
static int place_both(struct box a, struct box b, uint64_t row, uint64_t column, uint64_t apart,
                      struct gguf_placement *out)
{
    if (a.e != b.e || a.r != b.r || a.c != b.c)
        return -EINVAL;
    for (unsigned tensor = 0; tensor < 2; tensor++) {
        struct gguf_order_segment *segment = add_segment(out, tensor, 0, tensor * apart);

        add_axis(segment, a.e, a.r * a.c, 2 * a.r * a.c);
        if (row > column)
            add_axis(segment, a.r, a.c, row);
        add_axis(segment, a.c, 1, column);
        if (row <= column)
            add_axis(segment, a.r, a.c, row);
    }
    return 0;
}

/* ---- placements ---- */

bool gguf_order_joins(enum gguf_order order)
{
    return order >= GGUF_BOTH_ROWS && order < GGUF_N_ORDERS;
}

static int place(enum gguf_order order, const struct gguf_order_sizes *sizes, struct box a,
                 struct box b, struct gguf_placement *out)
{
    struct gguf_order_segment *segment;

    switch (order) {
    case GGUF_TRANSPOSED:
    case GGUF_BY_COLUMNS:
        segment = add_segment(out, 0, 0, 0);
        add_axis(segment, a.e, a.r * a.c, a.r * a.c);
        add_axis(segment, a.c, 1, a.r);
        add_axis(segment, a.r, a.c, 1);
        return 0;
    case GGUF_PAIRS_Q:
        return place_pairs(sizes->n_head, sizes->width, a, out);
    case GGUF_PAIRS_K:
        return place_pairs(sizes->n_head_kv, sizes->width, a, out);
    case GGUF_HALVES_Q:
        return place_halves(sizes->n_head, sizes->n_rot, a, out);
    case GGUF_HALVES_K:
        return place_halves(sizes->n_head_kv, sizes->n_rot, a, out);
    case GGUF_VALUE_ROWS:
        return place_values(sizes, 0, a.r * a.c, 1, 0, out);
    case GGUF_VALUE_COLUMNS:
        return place_values(sizes, 0, a.c, a.r, a.c, out);
    case GGUF_VALUE_ROWS_AFTER_QK:
    case GGUF_VALUE_ROWS_OF_CONV:
        return place_values_after_qk(sizes, a, out);
    case GGUF_QKV_BY_HEAD:
        return place_qkv_by_head(sizes->n_head, a, out);
    case GGUF_QKV_BY_GROUP:
        return place_qkv_by_group(sizes, a, out);
    case GGUF_QKVZ_BY_HEAD:
        return place_qkvz(sizes, a, b, out);
    case GGUF_LATENT_KV:
        return place_latent(a, b, out);
    case GGUF_BOTH_ROWS:
    case GGUF_BOTH_EXPERTS:
        return place_both(a, b, a.c, 1, a.r * a.c, out);
    case GGUF_BOTH_COLUMNS:
        return place_both(a, b, 1, 2 * a.r, a.r, out);
    case GGUF_ALTERNATING:
        return place_both(a, b, 2, 2 * a.r, 1, out);
    default:
        add_axis(add_segment(out, 0, 0, 0), a.e * a.r * a.c, 1, 1);
        return 0;
    }
}

/* Names of orders, and the numbers of dimensions in GGUF that they accept; in enum's order. */
enum { D1 = 2, D2 = 4, D3 = 8, ANY = 31 };
static const struct {
    const char *name;
    unsigned char dims;
} orders[GGUF_N_ORDERS] = {
    {"same_order", ANY},
    {"flat", ANY},
    {"one_row", ANY},
    {"no_middle", ANY - 3},
    {"third", ANY},
    {"by_rows", D3},
    {"transposed", D1 | D2 | D3},
    {"by_columns", D3},
    {"pairs_q", D1 | D2},
    {"pairs_k", D1 | D2},
    {"halves_q", D1 | D2},
    {"halves_k", D1 | D2},
    {"value_rows", D1 | D2},
    {"value_columns", D2},
    {"qkv_by_head", D1 | D2},
    {"qkv_by_group", D1 | D2},
    {"value_rows_after_qk", D1 | D2},
    {"value_rows_of_conv", D2},
    {"both_rows", D1 | D2},
    {"both_experts", D2 | D3},
    {"both_columns", D3},
    {"alternating", D2 | D3},
    {"qkvz_by_head", D2},
    {"latent_kv", D3},
};

enum gguf_order gguf_order_find(struct gguf_string name)
{
    enum gguf_order order = 0;

    while (order < GGUF_N_ORDERS && !gguf_string_equals(name, orders[order].name))
        order++;
    return order;
}

static bool accepts(enum gguf_order order, unsigned n_dims)
{
    return n_dims <= GGUF_ORDER_DIMS && orders[order].dims & 1u << n_dims;
}

/* The shape elsewhere. */
static struct gguf_order_shape shape_there(enum gguf_order order, const struct gguf_order_shape *h,
                                           struct box a, struct box b)
{
    struct gguf_order_shape there = *h;
    const uint64_t n = count(h);

    switch (order) {
    case GGUF_FLAT:
        return SHAPE(1, n);
    case GGUF_ONE_ROW:
        return h->n_dims == 1 ? SHAPE(2, 1, n) : there;
    case GGUF_NO_MIDDLE:
    case GGUF_VALUE_ROWS_OF_CONV:
        return SHAPE(3, a.e * a.r, 1, a.c);
    case GGUF_THIRD:
        return SHAPE(4, 1, 1, n, 1);
    case GGUF_BY_ROWS:
        return SHAPE(2, a.e * a.r, a.c);
    case GGUF_BY_COLUMNS:
        return SHAPE(2, a.e * a.c, a.r);
    case GGUF_TRANSPOSED:
        return h->n_dims == 3   ? SHAPE(3, a.e, a.c, a.r)
               : h->n_dims == 2 ? SHAPE(2, a.c, a.r)
                                : there;
    case GGUF_BOTH_ROWS:
        there.size[0] *= 2;
        return there;
    case GGUF_BOTH_EXPERTS:
        there.size[1] *= 2;
        return there;
    case GGUF_BOTH_COLUMNS:
        return SHAPE(3, a.e, a.c, 2 * a.r);
    case GGUF_ALTERNATING:
        return h->n_dims == 3 ? SHAPE(3, a.e, a.c, 2 * a.r) : SHAPE(2, a.e, 2 * a.r);
    case GGUF_QKVZ_BY_HEAD:
        return SHAPE(2, a.r + b.r, a.c);
    case GGUF_LATENT_KV:
        return SHAPE(2, a.e * (a.c + b.r), a.r);
    default:
        return there;
    }
}

int gguf_order_from_here(enum gguf_order order, const struct gguf_order_sizes *sizes,
                         const struct gguf_order_shape here[2], struct gguf_placement *placement)
{
    struct box a = box_of(&here[0]), b = gguf_order_joins(order) ? box_of(&here[1]) : a;

    if (!accepts(order, here[0].n_dims) ||
        (gguf_order_joins(order) && here[1].n_dims != here[0].n_dims))
        return -EINVAL;
    *placement = (struct gguf_placement){.here = {here[0], here[1]}};
    if (order == GGUF_TRANSPOSED && here[0].n_dims == 1)
        order = GGUF_SAME_ORDER;
    if (here[0].n_dims == 2 && (order == GGUF_ALTERNATING || order == GGUF_BOTH_EXPERTS)) {
        a = (struct box){a.r, a.c, 1}; /* biases of experts: a row of numbers for each */
        b = (struct box){b.r, b.c, 1};
    }
    placement->there = shape_there(order, &here[0], a, b);
    return place(order, sizes, a, b, placement);
}
