#include "gguf/surgery_parts.h"

#include "gguf/validate.h"

#include <ctype.h>
#include <fnmatch.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

bool gguf_read_range(struct gguf_work *work, const char **list, const char *what, uint64_t limit,
                     uint64_t range[2])
{
    char *end = (char *)(uintptr_t)*list;
    bool is_right = isdigit((unsigned char)*end);

    range[0] = range[1] = strtoull(end, &end, 10);
    if (is_right && *end == '-') {
        is_right = isdigit((unsigned char)end[1]);
        range[1] = strtoull(end + 1, &end, 10);
    }
    if (!is_right || range[0] > range[1] || !strchr(", \r\n", *end)) {
        gguf_fail_step(work, GGUF_NO_PLACE, "%s is not a list of %ss like 0-9,12",
                       gguf_quote((struct gguf_string){*list, strcspn(*list, "\r\n")}).text, what);
        return false;
    }
    if (range[1] >= limit)
        gguf_fail_step(work, GGUF_NO_PLACE,
                       "there is no %s %" PRIu64 ", the model has %" PRIu64 " of them, from 0 on",
                       what, range[1], limit);
    *list = *end == ',' ? end + 1 : NULL;
    return work->result == 0;
}

/* ---- layers ---- */

/* Insert the tensors of a block of `model` behind the blocks so far. */
static void insert_block(struct gguf_work *work, const struct gguf_model *model, uint64_t block)
{
    const size_t start = work->after_them;

    for (uint64_t i = 0; work->result == 0 && i < model->n_tensors; i++) {
        const struct gguf_tensor *tensor = &model->tensors[i];
        struct gguf_string rest, name;

        if (gguf_block_of(gguf_name_of(tensor), &rest) != block)
            continue;
        name = gguf_new_name(work,
                             gguf_model_print(work->model, "blk.%" PRIu32 ".%.*s", work->n_blocks,
                                              (int)rest.length_bytes, rest.data));
        gguf_insert_item(work, work->after_them++, gguf_whole_item(work, model, tensor, name));
    }
    work->n_blocks++;
    if (work->after_them == start)
        gguf_fail_step(work, GGUF_NO_PLACE, "--layers: the model has no tensors of block %" PRIu64,
                       block);
}

/* Remove the tensors of all blocks. The new ones go where the first of them is, or to the end. */
static void remove_blocks(struct gguf_work *work)
{
    struct gguf_string rest;

    work->after_them = work->n_items;
    for (size_t i = work->n_items; i-- > 0;) {
        if (gguf_block_of(work->items[i].like.name, &rest) == GGUF_NO_BLOCK)
            continue;
        work->items[i].is_dropped = true;
        work->after_them = i;
    }
    gguf_remove_dropped(work);
}

void gguf_do_layers(struct gguf_work *work, const struct gguf_step *step)
{
    const struct gguf_model *from = step->other ? step->other->model : work->base;
    const struct gguf_key *key = gguf_find_key(from, "general.architecture");
    const struct gguf_string architecture =
        key && key->value.type == GGUF_STRING ? key->value.string : (struct gguf_string){0};
    uint64_t range[2];

    if (step->other && gguf_string_compare(architecture, work->architecture) != 0)
        gguf_fail_step(work, GGUF_NO_PLACE,
                       "%s: its architecture is %s, layers can be taken of %s only",
                       gguf_quote(gguf_string_of(step->other->path)).text,
                       gguf_quote(architecture).text, gguf_quote(work->architecture).text);
    if (work->n_blocks == 0)
        remove_blocks(work);
    for (const char *list = step->text;
         list && gguf_read_range(work, &list, "block", gguf_count_blocks(from), range);) {
        for (; range[0] <= range[1] && work->result == 0; range[0]++)
            insert_block(work, from, range[0]);
    }
}

/* ---- leaving out, adding, renaming ---- */

static bool matches(struct gguf_string name, const char *pattern)
{
    char *text = strndup(name.data ? name.data : "", (size_t)name.length_bytes);
    const bool is_match = text && fnmatch(pattern, text, 0) == 0;

    free(text);
    return is_match;
}

/* Return true if --drop names the tensor. `first_mtp` is the base's first block of the MTP part. */
static bool is_named(const struct gguf_work *work, const struct gguf_item *item,
                     const char *pattern, uint32_t first_mtp)
{
    static const char *const of_vision[] = {"v.", "mm.", "a.", "s."};
    const struct gguf_elements *origin = gguf_origin_of(work, item);
    struct gguf_string rest;
    uint32_t block;

    if (strcmp(pattern, "mtp") == 0) {
        block = origin ? gguf_block_of(gguf_name_of(origin->tensor), &rest) : GGUF_NO_BLOCK;
        return gguf_string_starts_with(item->like.name, "mtp.") ||
               (block != GGUF_NO_BLOCK && block >= first_mtp);
    }
    for (size_t i = 0; i < 4 && strcmp(pattern, "vision") == 0; i++) {
        if (gguf_string_starts_with(item->like.name, of_vision[i]))
            return true;
    }
    return matches(item->like.name, pattern);
}

