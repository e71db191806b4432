#include "fs/command/commands.h"

#include "fs/command/model_input.h"
#include "fs/command/tensor_choice.h"
#include "fs/command/terminal.h"
#include "fs/tree/output/json.h"
#include "fs/tree/views/view_files.h"
#include "gguf/support/exit_status.h"
#include "gguf/support/progress.h"
#include "gguf/support/safe_print.h"

#include <inttypes.h>
#include <string.h>
#include <sysexits.h>

struct listing {
    const struct fs_options *options;
    const char *path; /* of the model */
    struct fs_tree *tree;
    struct gguf_progress progress;
    int name_columns;
};

static bool is_chosen(const struct listing *listing, const struct gguf_tensor *tensor)
{
    const struct fs_options *options = listing->options;

    return tensor->type && dequant_is_decodable(tensor->type) &&
           (fs_is_tensor_chosen(options->paths, options->n_paths, tensor->name) ||
            fs_is_tensor_chosen(options->paths, options->n_paths, gguf_name_of(tensor)));
}

/* ---- JSON ---- */

struct figures {
    const struct listing *listing;
    const struct gguf_tensor *tensor;
    const struct fs_statistics *statistics;
};

/* Write an object on one line. */
static void write_object(const void *subject, struct fs_sink *sink)
{
    const struct figures *figures = subject;

    fs_json_begin(sink, "file", figures->listing->path);
    fs_json_member(sink, "name", false);
    fs_json_string(sink, figures->tensor->name);
    fs_json_text_member(sink, "type", figures->tensor->type->name);
    fs_stats_json_write_members(figures->listing->tree, figures->tensor, figures->statistics, sink);
    fs_sink_literal(sink, "}\n");
}

/* ---- the table ---- */

static void print_heading(const struct listing *listing)
{
    printf("%-*s  %-*s %12s %12s %12s %12s %12s %7s %9s %9s\n", listing->name_columns, "name",
           DEQUANT_NAME_COLUMNS, "type", "count", "min", "max", "mean", "std", "zeros%", "nan",
           "inf");
}

static void print_line(const struct listing *listing, const struct gguf_tensor *tensor,
                       const struct fs_statistics *statistics)
{
    fs_print_name(tensor->name, listing->name_columns);
    printf("  %-*s %12" PRIu64, DEQUANT_NAME_COLUMNS, tensor->type->name, tensor->n_elements);
    if (statistics->n_finite > 0)
        printf(" %12.5g %12.5g %12.4g %12.5g", (double)statistics->min, (double)statistics->max,
               statistics->mean, fs_standard_deviation(statistics));
    else
        printf(" %12s %12s %12s %12s", "-", "-", "-", "-");
    if (tensor->n_elements > 0)
        printf(" %7.3g", 100 * (double)statistics->n_zeros / (double)tensor->n_elements);
    else
        printf(" %7s", "-");
    printf(" %9" PRIu64 " %9" PRIu64, statistics->n_nan, statistics->n_infinite);
    putchar('\n');
}

/* ---- the command ---- */

static int print_tensor(struct listing *listing, const struct gguf_tensor *tensor)
{
    struct fs_statistics statistics;
    int result = fs_statistics_compute(listing->tree->model, tensor, NULL, &statistics);

    gguf_progress_erase(&listing->progress);
    if (result == 0 && listing->options->json)
        result = fs_print_written(write_object, &(struct figures){listing, tensor, &statistics});
    else if (result == 0)
        print_line(listing, tensor, &statistics);
    fflush(stdout);
    if (result == 0)
        return EX_OK;
    fs_print_error("%s: tensor %s: %s", listing->path, gguf_quote(tensor->name).text,
                   strerror(-result));
    return gguf_exit_status(result);
}

static int print_tensors(struct listing *listing)
{
    const struct gguf_model *model = listing->tree->model;
    uint64_t total_bytes = 0, done_bytes = 0;
    int status = EX_OK;

    for (uint64_t i = 0; i < model->n_tensors; i++) {
        const struct gguf_tensor *tensor = &model->tensors[i];

        if (!is_chosen(listing, tensor))
            continue;
        total_bytes += tensor->size_bytes;
        listing->name_columns = fs_name_columns(listing->name_columns, tensor->name);
    }
    if (!listing->options->json)
        print_heading(listing);
    gguf_progress_start(&listing->progress, listing->path);
    for (uint64_t i = 0; i < model->n_tensors; i++) {
        int one;

        if (!is_chosen(listing, &model->tensors[i]))
            continue;
        gguf_progress_draw(&listing->progress, done_bytes, total_bytes);
        one = print_tensor(listing, &model->tensors[i]);
        status = status == EX_OK ? one : status;
        done_bytes += model->tensors[i].size_bytes;
    }
    gguf_progress_erase(&listing->progress);
    return status;
}

static int print_model(const struct fs_options *options, struct fs_input *input)
{
    struct listing listing = {.options = options, .path = input->path, .name_columns = 4};
    int status = fs_make_tree(options, input, &listing.tree);

    if (status != EX_OK)
        return status;
    status =
        fs_check_patterns(options->paths, options->n_paths,
                          (const struct gguf_model *[]){listing.tree->model, NULL}, input->path);
    if (status == EX_OK)
        status = print_tensors(&listing);
    fs_close_tree(listing.tree);
    return status;
}

int fs_stats(const struct fs_options *options)
{
    return fs_run_for_models(options, print_model);
}
