#include "gguf/models/tensor_lists.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* A word of a list, or a group in parentheses. Its text has neither these nor the '?'. */
struct term {
    const char *text;
    size_t length;
    bool is_group, is_optional;
};

/* Read the term at *list and step over it. Returns false at the end. */
static bool next_term(const char **list, struct term *term)
{
    const char *at = *list + strspn(*list, " ");

    if (*at == '\0')
        return false;
    term->is_group = *at == '(';
    term->text = at + term->is_group;
    term->length = strcspn(term->text, term->is_group ? ")" : " ?");
    at = term->text + term->length + term->is_group;
    term->is_optional = *at == '?';
    *list = at + term->is_optional;
    return true;
}

/* Take the next name of a text in which names are separated by `separator`. */
static bool next_name(const char **text, const char *end, char separator, const char **name,
                      size_t *length)
{
    if (*text >= end)
        return false;
    *name = *text;
    while (*text < end && **text != separator)
        (*text)++;
    *length = (size_t)(*text - *name);
    if (*text < end)
        (*text)++;
    return true;
}

static bool ends_with(const char *name, size_t length, const char *end)
{
    return length >= strlen(end) && memcmp(name + length - strlen(end), end, strlen(end)) == 0;
}

static bool has_suffix(const char *name, size_t length)
{
    return ends_with(name, length, ".weight") || ends_with(name, length, ".bias") ||
           ends_with(name, length, ".scale");
}

/* Where tensors are looked for: a model or a layer of it. */
struct place {
    gguf_tensor_finder *has;
    const void *user;
    char prefix[24]; /* "blk.7." or "" */
};

static void write_name(const struct place *place, const char *name, size_t length,
                       const char *suffix, char out[GGUF_LIST_NAME_BYTES])
{
    assert(strlen(place->prefix) + length + strlen(suffix) < GGUF_LIST_NAME_BYTES);
    strcpy(mempcpy(stpcpy(out, place->prefix), name, length), suffix);
}

static bool has_tensor(const struct place *place, const char *name, size_t length)
{
    char full[GGUF_LIST_NAME_BYTES];

    write_name(place, name, length, "", full);
    if (place->has(place->user, full))
        return true;
    if (has_suffix(name, length))
        return false;
    write_name(place, name, length, ".weight", full);
    return place->has(place->user, full);
}

/* Return true if one of "a|b|…" is there. */
static bool has_one(const struct place *place, const char *text, size_t length)
{
    const char *at = text, *name;
    size_t n;

    while (next_name(&at, text + length, '|', &name, &n))
        if (has_tensor(place, name, n))
            return true;
    return false;
}

static void set_missing(const struct place *place, const char *text, size_t length,
                        struct gguf_missing_tensor *missing)
{
    const char *at = text, *name = text;
    size_t n = 0;

    *missing = (struct gguf_missing_tensor){0};
    next_name(&at, text + length, '|', &name, &n);
    write_name(place, name, n, has_suffix(name, n) ? "" : ".weight", missing->name);
    snprintf(missing->others, sizeof missing->others, "%.*s", (int)(text + length - at), at);
}

/* Check a group: all of its tensors are there, or none. */
static bool check_group(const struct place *place, const struct term *term,
                        struct gguf_missing_tensor *missing)
{
    const char *end = term->text + term->length, *name, *there = NULL, *lacking = NULL;
    size_t n, n_there = 0, n_lacking = 0;

    for (const char *at = term->text; next_name(&at, end, ' ', &name, &n);) {
        const bool is_there = has_one(place, name, n);

        if (is_there && !there) {
            there = name;
            n_there = n;
        }
        if (!is_there && !lacking) {
            lacking = name;
            n_lacking = n;
        }
    }
    if (!lacking || (!there && term->is_optional))
        return true;
    set_missing(place, lacking, n_lacking, missing);
    if (there)
        write_name(place, there, n_there, has_suffix(there, n_there) ? "" : ".weight",
                   missing->because);
    return false;
}

static bool check_list(const struct place *place, const char *list,
                       struct gguf_missing_tensor *missing)
{
    struct term term;

    while (list && next_term(&list, &term)) {
        if (term.is_group) {
            if (!check_group(place, &term, missing))
                return false;
        } else if (!term.is_optional && !has_one(place, term.text, term.length)) {
            set_missing(place, term.text, term.length, missing);
            return false;
        }
    }
    return true;
}

int gguf_list_walk(const char *list, gguf_list_visitor *visit, void *user)
{
    struct term term;

    while (list && next_term(&list, &term)) {
        const char *end = term.text + term.length, *word, *name;
        size_t n_word, n;

        for (const char *at = term.text; next_name(&at, end, ' ', &word, &n_word);) {
            for (const char *from = word; next_name(&from, word + n_word, '|', &name, &n);) {
                const int result = visit(user, name, n, !term.is_optional && n == n_word);

                if (result != 0)
                    return result;
            }
        }
    }
    return 0;
}

/* ---- names of a list ---- */

static bool is_name(const char *name, size_t length, const char *listed, size_t n_listed)
{
    return length == n_listed && memcmp(name, listed, length) == 0;
}

