#include "fs/tree/views/view_files.h"

#include <stdio.h>

/* In pixels. */
enum { WIDTH = 560, HEIGHT = 260, LEFT = 24, TOP = 56, BAR = 8, BARS_HEIGHT = 150 };
enum { BOTTOM = TOP + BARS_HEIGHT, RIGHT = LEFT + BAR * FS_STATISTICS_BINS };

static uint64_t largest_count(const struct fs_histogram *histogram)
{
    uint64_t largest = 1;

    for (unsigned i = 0; i < FS_STATISTICS_BINS; i++)
        largest = histogram->counts[i] > largest ? histogram->counts[i] : largest;
    return largest;
}

/* Write a number, with blanks up to a fixed width. */
static void write_number(struct fs_sink *sink, const char *name, double number)
{
    char text[64];

    snprintf(text, sizeof text, "%s%.6g", name, number);
    fs_sink_print(sink, "%-24s", text);
}

static void write_bars(const struct fs_histogram *histogram, struct fs_sink *sink)
{
    const double scale = (double)BARS_HEIGHT / (double)largest_count(histogram);

    for (unsigned i = 0; i < FS_STATISTICS_BINS; i++) {
        const double height = (double)histogram->counts[i] * scale;

        /* Zeros in front keep the width. */
        fs_sink_print(sink, "<rect x=\"%03u\" y=\"%06.2f\" width=\"%d\" height=\"%06.2f\"><title>",
                      LEFT + i * BAR, BOTTOM - height, BAR - 1, height);
        fs_sink_print(sink, "%20llu from ", (unsigned long long)histogram->counts[i]);
        write_number(sink, "", fs_histogram_edge(histogram, i));
        fs_sink_literal(sink, "</title></rect>\n");
    }
}

void fs_histogram_svg_write(const struct fs_tree *tree, const struct gguf_tensor *tensor,
                            const struct fs_statistics *statistics, struct fs_sink *sink)
{
    (void)tree;
    (void)tensor;
    fs_sink_print(sink,
                  "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
                  "viewBox=\"0 0 %d %d\" font-family=\"sans-serif\" font-size=\"12\">\n"
                  "<rect width=\"100%%\" height=\"100%%\" fill=\"#ffffff\"/>\n"
                  "<g fill=\"#222222\">\n<text x=\"%d\" y=\"22\">",
                  WIDTH, HEIGHT, WIDTH, HEIGHT, LEFT);
    write_number(sink, "mean ", statistics->mean);
    write_number(sink, "std ", fs_standard_deviation(statistics));
    write_number(sink, "min ", (double)statistics->min);
    write_number(sink, "max ", (double)statistics->max);
    fs_sink_print(sink, "</text>\n<text x=\"%d\" y=\"40\">zeros %-20llu NaN %-20llu inf %-20llu",
                  LEFT, (unsigned long long)statistics->n_zeros,
                  (unsigned long long)statistics->n_nan,
                  (unsigned long long)statistics->n_infinite);
    fs_sink_print(sink, "</text>\n<text x=\"%d\" y=\"%d\">", LEFT, BOTTOM + 20);
    write_number(sink, "", fs_histogram_edge(&statistics->histogram, 0));
    fs_sink_print(sink, "</text>\n<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">",
                  (LEFT + RIGHT) / 2, BOTTOM + 20);
    write_number(sink, "", fs_histogram_edge(&statistics->histogram, FS_STATISTICS_BINS / 2));
    fs_sink_print(sink, "</text>\n<text x=\"%d\" y=\"%d\" text-anchor=\"end\">", RIGHT,
                  BOTTOM + 20);
    write_number(sink, "", fs_histogram_edge(&statistics->histogram, FS_STATISTICS_BINS));
    fs_sink_print(sink, "</text>\n<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"1\"/>\n</g>\n",
                  LEFT, BOTTOM, RIGHT - LEFT);
    fs_sink_literal(sink, "<g fill=\"#3b6fb0\">\n");
    write_bars(&statistics->histogram, sink);
    fs_sink_literal(sink, "</g>\n</svg>\n");
}
