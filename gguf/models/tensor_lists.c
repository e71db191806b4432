#include "gguf/models/tensor_lists.h"

#include "gguf/models/tensor_names.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

/* A word of a list, or a group in parentheses. Its text has neither these nor the '?'. */
struct term {
    struct gguf_string text;
    bool is_group, is_optional;
};

/* Read the term at *list, which may be NULL, and step over it. Returns false at the end. */
static bool next_term(const char **list, struct term *term)
{
    const char *at = *list ? *list + strspn(*list, " ") : "";

    if (*at == '\0')
        return false;
    term->is_group = *at == '(';
    at += term->is_group;
    term->text = (struct gguf_string){at, strcspn(at, term->is_group ? ")" : " ?")};
    at += term->text.length_bytes + term->is_group;
    term->is_optional = *at == '?';
    *list = at + term->is_optional;
    return true;
}

static bool has_suffix(struct gguf_string name)
{
    return gguf_string_ends_with(name, ".weight") || gguf_string_ends_with(name, ".bias") ||
           gguf_string_ends_with(name, ".scale");
}

/* Where tensors are looked for: a model or a layer of it. */
struct place {
    gguf_tensor_finder *has;
    const void *user;
    char prefix[24]; /* "blk.7." or "" */
};

static void write_name(const struct place *place, struct gguf_string name, const char *suffix,
                       char out[GGUF_LIST_NAME_BYTES])
{
    assert(strlen(place->prefix) + name.length_bytes + strlen(suffix) < GGUF_LIST_NAME_BYTES);
    strcpy(mempcpy(stpcpy(out, place->prefix), name.data, (size_t)name.length_bytes), suffix);
}

static bool has_tensor(const struct place *place, struct gguf_string name)
{
    char full[GGUF_LIST_NAME_BYTES];

    write_name(place, name, "", full);
    if (place->has(place->user, full))
        return true;
    if (has_suffix(name))
        return false;
    write_name(place, name, ".weight", full);
    return place->has(place->user, full);
}

/* Return true if one of "a|b|…" is there. */
static bool has_one(const struct place *place, struct gguf_string names)
{
    struct gguf_string name;

    while (gguf_next_part(&names, '|', &name))
        if (has_tensor(place, name))
            return true;
    return false;
}

/* Note that none of "a|b|…" is there, although a tensor of `because` is, which may be empty. */
static bool set_missing(const struct place *place, struct gguf_string names,
                        struct gguf_string because, struct gguf_missing_tensor *missing)
{
    struct gguf_string name;

    *missing = (struct gguf_missing_tensor){0};
    gguf_next_part(&names, '|', &name);
    write_name(place, name, has_suffix(name) ? "" : ".weight", missing->name);
    snprintf(missing->others, sizeof missing->others, "%.*s", (int)names.length_bytes, names.data);
    if (because.length_bytes > 0)
        write_name(place, because, has_suffix(because) ? "" : ".weight", missing->because);
    return false;
}

/* Check a group: all of its tensors are there, or none. */
static bool check_group(const struct place *place, const struct term *term,
                        struct gguf_missing_tensor *missing)
{
    struct gguf_string names = term->text, name, there = {0}, lacking = {0};

    while (gguf_next_part(&names, ' ', &name)) {
        struct gguf_string *first = has_one(place, name) ? &there : &lacking;

        if (first->length_bytes == 0)
            *first = name;
    }
    return lacking.length_bytes == 0 || (there.length_bytes == 0 && term->is_optional) ||
           set_missing(place, lacking, there, missing);
}

static bool check_list(const struct place *place, const char *list,
                       struct gguf_missing_tensor *missing)
{
    bool is_complete = true;
    struct term term;

    while (is_complete && next_term(&list, &term)) {
        if (term.is_group)
            is_complete = check_group(place, &term, missing);
        else if (!term.is_optional && !has_one(place, term.text))
            is_complete = set_missing(place, term.text, (struct gguf_string){0}, missing);
    }
    return is_complete;
}

static int walk_term(const struct term *term, gguf_list_visitor *visit, void *user)
{
    struct gguf_string words = term->text, word, name;
    int result = 0;

    while (result == 0 && gguf_next_part(&words, ' ', &word)) {
        const uint64_t length = word.length_bytes;

        while (result == 0 && gguf_next_part(&word, '|', &name))
            result = visit(user, name.data, (size_t)name.length_bytes,
                           !term->is_optional && name.length_bytes == length);
    }
    return result;
}

int gguf_list_walk(const char *list, gguf_list_visitor *visit, void *user)
{
    struct term term;
    int result = 0;

    while (result == 0 && next_term(&list, &term))
        result = walk_term(&term, visit, user);
    return result;
}

/* ---- names of a list ---- */

struct search {
    struct gguf_string name, base; /* without the layer's prefix; and without ".weight" */
};

static int compare(void *user, const char *listed, size_t length, bool is_required)
{
    const struct search *search = user;
    const struct gguf_string other = {listed, length};

    return gguf_string_compare(search->name, other) == 0 ||
           (gguf_string_compare(search->base, other) == 0 && !has_suffix(other));
}

static bool list_has(const char *list, struct gguf_string name)
{
    static const char *const suffixes[] = {".weight", ".scale", ".input_scale"};
    struct search search = {name, name};

    for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++)
        if (gguf_string_ends_with(name, suffixes[i]))
            search.base.length_bytes = name.length_bytes - strlen(suffixes[i]);
    return list && /* saves most walks: */
           memmem(list, strlen(list), name.data, (size_t)search.base.length_bytes) &&
           gguf_list_walk(list, compare, &search) != 0;
}

