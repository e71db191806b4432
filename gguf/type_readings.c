#include "gguf/type_readings.h"

#include "dequant/rows.h"
#include "gguf/tensor_order.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* More than any id has. */
enum { MAX_READINGS = 8 };

/* Whose reading it is, as in "Q4_0_R4 of ik_llama.cpp before 2025-01-27". */
struct description {
    char text[100];
};

static struct description describe(const struct dequant_type *type)
{
    struct description description;

    snprintf(description.text, sizeof description.text, "%s of %s%s%s", type->name, type->program,
             type->until ? " before " : "", type->until ? type->until : "");
    return description;
}

/* Write the descriptions of those readings of the id that `mask` selects. */
static void list_readings(uint32_t id, unsigned mask, size_t room, char *text)
{
    const struct dequant_type *type;
    size_t length = 0;

    text[0] = '\0';
    for (size_t i = 0; (type = dequant_reading_at(id, i)) && length < room; i++) {
        if (mask >> i & 1)
            length += (size_t)snprintf(text + length, room - length, "%s%s", length > 0 ? ", " : "",
                                       describe(type).text);
    }
}

/* ---- What fits ---- */

/* An id with several readings. Bit i of a mask stands for reading i. */
struct candidate {
    uint32_t id;
    uint64_t n_tensors; /* of this id, with elements */
    unsigned all;
    /* Readings that fit every tensor before another one, and every tensor that is the last. */
    unsigned before, last;
    bool has_before, has_last;
    unsigned fits;
    const struct dequant_type *chosen; /* NULL: not yet */
};

struct candidates {
    struct candidate *list;
    size_t count;
};

static struct candidate *find_candidate(struct candidates *candidates, uint32_t id)
{
    for (size_t i = 0; i < candidates->count; i++) {
        if (candidates->list[i].id == id)
            return &candidates->list[i];
    }
    return NULL;
}

static void add_candidate(struct candidates *candidates, uint32_t id)
{
    struct candidate *candidate = &candidates->list[candidates->count];
    size_t n_readings = 0;

    if (!dequant_reading_at(id, 1) || find_candidate(candidates, id))
        return;
    while (dequant_reading_at(id, n_readings))
        n_readings++;
    assert(n_readings <= MAX_READINGS);
    *candidate = (struct candidate){.id = id, .all = (1u << n_readings) - 1};
    candidate->before = candidate->last = candidate->all;
    candidates->count++;
}

static bool size_as(const struct gguf_tensor *tensor, const struct dequant_type *type,
                    uint64_t *n_bytes)
{
    return tensor->ne[1] % type->interleave_rows == 0 &&
           dequant_rows_bytes(type, tensor->ne[0], tensor->n_elements / tensor->ne[0], n_bytes) ==
               0;
}

/*
 * Return true if data of n_bytes end at `end`, alone or with the padding to the alignment. Only the
 * last tensor of a file may lack its padding.
 */
static bool ends_at(const struct gguf_model *model, const struct gguf_tensor *tensor,
                    uint64_t n_bytes, uint64_t end, bool is_last)
{
    const uint64_t start_offset = model->files[tensor->file_index].start_offset;
    const uint64_t mask = model->alignment_bytes - 1;
    uint64_t data_end;

    if (__builtin_add_overflow(tensor->file_offset, n_bytes, &data_end))
        return false;
    return data_end + ((start_offset - data_end) & mask) == end || (is_last && data_end == end);
}

/* Strike out the readings with which the tensor does not end at `end`. */
static void check_tensor(const struct gguf_model *model, const struct gguf_tensor *tensor,
                         uint64_t end, bool is_last, struct candidate *candidate)
{
    const struct dequant_type *type;
    unsigned *mask = is_last ? &candidate->last : &candidate->before;

    *(is_last ? &candidate->has_last : &candidate->has_before) = true;
    for (size_t i = 0; (type = dequant_reading_at(candidate->id, i)); i++) {
        uint64_t n_bytes;

        if (!size_as(tensor, type, &n_bytes) || !ends_at(model, tensor, n_bytes, end, is_last))
            *mask &= ~(1u << i);
    }
}

/* Return the next tensor of the same file that has elements, or NULL. */
static const struct gguf_tensor *next_in_file(const struct gguf_model *model,
                                              const struct gguf_tensor *const *order, uint64_t i)
{
    const uint32_t file_index = order[i]->file_index;

    while (++i < model->n_tensors && order[i]->file_index == file_index) {
        if (order[i]->n_elements > 0)
            return order[i];
    }
    return NULL;
}

static void check_places(const struct gguf_model *model, const struct gguf_tensor *const *order,
                         struct candidates *candidates)
{
    for (uint64_t i = 0; i < model->n_tensors; i++) {
        const struct gguf_tensor *tensor = order[i], *next;
        struct candidate *candidate = find_candidate(candidates, tensor->type_id);
        const struct gguf_source *file = &model->files[tensor->file_index];

        if (!candidate || tensor->n_elements == 0)
            continue;
        candidate->n_tensors++;
        next = next_in_file(model, order, i);
        if (next)
            check_tensor(model, tensor, next->file_offset, false, candidate);
        else if (!file->is_growing)
            check_tensor(model, tensor, gguf_source_end(file), true, candidate);
    }
}

