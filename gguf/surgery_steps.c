#include "gguf/surgery_parts.h"

#include "gguf/fusions.h"
#include "gguf/loader_checks.h"
#include "gguf/validate.h"

#include <ctype.h>
#include <fnmatch.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/*
 * Read a number or a range "0-9" of a list, whose numbers are below `limit`, and move *list to the
 * next; it is NULL after the last. `what` is the option without its dashes. Returns false after an
 * error.
 */
static bool read_range(struct gguf_work *work, const char **list, const char *what, uint64_t limit,
                       uint64_t range[2])
{
    char *end = (char *)(uintptr_t)*list;
    bool is_right = isdigit((unsigned char)*end);

    range[0] = range[1] = strtoull(end, &end, 10);
    if (is_right && *end == '-') {
        is_right = isdigit((unsigned char)end[1]);
        range[1] = strtoull(end + 1, &end, 10);
    }
    end += strspn(end, " ");
    if (!is_right || range[0] > range[1] || !strchr(",\r\n", *end)) {
        gguf_compose_fail(&work->made, GGUF_NO_PLACE,
                          "--%s: %s is not a list of numbers like 0-9,12", what,
                          gguf_quote((struct gguf_string){*list, strcspn(*list, "\r\n")}).text);
        return false;
    }
    if (range[1] >= limit)
        gguf_compose_fail(&work->made, GGUF_NO_PLACE,
                          "--%s: there is no %" PRIu64 ", the model has %" PRIu64
                          " of them, from 0 on",
                          what, range[1], limit);
    *list = *end == ',' ? end + 1 + strspn(end + 1, " ") : NULL;
    return work->made.result == 0;
}

/* ---- layers ---- */

/* Insert the tensors of a block of `model` behind the blocks so far. */
static void insert_block(struct gguf_work *work, const struct gguf_model *model, uint64_t block)
{
    const size_t start = work->after_them;

    for (uint64_t i = 0; work->made.result == 0 && i < model->n_tensors; i++) {
        const struct gguf_tensor *tensor = &model->tensors[i];
        struct gguf_string rest, name;

        if (gguf_block_of(gguf_name_of(tensor), &rest) != block)
            continue;
        name = gguf_compose_name(&work->made, "blk.%" PRIu32 ".%.*s", work->n_blocks,
                                 (int)rest.length_bytes, rest.data);
        gguf_insert_item(&work->made, work->after_them++,
                         gguf_whole_item(&work->made, model, tensor, name));
    }
    work->n_blocks++;
    if (work->after_them == start)
        gguf_compose_fail(&work->made, GGUF_NO_PLACE,
                          "--layers: the model has no tensors of block %" PRIu64, block);
}

/* Remove the tensors of all blocks. The new ones go where the first of them is, or to the end. */
static void remove_blocks(struct gguf_work *work)
{
    struct gguf_string rest;

    work->after_them = work->made.n_items;
    for (size_t i = work->made.n_items; i-- > 0;) {
        if (gguf_block_of(work->made.items[i].like.name, &rest) == GGUF_NO_BLOCK)
            continue;
        work->made.items[i].is_dropped = true;
        work->after_them = i;
    }
    gguf_remove_dropped(&work->made);
}

void gguf_do_layers(struct gguf_work *work, const struct gguf_step *step)
{
    const struct gguf_model *from = step->other ? step->other->model : work->made.base;
    const struct gguf_string architecture = gguf_architecture_of(from);
    const struct gguf_string own = gguf_architecture_of(work->made.base);
    uint64_t range[2];

    if (gguf_string_compare(architecture, own) != 0)
        gguf_compose_fail(&work->made, GGUF_NO_PLACE,
                          "%s: its architecture is %s, layers can be taken of %s only",
                          gguf_quote(gguf_string_of(step->other->path)).text,
                          gguf_quote(architecture).text, gguf_quote(own).text);
    if (work->n_blocks == 0)
        remove_blocks(work);
    for (const char *list = step->text;
         list && read_range(work, &list, "layers", gguf_count_blocks(from), range);) {
        for (; range[0] <= range[1] && work->made.result == 0; range[0]++)
            insert_block(work, from, range[0]);
    }
}

