#include "tests/unit/gguf/way_back.h"

#include <errno.h>

const struct gguf_rename *way_back_rename(const struct gguf_names *names, struct gguf_string other,
                                          struct gguf_name_match *match)
{
    for (size_t i = 0; i < names->count; i++) {
        const struct gguf_rename *rename = &names->list[i];

        if (rename->other && gguf_tensor_name_matches(other, rename->other, match))
            return rename;
    }
    return NULL;
}

static uint64_t count(const struct gguf_order_shape *shape)
{
    uint64_t n = 1;

    for (unsigned i = 0; i < shape->n_dims; i++)
        n *= shape->size[i];
    return n;
}

static struct gguf_order_shape flat(uint64_t n)
{
    return (struct gguf_order_shape){1, {n}};
}

static struct gguf_order_shape matrix(uint64_t rows, uint64_t columns)
{
    return (struct gguf_order_shape){2, {rows, columns}};
}

static struct gguf_order_shape cube(uint64_t a, uint64_t b, uint64_t c)
{
    return (struct gguf_order_shape){3, {a, b, c}};
}

int way_back_placement(enum gguf_order order, const struct gguf_order_sizes *sizes,
                       const struct way_back_sizes *more, const struct gguf_order_shape *there,
                       struct gguf_placement *placement)
{
    struct gguf_order_shape here[2] = {*there, *there};
    const uint64_t *size = there->size, n = count(there);
    const unsigned n_dims = there->n_dims;
    const uint64_t last = n_dims > 0 ? size[n_dims - 1] : 1;

    if (n_dims == 0 || n_dims > GGUF_ORDER_DIMS || n == 0)
        return order == GGUF_SAME_ORDER ? gguf_order_from_here(order, sizes, here, placement)
                                        : -EINVAL;
    switch (order) {
    case GGUF_ONE_ROW:
        if (n_dims == 2 && size[0] == 1)
            here[0] = flat(n);
        break;
    case GGUF_THIRD:
        here[0] = flat(n);
        break;
    case GGUF_NO_MIDDLE:
    case GGUF_VALUE_ROWS_OF_CONV:
        here[0] = matrix(n / last, last);
        break;
    case GGUF_TRANSPOSED:
        here[0] = n_dims == 3   ? cube(size[0], size[2], size[1])
                  : n_dims == 2 ? matrix(size[1], size[0])
                                : *there;
        break;
    case GGUF_BY_ROWS:
    case GGUF_BY_COLUMNS:
        if (more->n_expert == 0 || size[0] % more->n_expert != 0)
            return -EINVAL;
        here[0] = order == GGUF_BY_ROWS ? cube(more->n_expert, size[0] / more->n_expert, last)
                                        : cube(more->n_expert, last, size[0] / more->n_expert);
        break;
    case GGUF_BOTH_ROWS:
        here[0].size[0] /= 2;
        break;
    case GGUF_BOTH_EXPERTS:
        here[0].size[1] /= 2;
        break;
    case GGUF_BOTH_COLUMNS:
    case GGUF_ALTERNATING:
        here[0] = n_dims == 2 ? matrix(size[0], size[1] / 2) : cube(size[0], last / 2, size[1]);
        break;
    case GGUF_QKVZ_BY_HEAD:
        if (sizes->n_v > UINT32_MAX || sizes->width_v > UINT32_MAX ||
            sizes->n_v * sizes->width_v >= size[0])
            return -EINVAL;
        here[1] = matrix(sizes->n_v * sizes->width_v, last);
        here[0] = matrix(size[0] - here[1].size[0], last);
        break;
    case GGUF_LATENT_KV:
        here[0] = cube(sizes->n_head, last, more->width_key);
        here[1] = cube(sizes->n_head, more->width_value, last);
        break;
    default:
        break;
    }
    if (order >= GGUF_BOTH_ROWS && order <= GGUF_ALTERNATING)
        here[1] = here[0];
    if (gguf_order_from_here(order, sizes, here, placement) < 0 ||
        placement->there.n_dims != n_dims || count(&placement->there) != n)
        return -EINVAL;
    for (unsigned i = 0; i < n_dims; i++) {
        if (order != GGUF_FLAT && placement->there.size[i] != size[i])
            return -EINVAL;
    }
    return 0;
}
