#include "gguf/formats.h"
#include "gguf/model.h"
#include "gguf/validate.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct parse_job {
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
    result = job->format->parse(job->model, job->report);
    if (result < 0)
        return result;
    return gguf_validate(job->model, job->report);
}

int gguf_open(const char *path, struct gguf_model **model, struct gguf_report *report)
{
    struct parse_job job = {.report = report};
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
    *model = job.model;
    return 0;
}

void gguf_close(struct gguf_model *model)
{
    if (!model)
        return;
    for (uint64_t i = 0; i < model->n_keys; i++)
        free((void *)(uintptr_t)model->keys[i].name.data);
    for (uint64_t i = 0; i < model->n_tensors; i++)
        free((void *)(uintptr_t)model->tensors[i].name.data);
    for (uint32_t i = 0; i < model->n_files; i++)
        gguf_map_close(&model->files[i]);
    free(model->keys);
    free(model->tensors);
    free(model->files);
    free(model);
}

const struct gguf_key *gguf_find_key(const struct gguf_model *model, const char *name)
{
    for (uint64_t i = 0; i < model->n_keys; i++) {
        if (gguf_string_equals(model->keys[i].name, name))
            return &model->keys[i];
    }
    return NULL;
}

bool gguf_string_equals(struct gguf_string string, const char *text)
{
    return gguf_string_compare(string, (struct gguf_string){text, strlen(text)}) == 0;
}

int gguf_string_compare(struct gguf_string a, struct gguf_string b)
{
    const uint64_t common = a.length_bytes < b.length_bytes ? a.length_bytes : b.length_bytes;
    const int order = common ? memcmp(a.data, b.data, common) : 0;

    if (order != 0)
        return order;
    return (a.length_bytes > b.length_bytes) - (a.length_bytes < b.length_bytes);
}

int gguf_own_string(struct gguf_string *string)
{
    char *copy = malloc(string->length_bytes + 1);

    if (!copy)
        return -ENOMEM;
    if (string->length_bytes)
        memcpy(copy, string->data, string->length_bytes);
    copy[string->length_bytes] = '\0';
    string->data = copy;
    return 0;
}