struct search {
    const char *name;           /* without the layer's prefix */
    size_t length, base_length; /* and without ".weight" */
};

static int compare(void *user, const char *listed, size_t length, bool is_required)
{
    const struct search *search = user;

    (void)is_required;
    return is_name(search->name, search->length, listed, length) ||
           (is_name(search->name, search->base_length, listed, length) &&
            !has_suffix(listed, length));
}

static bool list_has(const char *list, const char *name, size_t length)
{
    static const char *const suffixes[] = {".weight", ".scale", ".input_scale"};
    struct search search = {name, length, length};

    for (size_t i = 0; i < COUNT(suffixes); i++)
        if (ends_with(name, search.length, suffixes[i]))
            search.base_length = search.length - strlen(suffixes[i]);
    return list && memmem(list, strlen(list), name, search.base_length) && /* saves most walks */
           gguf_list_walk(list, compare, &search) != 0;
}

/* ---- layers ---- */

enum { N_PARTS = 5 };

struct parts {
    const char *lists[N_PARTS];
};

static struct parts parts_of(const struct gguf_architecture *architecture)
{
    const struct gguf_tensor_lists *tensors = &architecture->tensors;

    return (struct parts){{tensors->attention, tensors->recurrence, tensors->dense,
                           tensors->experts, tensors->nextn}};
}

struct part_search {
    const struct place *place;
    struct parts parts;
    const char *layer;
    size_t part;
};

/* Find a tensor that only the list of the part names. */
static int find_sign(void *user, const char *name, size_t length, bool is_required)
{
    const struct part_search *search = user;

    (void)is_required;
    if (!has_tensor(search->place, name, length))
        return 0;
    for (size_t i = 0; i < N_PARTS; i++)
        if (i != search->part && list_has(search->parts.lists[i], name, length))
            return 0;
    return !list_has(search->layer, name, length);
}

static struct place place_of(gguf_tensor_finder *has, const void *user, uint32_t layer)
{
    struct place place = {.has = has, .user = user};

    snprintf(place.prefix, sizeof place.prefix, "blk.%u.", layer);
    return place;
}

static unsigned find_parts(const struct gguf_architecture *architecture, const struct place *place)
{
    struct part_search search = {
        .place = place, .parts = parts_of(architecture), .layer = architecture->tensors.layer};
    unsigned found = 0;

    for (search.part = 0; search.part < N_PARTS; search.part++)
        if (gguf_list_walk(search.parts.lists[search.part], find_sign, &search) != 0)
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
    const struct parts all = parts_of(architecture);
    const unsigned parts = find_parts(architecture, &place);
    const char *lacking = lacking_part(architecture, parts);

    if ((parts != 0 || architecture->blocks != GGUF_ANY_BLOCKS) &&
        !check_list(&place, architecture->tensors.layer, missing))
        return false;
    for (size_t i = 0; i < N_PARTS; i++)
        if ((parts & 1u << i) && !check_list(&place, all.lists[i], missing))
            return false;
    if (!lacking)
        return true;
    *missing = (struct gguf_missing_tensor){.part = lacking};
    snprintf(missing->name, sizeof missing->name, "%s*", place.prefix);
    return false;
}

/* Return the part of a name behind "blk.N.", or NULL for other names. */
static const char *name_in_layer(const char *name)
{
    const char *at = name + 4;

    if (strncmp(name, "blk.", 4) != 0)
        return NULL;
    at += strspn(at, "0123456789");
    return *at == '.' ? at + 1 : NULL;
}

/* Calls `has` for the list of the model, or for the lists of layers, until it returns true. */
static bool search_lists(const struct gguf_architecture *architecture, const char *name,
                         bool (*has)(const char *list, const char *name, size_t length))
{
    const struct parts all = parts_of(architecture);
    const char *in_layer = name_in_layer(name);

    if (has(architecture->tensors.model, name, strlen(name)))
        return true;
    for (size_t i = 0; in_layer && i < N_PARTS; i++)
        if (has(all.lists[i], in_layer, strlen(in_layer)))
            return true;
    return in_layer && has(architecture->tensors.layer, in_layer, strlen(in_layer));
}

bool gguf_lists_have(const struct gguf_architecture *architecture, const char *name)
{
    return search_lists(architecture, name, list_has);
}

static bool term_has(const struct term *term, const char *name, size_t length)
{
    const char *end = term->text + term->length, *word, *listed;
    size_t n_word, n;

    for (const char *at = term->text; next_name(&at, end, ' ', &word, &n_word);)
        for (const char *from = word; next_name(&from, word + n_word, '|', &listed, &n);)
            if (is_name(name, length, listed, n))
                return true;
    return false;
}

static bool list_requires(const char *list, const char *bias, size_t length)
{
    struct term term;

    while (list && next_term(&list, &term))
        if (term_has(&term, bias, length) &&
            (!term.is_optional || term_has(&term, bias, length - strlen(".bias"))))
            return true;
    return false;
}

bool gguf_lists_require_bias(const struct gguf_architecture *architecture, const char *name)
{
    return ends_with(name, strlen(name), ".bias") &&
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
