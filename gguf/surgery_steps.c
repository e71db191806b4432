#include "gguf/surgery_parts.h"

#include <errno.h>
#include <fnmatch.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct gguf_string string_of(const char *text)
{
    return (struct gguf_string){text, strlen(text)};
}

static struct gguf_place place_of(struct gguf_string name)
{
    return gguf_at_tensor(name, GGUF_NO_OFFSET);
}

static int fail_memory(const struct gguf_work *work)
{
    return gguf_system_error(work->report, -ENOMEM, GGUF_NO_PLACE);
}

/* Return the index of the item with a name, or n_items. */
static size_t find_item(const struct gguf_work *work, struct gguf_string name)
{
    size_t i = 0;

    while (i < work->n_items && gguf_string_compare(work->items[i].like.name, name) != 0)
        i++;
    return i;
}

/* ---- layers ---- */

/* Insert the tensors of a block of `model` at *index, as block `number`. */
static int insert_block(struct gguf_work *work, const struct gguf_model *model, uint64_t block,
                        uint64_t number, size_t *index)
{
    const size_t start = *index;

    for (uint64_t i = 0; i < model->n_tensors; i++) {
        const struct gguf_tensor *tensor = &model->tensors[i];
        struct gguf_item *item;
        struct gguf_string rest;
        char name[GGUF_MAX_TENSOR_NAME_BYTES / 64];

        if (gguf_block_of(gguf_name_of(tensor), &rest) != block)
            continue;
        item = gguf_insert_item(work, *index);
        if (!item)
            return -ENOMEM;
        (*index)++;
        snprintf(name, sizeof name, "blk.%" PRIu64 ".%.*s", number, (int)rest.length_bytes,
                 rest.data);
        if (gguf_take_whole(work, item, model, tensor, name) < 0)
            return -EINVAL;
    }
    return *index > start
               ? 0
               : gguf_fail_step(work, GGUF_NO_PLACE,
                                "--layers: the model has no tensors of block %" PRIu64, block);
}

/* Remove the tensors of all blocks. Returns the index of the first. */
static size_t remove_blocks(struct gguf_work *work)
{
    size_t first = work->n_items;

    for (size_t i = work->n_items; i-- > 0;) {
        struct gguf_string rest;

        if (gguf_block_of(work->items[i].like.name, &rest) == GGUF_NO_BLOCK)
            continue;
        gguf_remove_item(work, i);
        first = i;
    }
    return first < work->n_items ? first : work->n_items;
}

static int check_same_architecture(const struct gguf_work *work, const struct gguf_other *other)
{
    const struct gguf_key *key = gguf_find_key(other->model, "general.architecture");

    if (key && key->value.type == GGUF_STRING &&
        gguf_string_compare(key->value.string, work->architecture) == 0)
        return 0;
    return gguf_fail_step(
        work, GGUF_NO_PLACE, "%s: its architecture is %s, layers can be taken of %s only",
        gguf_quote(string_of(other->path)).text,
        key && key->value.type == GGUF_STRING ? gguf_quote(key->value.string).text : "not given",
        gguf_quote(work->architecture).text);
}

int gguf_do_layers(struct gguf_work *work, const struct gguf_step *step,
                   const struct gguf_step *end)
{
    size_t index = remove_blocks(work);
    uint64_t number = 0;
    int result = 0;

    for (; result == 0 && step < end; step++) {
        const struct gguf_model *from = step->other ? step->other->model : work->base;
        uint64_t *list;
        size_t count;

        if (step->other)
            result = check_same_architecture(work, step->other);
        if (result < 0)
            break;
        result = gguf_read_list(work, step->text, strlen(step->text), "block",
                                gguf_count_blocks(from), &list, &count);
        for (size_t i = 0; result == 0 && i < count; i++)
            result = insert_block(work, from, list[i], number++, &index);
        free(list);
    }
    return result;
}

/* ---- experts ---- */

/* Read the list of a block: `text` is a list for all, or has a line "BLOCK: LIST" for each. */
static int read_experts(struct gguf_work *work, const char *text, uint64_t block,
                        uint64_t n_experts, uint64_t **list, size_t *count)
{
    const bool is_for_all = !strchr(text, ':');

    *list = NULL;
    for (; *text; text += strcspn(text, "\n"), text += *text == '\n') {
        size_t length = strcspn(text, "\r\n");
        char *colon;

        while (length > 0 && text[length - 1] == ' ')
            length--;
        if (is_for_all)
            return gguf_read_list(work, text, length, "expert", n_experts, list, count);

        if (strtoull(text, &colon, 10) != block || colon == text || *colon != ':')
            continue;
        colon += 1 + strspn(colon + 1, " ");
        return gguf_read_list(work, colon, length - (size_t)(colon - text), "expert", n_experts,
                              list, count);
    }
    return gguf_fail_step(work, GGUF_NO_PLACE,
                          "--experts: no line has the experts of block %" PRIu64, block);
}

