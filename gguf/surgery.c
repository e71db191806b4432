#include "gguf/surgery_parts.h"

#include "gguf/models/tensor_names.h"
#include "gguf/support/arrays.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- options ---- */

static const char *const options[GGUF_N_STEP_KINDS] = {
    "--layers", "--experts", "--drop", "--add", "--rename", "--fuse", "--unfuse", "--small-first"};

static int refuse(const char *option, const char *value, const char *form,
                  struct gguf_report *report)
{
    return gguf_error(report, GGUF_RULE_COMPOSITION, -EINVAL, GGUF_NO_PLACE,
                      "%s %s: the value has the form %s", option,
                      gguf_quote((struct gguf_string){value, strlen(value)}).text, form);
}

static int fail_memory(struct gguf_report *report)
{
    return gguf_system_error(report, -ENOMEM, GGUF_NO_PLACE);
}

/* Return the model with this path, which is added if it is new; NULL if out of memory. */
static struct gguf_other *find_other(struct gguf_surgery *surgery, const char *path, size_t length)
{
    struct gguf_other **others, *other;

    for (size_t i = 0; i < surgery->n_others; i++) {
        other = surgery->others[i];
        if (strlen(other->path) == length && memcmp(other->path, path, length) == 0)
            return other;
    }
    others = reallocarray(surgery->others, surgery->n_others + 1, sizeof *others);
    if (!others)
        return NULL;
    surgery->others = others;
    other = calloc(1, sizeof *other);
    if (other)
        other->path = strndup(path, length);
    if (!other || !other->path) {
        free(other);
        return NULL;
    }
    others[surgery->n_others++] = other;
    return other;
}

/* Add a step of `value`, which may begin with FILE: and end with =TO. */
static int add_step(struct gguf_surgery *surgery, enum gguf_step_kind kind, const char *value,
                    size_t length)
{
    const bool has_file = kind == GGUF_STEP_LAYERS || kind == GGUF_STEP_ADD;
    const bool has_to = kind == GGUF_STEP_ADD || kind == GGUF_STEP_RENAME;
    const char *colon = has_file ? memrchr(value, ':', length) : NULL;
    const char *text = colon ? colon + 1 : value, *end = value + length;
    const char *equals = has_to ? memchr(text, '=', (size_t)(end - text)) : NULL;
    struct gguf_step *steps = reallocarray(surgery->steps, surgery->n_steps + 1, sizeof *steps);
    struct gguf_step step = {.kind = kind};

    if (!steps)
        return -ENOMEM;
    surgery->steps = steps;
    if (colon) {
        step.other = find_other(surgery, value, (size_t)(colon - value));
        if (!step.other)
            return -ENOMEM;
    }
    step.text = strndup(text, (size_t)((equals ? equals : end) - text));
    step.to = equals ? strndup(equals + 1, (size_t)(end - equals - 1)) : NULL;
    steps[surgery->n_steps++] = step;
    return step.text && (!equals || step.to) ? 0 : -ENOMEM;
}

static size_t count_stars(const char *text)
{
    size_t n = 0;

    for (; *text; text++)
        n += *text == '*';
    return n;
}

static int check_step(const char *option, const char *value, const struct gguf_step *step,
                      struct gguf_report *report)
{
    const bool is_paired = !step->to || (*step->to && count_stars(step->text) < 2 &&
                                         count_stars(step->text) == count_stars(step->to));

    if (step->kind == GGUF_STEP_ADD && (!step->other || !*step->other->path || !*step->text))
        return refuse(option, value, "FILE:PATTERN or FILE:PATTERN=TO", report);
    if (step->kind == GGUF_STEP_RENAME && (!step->to || !*step->text))
        return refuse(option, value, "FROM=TO", report);
    if (!is_paired)
        return refuse(option, value, "FROM=TO, with one * in both or in neither", report);
    if (step->kind == GGUF_STEP_SMALL_FIRST && step->text[strspn(step->text, "0123456789")] != '\0')
        return refuse(option, value, "of a number of bytes", report);
    if (!*step->text)
        return refuse(option, value, "of a text that is not empty", report);
    return 0;
}

