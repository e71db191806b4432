#include "gguf/stores/store_parts.h"
#include "gguf/support/model_paths.h"
#include "gguf/support/shard_names.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

/*
 * Return the entry of a name: of this spelling or, failing that, of any case; the first of an
 * index in an index; the only one, if the name is empty.
 */
static const struct gguf_listed_model *match(const struct gguf_model_list *index, const char *key,
                                             const char *wanted)
{
    const size_t n = strlen(key);
    const struct gguf_listed_model *found = NULL;
    int best = 0;

    for (size_t i = 0; i < index->n_models; i++) {
        const char *name = index->models[i].name;
        const int score = strcmp(name, key) == 0 || strcmp(name, wanted) == 0 ? 3
                          : strcasecmp(name, key) == 0                        ? 2
                          : strncmp(name, key, n) == 0 && name[n] == '/'      ? 1
                                                                              : 0;

        if (score > best) {
            best = score;
            found = &index->models[i];
        }
    }
    return n == 0 && index->n_models == 1 ? index->models : found;
}

/* Write the names of an index, those like `key` first, as many as there is room for. */
static void write_names(const struct gguf_model_list *index, const char *key, char *out,
                        size_t room)
{
    for (int pass = 0; pass < 2; pass++)
        for (size_t i = 0; i < index->n_models; i++) {
            const struct gguf_listed_model *model = &index->models[i];

            if ((strncasecmp(model->name, key, strcspn(key, ":")) == 0) == (pass == 0))
                gguf_append_name(
                    out, room, model->name,
                    model->path && gguf_partial_bytes(model->path) > 0 ? " (unfinished)" : "");
        }
}

/* Return the path of a model's file, also of a shard, or NULL after the last; to be freed. */
static char *path_at(const struct gguf_listed_model *model, size_t i)
{
    uint32_t number, count = 0;

    if (i < model->n_extras)
        return strdup(model->extras[i].path);
    i -= model->n_extras;
    if (model->n_shards > 0)
        return i < model->n_shards ? strdup(model->shards[i]) : NULL;
    if (i == 0 || !model->path)
        return model->path ? strdup(model->path) : NULL;
    gguf_read_shard_numbers(model->path, &number, &count);
    return i <= count ? gguf_shard_path(model->path, (uint32_t)i) : NULL;
}

/* Check that all files are there and that no link leads out of `root`, unless that is NULL. */
static void check_links(const char *root, struct gguf_listed_model *model)
{
    char *path, *real;

    for (size_t i = 0; !model->error && (path = path_at(model, i)) != NULL; i++) {
        real = realpath(path, NULL);
        if (!real && i <= model->n_extras) /* a shard that is missing is told when it is opened */
            gguf_listed_model_refuse(model,
                                     "its file %s is missing, or its download has not finished: %s",
                                     path, strerror(errno));
        else if (real && root && (!gguf_text_starts_with(real, root) || real[strlen(root)] != '/'))
            gguf_listed_model_refuse(model,
                                     "its file %s is a link to %s, out of the cache; name that "
                                     "file itself if you trust it",
                                     path, real);
        free(real);
        free(path);
    }
}

/* Find out what is at a place. The caller frees search->index. */
static int begin_search(struct gguf_store_search *search, const struct gguf_store_access *access,
                        const struct gguf_store_spot *place, struct gguf_model_list *found)
{
    int result;

    *search = (struct gguf_store_search){
        .access = access, .kind = place->kind, .root = place->root, .found = found};
    result = place->kind->index(search);
    return result < 0 ? result : search->index.error;
}

static void load(struct gguf_store_search *search, const struct gguf_listed_model *entry)
{
    if (entry->error)
        gguf_listed_model_refuse(gguf_store_begin(search, entry), "%s", entry->error);
    else if (entry->path)
        search->kind->load(search, entry);
    else
        search->found->error = -ENOMEM;
}