/* Return true if the last dimension of a block's tensor counts its experts. */
static bool is_of_experts(struct gguf_string rest)
{
    return gguf_string_contains(rest, "_exps") || gguf_string_contains(rest, "exp_probs_b") ||
           gguf_string_starts_with(rest, "ffn_gate_inp.");
}

static int select_experts(struct gguf_work *work, struct gguf_item *item, const uint64_t *list,
                          size_t count, uint64_t n_experts)
{
    struct gguf_item made = {.like = item->like};
    const uint32_t last = item->like.n_dims > 0 ? item->like.n_dims - 1 : 0;
    const uint64_t slice = item->like.n_elements / n_experts;
    int result = 0;

    if (item->like.ne[last] != n_experts)
        return gguf_fail_step(work, place_of(item->like.name),
                              "its last dimension is %" PRIu64 ", not the %" PRIu64 " experts",
                              item->like.ne[last], n_experts);
    made.like.ne[last] = count;
    made.like.n_elements = count * slice;
    for (size_t i = 0; result == 0 && i < count; i++)
        result = gguf_take_elements(work, &made, item, list[i] * slice, slice);
    free(item->parts);
    *item = made;
    return result;
}

int gguf_do_experts(struct gguf_work *work, const struct gguf_step *step)
{
    const struct gguf_key *key = gguf_find_arch_key(work, work->base, "expert_count");
    const uint64_t n_experts = work->n_experts                             ? work->n_experts
                               : key && gguf_value_is_integer(&key->value) ? key->value.u64
                                                                           : 0;
    uint64_t n_kept = 0;
    int result = 0;

    for (size_t i = 0; result == 0 && i < work->n_items; i++) {
        struct gguf_item *item = &work->items[i];
        struct gguf_string rest;
        const uint64_t block = gguf_block_of(item->like.name, &rest);
        uint64_t *list;
        size_t count;

        if (block == GGUF_NO_BLOCK)
            continue;
        if (gguf_string_contains(rest, "tid2eid") || gguf_string_contains(rest, "chexps"))
            return gguf_fail_step(work, place_of(item->like.name),
                                  "--experts: it refers to experts in a way that has no rule here");
        if (n_experts == 0 || !is_of_experts(rest))
            continue;
        result = read_experts(work, step->text, block, n_experts, &list, &count);
        if (result == 0 && n_kept > 0 && count != n_kept)
            result = gguf_fail_step(work, place_of(item->like.name),
                                    "its block keeps %zu experts, others %" PRIu64
                                    "; all must keep the same number",
                                    count, n_kept);
        n_kept = result == 0 ? count : n_kept;
        if (result == 0)
            result = select_experts(work, item, list, count, n_experts);
        free(list);
    }
    work->n_experts = n_kept;
    if (result == 0 && n_kept == 0)
        return gguf_fail_step(work, GGUF_NO_PLACE, "--experts: the model has no experts");
    return result;
}

/* ---- leaving out, adding, renaming ---- */

static bool matches(struct gguf_string name, const char *pattern)
{
    char *text = strndup(name.data ? name.data : "", (size_t)name.length_bytes);
    const bool is_match = text && fnmatch(pattern, text, 0) == 0;

    free(text);
    return is_match;
}

/* Return true if --drop names the tensor. `first_mtp` is the first block of the MTP part. */
static bool is_dropped(struct gguf_string name, const char *pattern, uint64_t first_mtp)
{
    static const char *const of_vision[] = {"v.", "mm.", "a.", "s."};
    struct gguf_string rest;
    const uint64_t block = gguf_block_of(name, &rest);

    if (strcmp(pattern, "mtp") == 0)
        return gguf_string_starts_with(name, "mtp.") ||
               (block != GGUF_NO_BLOCK && block >= first_mtp);
    for (size_t i = 0; i < 4 && strcmp(pattern, "vision") == 0; i++) {
        if (gguf_string_starts_with(name, of_vision[i]))
            return true;
    }
    return matches(name, pattern);
}

int gguf_do_drop(struct gguf_work *work, const struct gguf_step *step)
{
    const struct gguf_key *key = gguf_find_arch_key(work, work->base, "nextn_predict_layers");
    const uint64_t n_blocks = gguf_count_blocks(work->base);
    const uint64_t n_mtp = key && gguf_value_is_integer(&key->value) ? key->value.u64 : 0;
    const size_t n_before = work->n_items;

    for (size_t i = work->n_items; i-- > 0;) {
        if (is_dropped(work->items[i].like.name, step->text,
                       n_mtp > 0 && n_mtp <= n_blocks ? n_blocks - n_mtp : GGUF_NO_BLOCK))
            gguf_remove_item(work, i);
    }
    return work->n_items < n_before
               ? 0
               : gguf_fail_step(work, GGUF_NO_PLACE, "--drop: no tensor has a name like %s",
                                gguf_quote(string_of(step->text)).text);
}

