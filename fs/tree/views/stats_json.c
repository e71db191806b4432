#include "fs/tree/views/view_files.h"

#include "fs/tree/core/tree_core.h"
#include "fs/tree/facts/facts.h"
#include "fs/tree/output/json.h"
#include "fs/tree/output/shortest.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

/* The longest text of a float64, "-1.2345678901234567e-300", and of a share, "0.123". */
#define FLOAT_BYTES     24u
#define COUNTS_PER_LINE 8u

struct writer {
    const struct fs_tree *tree;
    const struct gguf_tensor *tensor;
    uint64_t shape[GGUF_MAX_DIMS];
    uint32_t n_dims;
    unsigned count_bytes; /* the most digits of a count */
    struct fs_sink *sink;
};

/* ---- lines ---- */

/* Begin a member. Returns where its value starts. */
static uint64_t begin(const struct writer *writer, const char *name)
{
    fs_sink_print(writer->sink, "  \"%s\": ", name);
    return writer->sink->position;
}

/* End a line as long as with a value of value_bytes. */
static void end(const struct writer *writer, uint64_t start, unsigned value_bytes,
                const char *separator)
{
    fs_sink_literal(writer->sink, separator);
    value_bytes += (unsigned)strlen(separator);
    assert(writer->sink->position <= start + value_bytes);
    fs_sink_print(writer->sink, "%*s\n", (int)(start + value_bytes - writer->sink->position), "");
}

static void write_count(const struct writer *writer, const char *name, uint64_t count)
{
    const uint64_t start = begin(writer, name);

    fs_sink_unsigned(writer->sink, count);
    end(writer, start, writer->count_bytes, ",");
}

/* Write a number, or null if there are no values that it could describe. */
static void write_number(const struct writer *writer, const char *name, double number,
                         bool is_float32, bool is_there)
{
    const uint64_t start = begin(writer, name);
    struct gguf_value value = {.type = GGUF_FLOAT64, .f64 = is_there ? number : NAN};

    if (is_float32 && is_there)
        value = (struct gguf_value){.type = GGUF_FLOAT32, .f32 = (float)number};
    fs_json_scalar(writer->sink, &value); /* NaN as null */
    end(writer, start, FLOAT_BYTES, ",");
}

/* Write an index and the coordinates of its element, or null. */
static void write_place(const struct writer *writer, const char *name, uint64_t index)
{
    const uint64_t start = begin(writer, name);
    uint64_t coordinates[GGUF_MAX_DIMS];
    unsigned most = writer->count_bytes + (unsigned)strlen("{\"index\": , \"at\": []}");

    for (uint32_t i = 0; i < writer->n_dims; i++)
        most += fs_count_digits(writer->shape[i]) + (unsigned)strlen(", ");
    fs_locate(writer->tree, writer->tensor, index, coordinates);
    if (index == FS_NOWHERE) {
        fs_sink_literal(writer->sink, "null");
    } else {
        fs_sink_literal(writer->sink, "{\"index\": ");
        fs_sink_unsigned(writer->sink, index);
        fs_sink_literal(writer->sink, ", \"at\": [");
        for (uint32_t i = 0; i < writer->n_dims; i++) {
            fs_sink_literal(writer->sink, i > 0 ? ", " : "");
            fs_sink_unsigned(writer->sink, coordinates[i]);
        }
        fs_sink_literal(writer->sink, "]}");
    }
    end(writer, start, most, ",");
}

/* ---- the object ---- */

static void write_scales(const struct writer *writer, const struct fs_statistics *statistics)
{
    const bool has_scales = writer->tensor->type->is_scale_at_limit != NULL;
    const double share = statistics->n_blocks > 0
                             ? (double)statistics->n_scales_at_limit / (double)statistics->n_blocks
                             : 0;

    if (!has_scales)
        return;
    write_count(writer, "blocks", statistics->n_blocks);
    write_count(writer, "blocks_at_scale_limit", statistics->n_scales_at_limit);
    write_number(writer, "share_at_scale_limit", share, true, true);
}

