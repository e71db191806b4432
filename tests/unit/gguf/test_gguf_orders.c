/* Orders of elements: both directions, against the formulas written as loops. */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "gguf/models/orders.h"
#include "tests/unit/gguf/model_file.h"
#include "tests/unit/gguf/way_back.h"

#define MAX_ELEMENTS 4096

/* For each element elsewhere, its position in GGUF; the second tensor's begin at MAX_ELEMENTS. */
struct map {
    uint64_t n;
    uint64_t here[2 * MAX_ELEMENTS];
};

static void put(struct map *map, unsigned tensor, uint64_t here)
{
    cr_assert_lt(map->n, (uint64_t)COUNT(map->here));
    map->here[map->n++] = tensor * MAX_ELEMENTS + here;
}

/* Make the map that a placement describes, and check that it has each element once. */
static void map_of(const struct gguf_placement *placement, struct map *map)
{
    static bool is_used[2 * MAX_ELEMENTS];

    memset(is_used, 0, sizeof is_used);
    memset(map->here, 0xff, sizeof map->here);
    map->n = 0;
    for (unsigned i = 0; i < placement->n_segments; i++) {
        const struct gguf_order_segment *segment = &placement->segments[i];
        uint64_t n = 1;

        for (unsigned k = 0; k < segment->n_axes; k++)
            n *= segment->axes[k].size;
        for (uint64_t j = 0; j < n; j++) {
            uint64_t here = segment->here, there = segment->there, rest = j;

            for (unsigned k = segment->n_axes; k-- > 0; rest /= segment->axes[k].size) {
                here += rest % segment->axes[k].size * segment->axes[k].here;
                there += rest % segment->axes[k].size * segment->axes[k].there;
            }
            here += segment->tensor * MAX_ELEMENTS;
            cr_assert_lt(here, (uint64_t)COUNT(is_used));
            cr_expect_not(is_used[here], "element %lu twice", here);
            is_used[here] = true;
            cr_expect_eq(map->here[there], UINT64_MAX);
            map->here[there] = here;
            map->n++;
        }
    }
    for (uint64_t i = 0; i < map->n; i++)
        cr_expect_neq(map->here[i], UINT64_MAX);
}

/* The converter's formulas, as loops over the elements of the checkpoint. */
static void expect_qkv(struct map *map, uint64_t n_groups, uint64_t n_q, uint64_t width, uint64_t c)
{
    for (uint64_t g = 0; g < n_groups; g++)
        for (uint64_t part = 0; part < n_q + 2; part++)
            for (uint64_t i = 0; i < width * c; i++)
                put(map, 0,
                    part < n_q ? (g * n_q + part) * width * c + i
                               : (n_groups * (n_q + part - n_q) + g) * width * c + i);
}