static void fail_pattern(struct gguf_work *work, const struct gguf_step *step, const char *option)
{
    gguf_fail_step(work, GGUF_NO_PLACE, "%s: no tensor has a name like %s%s%s", option,
                   gguf_quote(gguf_string_of(step->text)).text, step->other ? " in " : "",
                   step->other ? gguf_quote(gguf_string_of(step->other->path)).text : "");
}

void gguf_do_drop(struct gguf_work *work, const struct gguf_step *step)
{
    const uint32_t n_blocks = gguf_count_blocks(work->base);
    const uint64_t n_mtp = gguf_arch_number(work, work->base, "nextn_predict_layers", 0);
    const uint32_t first_mtp =
        n_mtp > 0 && n_mtp <= n_blocks ? n_blocks - (uint32_t)n_mtp : GGUF_NO_BLOCK;
    bool is_used = false;

    for (size_t i = 0; i < work->n_items; i++) {
        work->items[i].is_dropped = is_named(work, &work->items[i], step->text, first_mtp);
        is_used |= work->items[i].is_dropped;
    }
    if (!is_used)
        fail_pattern(work, step, "--drop");
}

/*
 * Get the name that a step gives a tensor: TO, with what the * of the pattern stands for; without
 * TO, the name stays. Returns false if the pattern does not match.
 */
static bool get_new_name(struct gguf_work *work, const struct gguf_step *step,
                         struct gguf_string *name)
{
    const char *star = step->to ? strchr(step->text, '*') : NULL, *to_star;
    const size_t head = star ? (size_t)(star - step->text) : 0, length = strlen(step->text);

    if (!star && !matches(*name, step->text))
        return false;
    if (!star && step->to)
        *name = gguf_new_name(work, gguf_model_print(work->model, "%s", step->to));
    if (!star)
        return true;
    if (name->length_bytes + 1 < length || memcmp(name->data, step->text, head) != 0 ||
        !gguf_string_ends_with(*name, star + 1))
        return false;
    to_star = strchr(step->to, '*');
    *name =
        gguf_new_name(work, gguf_model_print(work->model, "%.*s%.*s%s", (int)(to_star - step->to),
                                             step->to, (int)(name->length_bytes + 1 - length),
                                             name->data + head, to_star + 1));
    return true;
}

/* Return where a new tensor goes: behind the blocks up to its own, or to the end. */
static size_t place_for(const struct gguf_work *work, struct gguf_string name)
{
    struct gguf_string rest;
    const uint32_t block = gguf_block_of(name, &rest);

    for (size_t i = work->n_items; block != GGUF_NO_BLOCK && i-- > 0;) {
        if (gguf_block_of(work->items[i].like.name, &rest) <= block)
            return i + 1;
    }
    return work->n_items;
}

static void add_tensor(struct gguf_work *work, const struct gguf_model *model,
                       const struct gguf_tensor *tensor, struct gguf_string name)
{
    const size_t index = gguf_find_item(work, name);
    const struct gguf_item made = gguf_whole_item(work, model, tensor, name);
    const uint64_t *old;

    if (index == work->n_items) {
        gguf_insert_item(work, place_for(work, name), made);
        return;
    }
    old = work->items[index].like.ne;
    if (memcmp(old, tensor->ne, sizeof tensor->ne) != 0)
        gguf_fail_step(work, gguf_place_of(&made),
                       "--add: its shape is %" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64
                       ", in the other model %" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64
                       "; drop it first if that is meant",
                       old[0], old[1], old[2], old[3], tensor->ne[0], tensor->ne[1], tensor->ne[2],
                       tensor->ne[3]);
    work->items[index] = made;
}

void gguf_do_add(struct gguf_work *work, const struct gguf_step *step)
{
    const struct gguf_model *model = step->other->model;
    bool is_used = false;

    for (uint64_t i = 0; work->result == 0 && i < model->n_tensors; i++) {
        struct gguf_string name = gguf_name_of(&model->tensors[i]);

        if (!get_new_name(work, step, &name))
            continue;
        add_tensor(work, model, &model->tensors[i], name);
        is_used = true;
    }
    if (!is_used)
        fail_pattern(work, step, "--add");
}

void gguf_do_rename(struct gguf_work *work, const struct gguf_step *step)
{
    bool is_used = false;

    for (size_t i = 0; work->result == 0 && i < work->n_items; i++)
        is_used |= get_new_name(work, step, &work->items[i].like.name);
    if (!is_used)
        fail_pattern(work, step, "--rename");
}

void gguf_do_small_first(struct gguf_work *work, const struct gguf_step *step)
{
    const size_t n_items = work->n_items;
    char *end;
    const uint64_t limit = strtoull(step->text, &end, 10);

    if (!isdigit((unsigned char)*step->text) || *end != '\0')
        gguf_fail_step(work, GGUF_NO_PLACE, "--small-first: %s is no number of bytes",
                       gguf_quote(gguf_string_of(step->text)).text);
    for (size_t i = 0; work->result == 0 && i < n_items; i++)
        work->result = gguf_validate_size(&work->items[i].like, work->report);
    for (int is_large = 0; is_large < 2; is_large++) {
        for (size_t i = 0; i < n_items; i++) {
            if ((work->items[i].like.size_bytes >= limit) == is_large)
                gguf_insert_item(work, work->n_items, work->items[i]);
        }
    }
    for (size_t i = 0; i < n_items; i++)
        work->items[i].is_dropped = true;
}