int gguf_surgery_add(struct gguf_surgery *surgery, const char *option, const char *value,
                     struct gguf_report *report)
{
    unsigned kind = 0;
    int result = 0;

    while (kind < GGUF_N_STEP_KINDS && strcmp(options[kind], option) != 0)
        kind++;
    if (kind == GGUF_N_STEP_KINDS)
        return -ENOENT;
    for (const char *part = value; result == 0 && part;) {
        /* The parts of a list of layers may come from different files. */
        const char *comma = kind == GGUF_STEP_LAYERS ? strchr(part, ',') : NULL;

        result = add_step(surgery, (enum gguf_step_kind)kind, part,
                          comma ? (size_t)(comma - part) : strlen(part));
        if (result == -ENOMEM)
            return fail_memory(report);
        result = check_step(option, value, &surgery->steps[surgery->n_steps - 1], report);
        part = comma ? comma + 1 : NULL;
    }
    return result;
}

void gguf_surgery_free(struct gguf_surgery *surgery)
{
    for (size_t i = 0; i < surgery->n_steps; i++) {
        free(surgery->steps[i].text);
        free(surgery->steps[i].to);
    }
    for (size_t i = 0; i < surgery->n_others; i++) {
        gguf_close(surgery->others[i]->model);
        gguf_files_close(&surgery->others[i]->files);
        free(surgery->others[i]->path);
        free(surgery->others[i]);
    }
    free(surgery->steps);
    free(surgery->others);
    *surgery = (struct gguf_surgery){0};
}

/* ---- items ---- */

int gguf_fail_step(const struct gguf_work *work, struct gguf_place place, const char *format, ...)
{
    char text[600];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return gguf_error(work->report, GGUF_RULE_COMPOSITION, -EINVAL, place, "%s", text);
}

uint64_t gguf_block_of(struct gguf_string name, struct gguf_string *rest)
{
    struct gguf_string layer;
    uint64_t block = 0;

    if (!gguf_tensor_name_split(name, &layer, rest) || layer.length_bytes > 9)
        return GGUF_NO_BLOCK;
    for (uint64_t i = 0; i < layer.length_bytes; i++)
        block = 10 * block + (uint64_t)(layer.data[i] - '0');
    return block;
}

uint64_t gguf_count_blocks(const struct gguf_model *model)
{
    uint64_t n_blocks = 0;

    for (uint64_t i = 0; i < model->n_tensors; i++) {
        struct gguf_string rest;
        const uint64_t block = gguf_block_of(gguf_name_of(&model->tensors[i]), &rest);

        if (block != GGUF_NO_BLOCK && block >= n_blocks)
            n_blocks = block + 1;
    }
    return n_blocks;
}

struct gguf_item *gguf_insert_item(struct gguf_work *work, size_t index)
{
    struct gguf_item *items = gguf_grow(work->items, &work->room, work->n_items + 1, sizeof *items);

    if (!items) {
        fail_memory(work->report);
        return NULL;
    }
    work->items = items;
    memmove(&items[index + 1], &items[index], (work->n_items++ - index) * sizeof *items);
    items[index] = (struct gguf_item){0};
    return &items[index];
}

void gguf_remove_item(struct gguf_work *work, size_t index)
{
    free(work->items[index].parts);
    work->n_items--;
    memmove(&work->items[index], &work->items[index + 1],
            (work->n_items - index) * sizeof *work->items);
}

int gguf_name_item(struct gguf_work *work, struct gguf_item *item, const char *name)
{
    const size_t length = strlen(name);
    const char *copy = gguf_model_print(work->model, "%s", name);

    if (!copy)
        return fail_memory(work->report);
    item->like.name = (struct gguf_string){copy, length};
    if (length < 64)
        return 0;
    return gguf_fail_step(work, gguf_at_tensor(item->like.name, GGUF_NO_OFFSET),
                          "the name has %zu bytes; llama.cpp takes at most 63", length);
}

