/* The errors that `ggufs --diff` has found, as a picture. */
#include "fs/command/diff_result.h"

#include "gguf/models/tensor_names.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { CELL = 18, MARGIN = 12, TITLE = 52, MAX_KINDS = 256 };
/* Widths of a character: of a label, and of the title in larger letters. */
enum { CHARACTER = 7, TITLE_CHARACTER = 9 };

/* The colours of errors of 10^-9 and less to 1 and more: from blue to red. */
static const char *const colours[] = {"#2c4f8f", "#3b6fb0", "#4f93bf", "#6fb5b5", "#9cc98f",
                                      "#cfd877", "#f2cf63", "#f0a04b", "#e0653c", "#c0282d"};
enum { N_COLOURS = sizeof colours / sizeof *colours, LEGEND_COLUMNS = 24 };

/* The kinds of tensors, in the order in which they are found. */
struct grid {
    struct gguf_string kinds[MAX_KINDS];
    size_t n_kinds;
    size_t n_layers;  /* one more than the last */
    bool has_outside; /* tensors of no layer, which have a column of their own */
    size_t longest;   /* bytes of a name */
};

/* Divide a name into its layer and kind. Returns -1 if it is of no layer. */
static long divide(const struct gguf_tensor *tensor, struct gguf_string *kind)
{
    struct gguf_string layer;
    long number = 0;

    if (!gguf_tensor_name_split(gguf_name_of(tensor), &layer, kind)) {
        *kind = gguf_name_of(tensor);
        return -1;
    }
    for (size_t i = 0; i < layer.length_bytes && number < GGUF_MAX_LAYERS; i++)
        number = 10 * number + (layer.data[i] - '0');
    return number;
}

static size_t row_of(struct grid *grid, struct gguf_string kind)
{
    size_t row = 0;

    while (row < grid->n_kinds && gguf_string_compare(grid->kinds[row], kind) != 0)
        row++;
    if (row == grid->n_kinds && row < MAX_KINDS) {
        grid->kinds[grid->n_kinds++] = kind;
        if (kind.length_bytes > grid->longest)
            grid->longest = kind.length_bytes;
    }
    return row;
}

static int compare_kinds(const void *a, const void *b)
{
    return gguf_string_compare(*(const struct gguf_string *)a, *(const struct gguf_string *)b);
}

static void collect(const struct fs_diff *diff, struct grid *grid)
{
    for (size_t i = 0; i < diff->n_tensors; i++) {
        struct gguf_string kind;
        long layer;

        if (!diff->tensors[i].is_compared)
            continue;
        layer = divide(diff->tensors[i].tensors[0], &kind);
        if (layer >= GGUF_MAX_LAYERS)
            continue;
        row_of(grid, kind);
        grid->has_outside |= layer < 0;
        if (layer >= 0 && (size_t)layer + 1 > grid->n_layers)
            grid->n_layers = (size_t)layer + 1;
    }
    qsort(grid->kinds, grid->n_kinds, sizeof *grid->kinds, compare_kinds);
}

static const char *colour_of(double nmse)
{
    const double place = nmse > 0 ? log10(nmse) + N_COLOURS - 1 : 0;

    if (nmse == 0)
        return "#808080";
    if (!(place > 0))
        return colours[0];
    return colours[place < N_COLOURS - 1 ? (int)place : N_COLOURS - 1];
}

/* Write text with the characters of XML escaped; others than plain ones become '?'. */
static void write_text(FILE *out, const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        if (text[i] == '<' || text[i] == '>' || text[i] == '&' || text[i] == '"')
            fprintf(out, "&#%d;", text[i]);
        else
            putc(text[i] >= ' ' && text[i] < 127 ? text[i] : '?', out);
    }
}

static void draw_cell(FILE *out, const struct fs_tensor_pair *pair, size_t x, size_t y)
{
    const struct gguf_string name = gguf_name_of(pair->tensors[0]);
    const double nmse = fs_comparison_nmse(&pair->comparison);

    fprintf(out,
            "<rect x=\"%zu\" y=\"%zu\" width=\"%d\" height=\"%d\" rx=\"2\" fill=\"%s\"><title>", x,
            y, CELL - 2, CELL - 2, colour_of(nmse));
    write_text(out, name.data, name.length_bytes);
    fprintf(out, ": %s / %s, NMSE %.4g</title></rect>\n", pair->tensors[0]->type->name,
            pair->tensors[1]->type->name, nmse);
}