/* Add all models at a place. */
static int load_all(const struct gguf_store_access *access, const struct gguf_store_spot *place,
                    struct gguf_model_list *found)
{
    struct gguf_store_search search;
    const int result = begin_search(&search, access, place, found);

    for (size_t i = 0; i < search.index.n_models && result == 0 && found->error == 0; i++)
        load(&search, &search.index.models[i]);
    gguf_model_list_free(&search.index);
    return result < 0 ? result : found->error;
}

/* Look for a model at a place. Adds it to `found`, or the names that the place has to `names`. */
static int find_at(const struct gguf_store_spot *place, const struct gguf_store_places *places,
                   const char *key, struct gguf_model_list *found,
                   char names[GGUF_LIST_REASON_BYTES / 2])
{
    struct gguf_store_search search;
    const int result = begin_search(&search, &gguf_direct_access, place, found);
    const struct gguf_listed_model *entry = match(&search.index, key, places->name);
    char *root = place->kind->is_confined ? realpath(place->root, NULL) : NULL;

    search.wanted = places->name[0] != '\0' ? places->name : NULL;
    if (entry)
        load(&search, entry);
    else
        write_names(&search.index, key, names, GGUF_LIST_REASON_BYTES / 2);
    for (size_t i = 0; i < found->n_models; i++)
        check_links(root, &found->models[i]);
    free(root);
    gguf_model_list_free(&search.index);
    return result < 0 ? result : found->error;
}

/* Return the name of a model as the index has it, or NULL if it has another form. */
static char *make_key(const struct gguf_store_kind *kind, const char *name)
{
    char *key = kind->key ? kind->key(name) : strdup(name);

    return kind->has_tags ? gguf_store_add_tag(key) : key;
}

/* Say that a store is not there if `name` is NULL, else that it has no model of that name. */
static int refuse_name(const struct gguf_store_places *places, const char *name, const char *names,
                       char reason[GGUF_LIST_REASON_BYTES])
{
    char remedy[GGUF_REMEDY_BYTES] = "", roots[GGUF_LIST_REASON_BYTES / 3] = "";
    const char *in = places->n > 0 ? " in " : "";
    bool is_there = false;

    for (size_t i = 0; i < places->n; i++) {
        gguf_append_name(roots, sizeof roots, places->list[i].root, "");
        is_there |= access(places->list[i].root, F_OK) == 0;
    }
    if (name && strcmp(places->prefix, "hf:") == 0 && places->name[0] != '\0')
        gguf_remote_remedy(name, remedy);
    if (!name || places->n == 0 || (!is_there && remedy[0] == '\0') ||
        (places->name[0] == '\0' && names[0] == '\0'))
        return gguf_set_reason(reason, -ENOENT,
                               "there is no store%s%s; name its folder, as in %s%s", in, roots,
                               places->prefix,
                               strcmp(places->prefix, "oci:") == 0 ? "DIR:REFERENCE"
                               : places->n == 0                    ? "/DIR, or set HOME"
                                                                   : "/DIR");
    return gguf_set_reason(reason, -ENOENT, "%s%s%s%s%s",
                           places->name[0] == '\0' ? "names no model" : "there is no such model",
                           in, roots,
                           remedy[0] != '\0'  ? "; "
                           : names[0] != '\0' ? "; it has: "
                                              : "",
                           remedy[0] != '\0' ? remedy : names);
}

