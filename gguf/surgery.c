#include "gguf/surgery_parts.h"

#include "gguf/support/arrays.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* More than any model needs. */
#define MAX_PIECES ((size_t)1 << 22)

/* ---- options ---- */

/* In the order of work. The value of an option may begin with FILE: and end with =TO. */
static const struct {
    const char *option;
    gguf_do_step *work;
    enum { NO, MAY, MUST } file, to;
    const char *form;
} kinds[] = {
    {"--layers", gguf_do_layers, MAY, NO, "LIST"},
    {"--experts", gguf_do_experts, NO, NO, "LIST"},
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
    struct gguf_other **others, *other;

    for (size_t i = 0; i < surgery->n_others; i++) {
        if (strcmp(surgery->others[i]->path, path) == 0)
            return surgery->others[i];
    }
    others = reallocarray(surgery->others, surgery->n_others + 1, sizeof *others);
    if (!others)
        return NULL;
    surgery->others = others;
    other = calloc(1, sizeof *other);
    if (!other)
        return NULL;
    others[surgery->n_others++] = other;
    other->path = strdup(path);
    return other->path ? other : NULL;
}

/* Add a step and pass it ownership of the value. NULL if out of memory, also if `value` is NULL. */
static struct gguf_step *new_step(struct gguf_surgery *surgery, unsigned kind, char *value)
{
    struct gguf_step *steps =
        value ? reallocarray(surgery->steps, surgery->n_steps + 1, sizeof *steps) : NULL;

    if (!steps) {
        free(value);
        return NULL;
    }
    surgery->steps = steps;
    steps[surgery->n_steps] = (struct gguf_step){.kind = kind, .value = value};
    return &steps[surgery->n_steps++];
}

/* Divide the value of a new step. Returns 0 or -ENOMEM. */
static int divide_value(struct gguf_surgery *surgery, struct gguf_step *step)
{
    char *colon = kinds[step->kind].file ? strrchr(step->value, ':') : NULL, *equals;

    step->text = colon ? colon + 1 : step->value;
    equals = kinds[step->kind].to ? strchr(step->text, '=') : NULL;
    if (equals) {
        *equals = '\0';
        step->to = equals + 1;
    }
    if (!colon)
        return 0;
    *colon = '\0';
    step->other = find_other(surgery, step->value);
    return step->other ? 0 : -ENOMEM;
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
        struct gguf_step *step =
            new_step(surgery, kind, strndup(part, comma ? (size_t)(comma - part) : strlen(part)));

        if (!step || divide_value(surgery, step) < 0)
            return gguf_system_error(report, -ENOMEM, GGUF_NO_PLACE);
        if (!is_well_formed(step))
            return gguf_error(report, GGUF_RULE_COMPOSITION, -EINVAL, GGUF_NO_PLACE,
                              "%s %s: the value has the form %s", option,
                              gguf_quote(gguf_string_of(value)).text, kinds[kind].form);
        part = comma ? comma + 1 : NULL;
    }
    return 0;
}

