/*
 * The output of unpackers. The integers of sixteen rows go to a panel or, for a single column,
 * straight into sums of products, without passing through memory. Scales and minima go to the panel
 * in both cases, before the integers of their group.
 *
 * Integers come in stages of stage_elements, in any order within a stage. Types whose blocks are
 * shorter than a panel have a stage for each block; the last panel of a row may have fewer stages.
 */
#pragma once

#include "dequant/kernels/panel_totals.h"
#include "dequant/kernels/words.h"

/* The input and output of a sink; all members are constants where functions are inlined. */
struct sink_kind {
    struct dequant_form form;
    size_t stage_elements;
    size_t row_bytes; /* of the elements of a panel */
    bool is_column;   /* integers go to products with a column */

    /* For row_products.h: sums of a stage, their numbers are of 32 bits, zero point to subtract. */
    size_t n_sums;
    bool is_wide;
    int32_t zero;
};

struct sink {
    struct dequant_panel *panel;
    size_t n_stages; /* of the panel that the rows have */
    size_t first;    /* the first element of the stage in the panel */

    /* For a column: */
    const struct dequant_activations *x;
    /* Sums of the stage: one per group if an accumulator holds a group, otherwise one per part. */
    int_vector sums[DEQUANT_PANEL_ELEMENTS / 16][FLOAT_PARTS];
    struct part_sums part_sums[FLOAT_PARTS];
    float_vector totals[FLOAT_PARTS];
    const uint8_t *next; /* bytes that are needed soon, to be fetched during the stage */
    size_t n_put;        /* steps of the stage so far */
};

/* Return true if an accumulator holds the products of a group. */
INLINE bool holds_groups(const struct dequant_form *form)
{
    return 4 * LANES_DEPTH(form->greatest) >= form->group_elements;
}

/* Elements of a part, which shares d * dx. */
INLINE size_t part_elements(const struct dequant_form *form)
{
    return has_scales(form) ? DEQUANT_SCALED_ELEMENTS : form->span_elements;
}

/* Elements whose products one of a sink's sums holds. */
INLINE size_t sum_elements(const struct dequant_form *form)
{
    return holds_groups(form) ? form->group_elements : part_elements(form);
}

/*
 * Add the products of four elements to `sum`: to the accumulator of their group, or, times its
 * scale, to the sum of their part.
 */
INLINE int_vector sink_dot(const struct dequant_form *form, const struct sink *sink, size_t group,
                           size_t row, int_vector sum, int_vector q, int_vector x)
{
    int_vector products;

    if (holds_groups(form))
        return lanes_dot_of(form, sum, q, x);
    products = lanes_dot_of(form, lanes_all(0), q, x);
    return has_scales(form)
               ? add_scaled(form, sum, products, lanes_load(sink->panel->scales[group][row]))
               : lanes_add_accumulator(sum, products);
}

/* Bytes of sixteen rows that make a stage. */
INLINE size_t stage_bytes(const struct sink_kind *kind)
{
    return DEQUANT_PANEL_ROWS * kind->row_bytes * kind->stage_elements / DEQUANT_PANEL_ELEMENTS;
}

/*
 * Fetch the share of a step of a stage in the bytes that are needed soon: in the order of the
 * bytes, in which the CPU fetches further lines by itself.
 */
INLINE void sink_fetch(const struct sink_kind *kind, struct sink *sink)
{
    enum { LINE_BYTES = 64 };
    const size_t n_steps = kind->stage_elements / 4, step = sink->n_put++;
    const size_t n_lines = (stage_bytes(kind) + LINE_BYTES - 1) / LINE_BYTES;

    UNROLL
    for (size_t i = n_lines * step / n_steps; i < n_lines * (step + 1) / n_steps; i++)
        __builtin_prefetch(sink->next + i * LINE_BYTES, 0, 2);
}

/* Put elements 4 * step to 4 * step + 3 of the stage, of each row. */
INLINE void sink_put(const struct sink_kind *kind, struct sink *sink, size_t step, words q)
{
    const size_t group = (sink->first + 4 * step) / kind->form.group_elements;
    int_vector *sums = sink->sums[4 * step / sum_elements(&kind->form)];
    int_vector x;

    if (!kind->is_column) {
        words_store(sink->panel->q[sink->first / 4 + step], q);
        return;
    }
    sink_fetch(kind, sink);
    x = four_of(sink->x, sink->first / 4 + step);
    UNROLL
    for (size_t i = 0; i < FLOAT_PARTS; i++)
        sums[i] =
            sink_dot(&kind->form, sink, group, FLOAT_WIDTH * i, sums[i], (int_vector)q.v[i], x);
}

/* Return the sum of a part of the stage: of s * q * qx, or of (q - z) * qx without integer scales.
 */
INLINE int_vector sink_sum(const struct dequant_form *form, const struct sink *sink, size_t part,
                           size_t i)
{
    const size_t n_groups = part_elements(form) / form->group_elements;
    const size_t first_part = sink->first / part_elements(form);
    int_vector sum = has_scales(form) ? lanes_all(0) : span_start(form, first_part + part, sink->x);

    if (!holds_groups(form))
        return sum + sink->sums[part][i];
    if (!has_scales(form))
        return lanes_add_accumulator(sum, sink->sums[part][i]);
    UNROLL
    for (size_t group = part * n_groups; group < (part + 1) * n_groups; group++) {
        const size_t in_panel = sink->first / form->group_elements + group;

        sum = add_scaled(form, sum, sink->sums[group][i],
                         lanes_load(sink->panel->scales[in_panel][FLOAT_WIDTH * i]));
    }
    return sum;
}

