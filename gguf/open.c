#include "gguf/files.h"
#include "gguf/formats.h"
#include "gguf/model.h"
#include "gguf/shards.h"
#include "gguf/validate.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct job {
    const struct gguf_open_options *options;
    struct gguf_model *model;
    struct gguf_report *report;
};

static int parse(void *argument)
{
    const struct job *job = argument;
    const struct gguf_format *format = gguf_format_of(&job->model->files[0], job->report);

    return format ? format->parse(job->model, job->options, job->report) : -EINVAL;
}

static int validate(void *argument)
{
    const struct job *job = argument;

    return gguf_validate(job->model, job->report);
}

/* Does a part of the job where a page of a file may be missing. */
static int run(int (*part)(void *argument), struct job *job)
{
    const size_t n_errors = job->report->n_errors;
    const int result = gguf_map_guard(part, job);

    if (result < 0 && job->report->n_errors == n_errors)
        gguf_error(job->report, result, GGUF_NO_OFFSET,
                   "can't be read: it shrank meanwhile, or its disk fails");
    return result;
}

int gguf_parse_file(struct gguf_file *file, const struct gguf_open_options *options,
                    struct gguf_model **model, struct gguf_report *report)
{
    struct job job = {.options = options, .report = report};
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
    job.model->files[0] = *file;
    job.model->n_files = 1;
    *file = (struct gguf_file){.descriptor = -1};
    result = run(parse, &job);
    if (result < 0) {
        gguf_close(job.model);
        return result;
    }
    /* All of the header was walked. */
    gguf_map_touched(&job.model->files[0], job.model->files[0].size_bytes);
    *model = job.model;
    return 0;
}

int gguf_parse_files(struct gguf_files *files, const struct gguf_open_options *options,
                     struct gguf_model **model, struct gguf_report *report)
{
    static const struct gguf_open_options none;
    struct job job = {.options = options ? options : &none, .report = report};
    int result = gguf_parse_file(&files->list[files->named].file, job.options, &job.model, report);

    *model = NULL;
    if (result == 0)
        result = gguf_shards_join(&job.model, files, job.options, report);
    if (result == 0)
        result = run(validate, &job);
    report->path = NULL; /* a fault leaves a part in its middle */
    if (result < 0) {
        gguf_close(job.model);
        return result;
    }
    *model = job.model;
    return 0;
}

int gguf_open_with(const char *path, const struct gguf_open_options *options,
                   struct gguf_model **model, struct gguf_report *report)
{
    struct gguf_files files;
    int result = gguf_files_open(path, options, &files, report);

    *model = NULL;
    if (result < 0)
        return result;
    result = gguf_parse_files(&files, options, model, report);
    gguf_files_close(&files);
    return result;
}

int gguf_open(const char *path, struct gguf_model **model, struct gguf_report *report)
{
    return gguf_open_with(path, NULL, model, report);
}