/* ---- layers ---- */

struct part_search {
    const struct place *place;
    const struct gguf_tensor_lists *lists;
    size_t part;
};

/* Find a tensor that only the list of the part names. */
static int find_sign(void *user, const char *data, size_t length, bool is_required)
{
    const struct part_search *search = user;
    const struct gguf_string name = {data, length};

    if (!has_tensor(search->place, name))
        return 0;
    for (size_t i = 0; i < GGUF_N_PARTS; i++)
        if (i != search->part && list_has(search->lists->parts[i], name))
            return 0;
    return !list_has(search->lists->layer, name);
}

static struct place place_of(gguf_tensor_finder *has, const void *user, uint32_t layer)
{
    struct place place = {.has = has, .user = user};

    snprintf(place.prefix, sizeof place.prefix, "blk.%u.", layer);
    return place;
}

static unsigned find_parts(const struct gguf_architecture *architecture, const struct place *place)
{
    struct part_search search = {.place = place, .lists = &architecture->tensors};
    unsigned found = 0;

    for (search.part = 0; search.part < GGUF_N_PARTS; search.part++)
        if (gguf_list_walk(search.lists->parts[search.part], find_sign, &search) != 0)
            found |= 1u << search.part;
    return found;
}

unsigned gguf_layer_parts(const struct gguf_architecture *architecture, gguf_tensor_finder *has,
                          const void *user, uint32_t layer)
{
    const struct place place = place_of(has, user, layer);

    return find_parts(architecture, &place);
}

bool gguf_check_model_tensors(const struct gguf_architecture *architecture, gguf_tensor_finder *has,
                              const void *user, struct gguf_missing_tensor *missing)
{
    const struct place place = {.has = has, .user = user};

    return check_list(&place, architecture->tensors.model, missing);
}

/* Return the name of a part that the layer must have and lacks, or NULL. */
static const char *lacking_part(const struct gguf_architecture *architecture, unsigned parts)
{
    /* A row that lists attention for every layer lists it in `layer`. */
    const bool is_mixed = parts & (GGUF_PART_ATTENTION | GGUF_PART_RECURRENCE) ||
                          (!architecture->tensors.attention && !architecture->tensors.recurrence);
    const bool is_fed = parts & (GGUF_PART_DENSE | GGUF_PART_EXPERTS) ||
                        (!architecture->tensors.dense && !architecture->tensors.experts);

    if (architecture->blocks == GGUF_ANY_BLOCKS)
        return NULL;
    if (architecture->blocks == GGUF_ONE_BLOCK)
        return (parts & ~(unsigned)GGUF_PART_NEXTN) != 0 ? NULL : "mixer or feed-forward";
    return !is_mixed ? "attention" : !is_fed ? "feed-forward" : NULL;
}

bool gguf_check_layer_tensors(const struct gguf_architecture *architecture, gguf_tensor_finder *has,
                              const void *user, uint32_t layer, struct gguf_missing_tensor *missing)
{
    const struct place place = place_of(has, user, layer);
    const unsigned parts = find_parts(architecture, &place);
    const char *lacking = lacking_part(architecture, parts);

    if ((parts != 0 || architecture->blocks != GGUF_ANY_BLOCKS) &&
        !check_list(&place, architecture->tensors.layer, missing))
        return false;
    for (size_t i = 0; i < GGUF_N_PARTS; i++)
        if ((parts & 1u << i) && !check_list(&place, architecture->tensors.parts[i], missing))
            return false;
    if (!lacking)
        return true;
    *missing = (struct gguf_missing_tensor){.part = lacking};
    snprintf(missing->name, sizeof missing->name, "%s*", place.prefix);
    return false;
}

/* Calls `has` for the list of the model, or for the lists of layers, until it returns true. */
static bool search_lists(const struct gguf_architecture *architecture, const char *name,
                         bool (*has)(const char *list, struct gguf_string name))
{
    const struct gguf_tensor_lists *lists = &architecture->tensors;
    const struct gguf_string full = gguf_string_of(name);
    struct gguf_string layer, rest;

    if (has(lists->model, full))
        return true;
    if (!gguf_tensor_name_split(full, &layer, &rest))
        return false;
    for (size_t i = 0; i < GGUF_N_PARTS; i++)
        if (has(lists->parts[i], rest))
            return true;
    return has(lists->layer, rest);
}

bool gguf_lists_have(const struct gguf_architecture *architecture, const char *name)
{
    return search_lists(architecture, name, list_has);
}

static bool term_has(const struct term *term, struct gguf_string name)
{
    return walk_term(term, compare, &(struct search){name, name}) != 0;
}

static bool list_requires(const char *list, struct gguf_string bias)
{
    const struct gguf_string weight = {bias.data, bias.length_bytes - strlen(".bias")};
    struct term term;

    while (next_term(&list, &term))
        if (term_has(&term, bias) && (!term.is_optional || term_has(&term, weight)))
            return true;
    return false;
}

bool gguf_lists_require_bias(const struct gguf_architecture *architecture, const char *name)
{
    return gguf_string_ends_with(gguf_string_of(name), ".bias") &&
           search_lists(architecture, name, list_requires);
}

bool gguf_any_lists_have(const char *name)
{
    const struct gguf_architecture *row;

    for (size_t i = 0; (row = gguf_architecture_at(i)); i++)
        if (gguf_lists_have(row, name))
            return true;
    return false;
}
