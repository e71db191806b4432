/*
 * Where unpackers put the integers of sixteen rows: to a panel, or, for a single column, straight
 * into sums of products, so that they need not go through memory. Scales and minima go to the
 * panel in both cases, those of a group before its integers.
 *
 * All indices and forms are constants after inlining, so loops of unpackers are unrolled.
 */
#ifndef GGUFS_DEQUANT_KERNELS_SINK_H
#define GGUFS_DEQUANT_KERNELS_SINK_H

#include "dequant/kernels/panel_totals.h"
#include "dequant/kernels/words.h"

/* Part i of LANES_PARTS of the rows. */
#if defined(__AVX512VNNI__)
static inline lanes words_part(words v, size_t i)
{
    (void)i;
    return v;
}
#elif defined(__AVX2__)
static inline lanes words_part(words v, size_t i)
{
    return i == 0 ? v.low : v.high;
}
#else
static inline lanes words_part(words v, size_t i)
{
    return vreinterpretq_s32_u32(v.v[i]);
}
#endif

struct sink {
    struct dequant_form form;
    struct dequant_panel *panel;
    const struct dequant_activations *x; /* the column, or NULL: integers go to the panel */
    /* By group where an accumulator holds one, otherwise by part or span. */
    lanes sums[DEQUANT_PANEL_ELEMENTS / 16][LANES_PARTS];

    /* Bytes that are needed soon, to be fetched while integers come in. */
    const uint8_t *next;
    size_t n_next_bytes;
};

/* Return true if an accumulator holds the products of a group. */
INLINE bool sink_holds_groups(const struct dequant_form *form)
{
    return 4 * LANES_DEPTH(form->greatest) >= form->group_elements;
}

/* Return the index in sums of the group of a step. */
INLINE size_t sink_sum_of(const struct dequant_form *form, size_t step)
{
    return 4 * step /
           (!sink_holds_groups(form) && has_scales(form) ? DEQUANT_SCALED_ELEMENTS
                                                         : form->group_elements);
}

/* Fetch the share of a step in the bytes that are needed soon. */
INLINE void sink_fetch(const struct sink *sink, size_t step)
{
    enum { LINE_BYTES = 64, STEPS = DEQUANT_PANEL_ELEMENTS / 4 };
    const size_t n_lines = (sink->n_next_bytes + LINE_BYTES - 1) / LINE_BYTES;

    for (size_t i = n_lines * step / STEPS; i < n_lines * (step + 1) / STEPS; i++)
        __builtin_prefetch(sink->next + i * LINE_BYTES, 0, 2);
}

/* Put elements 4 * step to 4 * step + 3 of each row. */
INLINE void sink_put(struct sink *sink, size_t step, words q)
{
    const struct dequant_form *form = &sink->form;
    const size_t group = 4 * step / form->group_elements;
    lanes *sums = sink->sums[sink_sum_of(form, step)];

    if (!sink->x) {
        words_store(sink->panel->q[step], q);
        return;
    }
    sink_fetch(sink, step);
    for (size_t i = 0; i < LANES_PARTS; i++) {
        const lanes four = four_of(sink->x, step), part = words_part(q, i);

        if (sink_holds_groups(form)) {
            sums[i] = lanes_dot_of(form, sums[i], part, four);
        } else {
            const lanes products = lanes_dot_of(form, lanes_all(0), part, four);

            sums[i] = has_scales(form)
                          ? lanes_add_scaled(sums[i], products,
                                             lanes_load(sink->panel->scales[group][LANES * i]))
                          : lanes_add_accumulator(sums[i], products);
        }
    }
}

/* Begin a panel. */
INLINE void sink_start(struct sink *sink)
{
    for (size_t sum = 0; sum < DEQUANT_PANEL_ELEMENTS / 16; sum++)
        for (size_t i = 0; i < LANES_PARTS; i++)
            sink->sums[sum][i] = lanes_all(0);
}

