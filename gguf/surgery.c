#include "gguf/surgery_parts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- options ---- */

/* In the order of work. The value of an option may begin with FILE: and end with =TO. */
static const struct {
    const char *option;
    gguf_do_step *work;
    enum { NO, MAY, MUST } file, to;
    const char *form;
} kinds[] = {
    {"--layers", gguf_do_layers, MAY, NO, "0-9,FILE:12"},
    {"--experts", gguf_do_experts, NO, NO, "0-9,12"},
    {"--drop", gguf_do_drop, NO, NO, "PATTERN"},
    {"--add", gguf_do_add, MUST, MAY,
     "FILE:PATTERN or FILE:FROM=TO, with one * in both or in neither"},
    {"--rename", gguf_do_rename, NO, MUST, "FROM=TO, with one * in both or in neither"},
    {"--fuse", gguf_do_fuse, NO, NO, "KIND"},
    {"--unfuse", gguf_do_unfuse, NO, NO, "KIND"},
    {"--small-first", gguf_do_small_first, NO, NO, "BYTES"},
};

enum { N_KINDS = sizeof kinds / sizeof *kinds };

/* Return the model with this path, which is added if it is new; NULL if out of memory. */
static struct gguf_other *find_other(struct gguf_surgery *surgery, const char *path)
{
    struct gguf_other **end = &surgery->others;

    while (*end && strcmp((*end)->path, path) != 0)
        end = &(*end)->next;
    if (!*end) {
        *end = calloc(1, sizeof **end + strlen(path) + 1);
        if (*end)
            strcpy((*end)->path, path);
    }
    return *end;
}

/* Add a step with a value, which it takes and divides. Returns it, or NULL if out of memory. */
static struct gguf_step *add_step(struct gguf_surgery *surgery, unsigned kind, char *value)
{
    struct gguf_step *step =
        value ? reallocarray(surgery->steps, surgery->n_steps + 1, sizeof *step) : NULL;
    char *colon, *equals;

    if (!step) {
        free(value);
        return NULL;
    }
    surgery->steps = step;
    step += surgery->n_steps++;
    colon = kinds[kind].file ? strrchr(value, ':') : NULL;
    equals = kinds[kind].to ? strchr(colon ? colon : value, '=') : NULL;
    *step = (struct gguf_step){.kind = kind,
                               .value = value,
                               .text = colon ? colon + 1 : value,
                               .to = equals ? equals + 1 : NULL};
    if (equals)
        *equals = '\0';
    if (!colon)
        return step;
    *colon = '\0';
    step->other = find_other(surgery, value);
    return step->other ? step : NULL;
}

/* Return true if the value of a step has the form of its kind. */
static bool is_well_formed(const struct gguf_step *step)
{
    const char *star = strchr(step->text, '*'), *to_star = step->to ? strchr(step->to, '*') : NULL;

    if (*step->text == '\0' || (step->other && *step->other->path == '\0') ||
        (kinds[step->kind].file == MUST && !step->other))
        return false;
    if (!step->to)
        return kinds[step->kind].to != MUST;
    return *step->to != '\0' && !star == !to_star && star == strrchr(step->text, '*') &&
           to_star == strrchr(step->to, '*');
}

int gguf_surgery_add(struct gguf_surgery *surgery, const char *option, const char *value,
                     struct gguf_report *report)
{
    unsigned kind = 0;

    while (kind < N_KINDS && strcmp(kinds[kind].option, option) != 0)
        kind++;
    if (kind == N_KINDS)
        return -ENOENT;
    for (const char *part = value; part;) {
        /* The parts of a list of layers may come from different files. */
        const char *comma = kinds[kind].work == gguf_do_layers ? strchr(part, ',') : NULL;
        const struct gguf_step *step =
            add_step(surgery, kind, strndup(part, comma ? (size_t)(comma - part) : strlen(part)));

        if (!step)
            return gguf_system_error(report, -ENOMEM, GGUF_NO_PLACE);
        if (!is_well_formed(step))
            return gguf_error(report, GGUF_RULE_COMPOSITION, -EINVAL, GGUF_NO_PLACE,
                              "the value of %s, %s, has not the form %s", option,
                              gguf_quote(gguf_string_of(value)).text, kinds[kind].form);
        part = comma ? comma + 1 : NULL;
    }
    return 0;
}

void gguf_surgery_free(struct gguf_surgery *surgery)
{
    for (size_t i = 0; i < surgery->n_steps; i++)
        free(surgery->steps[i].value);
    for (struct gguf_other *other = surgery->others, *next; other; other = next) {
        next = other->next;
        gguf_close(other->model);
        gguf_files_close(&other->files);
        free(other);
    }
    free(surgery->steps);
    *surgery = (struct gguf_surgery){0};
}

/* ---- the work ---- */

/* Parse another model. */
static void parse_other(struct gguf_work *work, struct gguf_other *other)
{
    struct gguf_report report = {.first_error = other->why};
    int result = other->error;

    if (other->model || work->made.result < 0)
        return;
    if (result == 0 && !other->files.list)
        result =
            gguf_error(&report, GGUF_RULE_NOT_A_FILE, -EINVAL, GGUF_NO_PLACE, "it is not open");
    else if (result == 0)
        result = gguf_parse_files(&other->files, NULL, &other->model, &report);
    if (result < 0)
        work->made.result =
            gguf_error(work->made.report, report.first_error.rule, result, GGUF_NO_PLACE, "%s: %s",
                       gguf_quote(gguf_string_of(other->path)).text, report.first_error.message);
}

/* Do the steps. Those of one kind are done in the order of the command line. */
static void do_steps(struct gguf_work *work, const struct gguf_surgery *surgery)
{
    for (struct gguf_other *other = surgery->others; other; other = other->next)
        parse_other(work, other);
    for (unsigned kind = 0; kind < N_KINDS; kind++) {
        if (kinds[kind].work == gguf_do_rename)
            gguf_warn_of_names(&work->made);
        for (size_t i = 0; i < surgery->n_steps && work->made.result == 0; i++) {
            if (surgery->steps[i].kind != kind)
                continue;
            kinds[kind].work(work, &surgery->steps[i]);
            gguf_remove_dropped(&work->made);
        }
    }
}

int gguf_surgery_apply(const struct gguf_surgery *surgery, struct gguf_model **model,
                       struct gguf_report *report)
{
    struct gguf_work work = {0};
    struct gguf_model *made;
    int result;

    if (surgery->n_steps == 0)
        return 0;
    gguf_compose_begin(&work.made, *model, report);
    work.made.twins_remedy = "; --rename gives one another, --drop leaves one out";
    gguf_append_items(&work.made, *model);
    do_steps(&work, surgery);
    if (work.made.result == 0)
        gguf_set_following_keys(&work.made, work.n_experts);
    result = gguf_compose_end(&work.made, &made);
    if (result < 0)
        return result;
    made->owned = *model;
    *model = made;
    return 0;
}