void gguf_surgery_free(struct gguf_surgery *surgery)
{
    for (size_t i = 0; i < surgery->n_steps; i++)
        free(surgery->steps[i].value);
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

void gguf_fail_step(struct gguf_work *work, struct gguf_place place, const char *format, ...)
{
    char text[600];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (work->result == 0)
        work->result = gguf_error(work->report, GGUF_RULE_COMPOSITION, -EINVAL, place, "%s", text);
}

uint32_t gguf_block_of(struct gguf_string name, struct gguf_string *rest)
{
    struct gguf_string layer = {0};

    *rest = gguf_string_of("");
    gguf_tensor_name_split(name, &layer, rest);
    return gguf_layer_number(layer);
}

uint32_t gguf_count_blocks(const struct gguf_model *model)
{
    uint32_t n_blocks = 0;

    for (uint64_t i = 0; i < model->n_tensors; i++) {
        struct gguf_string rest;
        const uint32_t block = gguf_block_of(gguf_name_of(&model->tensors[i]), &rest);

        if (block != GGUF_NO_BLOCK && block >= n_blocks)
            n_blocks = block + 1;
    }
    return n_blocks;
}

struct gguf_string gguf_new_name(struct gguf_work *work, const char *printed)
{
    const struct gguf_string name = gguf_string_of(printed ? printed : "");

    if (!printed && work->result == 0)
        work->result = -ENOMEM;
    if (name.length_bytes > 63)
        gguf_fail_step(work, gguf_at_tensor(name, GGUF_NO_OFFSET),
                       "the name has %" PRIu64 " bytes; llama.cpp takes at most 63",
                       name.length_bytes);
    return name;
}

struct gguf_item gguf_begin_item(const struct gguf_work *work, const struct gguf_tensor *like,
                                 struct gguf_string name)
{
    struct gguf_item item = {*like, false, work->n_pieces, work->n_pieces};

    item.like.name = name;
    item.like.gguf_name = (struct gguf_string){0};
    return item;
}

const struct gguf_elements *gguf_origin_of(const struct gguf_work *work,
                                           const struct gguf_item *item)
{
    return item->end_piece > item->first_piece ? &work->pieces[item->first_piece].of : NULL;
}

/* Append a piece, or extend the last one. */
static void add_piece(struct gguf_work *work, struct gguf_item *item,
                      const struct gguf_piece *piece)
{
    struct gguf_piece *last =
        item->end_piece > item->first_piece ? &work->pieces[item->end_piece - 1] : NULL;
    struct gguf_piece *pieces;

    if (work->result < 0)
        return;
    if (last && last->of.tensor == piece->of.tensor &&
        last->first + last->n_elements == piece->first) {
        last->n_elements += piece->n_elements;
        return;
    }
    if (work->n_pieces == MAX_PIECES) {
        gguf_fail_step(work, gguf_place_of(item), "the model has over %zu pieces of tensors",
                       MAX_PIECES);
        return;
    }
    pieces = gguf_grow(work->pieces, &work->pieces_room, work->n_pieces + 1, sizeof *pieces);
    if (!pieces) {
        work->result = -ENOMEM;
        return;
    }
    work->pieces = pieces;
    pieces[work->n_pieces++] = *piece;
    item->end_piece = work->n_pieces;
}

struct gguf_item gguf_whole_item(struct gguf_work *work, const struct gguf_model *model,
                                 const struct gguf_tensor *tensor, struct gguf_string name)
{
    struct gguf_item item = gguf_begin_item(work, tensor, name);

    add_piece(work, &item,
              &(struct gguf_piece){.of = {.model = model, .tensor = tensor},
                                   .n_elements = tensor->n_elements});
    return item;
}

void gguf_append(struct gguf_work *work, struct gguf_item *item, const struct gguf_item *from,
                 uint64_t first, uint64_t n_elements)
{
    for (size_t i = from->first_piece; n_elements > 0 && i < from->end_piece; i++) {
        struct gguf_piece piece = work->pieces[i];
        const uint64_t skipped = first < piece.n_elements ? first : piece.n_elements;

        first -= skipped;
        piece.first += skipped;
        piece.n_elements -= skipped;
        if (piece.n_elements > n_elements)
            piece.n_elements = n_elements;
        n_elements -= piece.n_elements;
        if (piece.n_elements > 0)
            add_piece(work, item, &piece);
    }
}

void gguf_insert_item(struct gguf_work *work, size_t index, struct gguf_item item)
{
    struct gguf_item *items;

    if (work->result < 0)
        return;
    items = gguf_grow(work->items, &work->items_room, work->n_items + 1, sizeof *items);
    if (!items) {
        work->result = -ENOMEM;
        return;
    }
    work->items = items;
    memmove(&items[index + 1], &items[index], (work->n_items++ - index) * sizeof *items);
    items[index] = item;
}

void gguf_remove_dropped(struct gguf_work *work)
{
    size_t n_left = 0;

    for (size_t i = 0; i < work->n_items; i++) {
        if (!work->items[i].is_dropped)
            work->items[n_left++] = work->items[i];
    }
    work->n_items = n_left;
}

size_t gguf_find_item(const struct gguf_work *work, struct gguf_string name)
{
    size_t i = 0;

    while (i < work->n_items &&
           (work->items[i].is_dropped || gguf_string_compare(work->items[i].like.name, name) != 0))
        i++;
    return i;
}

/* ---- the work ---- */

/* Parse another model. */
static void parse_other(struct gguf_work *work, struct gguf_other *other)
{
    struct gguf_report report = {.first_error = other->why};
    int result = other->error;

    if (other->model || work->result < 0)
        return;
    if (result == 0 && !other->files.list)
        result =
            gguf_error(&report, GGUF_RULE_NOT_A_FILE, -EINVAL, GGUF_NO_PLACE, "it is not open");
    else if (result == 0)
        result = gguf_parse_files(&other->files, NULL, &other->model, &report);
    if (result < 0)
        work->result =
            gguf_error(work->report, report.first_error.rule, result, GGUF_NO_PLACE, "%s: %s",
                       gguf_quote(gguf_string_of(other->path)).text, report.first_error.message);
}

/* Do the steps. Those of one kind are done in the order of the command line. */
static void do_steps(struct gguf_work *work, const struct gguf_surgery *surgery)
{
    for (size_t i = 0; i < surgery->n_others; i++)
        parse_other(work, surgery->others[i]);
    for (unsigned kind = 0; kind < N_KINDS; kind++) {
        for (size_t i = 0; i < surgery->n_steps && work->result == 0; i++) {
            if (surgery->steps[i].kind != kind)
                continue;
            kinds[kind].work(work, &surgery->steps[i]);
            gguf_remove_dropped(work);
        }
    }
}

static int compose(const struct gguf_work *work, struct gguf_composition *composition)
{
    int result = work->result;

    for (size_t i = 0; result == 0 && i < work->n_items; i++) {
        const struct gguf_item *item = &work->items[i];

        result = gguf_compose_tensor(composition, &item->like, work->report);
        for (size_t j = item->first_piece; result == 0 && j < item->end_piece; j++)
            result = gguf_compose_piece(composition, &work->pieces[j], work->report);
    }
    return result;
}

int gguf_surgery_apply(const struct gguf_surgery *surgery, struct gguf_model **model,
                       struct gguf_report *report)
{
    struct gguf_work work = {.base = *model, .report = report};
    struct gguf_composition *composition;
    struct gguf_model *made;
    const struct gguf_key *key = gguf_find_key(*model, "general.architecture");
    int result;

    if (surgery->n_steps == 0)
        return 0;
    composition = gguf_compose_begin(*model);
    if (!composition)
        return gguf_system_error(report, -ENOMEM, GGUF_NO_PLACE);
    work.model = gguf_compose_model(composition);
    if (key && key->value.type == GGUF_STRING)
        work.architecture = key->value.string;
    for (uint64_t i = 0; i < work.base->n_tensors; i++)
        gguf_insert_item(&work, work.n_items,
                         gguf_whole_item(&work, *model, &work.base->tensors[i],
                                         gguf_name_of(&work.base->tensors[i])));
    do_steps(&work, surgery);
    gguf_set_following_keys(&work);
    result = compose(&work, composition);
    if (result == 0)
        result = gguf_compose_own(composition, *model);
    if (result < 0)
        gguf_compose_free(composition);
    else
        result = gguf_compose_finish(composition, &made, report);
    if (result == 0)
        *model = made;
    else if (report->n_errors == 0)
        gguf_system_error(report, result, GGUF_NO_PLACE);
    free(work.items);
    free(work.pieces);
    return result;
}