/* ---- experts ---- */

/* Return the list of a block: `text` is one for all, or has a line "BLOCK: LIST" for each. */
static const char *experts_of(const char *text, uint32_t block)
{
    const size_t line = strcspn(text, "\r\n");

    if (!strchr(text, ':'))
        return text[line + strspn(text + line, "\r\n ")] == '\0' ? text : NULL;
    while (text) {
        char *colon;

        if (strtoull(text, &colon, 10) == block && colon > text && *colon == ':')
            return colon + 1 + strspn(colon + 1, " ");
        text = strchr(text, '\n');
        text = text ? text + 1 : NULL;
    }
    return NULL;
}

/* Return true if the last dimension of a block's tensor counts its experts. */
static bool is_of_experts(struct gguf_string rest)
{
    return gguf_string_contains(rest, "_exps") || gguf_string_contains(rest, "exp_probs_b") ||
           gguf_string_starts_with(rest, "ffn_gate_inp.");
}

static void select_experts(struct gguf_work *work, struct gguf_item *item, const char *list,
                           uint64_t n_experts)
{
    const uint32_t axis = item->like.n_dims > 0 ? item->like.n_dims - 1 : 0;
    struct gguf_item made = gguf_begin_rows(&work->made, item, axis, item->like.name);
    uint64_t range[2];

    if (item->like.ne[axis] != n_experts)
        gguf_compose_fail(&work->made, gguf_place_of(item),
                          "its last dimension is %" PRIu64 ", not the %" PRIu64 " experts",
                          item->like.ne[axis], n_experts);
    while (list && read_range(work, &list, "experts", n_experts, range))
        gguf_append_rows(&work->made, &made, item, axis, 0, range[0], range[1] - range[0] + 1);
    if (work->n_experts > 0 && made.like.ne[axis] != work->n_experts)
        gguf_compose_fail(&work->made, gguf_place_of(item),
                          "its block keeps %" PRIu64 " experts, others %" PRIu64
                          "; all must keep the same number",
                          made.like.ne[axis], work->n_experts);
    work->n_experts = made.like.ne[axis];
    *item = made;
}

void gguf_do_experts(struct gguf_work *work, const struct gguf_step *step)
{
    const uint64_t n_experts = work->n_experts > 0
                                   ? work->n_experts
                                   : gguf_arch_number(work->made.base, "expert_count", 0);

    work->n_experts = 0;
    for (size_t i = 0; work->made.result == 0 && i < work->made.n_items; i++) {
        struct gguf_item *item = &work->made.items[i];
        struct gguf_string rest;
        const uint32_t block = gguf_block_of(item->like.name, &rest);
        const char *list = experts_of(step->text, block);

        if (gguf_string_contains(rest, "tid2eid") || gguf_string_contains(rest, "chexps"))
            gguf_compose_fail(&work->made, gguf_place_of(item),
                              "--experts: it refers to experts in a way that has no rule here");
        else if (n_experts > 0 && is_of_experts(rest) && list)
            select_experts(work, item, list, n_experts);
        else if (n_experts > 0 && is_of_experts(rest))
            gguf_compose_fail(&work->made, GGUF_NO_PLACE,
                              "--experts: no line has the experts of block %" PRIu32, block);
    }
    if (work->n_experts == 0)
        gguf_compose_fail(&work->made, GGUF_NO_PLACE, "--experts: the model has no experts");
}

/* ---- leaving out, adding, renaming ---- */

static bool matches(struct gguf_string name, const char *pattern)
{
    char *text = strndup(name.data ? name.data : "", (size_t)name.length_bytes);
    const bool is_match = text && fnmatch(pattern, text, 0) == 0;

    free(text);
    return is_match;
}