/* Append a part, or extend the last one. */
static int add_part(struct gguf_work *work, struct gguf_item *item, struct gguf_part part)
{
    struct gguf_part *last = item->n_parts > 0 ? &item->parts[item->n_parts - 1] : NULL;
    struct gguf_part *parts;

    if (last && last->tensor == part.tensor && last->first + last->n_elements == part.first) {
        last->n_elements += part.n_elements;
        return 0;
    }
    parts = gguf_grow(item->parts, &item->room, item->n_parts + 1, sizeof *parts);
    if (!parts)
        return fail_memory(work->report);
    item->parts = parts;
    parts[item->n_parts++] = part;
    return 0;
}

int gguf_take_whole(struct gguf_work *work, struct gguf_item *item, const struct gguf_model *model,
                    const struct gguf_tensor *tensor, const char *name)
{
    item->like = *tensor;
    item->like.gguf_name = (struct gguf_string){0};
    item->like.name = gguf_name_of(tensor);
    item->n_parts = 0;
    if (name && gguf_name_item(work, item, name) < 0)
        return -EINVAL;
    return add_part(work, item, (struct gguf_part){model, tensor, 0, tensor->n_elements});
}

int gguf_take_elements(struct gguf_work *work, struct gguf_item *item, const struct gguf_item *from,
                       uint64_t first, uint64_t n_elements)
{
    int result = 0;

    for (size_t i = 0; result == 0 && n_elements > 0 && i < from->n_parts; i++) {
        struct gguf_part part = from->parts[i];

        if (first >= part.n_elements) {
            first -= part.n_elements;
            continue;
        }
        part.first += first;
        part.n_elements -= first;
        first = 0;
        if (part.n_elements > n_elements)
            part.n_elements = n_elements;
        n_elements -= part.n_elements;
        result = add_part(work, item, part);
    }
    return result;
}

int gguf_read_list(struct gguf_work *work, const char *text, size_t length, const char *what,
                   uint64_t limit, uint64_t **list, size_t *count)
{
    const char *end = text + length, *at = text;
    size_t room = 0;

    *list = NULL;
    *count = 0;
    while (at < end) {
        uint64_t bounds[2] = {0, 0};
        int n = 0, used = 0;

        if (isdigit((unsigned char)*at))
            n = sscanf(at, "%9" SCNu64 "%n-%9" SCNu64 "%n", &bounds[0], &used, &bounds[1], &used);
        at += used;
        if (n == 1)
            bounds[1] = bounds[0];
        if (n < 1 || at > end || (at < end && *at != ',') || bounds[0] > bounds[1])
            return gguf_fail_step(work, GGUF_NO_PLACE, "%s is not a list of %ss like 0-9,12",
                                  gguf_quote((struct gguf_string){text, length}).text, what);
        at += at < end;
        if (bounds[1] >= limit)
            return gguf_fail_step(work, GGUF_NO_PLACE,
                                  "there is no %s %" PRIu64 ", the model has %" PRIu64
                                  " of them, from 0 on",
                                  what, bounds[1], limit);
        for (uint64_t i = bounds[0]; i <= bounds[1]; i++) {
            uint64_t *grown = gguf_grow(*list, &room, *count + 1, sizeof *grown);

            if (!grown)
                return fail_memory(work->report);
            *list = grown;
            grown[(*count)++] = i;
        }
    }
    if (*count == 0)
        return gguf_fail_step(work, GGUF_NO_PLACE, "a list of %ss is empty", what);
    return 0;
}

/* ---- the work ---- */

/* Parse the other model of a step, unless that is done. */
static int parse_other(struct gguf_work *work, struct gguf_other *other)
{
    struct gguf_report report = {0};
    int result = other->error;

    if (other->model)
        return 0;
    if (result == 0 && !other->files.list)
        result =
            gguf_error(&report, GGUF_RULE_NOT_A_FILE, -EINVAL, GGUF_NO_PLACE, "it is not open");
    else if (result == 0)
        result = gguf_parse_files(&other->files, NULL, &other->model, &report);
    else
        report.first_error = other->why;
    if (result == 0)
        return 0;
    return gguf_error(work->report, report.first_error.rule, result, GGUF_NO_PLACE, "%s: %s",
                      gguf_quote((struct gguf_string){other->path, strlen(other->path)}).text,
                      report.first_error.message);
}