static void expect_map(enum gguf_order order, const struct gguf_order_sizes *z,
                       const struct gguf_order_shape here[2], struct map *map)
{
    const uint64_t *s = here[0].size, *t = here[1].size, per_k = z->n_k ? z->n_v / z->n_k : 0;

    map->n = 0;
    switch (order) {
    case GGUF_TRANSPOSED: /* s = row column */
        for (uint64_t column = 0; column < s[1]; column++)
            for (uint64_t row = 0; row < s[0]; row++)
                put(map, 0, row * s[1] + column);
        break;
    case GGUF_BY_COLUMNS: /* s = expert row column */
        for (uint64_t i = 0; i < s[0] * s[2]; i++)
            for (uint64_t row = 0; row < s[1]; row++)
                put(map, 0, (i / s[2] * s[1] + row) * s[2] + i % s[2]);
        break;
    case GGUF_PAIRS_Q:
        for (uint64_t row = 0; row < s[0]; row++)
            for (uint64_t c = 0; c < s[1]; c++) {
                const uint64_t width = s[0] / z->n_head, i = row % width;
                const uint64_t stored = i < width / 2 ? 2 * i : 2 * (i - width / 2) + 1;

                put(map, 0, (row - i + stored) * s[1] + c);
            }
        break;
    case GGUF_HALVES_K:
        for (uint64_t row = 0; row < s[0]; row++)
            for (uint64_t c = 0; c < s[1]; c++) {
                const uint64_t i = row % (s[0] / z->n_head_kv);
                const uint64_t stored = i >= z->n_rot ? i : i / 2 + i % 2 * (z->n_rot / 2);

                put(map, 0, (row - i + stored) * s[1] + c);
            }
        break;
    case GGUF_VALUE_ROWS:
        for (uint64_t head = 0; head < z->n_v; head++)
            for (uint64_t i = 0; i < s[0] / z->n_v * s[1]; i++)
                put(map, 0, (head % per_k * z->n_k + head / per_k) * (s[0] / z->n_v * s[1]) + i);
        break;
    case GGUF_VALUE_COLUMNS:
        for (uint64_t row = 0; row < s[0]; row++)
            for (uint64_t head = 0; head < z->n_v; head++)
                for (uint64_t i = 0; i < s[1] / z->n_v; i++)
                    put(map, 0,
                        row * s[1] + (head % per_k * z->n_k + head / per_k) * (s[1] / z->n_v) + i);
        break;
    case GGUF_QKV_BY_HEAD:
        for (uint64_t head = 0; head < z->n_head; head++)
            for (uint64_t part = 0; part < 3; part++)
                for (uint64_t i = 0; i < s[0] / z->n_head / 3 * s[1]; i++)
                    put(map, 0, (part * z->n_head + head) * (s[0] / z->n_head / 3 * s[1]) + i);
        break;
    case GGUF_QKV_BY_GROUP: {
        const uint64_t n_q = z->n_head / z->n_head_kv;

        expect_qkv(map, z->n_head_kv, n_q, s[0] / z->n_head_kv / (n_q + 2), s[1]);
        break;
    }
    case GGUF_BOTH_ROWS:
        for (uint64_t i = 0; i < 2 * s[0] * s[1]; i++)
            put(map, (unsigned)(i / (s[0] * s[1])), i % (s[0] * s[1]));
        break;
    case GGUF_BOTH_EXPERTS:
        for (uint64_t i = 0; i < 2 * s[0]; i++)
            for (uint64_t j = 0; j < s[1] * s[2]; j++)
                put(map, i % 2, i / 2 * s[1] * s[2] + j);
        break;
    case GGUF_BOTH_COLUMNS:
        for (uint64_t i = 0; i < s[0] * s[2]; i++)
            for (uint64_t row = 0; row < 2 * s[1]; row++)
                put(map, row >= s[1], (i / s[2] * s[1] + row % s[1]) * s[2] + i % s[2]);
        break;
    case GGUF_ALTERNATING:
        for (uint64_t i = 0; i < s[0] * s[2]; i++)
            for (uint64_t row = 0; row < 2 * s[1]; row++)
                put(map, row % 2, (i / s[2] * s[1] + row / 2) * s[2] + i % s[2]);
        break;
    case GGUF_QKVZ_BY_HEAD:
        for (uint64_t k = 0; k < z->n_k; k++) {
            const uint64_t key = z->width_k * s[1], value = per_k * z->width_v * s[1];

            for (uint64_t i = 0; i < key; i++)
                put(map, 0, k * key + i);
            for (uint64_t i = 0; i < key; i++)
                put(map, 0, (z->n_k + k) * key + i);
            for (uint64_t i = 0; i < value; i++)
                put(map, 0, 2 * z->n_k * key + k * value + i);
            for (uint64_t i = 0; i < value; i++)
                put(map, 1, k * value + i);
        }
        break;
    case GGUF_LATENT_KV: /* s = head rank key, t = head value rank */
        for (uint64_t head = 0; head < s[0]; head++) {
            for (uint64_t key = 0; key < s[2]; key++)
                for (uint64_t rank = 0; rank < s[1]; rank++)
                    put(map, 0, (head * s[1] + rank) * s[2] + key);
            for (uint64_t i = 0; i < t[1] * t[2]; i++)
                put(map, 1, head * t[1] * t[2] + i);
        }
        break;
    default:
        for (uint64_t i = 0, n = s[0] * s[1] * (here[0].n_dims > 2 ? s[2] : 1); i < n; i++)
            put(map, 0, i);
    }
}

/* Random sizes that fit an order. */
static void make_case(enum gguf_order order, uint64_t *state, struct gguf_order_sizes *z,
                      struct way_back_sizes *more, struct gguf_order_shape here[2])
{
#define UP_TO(n) (1 + model_file_random(state) % (n))
    const uint64_t a = UP_TO(4), b = UP_TO(4), c = UP_TO(5), per_k = UP_TO(3), groups = UP_TO(3);
    const bool is_cube = order == GGUF_BY_ROWS || order == GGUF_BY_COLUMNS ||
                         (order >= GGUF_BOTH_EXPERTS && order <= GGUF_ALTERNATING) ||
                         order == GGUF_LATENT_KV;