int gguf_store_find(const char *name, bool partial, struct gguf_listed_model *model,
                    char reason[GGUF_LIST_REASON_BYTES])
{
    char names[GGUF_LIST_REASON_BYTES / 2] = "", *key;
    struct gguf_model_list found = {0};
    struct gguf_store_places places;
    bool has_form = false;
    size_t n_before;
    int result = 0;

    *model = (struct gguf_listed_model){0};
    reason[0] = '\0';
    if (!gguf_store_find_places(&gguf_direct_access, name, &places))
        return 1;
    for (size_t i = 0; i < places.n; i++) {
        key = make_key(places.list[i].kind, places.name);
        has_form = key != NULL;
        if (!has_form)
            continue;
        n_before = found.n_models;
        result = find_at(&places.list[i], &places, key, &found, names);
        free(key);
        if (result == -ENOMEM)
            break;
        if (found.n_models > n_before && !found.models[n_before].error) {
            *model = found.models[n_before];
            found.models[n_before] = found.models[--found.n_models];
            break;
        }
    }
    if (result == -ENOMEM)
        gguf_set_reason(reason, result, "%s", strerror(ENOMEM));
    else if (model->path && model->is_partial && !partial)
        result = gguf_set_reason(
            reason, -ENOENT, "its download has not finished: %s; -o partial shows what is there",
            model->path);
    else if (model->path)
        result = 0;
    else if (found.n_models > 0 && found.models[0].error)
        result = gguf_set_reason(reason, -EINVAL, "%s", found.models[0].error);
    else if (places.n > 0 && !has_form)
        result = gguf_set_reason(reason, -ENOENT, "is not a name of the form %s%s", places.prefix,
                                 places.list[places.n - 1].kind->form);
    else
        result = refuse_name(&places, name, names, reason);
    if (result < 0)
        gguf_listed_model_free(model);
    gguf_model_list_free(&found);
    gguf_store_free_places(&places);
    return result;
}

int gguf_store_list(const struct gguf_store_access *access, const char *name,
                    struct gguf_model_list *list, char reason[GGUF_LIST_REASON_BYTES])
{
    struct gguf_store_places places;
    size_t n_listed = 0;
    int error = -ENOENT;

    reason[0] = '\0';
    if (!gguf_store_find_places(access, name, &places))
        return 1;
    for (size_t i = 0; i < places.n; i++) {
        const size_t n_before = list->n_models;
        int result = load_all(access, &places.list[i], list);

        for (size_t j = n_before; j < list->n_models; j++) {
            char *colon = strrchr(list->models[j].name, ':');

            if (colon && !strchr(colon, '/')) /* the tag is a folder */
                *colon = '/';
        }
        if (result == 0)
            result = gguf_name_directories(list, n_before);
        n_listed += result == 0;
        if (result < 0 && (error == -ENOENT || error == 0)) {
            error = result;
            gguf_set_reason(reason, error, "the store %s cannot be listed: %s", places.list[i].root,
                            error == -E2BIG ? "it has too many models" : strerror(-error));
        }
    }
    if (n_listed == 0 && error == -ENOENT)
        refuse_name(&places, NULL, "", reason);
    gguf_store_free_places(&places);
    return n_listed > 0 && error == -ENOENT ? 0 : error;
}

/* ---- names ---- */

/* Print a name that begins with `word`, without bytes that a terminal obeys. Returns if it did. */
static bool offer(FILE *stream, const char *word, const char *start, const char *name,
                  const char *tag)
{
    char *whole = gguf_text("%s%s%s%s", start, name, tag ? ":" : "", tag ? tag : "");
    bool fits = whole && gguf_text_starts_with(whole, word);

    for (const char *c = whole; fits && *c != '\0'; c++)
        fits = (unsigned char)*c > ' ' && *c != 0x7f;
    if (fits)
        fprintf(stream, "%s\t\n", whole);
    free(whole);
    return fits;
}

