#include "gguf/formats.h"
#include "gguf/model.h"
#include "gguf/validate.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct parse_job {
    const struct gguf_open_options *options;
    const struct gguf_format *format;
    struct gguf_model *model;
    struct gguf_report *report;
};

static int parse_and_validate(void *argument)
{
    struct parse_job *job = argument;
    int result;

    job->format = gguf_format_of(&job->model->files[0], job->report);
    if (!job->format)
        return -EINVAL;
    result = job->format->parse(job->model, job->options, job->report);
    if (result < 0)
        return result;
    return gguf_validate(job->model, job->report);
}

int gguf_open_with(const char *path, const struct gguf_open_options *options,
                   struct gguf_model **model, struct gguf_report *report)
{
    static const struct gguf_open_options none;
    struct parse_job job = {.options = options ? options : &none, .report = report};
    int result;

    *model = NULL;
    job.model = calloc(1, sizeof *job.model);
    if (job.model)
        job.model->files = calloc(1, sizeof *job.model->files);
    if (!job.model || !job.model->files) {
        gguf_close(job.model);
        return gguf_error(report, -ENOMEM, GGUF_NO_OFFSET, "%s", strerror(ENOMEM));
    }
    job.model->alignment_bytes = GGUF_DEFAULT_ALIGNMENT;

    result = gguf_map_open(path, &job.model->files[0], report);
    if (result == 0) {
        job.model->n_files = 1;
        result = gguf_map_guard(parse_and_validate, &job);
    }
    if (result < 0) {
        if (report->n_errors == 0)
            gguf_error(report, result, GGUF_NO_OFFSET,
                       "can't be read: it shrank meanwhile, or its disk fails");
        gguf_close(job.model);
        return result;
    }
    /* All of the header was walked. */
    gguf_map_touched(&job.model->files[0], job.model->files[0].size_bytes);
    *model = job.model;
    return 0;
}

int gguf_open(const char *path, struct gguf_model **model, struct gguf_report *report)
{
    return gguf_open_with(path, NULL, model, report);
}