    *z = (struct gguf_order_sizes){.n_head_kv = groups,
                                   .n_head = groups * UP_TO(3),
                                   .n_rot = 2 * a,
                                   .n_k = b,
                                   .n_v = b * per_k,
                                   .width_k = UP_TO(3),
                                   .width_v = UP_TO(3)};
    here[0] = (struct gguf_order_shape){2, {a * b * 2, c}};
    if (is_cube)
        here[0] = (struct gguf_order_shape){3, {a, b, c}};
    here[1] = here[0];
    more->n_expert = a;
    if (order == GGUF_PAIRS_Q || order == GGUF_HALVES_Q)
        here[0].size[0] = z->n_head * (z->n_rot + (order == GGUF_HALVES_Q ? 2 : 0));
    if (order == GGUF_PAIRS_K || order == GGUF_HALVES_K)
        here[0].size[0] = z->n_head_kv * z->n_rot;
    if (order == GGUF_VALUE_ROWS)
        here[0].size[0] = z->n_v * z->width_v;
    if (order == GGUF_VALUE_COLUMNS)
        here[0].size[1] = z->n_v * z->width_v;
    if (order == GGUF_VALUE_ROWS_AFTER_QK || order == GGUF_VALUE_ROWS_OF_CONV ||
        order == GGUF_QKVZ_BY_HEAD)
        here[0].size[0] = 2 * z->n_k * z->width_k + z->n_v * z->width_v;
    if (order == GGUF_QKVZ_BY_HEAD)
        here[1].size[0] = z->n_v * z->width_v;
    if (order == GGUF_QKV_BY_HEAD)
        here[0].size[0] = 3 * z->n_head * a;
    if (order == GGUF_QKV_BY_GROUP)
        here[0].size[0] = (z->n_head + 2 * groups) * a;
    if (order == GGUF_LATENT_KV) {
        z->n_head = a;
        more->width_key = c;
        more->width_value = UP_TO(4);
        here[1] = (struct gguf_order_shape){3, {a, more->width_value, b}};
    }
    if (order == GGUF_ONE_ROW || order == GGUF_THIRD || order == GGUF_FLAT)
        here[0] = (struct gguf_order_shape){1, {a * b * 2, 1}};
#undef UP_TO
}

Test(gguf_orders, both_directions)
{
    static struct map found, expected;
    uint64_t state = 1;

    for (unsigned i = 0; i < 40 * GGUF_N_ORDERS; i++) {
        const enum gguf_order order = i % GGUF_N_ORDERS;
        struct gguf_order_sizes sizes;
        struct way_back_sizes more = {0};
        struct gguf_order_shape here[2];
        struct gguf_placement placement, back;

        make_case(order, &state, &sizes, &more, here);
        cr_assert_eq(gguf_order_from_here(order, &sizes, here, &placement), 0, "order %u", order);
        map_of(&placement, &found);
        if (order != GGUF_VALUE_ROWS_AFTER_QK && order != GGUF_VALUE_ROWS_OF_CONV &&
            order != GGUF_PAIRS_K && order != GGUF_HALVES_Q) {
            expect_map(order, &sizes, here, &expected);
            cr_assert_eq(found.n, expected.n, "order %u", order);
            cr_expect_arr_eq(found.here, expected.here, found.n * sizeof *found.here, "order %u",
                             order);
        }
        cr_assert_eq(way_back_placement(order, &sizes, &more, &placement.there, &back), 0,
                     "order %u", order);
        for (unsigned t = 0; t < (gguf_order_joins(order) ? 2u : 1u); t++)
            cr_expect(back.here[t].n_dims == here[t].n_dims &&
                          memcmp(back.here[t].size, here[t].size,
                                 here[t].n_dims * sizeof *here[t].size) == 0,
                      "order %u", order);
        map_of(&back, &expected);
        cr_expect_arr_eq(found.here, expected.here, found.n * sizeof *found.here, "order %u",
                         order);
    }
}

Test(gguf_orders, sizes_that_do_not_fit)
{
    const struct gguf_order_shape here[2] = {{2, {12, 4}}, {2, {8, 4}}};
    const struct gguf_order_sizes wrong[] = {
        {0},
        {.n_head = 5, .n_head_kv = 5, .n_k = 5, .n_v = 5, .width_k = 1, .width_v = 1, .n_rot = 2},
        {.n_head = UINT64_MAX,
         .n_head_kv = UINT64_MAX / 2,
         .n_k = UINT64_MAX,
         .n_v = UINT64_MAX,
         .width_k = UINT64_MAX,
         .width_v = UINT64_MAX,
         .n_rot = UINT64_MAX},
    };

    for (unsigned order = GGUF_PAIRS_Q; order < GGUF_BOTH_ROWS; order++) {
        for (size_t i = 0; i < COUNT(wrong); i++) {
            struct gguf_placement placement;

            cr_expect_eq(gguf_order_from_here(order, &wrong[i], here, &placement), -EINVAL,
                         "order %u, sizes %zu", order, i);
        }
    }
}