/*
 * The end of a file shows the size of its last tensor unless the file was cut, or something
 * follows the model: then no reading fits there, and the other tensors decide.
 */
static void combine(struct candidate *candidate)
{
    candidate->fits = candidate->before;
    if (candidate->has_last && (!candidate->has_before || (candidate->before & candidate->last)))
        candidate->fits &= candidate->last;
}

/* ---- Which one it is ---- */

static bool are_of_one_time(const struct dequant_type *a, const struct dequant_type *b)
{
    return strcmp(a->program, b->program) == 0 &&
           (a->until && b->until ? strcmp(a->until, b->until) == 0 : a->until == b->until);
}

/* Return the mask of the candidate's reading of the same program and time, or 0. */
static unsigned reading_of_time(const struct candidate *candidate, const struct dequant_type *type)
{
    const struct dequant_type *reading;

    for (size_t i = 0; (reading = dequant_reading_at(candidate->id, i)); i++) {
        if (are_of_one_time(reading, type))
            return 1u << i;
    }
    return 0;
}

static bool is_single(unsigned mask)
{
    return mask != 0 && (mask & (mask - 1)) == 0;
}

/* Return true if the sizes are those of this reading of the id. */
static bool fits(const struct candidate *candidate, const struct dequant_type *type)
{
    size_t i = 0;

    while (dequant_reading_at(candidate->id, i) != type)
        i++;
    return candidate->fits >> i & 1;
}

static const struct dequant_type *first_of(const struct candidate *candidate, unsigned mask)
{
    return dequant_reading_at(candidate->id, (size_t)__builtin_ctz(mask));
}

/*
 * One program made the file at one time. A reading that was given up later does not fit if another
 * id of that time does not, and it does if it is the only one that fits another id.
 */
static void use_other_ids(struct candidates *candidates, const struct candidate *other)
{
    const struct dequant_type *type;

    for (size_t i = 1; other->fits && (type = dequant_reading_at(other->id, i)); i++) {
        const bool is_only = other->fits == 1u << i;

        if (!is_only && (other->fits >> i & 1 || !type->until))
            continue;
        for (size_t k = 0; k < candidates->count; k++) {
            struct candidate *candidate = &candidates->list[k];
            const unsigned same = reading_of_time(candidate, type) & candidate->fits;
            const unsigned rest = is_only ? same : candidate->fits & ~same;

            if (candidate != other && same && rest)
                candidate->fits = rest;
        }
    }
}

static const struct dequant_type *stated(const struct gguf_open_options *options,
                                         const struct candidate *candidate)
{
    /* Sizes that fit nothing show nothing. */
    const unsigned possible = candidate->fits ? candidate->fits : candidate->all;
    const struct dequant_type *type;

    for (size_t i = 0; i < options->n_types; i++) {
        if (options->types[i]->id == candidate->id)
            return options->types[i];
    }
    for (size_t i = 1; options->old_ik && (type = dequant_reading_at(candidate->id, i)); i++) {
        if (type->until && possible >> i & 1)
            return type;
    }
    return NULL;
}

/* Write the options that read the id as the readings that `mask` selects. */
static void list_options(uint32_t id, unsigned mask, size_t room, char *text)
{
    const struct dequant_type *type;
    bool is_old = false;
    size_t length = 0;

    for (size_t i = 0; (type = dequant_reading_at(id, i)) && length < room; i++) {
        if (!(mask >> i & 1))
            continue;
        length += (size_t)snprintf(text + length, room - length, "%s-o type=%" PRIu32 ":%s",
                                   length > 0 ? " or " : "", id, type->name);
        is_old = is_old || type->until;
    }
    if (is_old && length < room)
        snprintf(text + length, room - length, " or -o ik=old");
}

static void warn_of_several(const struct candidate *candidate, struct gguf_report *report)
{
    const unsigned others = candidate->fits & (candidate->fits - 1);
    char names[400], options[400];

    list_readings(candidate->id, candidate->fits, sizeof names, names);
    list_options(candidate->id, others, sizeof options, options);
    gguf_warning(report, GGUF_RULE_SHARED_TYPE, GGUF_NO_PLACE,
                 "type %" PRIu32 ": the size of its %" PRIu64
                 " tensor%s is that of several types with this id: %s; read as %s; %s reads %s",
                 candidate->id, candidate->n_tensors, candidate->n_tensors == 1 ? "" : "s", names,
                 candidate->chosen->name, options, is_single(others) ? "the other" : "another");
}

static void choose(struct candidate *candidate, const struct gguf_open_options *options,
                   struct gguf_report *report)
{
    const struct dequant_type *usual = dequant_reading_at(candidate->id, 0);
    const struct dequant_type *type = stated(options, candidate);
    const char *plural = candidate->n_tensors == 1 ? "" : "s";
    char names[400];