static void write_histogram(const struct writer *writer, const struct fs_histogram *histogram)
{
    uint64_t start = 0;

    write_number(writer, "histogram_start", fs_histogram_edge(histogram, 0), false, true);
    write_number(writer, "histogram_step",
                 fs_histogram_edge(histogram, 1) - fs_histogram_edge(histogram, 0), false, true);
    begin(writer, "histogram");
    fs_sink_literal(writer->sink, "[\n");
    for (unsigned i = 0; i < FS_STATISTICS_BINS; i++) {
        const bool is_last_of_line = (i + 1) % COUNTS_PER_LINE == 0;

        if (i % COUNTS_PER_LINE == 0) {
            start = writer->sink->position;
            fs_sink_literal(writer->sink, "    ");
        }
        fs_sink_unsigned(writer->sink, histogram->counts[i]);
        if (i + 1 < FS_STATISTICS_BINS)
            fs_sink_literal(writer->sink, is_last_of_line ? "," : ", ");
        if (is_last_of_line)
            end(writer, start, 4 + COUNTS_PER_LINE * (writer->count_bytes + 2), "");
    }
    fs_sink_literal(writer->sink, "  ]\n");
}

/* Write the object, with blanks at the ends of lines: its size does not depend on the figures. */
static void write_object(const struct fs_tree *tree, const struct gguf_tensor *tensor,
                         const struct fs_statistics *statistics, struct fs_sink *sink)
{
    const bool is_any = statistics->n_finite > 0;
    struct writer made = {.tree = tree,
                          .tensor = tensor,
                          .count_bytes = fs_count_digits(tensor->n_elements),
                          .sink = sink};
    const struct writer *writer = &made;

    made.n_dims = fs_tensor_shape(tree, tensor, made.shape);
    fs_sink_literal(sink, "{\n");
    write_count(writer, "count", writer->tensor->n_elements);
    write_number(writer, "min", statistics->min, true, is_any);
    write_number(writer, "max", statistics->max, true, is_any);
    write_number(writer, "mean", statistics->mean, false, is_any);
    write_number(writer, "std", fs_standard_deviation(statistics), false, is_any);
    write_count(writer, "zeros", statistics->n_zeros);
    write_count(writer, "nan", statistics->n_nan);
    write_count(writer, "inf", statistics->n_infinite);
    write_place(writer, "first_nan", statistics->first_nan);
    write_place(writer, "first_inf", statistics->first_infinite);
    write_scales(writer, statistics);
    write_histogram(writer, &statistics->histogram);
    fs_sink_literal(sink, "}\n");
}

void fs_stats_json_write_members(const struct fs_tree *tree, const struct gguf_tensor *tensor,
                                 const struct fs_statistics *statistics, struct fs_sink *sink)
{
    struct fs_sink lines = fs_sink_that_grows(UINT64_MAX);

    write_object(tree, tensor, statistics, &lines);
    if (lines.error < 0)
        fs_sink_fail(sink, lines.error);
    for (uint64_t i = 0; lines.error == 0 && i < lines.position - strlen("}\n"); i++)
        fs_sink_write(sink, i == 0 ? "," : &lines.out[i],
                      lines.out[i] != ' ' && lines.out[i] != '\n');
    free(lines.out);
}

/* ---- the file ---- */

int fs_stats_json_size(const struct fs_tree *tree, const struct fs_node *node, uint64_t *size_bytes)
{
    struct fs_sink sink = fs_sink_that_counts();

    write_object(tree, node->subject, &(struct fs_statistics){0}, &sink);
    *size_bytes = sink.position;
    return 0;
}

int fs_stats_json_build(const struct fs_tree *tree, const struct fs_node *node,
                        const struct fs_interrupt *interrupt, struct fs_image *image)
{
    struct fs_sink sink = fs_sink_that_grows(UINT64_MAX);
    struct fs_statistics statistics;
    int result =
        fs_statistics_cache_get(tree->facts->statistics, node->subject, interrupt, &statistics);

    if (result < 0)
        return result;
    write_object(tree, node->subject, &statistics, &sink);
    if (sink.error < 0) {
        free(sink.out);
        return sink.error;
    }
    return fs_image_add_made(image, sink.out, sink.position);
}
