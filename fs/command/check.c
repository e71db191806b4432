#include "fs/command/commands.h"

#include "fs/command/check_data.h"
#include "fs/command/finding_output.h"
#include "fs/command/model_input.h"
#include "fs/tree/model_check.h"
#include "gguf/support/exit_status.h"

#include <inttypes.h>
#include <stdio.h>
#include <sysexits.h>

struct check {
    const char *path;
    bool json;
    bool is_explained[GGUF_N_RULES];
    struct gguf_progress progress;
};

static void print_to_stdout(void *user, const struct gguf_finding *finding)
{
    struct check *check = user;

    gguf_progress_erase(&check->progress);
    if (check->json) {
        fs_print_finding_json(check->path, finding);
    } else {
        fs_print_finding(stdout, check->path, finding);
        if (!check->is_explained[finding->rule])
            fs_print_remedy(stdout, check->path, finding);
        check->is_explained[finding->rule] = true;
    }
    fflush(stdout);
}

static void print_ok(const struct check *check, const struct gguf_model *model, bool data)
{
    char text[200];

    snprintf(text, sizeof text, "%s, %s, %" PRIu64 " keys, %" PRIu64 " tensors%s", model->format,
             model->big_endian ? "big-endian" : "little-endian", model->n_keys, model->n_tensors,
             data ? ", data read" : "");
    if (check->json)
        fs_print_ok_json(check->path, text);
    else
        fs_print_ok(check->path, text);
}

static int check_model(const struct fs_options *options, struct fs_input *input)
{
    struct check check = {.path = input->path, .json = options->json};
    struct gguf_report report = {
        .each = print_to_stdout, .user = &check, .loader = options->loader};
    struct gguf_model *model;

    if (fs_parse_input(options, input, &model, &report) == 0) {
        if (gguf_edits_apply(&options->edits, &model, &report) == 0)
            fs_check_model(model, &report);
        if (options->data) {
            gguf_progress_start(&check.progress, input->path);
            fs_check_data(model, &report, &check.progress);
            gguf_progress_erase(&check.progress);
        }
        if (report.n_errors == 0)
            print_ok(&check, model, options->data);
        gguf_close(model);
    }
    return report.n_errors > 0 ? gguf_exit_status(report.first_error.code) : EX_OK;
}

int fs_check_models(const struct fs_options *options)
{
    return fs_run_for_models(options, check_model);
}