/* Offer the models at a place, and the files or tags of a repository whose name is complete. */
static bool offer_place(FILE *stream, const char *word, const struct gguf_store_places *places,
                        const struct gguf_store_spot *place)
{
    struct gguf_model_list files = {0};
    struct gguf_store_search search;
    const int length = (int)(places->name - word);
    char *start = gguf_text("%.*s%s", length, word, word[length - 1] == ':' ? "" : ":");
    bool has_offered = false;

    begin_search(&search, &gguf_direct_access, place, &files);
    for (size_t i = 0; i < search.index.n_models && start; i++) {
        const char *name = search.index.models[i].name, *rest = places->name + strlen(name);
        const size_t first = files.n_models;

        has_offered |= offer(stream, word, start, name, NULL);
        if (gguf_text_starts_with(places->name, name) &&
            (*rest == '/' || (*rest == ':' && !place->kind->has_tags)))
            load(&search, &search.index.models[i]);
        for (size_t j = first; j < files.n_models; j++) {
            char *tag = *rest == ':' ? gguf_tag_of(&files, j) : NULL;

            if (tag)
                has_offered |= offer(stream, word, start, name, tag);
            else if (*rest == '/')
                has_offered |= offer(stream, word, start, files.models[j].name, NULL);
            free(tag);
        }
    }
    free(start);
    gguf_model_list_free(&files);
    gguf_model_list_free(&search.index);
    return has_offered;
}

bool gguf_store_complete(const char *word, FILE *stream)
{
    struct gguf_store_places places;
    bool has_offered = false;

    if (gguf_store_find_places(&gguf_direct_access, word, &places)) {
        for (size_t i = 0; i < places.n; i++)
            has_offered |= offer_place(stream, word, &places, &places.list[i]);
    } else {
        for (size_t i = 0; i < GGUF_STORE_KINDS && word[0] != '\0'; i++)
            if (i == 0 || strcmp(gguf_store_kinds[i].prefix, gguf_store_kinds[i - 1].prefix) != 0)
                offer(stream, word, "", gguf_store_kinds[i].prefix, NULL);
    }
    gguf_store_free_places(&places);
    return has_offered;
}

/* Return true if a file is one of a model's. */
static bool has_file(const struct gguf_listed_model *model, const struct gguf_file_status *file)
{
    struct gguf_file_status status;
    bool has = false;
    char *path;

    for (size_t i = 0; !has && (path = path_at(model, i)) != NULL; i++) {
        has = gguf_direct_access.status(NULL, path, &status) == 0 && status.inode == file->inode &&
              status.device == file->device;
        free(path);
    }
    return has;
}

/* Return the name of the model of a store that has the file, or NULL. */
static char *find_name(const struct gguf_store_spot *place, const struct gguf_file_status *file,
                       const char *likely)
{
    struct gguf_model_list models = {0};
    const struct gguf_listed_model *found = NULL;
    struct gguf_store_places usual;
    bool is_usual = false;
    char *name = NULL;

    gguf_store_find_places(&gguf_direct_access, place->kind->prefix, &usual);
    for (size_t i = 0; i < usual.n; i++)
        is_usual |= strcmp(usual.list[i].root, place->root) == 0;
    gguf_store_free_places(&usual);
    load_all(&gguf_direct_access, place, &models);
    for (size_t i = models.n_models; i-- > 0;) {
        const struct gguf_listed_model *model = &models.models[i];

        if (has_file(model, file) && (!found || !likely || strcmp(found->name, likely) != 0))
            found = model;
    }
    if (found)
        name = gguf_text("%s%s%s%s", place->kind->prefix, is_usual ? "" : place->root,
                         is_usual ? "" : ":", found->name);
    gguf_model_list_free(&models);
    return name;
}

char *gguf_store_name_of(const char *path, const char *likely)
{
    char *real = realpath(path, NULL), *end = real ? strstr(real, "/blobs/") : NULL;
    struct gguf_file_status status;
    char *name = NULL;

    if (end && gguf_direct_access.status(NULL, path, &status) < 0)
        end = NULL;
    for (unsigned depth = 1; depth <= 2 && end && !name; depth++) {
        *end = '\0';
        for (size_t i = 0; i < GGUF_STORE_KINDS && !name; i++)
            if (gguf_store_kinds[i].blob_depth == depth)
                name = find_name(&(struct gguf_store_spot){&gguf_store_kinds[i], real}, &status,
                                 likely);
        end = strrchr(real, '/');
    }
    free(real);
    return name;
}