static void draw_legend(FILE *out, size_t x, size_t y)
{
    fprintf(out, "<rect x=\"%zu\" y=\"%zu\" width=\"%d\" height=\"10\" fill=\"#808080\"/>\n", x, y,
            2 * CELL);
    fprintf(out, "<text x=\"%zu\" y=\"%zu\">equal</text>\n", x, y + 24);
    for (size_t i = 0; i < N_COLOURS; i++) {
        const size_t at = x + (2 * i + 3) * CELL;

        fprintf(out, "<rect x=\"%zu\" y=\"%zu\" width=\"%d\" height=\"10\" fill=\"%s\"/>\n", at, y,
                2 * CELL, colours[i]);
        fprintf(out, "<text x=\"%zu\" y=\"%zu\" text-anchor=\"middle\">", at, y + 24);
        fprintf(out, i + 1 < N_COLOURS ? "1e-%zu</text>\n" : "1</text>\n", N_COLOURS - 1 - i);
    }
}

/* Return the left edge of a layer's column; -1 is the column of tensors outside layers. */
static size_t column_of(const struct grid *grid, size_t left, long layer)
{
    return layer < 0 ? left : left + ((size_t)layer + (grid->has_outside ? 2 : 0)) * CELL;
}

static void draw_labels(FILE *out, const struct grid *grid, size_t left, size_t bottom)
{
    const size_t step = grid->n_layers > 40 ? 10 : grid->n_layers > 16 ? 4 : 1;

    for (size_t i = 0; i < grid->n_kinds; i++) {
        fprintf(out, "<text x=\"%zu\" y=\"%zu\" text-anchor=\"end\">", left - 6,
                TITLE + i * CELL + 12);
        write_text(out, grid->kinds[i].data, grid->kinds[i].length_bytes);
        fprintf(out, "</text>\n");
    }
    for (size_t i = 0; i < grid->n_layers; i += step)
        fprintf(out, "<text x=\"%zu\" y=\"%zu\" text-anchor=\"middle\">%zu</text>\n",
                column_of(grid, left, (long)i) + CELL / 2 - 1, bottom + 14, i);
    if (grid->n_layers > 0)
        fprintf(out, "<text x=\"%zu\" y=\"%zu\">layer</text>\n", column_of(grid, left, 0),
                bottom + 30);
    if (grid->has_outside)
        fprintf(out, "<text x=\"%zu\" y=\"%zu\" text-anchor=\"middle\">none</text>\n",
                left + CELL / 2 - 1, bottom + 14);
}

static void draw_title(FILE *out, const struct fs_diff *diff)
{
    fprintf(out, "<text x=\"%d\" y=\"20\" font-size=\"14\">NMSE of ", MARGIN);
    write_text(out, diff->paths[1], strlen(diff->paths[1]));
    fprintf(out, "</text>\n<text x=\"%d\" y=\"38\">compared with ", MARGIN);
    write_text(out, diff->paths[0], strlen(diff->paths[0]));
    fprintf(out, "; %.4g over all %stensors</text>\n", fs_comparison_nmse(&diff->total),
            diff->n_weighted > 0 ? "weighted " : "");
}

/* Return a width in which the title is not cut. */
static size_t title_width(const struct fs_diff *diff)
{
    const size_t first = (strlen(diff->paths[1]) + sizeof "NMSE of") * TITLE_CHARACTER;
    const size_t second =
        (strlen(diff->paths[0]) + sizeof "compared with ; 0.0000e-000 over all weighted tensors") *
        CHARACTER;

    return first > second ? first : second;
}

void fs_diff_draw(const struct fs_diff *diff, FILE *out)
{
    struct grid *grid = calloc(1, sizeof *grid);
    size_t left, bottom, columns, width;

    if (!grid)
        return;
    collect(diff, grid);
    left = MARGIN + (grid->longest + 1) * CHARACTER;
    bottom = TITLE + grid->n_kinds * CELL;
    columns = grid->n_layers + (grid->has_outside ? 4 : 2);
    if (columns < LEGEND_COLUMNS)
        columns = LEGEND_COLUMNS;
    width = left + columns * CELL;
    if (width < title_width(diff))
        width = title_width(diff);
    width += MARGIN;
    fprintf(out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%zu\" height=\"%zu\" viewBox=\"0 0 "
            "%zu %zu\" font-family=\"sans-serif\" font-size=\"11\">\n"
            "<rect width=\"100%%\" height=\"100%%\" fill=\"#ffffff\"/>\n<g fill=\"#222222\">\n",
            width, bottom + 90, width, bottom + 90);
    draw_title(out, diff);
    draw_labels(out, grid, left, bottom);
    draw_legend(out, left, bottom + 48);
    fprintf(out, "</g>\n");
    for (size_t i = 0; i < diff->n_tensors; i++) {
        struct gguf_string kind;
        size_t row;
        long layer;

        if (!diff->tensors[i].is_compared)
            continue;
        layer = divide(diff->tensors[i].tensors[0], &kind);
        row = row_of(grid, kind);
        if (row < grid->n_kinds && layer < GGUF_MAX_LAYERS)
            draw_cell(out, &diff->tensors[i], column_of(grid, left, layer), TITLE + row * CELL);
    }
    fprintf(out, "</svg>\n");
    free(grid);
}
