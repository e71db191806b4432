#include "gguf/ambiguous_types.h"

#include "dequant/rows.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A limit for the masks; no id has as many candidates. */
enum { MAX_CANDIDATES = 8 };

/* Room for the names of all candidates of an id. */
enum { LIST_BYTES = 400 };

/* A type and its program, as in "Q4_0_R4 of ik_llama.cpp before 2025-01-27". */
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

/* Write the descriptions of the candidates of the id in `mask`, or the options that choose them. */
static void list_candidates(uint32_t id, unsigned mask, bool as_options, char text[LIST_BYTES])
{
    const struct dequant_type *type;
    bool is_old = false;
    size_t length = 0;

    text[0] = '\0';
    for (size_t i = 0; (type = dequant_candidate_at(id, i)) && length < LIST_BYTES; i++) {
        if (!(mask >> i & 1))
            continue;
        if (as_options)
            length +=
                (size_t)snprintf(text + length, LIST_BYTES - length, "%s-o type=%" PRIu32 ":%s",
                                 length > 0 ? " or " : "", id, type->name);
        else
            length += (size_t)snprintf(text + length, LIST_BYTES - length, "%s%s",
                                       length > 0 ? ", " : "", describe(type).text);
        is_old |= type->until != NULL;
    }
    if (as_options && is_old && length < LIST_BYTES)
        snprintf(text + length, LIST_BYTES - length, " or -o ik=old");
}

/* ---- candidates that fit ---- */

/* An ambiguous id of the model. In masks, bit i stands for candidate i. */
struct ambiguous_id {
    uint32_t id;
    uint64_t n_tensors; /* with this id and with elements */
    unsigned all;
    /*
     * Candidates that fit all tensors before another tensor, and all that are the last of a file;
     * true if there are tensors of each kind.
     */
    unsigned fit_before, fit_last;
    bool has_before, has_last;
    unsigned fit;                    /* the result of both */
    const struct dequant_type *type; /* the result; NULL: not yet */
};

struct ambiguous_ids {
    struct ambiguous_id *list;
    size_t count;
};

static struct ambiguous_id *find_id(const struct ambiguous_ids *ids, uint32_t id)
{
    for (size_t i = 0; i < ids->count; i++) {
        if (ids->list[i].id == id)
            return &ids->list[i];
    }
    return NULL;
}

/* Add an id unless it is there or has a single type. */
static void add_id(struct ambiguous_ids *ids, uint32_t id)
{
    size_t n = 0;
    unsigned all;

    if (!dequant_candidate_at(id, 1) || find_id(ids, id))
        return;
    while (dequant_candidate_at(id, n))
        n++;
    assert(n <= MAX_CANDIDATES);
    all = (1u << n) - 1;
    ids->list[ids->count++] =
        (struct ambiguous_id){.id = id, .all = all, .fit_before = all, .fit_last = all};
}

/*
 * Return true if the tensor's data, read as `type`, end at `end`, alone or with the padding to the
 * alignment. Only the last tensor of a file may lack its padding.
 */
static bool ends_at(const struct gguf_model *model, const struct gguf_tensor *tensor,
                    const struct dequant_type *type, uint64_t end, bool is_last)
{
    const uint64_t start_offset = model->files[tensor->file_index].source.start_offset;
    const uint64_t mask = model->alignment_bytes - 1;
    uint64_t n_bytes, data_end;

    if (tensor->ne[1] % type->interleave_rows != 0 ||
        dequant_rows_bytes(type, tensor->ne[0], tensor->n_elements / tensor->ne[0], &n_bytes) < 0 ||
        __builtin_add_overflow(tensor->file_offset, n_bytes, &data_end))
        return false;
    return data_end + ((start_offset - data_end) & mask) == end || (is_last && data_end == end);
}