static int do_kind(struct gguf_work *work, const struct gguf_step *first,
                   const struct gguf_step *end)
{
    static int (*const steps[GGUF_N_STEP_KINDS])(struct gguf_work *, const struct gguf_step *) = {
        NULL,           gguf_do_experts, gguf_do_drop,   gguf_do_add,
        gguf_do_rename, gguf_do_fuse,    gguf_do_unfuse, gguf_do_small_first};
    int result = 0;

    if (first < end && first->kind == GGUF_STEP_LAYERS)
        return gguf_do_layers(work, first, end);
    for (; result == 0 && first < end; first++)
        result = steps[first->kind](work, first);
    return result;
}

/* Steps of one kind are done in the order of the command line. */
static int do_steps(struct gguf_work *work, const struct gguf_surgery *surgery)
{
    struct gguf_step *sorted = calloc(surgery->n_steps + 1, sizeof *sorted);
    size_t n = 0;
    int result = sorted ? 0 : fail_memory(work->report);

    for (size_t i = 0; result == 0 && i < surgery->n_others; i++)
        result = parse_other(work, surgery->others[i]);
    for (unsigned kind = 0; result == 0 && kind < GGUF_N_STEP_KINDS; kind++) {
        const size_t start = n;

        for (size_t i = 0; i < surgery->n_steps; i++) {
            if (surgery->steps[i].kind == kind)
                sorted[n++] = surgery->steps[i];
        }
        result = do_kind(work, sorted + start, sorted + n);
    }
    free(sorted);
    return result;
}

static int begin(struct gguf_work *work)
{
    const struct gguf_key *key = gguf_find_key(work->base, "general.architecture");
    int result = 0;

    work->composition = gguf_compose_begin(work->base);
    if (!work->composition)
        return fail_memory(work->report);
    work->model = gguf_compose_model(work->composition);
    if (key && key->value.type == GGUF_STRING)
        work->architecture = key->value.string;
    for (uint64_t i = 0; result == 0 && i < work->base->n_tensors; i++) {
        struct gguf_item *item = gguf_insert_item(work, work->n_items);

        result =
            item ? gguf_take_whole(work, item, work->base, &work->base->tensors[i], NULL) : -ENOMEM;
    }
    return result;
}

static int compose(struct gguf_work *work)
{
    int result = 0;

    for (size_t i = 0; result == 0 && i < work->n_items; i++) {
        const struct gguf_item *item = &work->items[i];

        result = gguf_compose_tensor(work->composition, &item->like, work->report);
        for (size_t j = 0; result == 0 && j < item->n_parts; j++) {
            const struct gguf_part *part = &item->parts[j];

            result = gguf_compose_piece(
                work->composition,
                &(struct gguf_piece){.of = {.model = part->model, .tensor = part->tensor},
                                     .first = part->first,
                                     .n_elements = part->n_elements},
                work->report);
        }
    }
    return result;
}

int gguf_surgery_apply(const struct gguf_surgery *surgery, struct gguf_model **model,
                       struct gguf_report *report)
{
    struct gguf_work work = {.base = *model, .report = report};
    int result;

    if (surgery->n_steps == 0)
        return 0;
    result = begin(&work);
    if (result == 0)
        result = do_steps(&work, surgery);
    if (result == 0)
        result = gguf_set_following_keys(&work);
    if (result == 0)
        result = compose(&work);
    if (result == 0 && gguf_compose_own(work.composition, *model) < 0)
        result = fail_memory(report);
    if (result == 0) {
        struct gguf_model *made;

        result = gguf_compose_finish(work.composition, &made, report);
        work.composition = NULL;
        if (result == 0)
            *model = made;
    }
    gguf_compose_free(work.composition);
    for (size_t i = 0; i < work.n_items; i++)
        free(work.items[i].parts);
    free(work.items);
    return result;
}