    candidate->chosen = type              ? type
                        : candidate->fits ? first_of(candidate, candidate->fits)
                                          : usual;
    if (candidate->n_tensors == 0)
        return;
    if (type) {
        if (candidate->fits && !fits(candidate, type)) {
            list_readings(candidate->id, candidate->fits, sizeof names, names);
            gguf_warning(report, GGUF_RULE_SHARED_TYPE, GGUF_NO_PLACE,
                         "type %" PRIu32 ": the size of its %" PRIu64
                         " tensor%s is not that of %s, but of %s; read as %s all the same",
                         candidate->id, candidate->n_tensors, plural, describe(type).text, names,
                         type->name);
        }
    } else if (!candidate->fits) {
        list_readings(candidate->id, candidate->all, sizeof names, names);
        gguf_warning(report, GGUF_RULE_SHARED_TYPE, GGUF_NO_PLACE,
                     "type %" PRIu32 ": the places of its %" PRIu64
                     " tensor%s fit none of the types with this id: %s; read as %s",
                     candidate->id, candidate->n_tensors, plural, names, usual->name);
    } else if (!is_single(candidate->fits)) {
        warn_of_several(candidate, report);
    } else if (candidate->chosen != usual) {
        gguf_note(report, GGUF_RULE_SHARED_TYPE, GGUF_NO_PLACE,
                  "type %" PRIu32 ": the size of its %" PRIu64
                  " tensor%s is that of %s, not of %s; read as %s%s",
                  candidate->id, candidate->n_tensors, plural, describe(candidate->chosen).text,
                  describe(usual).text, candidate->chosen->name,
                  dequant_is_decodable(candidate->chosen) ? ""
                                                          : ", of which only the size is known");
    }
}

static int choose_all(struct gguf_model *model, const struct gguf_open_options *options,
                      struct candidates *candidates, struct gguf_report *report)
{
    const struct gguf_tensor **order = gguf_tensors_by_offset(model);

    if (!order)
        return -ENOMEM;
    check_places(model, order, candidates);
    free(order);
    for (size_t i = 0; i < candidates->count; i++)
        combine(&candidates->list[i]);
    for (size_t i = 0; i < candidates->count; i++)
        use_other_ids(candidates, &candidates->list[i]);
    for (size_t i = 0; i < candidates->count; i++)
        choose(&candidates->list[i], options, report);
    for (uint64_t i = 0; i < model->n_tensors; i++) {
        const struct candidate *candidate = find_candidate(candidates, model->tensors[i].type_id);

        if (candidate)
            model->tensors[i].type = candidate->chosen;
    }
    return 0;
}

int gguf_choose_type_readings(struct gguf_model *model, const struct gguf_open_options *options,
                              struct gguf_report *report)
{
    /* Each id has at least one other reading; one more as add_candidate() looks at a free place. */
    struct candidate *list = calloc(dequant_other_type_count() + 1, sizeof *list);
    struct candidates candidates = {.list = list};
    int result = list ? 0 : -ENOMEM;

    /* Only GGUF files have these ids. */
    for (uint64_t i = 0; result == 0 && !model->has_entries_between && i < model->n_tensors; i++)
        add_candidate(&candidates, model->tensors[i].type_id);
    if (result == 0 && candidates.count > 0)
        result = choose_all(model, options, &candidates, report);
    free(list);
    return result < 0 ? gguf_system_error(report, result, GGUF_NO_PLACE) : 0;
}

/* ---- What the user states ---- */

int gguf_add_type_choice(struct gguf_open_options *options, const char *text,
                         struct gguf_report *report)
{
    const struct dequant_type *type;
    unsigned long id;
    char *end, names[400];
    size_t i = 0;

    errno = 0;
    id = strtoul(text, &end, 10);
    if (errno != 0 || !isdigit((unsigned char)*text) || *end != ':' || id > UINT32_MAX)
        return gguf_error(report, GGUF_RULE_SHARED_TYPE, -EINVAL, GGUF_NO_PLACE,
                          "needs ID:NAME, as in 42:PQ2_0");
    if (!dequant_type_by_id((uint32_t)id))
        return gguf_error(report, GGUF_RULE_SHARED_TYPE, -EINVAL, GGUF_NO_PLACE,
                          "no known type has the id %lu", id);
    type = dequant_reading_by_name((uint32_t)id, end + 1);
    if (!type) {
        list_readings((uint32_t)id, UINT32_MAX, sizeof names, names);
        return gguf_error(report, GGUF_RULE_SHARED_TYPE, -EINVAL, GGUF_NO_PLACE,
                          "type %lu can be: %s", id, names);
    }
    if (!dequant_reading_at(type->id, 1))
        return 0; /* there is no choice */
    while (i < options->n_types && options->types[i]->id != type->id)
        i++;
    assert(i < GGUF_MAX_TYPE_CHOICES);
    options->types[i] = type;
    options->n_types += i == options->n_types;
    return 0;
}