/* Remove the candidates with which the tensor does not end at `end`. */
static void check_tensor(const struct gguf_model *model, const struct gguf_tensor *tensor,
                         uint64_t end, bool is_last, struct ambiguous_id *id)
{
    const struct dequant_type *type;
    unsigned *mask = is_last ? &id->fit_last : &id->fit_before;

    *(is_last ? &id->has_last : &id->has_before) = true;
    for (size_t i = 0; (type = dequant_candidate_at(id->id, i)); i++) {
        if (!ends_at(model, tensor, type, end, is_last))
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

/* Compare the sizes of all tensors. `order` sorts them by their data. */
static void check_sizes(const struct gguf_model *model, const struct gguf_tensor *const *order,
                        const struct ambiguous_ids *ids)
{
    for (uint64_t i = 0; i < model->n_tensors; i++) {
        const struct gguf_tensor *tensor = order[i], *next;
        const struct gguf_source *source = &model->files[tensor->file_index].source;
        struct ambiguous_id *id = find_id(ids, tensor->type_id);

        if (!id || tensor->n_elements == 0)
            continue;
        id->n_tensors++;
        next = next_in_file(model, order, i);
        if (next)
            check_tensor(model, tensor, next->file_offset, false, id);
        else if (!source->is_growing)
            check_tensor(model, tensor, gguf_source_end(source), true, id);
    }
    for (size_t i = 0; i < ids->count; i++) {
        struct ambiguous_id *id = &ids->list[i];

        /*
         * The end of a file shows the size of its last tensor unless the file was cut, or something
         * follows the model: then no candidate fits there, and the other tensors decide.
         */
        id->fit = id->fit_before;
        if (id->has_last && (!id->has_before || (id->fit_before & id->fit_last)))
            id->fit &= id->fit_last;
    }
}

/* ---- the choice ---- */

/* Return the mask of the id's candidate that is of the same program and time as `type`, or 0. */
static unsigned candidate_of_time(const struct ambiguous_id *id, const struct dequant_type *type)
{
    const char *until = type->until ? type->until : "";
    const struct dequant_type *other;

    for (size_t i = 0; (other = dequant_candidate_at(id->id, i)); i++) {
        if (strcmp(other->program, type->program) == 0 &&
            strcmp(other->until ? other->until : "", until) == 0)
            return 1u << i;
    }
    return 0;
}

/*
 * One program wrote the file at one time. If candidate X is the only one that fits id A, the
 * candidate of X's program and time is the type of the other ids. If an old candidate of A does not
 * fit, old candidates of the same program and time are not the types of other ids.
 */
static void use_other_id(const struct ambiguous_ids *ids, const struct ambiguous_id *a)
{
    const struct dequant_type *type;

    for (size_t i = 1; a->fit && (type = dequant_candidate_at(a->id, i)); i++) {
        const bool is_only = a->fit == 1u << i;

        if (!is_only && (a->fit >> i & 1 || !type->until))
            continue;
        for (size_t k = 0; k < ids->count; k++) {
            struct ambiguous_id *id = &ids->list[k];
            const unsigned same = candidate_of_time(id, type) & id->fit;
            const unsigned rest = is_only ? same : id->fit & ~same;

            if (id != a && same && rest)
                id->fit = rest;
        }
    }
}

/* Return the candidate that the user's options choose, or NULL. */
static const struct dequant_type *stated(const struct gguf_open_options *options,
                                         const struct ambiguous_id *id)
{
    const unsigned possible = id->fit ? id->fit : id->all; /* sizes that fit nothing show nothing */
    const struct dequant_type *type;

    for (size_t i = 0; i < options->n_types; i++) {
        if (options->types[i]->id == id->id)
            return options->types[i];
    }
    for (size_t i = 1; options->old_ik && (type = dequant_candidate_at(id->id, i)); i++) {
        if (type->until && possible >> i & 1)
            return type;
    }
    return NULL;
}

/* Report a type that is not certain or not the usual one. */
static void report_choice(const struct ambiguous_id *id, bool is_stated, struct gguf_report *report)
{
    const struct dequant_type *type = id->type, *usual = dequant_candidate_at(id->id, 0);
    const bool fits = id->fit & candidate_of_time(id, type);
    const char *plural = id->n_tensors == 1 ? "" : "s", *verb = id->n_tensors == 1 ? "s" : "";
    char names[LIST_BYTES], options[LIST_BYTES];

    list_candidates(id->id, id->fit ? id->fit : id->all, false, names);
    if (is_stated && (fits || !id->fit))
        return;
    if (is_stated) {
        gguf_warning(report, GGUF_RULE_SHARED_TYPE, GGUF_NO_PLACE,
                     "type %" PRIu32 ": the size of its %" PRIu64 " tensor%s is not that of %s, "
                     "but of %s; using %s as stated",
                     id->id, id->n_tensors, plural, describe(type).text, names, type->name);
    } else if (!id->fit) {
        gguf_warning(report, GGUF_RULE_SHARED_TYPE, GGUF_NO_PLACE,
                     "type %" PRIu32 " is ambiguous: its %" PRIu64
                     " tensor%s fit%s none of %s; assuming %s",
                     id->id, id->n_tensors, plural, verb, names, type->name);
    } else if (id->fit & (id->fit - 1)) {
        list_candidates(id->id, id->fit & (id->fit - 1), true, options);
        gguf_warning(report, GGUF_RULE_SHARED_TYPE, GGUF_NO_PLACE,
                     "type %" PRIu32 " is ambiguous: its %" PRIu64
                     " tensor%s fit%s %s; assuming %s; if the values look wrong, use %s",
                     id->id, id->n_tensors, plural, verb, names, type->name, options);
    } else if (type != usual) {
        gguf_note(report, GGUF_RULE_SHARED_TYPE, GGUF_NO_PLACE,
                  "type %" PRIu32 ": the size of its %" PRIu64 " tensor%s is that of %s, not of "
                  "%s; using %s%s",
                  id->id, id->n_tensors, plural, describe(type).text, describe(usual).text,
                  type->name, dequant_is_decodable(type) ? "" : ", which cannot be decoded");
    }
}

static void choose(struct ambiguous_id *id, const struct gguf_open_options *options,
                   struct gguf_report *report)
{
    const struct dequant_type *type = stated(options, id);

    id->type =
        type ? type : dequant_candidate_at(id->id, id->fit ? (size_t)__builtin_ctz(id->fit) : 0);
    if (id->n_tensors > 0)
        report_choice(id, type, report);
}

static int resolve(struct gguf_model *model, const struct gguf_open_options *options,
                   const struct ambiguous_ids *ids, struct gguf_report *report)
{
    const struct gguf_tensor **order = gguf_tensors_by_offset(model);

    if (!order)
        return -ENOMEM;
    check_sizes(model, order, ids);
    free(order);
    for (size_t i = 0; i < ids->count; i++)
        use_other_id(ids, &ids->list[i]);
    for (size_t i = 0; i < ids->count; i++)
        choose(&ids->list[i], options, report);
    for (uint64_t i = 0; i < model->n_tensors; i++) {
        const struct ambiguous_id *id = find_id(ids, model->tensors[i].type_id);

        if (id)
            model->tensors[i].type = id->type;
    }
    return 0;
}

int gguf_resolve_types(struct gguf_model *model, const struct gguf_open_options *options,
                       struct gguf_report *report)
{
    /* Each ambiguous id has at least one row among the other types. */
    struct ambiguous_ids ids = {.list = calloc(dequant_other_type_count(), sizeof *ids.list)};
    int result = ids.list ? 0 : -ENOMEM;

    /* Only GGUF files have these ids. */
    for (uint64_t i = 0; result == 0 && !model->has_entries_between && i < model->n_tensors; i++)
        add_id(&ids, model->tensors[i].type_id);
    if (result == 0 && ids.count > 0)
        result = resolve(model, options, &ids, report);
    free(ids.list);
    return result < 0 ? gguf_system_error(report, result, GGUF_NO_PLACE) : 0;
}

/* ---- -o type= ---- */

int gguf_add_type_choice(struct gguf_open_options *options, const char *text,
                         struct gguf_report *report)
{
    const struct dequant_type *type;
    char *end, names[LIST_BYTES];
    unsigned long id;
    size_t i = 0;

    errno = 0;
    id = strtoul(text, &end, 10);
    if (errno != 0 || !isdigit((unsigned char)*text) || *end != ':' || id > UINT32_MAX)
        return gguf_error(report, GGUF_RULE_SHARED_TYPE, -EINVAL, GGUF_NO_PLACE,
                          "needs ID:NAME, as in 42:PQ2_0");
    if (!dequant_type_by_id((uint32_t)id))
        return gguf_error(report, GGUF_RULE_SHARED_TYPE, -EINVAL, GGUF_NO_PLACE,
                          "no known type has the id %lu", id);
    type = dequant_candidate_by_name((uint32_t)id, end + 1);
    if (!type) {
        list_candidates((uint32_t)id, UINT32_MAX, false, names);
        return gguf_error(report, GGUF_RULE_SHARED_TYPE, -EINVAL, GGUF_NO_PLACE,
                          "type %lu can be: %s", id, names);
    }
    if (!dequant_candidate_at(type->id, 1))
        return 0; /* the id has one candidate */
    while (i < options->n_types && options->types[i]->id != type->id)
        i++;
    assert(i < GGUF_MAX_TYPE_CHOICES);
    options->types[i] = type;
    options->n_types += i == options->n_types;
    return 0;
}