/* Return the first block of a model's MTP part, or GGUF_NO_BLOCK. */
static uint32_t first_mtp_of(const struct gguf_model *model)
{
    const uint32_t n_blocks = gguf_count_blocks(model);
    const uint64_t n_mtp = gguf_arch_number(model, "nextn_predict_layers", 0);

    return n_mtp > 0 && n_mtp <= n_blocks ? n_blocks - (uint32_t)n_mtp : GGUF_NO_BLOCK;
}

/* Return true if --drop names the tensor. `first_mtp` is of the model that it comes from. */
static bool is_named(const struct gguf_work *work, const struct gguf_item *item,
                     const char *pattern, uint32_t first_mtp)
{
    static const char *const of_vision[] = {"v.", "mm.", "a.", "s."};
    const struct gguf_elements *origin = gguf_origin_of(&work->made, item);
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
    gguf_compose_fail(&work->made, GGUF_NO_PLACE, "%s: no tensor has a name like %s%s%s", option,
                      gguf_quote(gguf_string_of(step->text)).text, step->other ? " in " : "",
                      step->other ? gguf_quote(gguf_string_of(step->other->path)).text : "");
}

void gguf_do_drop(struct gguf_work *work, const struct gguf_step *step)
{
    const struct gguf_model *from = work->made.base;
    uint32_t first_mtp = first_mtp_of(from);
    bool is_used = false;

    for (size_t i = 0; i < work->made.n_items; i++) {
        const struct gguf_elements *origin = gguf_origin_of(&work->made, &work->made.items[i]);

        if (origin && origin->model != from)
            first_mtp = first_mtp_of(from = origin->model);
        work->made.items[i].is_dropped =
            is_named(work, &work->made.items[i], step->text, first_mtp);
        is_used |= work->made.items[i].is_dropped;
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
        *name = gguf_compose_name(&work->made, "%s", step->to);
    if (!star)
        return true;
    if (name->length_bytes + 1 < length || memcmp(name->data, step->text, head) != 0 ||
        !gguf_string_ends_with(*name, star + 1))
        return false;
    to_star = strchr(step->to, '*');
    *name =
        gguf_compose_name(&work->made, "%.*s%.*s%s", (int)(to_star - step->to), step->to,
                          (int)(name->length_bytes + 1 - length), name->data + head, to_star + 1);
    return true;
}

/* Return where a new tensor goes: behind the blocks up to its own, or to the end. */
static size_t place_for(const struct gguf_work *work, struct gguf_string name)
{
    struct gguf_string rest;
    const uint32_t block = gguf_block_of(name, &rest);

    for (size_t i = work->made.n_items; block != GGUF_NO_BLOCK && i-- > 0;) {
        if (gguf_block_of(work->made.items[i].like.name, &rest) <= block)
            return i + 1;
    }
    return work->made.n_items;
}

static void add_tensor(struct gguf_work *work, const struct gguf_model *model,
                       const struct gguf_tensor *tensor, struct gguf_string name)
{
    const size_t index = gguf_find_item(&work->made, name);
    const struct gguf_item made = gguf_whole_item(&work->made, model, tensor, name);
    const uint64_t *old;

    if (index == work->made.n_items) {
        gguf_insert_item(&work->made, place_for(work, name), made);
        return;
    }
    old = work->made.items[index].like.ne;
    if (memcmp(old, tensor->ne, sizeof tensor->ne) != 0)
        gguf_compose_fail(&work->made, gguf_place_of(&made),
                          "--add: its shape is %" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64
                          ", in the other model %" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64
                          "; drop it first if that is meant",
                          old[0], old[1], old[2], old[3], tensor->ne[0], tensor->ne[1],
                          tensor->ne[2], tensor->ne[3]);
    work->made.items[index] = made;
}

void gguf_do_add(struct gguf_work *work, const struct gguf_step *step)
{
    const struct gguf_model *model = step->other->model;
    bool is_used = false;

    for (uint64_t i = 0; work->made.result == 0 && i < model->n_tensors; i++) {
        struct gguf_string name = gguf_name_of(&model->tensors[i]);

        if (!get_new_name(work, step, &name))
            continue;
        if (!step->to) /* which checks it */
            name = gguf_compose_name(&work->made, "%.*s", (int)name.length_bytes, name.data);
        add_tensor(work, model, &model->tensors[i], name);
        is_used = true;
    }
    if (!is_used)
        fail_pattern(work, step, "--add");
}

void gguf_do_rename(struct gguf_work *work, const struct gguf_step *step)
{
    bool is_used = false;

    for (size_t i = 0; work->made.result == 0 && i < work->made.n_items; i++)
        is_used |= get_new_name(work, step, &work->made.items[i].like.name);
    if (!is_used)
        fail_pattern(work, step, "--rename");
}

/* Return the kind of fused tensors that a step names. */
static enum gguf_fusion_id find_fusion(struct gguf_work *work, const struct gguf_step *step)
{
    enum gguf_fusion_id id = 0;

    while (id < GGUF_N_USER_FUSIONS && strcmp(gguf_fusion_name(id), step->text) != 0)
        id++;
    if (id == GGUF_N_USER_FUSIONS)
        gguf_compose_fail(&work->made, GGUF_NO_PLACE,
                          "%s is no kind of fused tensors; these are gate_up_exps, qkv and "
                          "ffn_gate_up",
                          gguf_quote(gguf_string_of(step->text)).text);
    return id;
}

void gguf_do_fuse(struct gguf_work *work, const struct gguf_step *step)
{
    const enum gguf_fusion_id id = find_fusion(work, step);
    const struct gguf_string architecture = gguf_architecture_of(work->made.model);

    if (work->made.result == 0 && !gguf_fuse(&work->made, id, GGUF_FUSE_ALL))
        gguf_compose_fail(&work->made, GGUF_NO_PLACE, "--fuse %s: the model has no such tensors",
                          step->text);
    if (work->made.result == 0 && id == GGUF_FUSION_GATE_UP_EXPS &&
        !gguf_reads_gate_up_exps(architecture))
        gguf_warning(work->made.report, GGUF_RULE_COMPOSITION, GGUF_NO_PLACE,
                     "llama.cpp reads ffn_gate_up_exps of some architectures only (deepseek2, "
                     "qwen35moe and others), and %s is not one of them",
                     gguf_quote(architecture).text);
}

void gguf_do_unfuse(struct gguf_work *work, const struct gguf_step *step)
{
    const enum gguf_fusion_id id = find_fusion(work, step);

    if (work->made.result == 0 && !gguf_unfuse(&work->made, id))
        gguf_compose_fail(&work->made, GGUF_NO_PLACE, "--unfuse %s: the model has no such tensors",
                          step->text);
}

void gguf_do_small_first(struct gguf_work *work, const struct gguf_step *step)
{
    struct gguf_composition *made = &work->made;
    struct gguf_item *items = made->items;
    const size_t n_items = made->n_items;
    char *end;
    const uint64_t limit = strtoull(step->text, &end, 10);

    if (!isdigit((unsigned char)*step->text) || *end != '\0')
        gguf_compose_fail(made, GGUF_NO_PLACE, "--small-first: %s is no number of bytes",
                          gguf_quote(gguf_string_of(step->text)).text);
    for (size_t i = 0; made->result == 0 && i < n_items; i++)
        made->result = gguf_validate_size(&items[i].like, made->report);
    made->items = NULL;
    made->n_items = made->items_room = 0;
    for (int is_large = 0; is_large < 2; is_large++) {
        for (size_t i = 0; i < n_items; i++) {
            if ((items[i].like.size_bytes >= limit) == is_large)
                gguf_insert_item(made, made->n_items, items[i]);
        }
    }
    made->is_changed = true;
    free(items);
}