INLINE void sink_clear(const struct sink_kind *kind, struct sink *sink)
{
    sink->n_put = 0;
    UNROLL
    for (size_t sum = 0; sum < kind->stage_elements / sum_elements(&kind->form); sum++) {
        UNROLL
        for (size_t i = 0; i < FLOAT_PARTS; i++)
            sink->sums[sum][i] = lanes_all(0);
    }
}

/* Begin a panel. */
INLINE void sink_start(const struct sink_kind *kind, struct sink *sink)
{
    sink->first = 0;
    sink_clear(kind, sink);
    UNROLL
    for (size_t i = 0; i < FLOAT_PARTS; i++)
        sink->part_sums[i] = (struct part_sums){float_all(0), float_all(0)};
}

/* End a stage and begin the next one. */
INLINE void sink_end_stage(const struct sink_kind *kind, struct sink *sink)
{
    const struct dequant_form *form = &kind->form;
    const size_t first_part = sink->first / part_elements(form);

    if (kind->is_column) {
        UNROLL
        for (size_t part = 0; part < kind->stage_elements / part_elements(form); part++) {
            UNROLL
            for (size_t i = 0; i < FLOAT_PARTS; i++) {
                const int_vector sum = sink_sum(form, sink, part, i);

                if (has_scales(form))
                    add_part(form, sink->panel, FLOAT_WIDTH * i, first_part + part, sink->x, sum,
                             &sink->part_sums[i]);
                else
                    sink->totals[i] = add_span(form, sink->panel, FLOAT_WIDTH * i,
                                               first_part + part, sink->x, sum, sink->totals[i]);
            }
        }
        sink_clear(kind, sink);
        sink->next += stage_bytes(kind);
    }
    sink->first += kind->stage_elements;
}

/* End a panel of products with a column. */
INLINE void sink_end(const struct sink_kind *kind, struct sink *sink)
{
    if (!has_scales(&kind->form))
        return;
    UNROLL
    for (size_t i = 0; i < FLOAT_PARTS; i++)
        sink->totals[i] = add_parts(&kind->form, sink->panel, FLOAT_WIDTH * i, &sink->part_sums[i],
                                    sink->totals[i]);
}

/*
 * Begins the function that puts n_blocks blocks of each row, all elements of a panel, into a sink,
 * and defines the unpacker of the type and its product with a column by it.
 */
#define SINK_UNPACKER(type, n_blocks, stage)                                                       \
    SINK_FUNCTIONS(type, n_blocks, stage, stage, type, 0, false, 0)

/* The same; add_panel() multiplies a panel with a column, in stages of column_stage elements. */
#define SINK_FUNCTIONS(type, n_blocks, stage, column_stage, add_panel, ...)                        \
    SINK_UNPACKER_HEAD(type);                                                                      \
                                                                                                   \
    void SIMD_NAME(unpack_##type)(const void *rows, size_t row_bytes, struct dequant_panel *panel) \
    {                                                                                              \
        static const struct sink_kind kind = {.form = DEQUANT_FORM_##type,                         \
                                              .stage_elements = stage};                            \
        struct sink sink = {.panel = panel, .n_stages = DEQUANT_PANEL_ELEMENTS / (stage)};         \
                                                                                                   \
        type(rows, row_bytes, &kind, &sink);                                                       \
    }                                                                                              \
                                                                                                   \
    void SIMD_NAME(multiply_##type)(const void *rows, size_t row_bytes, size_t n_elements,         \
                                    const struct dequant_activations *x,                           \
                                    float sums[DEQUANT_PANEL_ROWS])                                \
    {                                                                                              \
        static const struct sink_kind kind = {DEQUANT_FORM_##type, column_stage,                   \
                                              (n_blocks) * sizeof(struct dequant_##type), true,    \
                                              __VA_ARGS__};                                        \
        const uint8_t *blocks = rows;                                                              \
        struct dequant_panel panel;                                                                \
        struct sink sink;                                                                          \
                                                                                                   \
        sink.panel = &panel;                                                                       \
        sink.next = blocks + DEQUANT_PANEL_ROWS * row_bytes;                                       \
        for (size_t i = 0; i < FLOAT_PARTS; i++)                                                   \
            sink.totals[i] = float_load(sums + FLOAT_WIDTH * i);                                   \
        for (size_t i = 0; i * DEQUANT_PANEL_ELEMENTS < n_elements; i++) {                         \
            const size_t left = n_elements - i * DEQUANT_PANEL_ELEMENTS;                           \
                                                                                                   \
            sink.x = x + i;                                                                        \
            sink.n_stages =                                                                        \
                (left < DEQUANT_PANEL_ELEMENTS ? left : DEQUANT_PANEL_ELEMENTS) / (column_stage);  \
            sink_start(&kind, &sink);                                                              \
            add_panel(blocks + i * kind.row_bytes, row_bytes, &kind, &sink);                       \
            sink_end(&kind, &sink);                                                                \
        }                                                                                          \
        for (size_t i = 0; i < FLOAT_PARTS; i++)                                                   \
            float_store(sums + FLOAT_WIDTH * i, sink.totals[i]);                                   \
    }                                                                                              \
                                                                                                   \
    SINK_UNPACKER_HEAD(type)

#define SINK_UNPACKER_HEAD(type)                                                                   \
    INLINE void type(const void *rows, size_t row_bytes, const struct sink_kind *kind,             \
                     struct sink *sink)