/* Return the sum of products of s and q of a part that shares dx. */
INLINE lanes sink_part(const struct sink *sink, size_t part, size_t i)
{
    const size_t n_groups = DEQUANT_SCALED_ELEMENTS / sink->form.group_elements;
    lanes sum = lanes_all(0);

    if (!sink_holds_groups(&sink->form))
        return sink->sums[part][i];
    for (size_t group = part * n_groups; group < (part + 1) * n_groups; group++)
        sum = lanes_add_scaled(sum, sink->sums[group][i],
                               lanes_load(sink->panel->scales[group][LANES * i]));
    return sum;
}

/* Add the products of a panel to the totals. */
INLINE void sink_end(const struct sink *sink, lanes_floats totals[LANES_PARTS])
{
    const struct dequant_form *form = &sink->form;
    const size_t n_parts =
        DEQUANT_PANEL_ELEMENTS / (has_scales(form) ? DEQUANT_SCALED_ELEMENTS : form->span_elements);

#pragma GCC unroll 16
    for (size_t part = 0; part < n_parts; part++) {
        for (size_t i = 0; i < LANES_PARTS; i++) {
            if (has_scales(form)) {
                totals[i] = add_part(form, sink->panel, LANES * i, part, sink->x,
                                     sink_part(sink, part, i), totals[i]);
            } else {
                const lanes start = span_start(form, part, sink->x);
                const lanes sum = sink_holds_groups(form)
                                      ? lanes_add_accumulator(start, sink->sums[part][i])
                                      : lanes_add(start, sink->sums[part][i]);

                totals[i] = add_span(form, sink->panel, LANES * i, part, sink->x, sum, totals[i]);
            }
        }
    }
}

/*
 * Defines the unpacker of a type and its product with a column from the static function TYPE, which
 * puts n_blocks blocks of each row into a sink.
 */
#define SINK_DEFINE_UNPACKER(type, n_blocks)                                                       \
    void SIMD_NAME(unpack_##type)(const void *rows, size_t row_bytes, struct dequant_panel *panel) \
    {                                                                                              \
        struct sink sink = {.form = DEQUANT_FORM_##type, .panel = panel};                          \
                                                                                                   \
        type(rows, row_bytes, &sink);                                                              \
    }                                                                                              \
                                                                                                   \
    void SIMD_NAME(multiply_##type)(const void *rows, size_t row_bytes, size_t n_panels,           \
                                    const struct dequant_activations *x,                           \
                                    float sums[DEQUANT_PANEL_ROWS])                                \
    {                                                                                              \
        const size_t step_bytes = (n_blocks) * sizeof(struct dequant_##type);                      \
        const uint8_t *blocks = rows, *next = blocks + DEQUANT_PANEL_ROWS * row_bytes;             \
        lanes_floats totals[LANES_PARTS];                                                          \
                                                                                                   \
        for (size_t i = 0; i < LANES_PARTS; i++)                                                   \
            totals[i] = lanes_load_floats(sums + LANES * i);                                       \
        for (size_t i = 0; i < n_panels; i++) {                                                    \
            struct dequant_panel panel;                                                            \
            struct sink sink = {.form = DEQUANT_FORM_##type,                                       \
                                .panel = &panel,                                                   \
                                .x = x + i,                                                        \
                                .next = next + i * DEQUANT_PANEL_ROWS * step_bytes,                \
                                .n_next_bytes = DEQUANT_PANEL_ROWS * step_bytes};                  \
                                                                                                   \
            sink_start(&sink);                                                                     \
            type(blocks + i * step_bytes, row_bytes, &sink);                                       \
            sink_end(&sink, totals);                                                               \
        }                                                                                          \
        for (size_t i = 0; i < LANES_PARTS; i++)                                                   \
            lanes_store_floats(sums + LANES * i, totals[i]);                                       \
    }

#endif