/*
 * Make the new name of a tensor: `to`, with what the * of the pattern stands for. Returns NULL
 * without a match; `to` NULL: the name stays.
 */
static char *new_name(struct gguf_string name, const char *pattern, const char *to)
{
    const char *star = strchr(pattern, '*'), *to_star = to ? strchr(to, '*') : NULL;
    const size_t head = star ? (size_t)(star - pattern) : 0, length = (size_t)name.length_bytes;
    char *made = NULL;

    if (!to || !star)
        return !matches(name, pattern) ? NULL : to ? strdup(to) : strndup(name.data, length);
    if (length + 1 < strlen(pattern) || memcmp(name.data, pattern, head) != 0 ||
        !gguf_string_ends_with(name, star + 1))
        return NULL;
    return asprintf(&made, "%.*s%.*s%s", (int)(to_star - to), to,
                    (int)(length + 1 - strlen(pattern)), name.data + head, to_star + 1) < 0
               ? NULL
               : made;
}

/* Return where a new tensor goes: behind the blocks up to its own, or to the end. */
static size_t place_for(const struct gguf_work *work, const char *name)
{
    struct gguf_string rest;
    const uint64_t block = gguf_block_of(string_of(name), &rest);

    for (size_t i = work->n_items; block != GGUF_NO_BLOCK && i-- > 0;) {
        const uint64_t other = gguf_block_of(work->items[i].like.name, &rest);

        if (other != GGUF_NO_BLOCK && other <= block)
            return i + 1;
    }
    return work->n_items;
}

static int add_tensor(struct gguf_work *work, const struct gguf_model *model,
                      const struct gguf_tensor *tensor, const char *name)
{
    const size_t index = find_item(work, string_of(name));
    struct gguf_item *item = index < work->n_items ? &work->items[index] : NULL;

    if (item && memcmp(item->like.ne, tensor->ne, sizeof tensor->ne) != 0)
        return gguf_fail_step(work, place_of(item->like.name),
                              "--add: its shape is %" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64
                              ", in the other model %" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64
                              "; drop it first if that is meant",
                              item->like.ne[0], item->like.ne[1], item->like.ne[2],
                              item->like.ne[3], tensor->ne[0], tensor->ne[1], tensor->ne[2],
                              tensor->ne[3]);
    if (!item)
        item = gguf_insert_item(work, place_for(work, name));
    return item ? gguf_take_whole(work, item, model, tensor, name) : -ENOMEM;
}

int gguf_do_add(struct gguf_work *work, const struct gguf_step *step)
{
    const struct gguf_model *model = step->other->model;
    uint64_t n_added = 0;
    int result = 0;

    for (uint64_t i = 0; result == 0 && i < model->n_tensors; i++) {
        char *name = new_name(gguf_name_of(&model->tensors[i]), step->text, step->to);

        if (name)
            result = add_tensor(work, model, &model->tensors[i], name);
        n_added += name != NULL;
        free(name);
    }
    if (result < 0 || n_added > 0)
        return result;
    return gguf_fail_step(work, GGUF_NO_PLACE, "--add: %s has no tensor with a name like %s",
                          gguf_quote(string_of(step->other->path)).text,
                          gguf_quote(string_of(step->text)).text);
}

int gguf_do_rename(struct gguf_work *work, const struct gguf_step *step)
{
    uint64_t n_renamed = 0;
    int result = 0;

    for (size_t i = 0; result == 0 && i < work->n_items; i++) {
        char *name = new_name(work->items[i].like.name, step->text, step->to);

        if (name)
            result = gguf_name_item(work, &work->items[i], name);
        n_renamed += name != NULL;
        free(name);
    }
    if (result < 0 || n_renamed > 0)
        return result;
    return gguf_fail_step(work, GGUF_NO_PLACE, "--rename: no tensor has a name like %s",
                          gguf_quote(string_of(step->text)).text);
}

int gguf_do_small_first(struct gguf_work *work, const struct gguf_step *step)
{
    const uint64_t limit = strtoull(step->text, NULL, 10);
    struct gguf_item *sorted = calloc(work->n_items + 1, sizeof *sorted);
    size_t n = 0;

    if (!sorted)
        return fail_memory(work);
    for (int is_large = 0; is_large < 2; is_large++) {
        for (size_t i = 0; i < work->n_items; i++) {
            if ((work->items[i].like.size_bytes >= limit) == is_large)
                sorted[n++] = work->items[i];
        }
    }
    memcpy(work->items, sorted, work->n_items * sizeof *sorted);
    free(sorted);
    return 0;
}
