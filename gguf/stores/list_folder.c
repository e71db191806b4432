#include "gguf/stores/model_list.h"

#include "gguf/support/safe_print.h"
#include "gguf/support/shard_names.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* No collection has more; a walk ends there. */
enum { MAX_MODELS = 200000, MAX_FOLDERS = 100000, MAX_DEPTH = 32 };

/* Names of directories: the system's 255 bytes, less what tells equal ones apart. */
enum { MAX_NAME_BYTES = 245 };

struct walk {
    const struct gguf_store_access *access;
    struct gguf_model_list *list;
    size_t n_folders;
};

/* Endings of programs' unfinished downloads. */
static const char *const partial_endings[] = {".part", ".partial", ".incomplete", ".crdownload",
                                              ".downloadInProgress"};

static bool ends_with(const char *name, size_t length, const char *ending)
{
    const size_t n = strlen(ending);

    return length > n && strncasecmp(name + length - n, ending, n) == 0;
}

/* Return the length of a model file's name without its endings, or 0 for other files. */
static size_t name_bytes(const char *name, bool *is_partial)
{
    size_t length = strlen(name);

    *is_partial = false;
    for (size_t i = 0; i < sizeof partial_endings / sizeof *partial_endings && !*is_partial; i++) {
        *is_partial = ends_with(name, length, partial_endings[i]);
        if (*is_partial)
            length -= strlen(partial_endings[i]);
    }
    if (!ends_with(name, length, ".gguf"))
        return 0;
    return *is_partial                      ? length - 5
           : gguf_stem_bytes(name) < length ? gguf_stem_bytes(name)
                                            : length - 5;
}

/* ---- projectors ---- */

/* Return the length of a name without its last word, which may be a type: "-Q4_K_M". */
static size_t family_bytes(const char *name, size_t length)
{
    size_t end = length;

    while (end > 0 && name[end - 1] != '-' && name[end - 1] != '.' && name[end - 1] != '/')
        end--;
    return end > 0 && name[end - 1] != '/' ? end - 1 : length;
}

static const char *base_of(const char *name)
{
    const char *slash = strrchr(name, '/');

    return slash ? slash + 1 : name;
}

static bool is_type(const char *word, size_t length)
{
    return length > 1 && length < 10 &&
           (strchr("fFqQ", word[0]) ? isdigit((unsigned char)word[1])
                                    : strncasecmp(word, "bf16", length) == 0);
}

/* Get the model that a projector's name names: without "mmproj", the type, and marks around them.
 */
static void get_subject(const char *projector, char subject[256])
{
    bool is_partial;
    const size_t length = name_bytes(projector, &is_partial);
    const char *mark = strcasestr(projector, "mmproj");
    size_t before = (size_t)(mark - projector), at = before + strlen("mmproj"), end;

    while (at < length && strchr("-._", projector[at]))
        at++;
    snprintf(subject, 256, "%.*s%.*s", (int)before, projector, (int)(length - at), projector + at);
    end = strlen(subject);
    before = family_bytes(subject, end);
    if (before < end ? is_type(subject + before + 1, end - before - 1) : is_type(subject, end))
        subject[before < end ? before : 0] = '\0';
    end = strlen(subject);
    while (end > 0 && strchr("-._", subject[end - 1]))
        subject[--end] = '\0';
    if (strcasecmp(subject, "model") == 0)
        subject[0] = '\0';
}

static bool is_projector(const struct gguf_listed_model *model)
{
    return !model->error && !model->is_partial && strcasestr(base_of(model->path), "mmproj");
}

/* Return true if the models from `first` on, without projectors, are types of one model. */
static bool are_one_family(const struct gguf_model_list *list, size_t first)
{
    const char *before = NULL;
    size_t before_bytes = 0;

    for (size_t i = first; i < list->n_models; i++) {
        const char *name = base_of(list->models[i].name);
        const size_t length = family_bytes(name, strlen(name));

        if (is_projector(&list->models[i]))
            continue;
        if (before && strncasecmp(name, before, length < before_bytes ? length : before_bytes) != 0)
            return false;
        before = name;
        before_bytes = length;
    }
    return true;
}

/* Return true if a projector has the type that every program computes with. */
static bool is_f16(const char *name)
{
    const char *at = strcasestr(name, "f16");

    return at && (at == name || tolower((unsigned char)at[-1]) != 'b');
}

/* Find the projectors of a folder, the best ones first; NULL: of all folders. */
static size_t find_projectors(const struct gguf_model_list *list, size_t first, const char *folder,
                              size_t *found)
{
    size_t n = 0;

    for (int pass = 0; pass < 2; pass++)
        for (size_t i = first; i < list->n_models; i++) {
            const char *path = list->models[i].path;

            if (is_projector(&list->models[i]) && is_f16(base_of(path)) == (pass == 0) &&
                (!folder || base_of(path) == path + strlen(folder) + 1))
                found[n++] = i;
        }
    return n;
}

/* Add the projectors that fit a model. The best is mmproj.gguf, others keep their names. */
static int attach(struct gguf_model_list *list, struct gguf_listed_model *model,
                  const size_t *projectors, size_t n, bool is_one_family)
{
    int result = 0;

    for (size_t i = 0; result == 0 && i < n; i++) {
        struct gguf_listed_model *projector = &list->models[projectors[i]];
        const char *name = base_of(projector->path);
        char subject[256];

        get_subject(name, subject);
        if (subject[0] == '\0' ? !is_one_family
                               : strncasecmp(base_of(model->name), subject, strlen(subject)) != 0)
            continue;
        result = gguf_listed_model_add(model, model->n_extras == 0 ? "mmproj.gguf" : name,
                                       projector->path);
        projector->n_extras = SIZE_MAX; /* it is used */
    }
    return result;
}

/* Make the projectors of a folder extras of the models from `first` on that they fit. */
static int attach_projectors(struct gguf_model_list *list, size_t first, const char *folder)
{
    size_t *projectors = calloc(list->n_models - first + 1, sizeof *projectors);
    const size_t n = projectors ? find_projectors(list, first, folder, projectors) : 0;
    const bool is_one_family = n > 0 && are_one_family(list, first);
    size_t n_left = first;
    int result = projectors ? 0 : -ENOMEM;

    for (size_t i = first; n > 0 && result == 0 && i < list->n_models; i++)
        /* Those with a projector in a deeper folder have what they need. */
        if (list->models[i].n_extras == 0 && list->models[i].path &&
            !is_projector(&list->models[i]))
            result = attach(list, &list->models[i], projectors, n, is_one_family);
    for (size_t i = first; i < list->n_models; i++) {
        if (list->models[i].n_extras == SIZE_MAX) {
            list->models[i].n_extras = 0;
            gguf_listed_model_free(&list->models[i]);
        } else {
            list->models[n_left++] = list->models[i];
        }
    }
    list->n_models = n_left;
    free(projectors);
    return result;
}

/* ---- the walk ---- */

/* Return the model from `first` on that a file is another shard of, or NULL. */
static struct gguf_listed_model *find_shards(const struct gguf_model_list *list, size_t first,
                                             const char *name)
{
    const size_t stem = gguf_stem_bytes(name);

    /* Names are sorted; only shards of another count can lie between. */
    for (size_t i = list->n_models; i-- > first;) {
        const char *other = base_of(list->models[i].path);

        if (gguf_are_shards_of_one_model(other, name))
            return &list->models[i];
        if (strncmp(other, name, stem) != 0)
            break;
    }
    return NULL;
}

static bool has_controls(const char *name)
{
    for (; *name != '\0'; name++)
        if ((unsigned char)*name < ' ' || *name == 0x7f)
            return true;
    return false;
}

/* Add a model file of a folder shown as `shown`. Its name has `length` bytes without its endings.
 */
static int add_model(const struct walk *walk, const char *folder, const char *shown,
                     const struct gguf_folder_entry *entry, size_t length)
{
    char *path = NULL, *full = NULL, escaped[GGUF_ESCAPED_BYTES * 256 + 1];
    int result = -ENOMEM;

    escaped[gguf_escape(entry->name, length < 256 ? length : 255, escaped)] = '\0';
    escaped[MAX_NAME_BYTES] = '\0';
    if (asprintf(&path, "%s/%s", folder, entry->name) >= 0 &&
        asprintf(&full, "%s%s%s", shown, shown[0] != '\0' ? "/" : "", escaped) >= 0)
        result = gguf_model_list_add(
            walk->list, full, path, entry->status.size_bytes,
            has_controls(entry->name) ? "the file's name has control characters; rename it" : NULL);
    if (result == 0)
        walk->list->models[walk->list->n_models - 1].file = entry->status;
    free(path);
    free(full);
    return result;
}

static int walk_folder(struct walk *walk, const char *path, const char *shown, int depth);

static int walk_below(struct walk *walk, const char *path, const char *shown, const char *name,
                      int depth)
{
    char *below = NULL, *shown_below = NULL, *escaped = gguf_escaped(name), *error;
    int result = -ENOMEM;

    if (escaped && strlen(escaped) > MAX_NAME_BYTES)
        escaped[MAX_NAME_BYTES] = '\0';
    if (escaped && asprintf(&below, "%s/%s", path, name) >= 0 &&
        asprintf(&shown_below, "%s%s%s", shown, shown[0] != '\0' ? "/" : "", escaped) >= 0)
        result = walk_folder(walk, below, shown_below, depth + 1);
    if (result < 0 && result != -ENOMEM && result != -E2BIG) {
        if (result == -ENOENT || result == -ELOOP)
            result = 0; /* gone, or not to be listed */
        else if (asprintf(&error, "the folder cannot be listed: %s", strerror(-result)) < 0)
            result = -ENOMEM;
        else {
            result = gguf_model_list_add(walk->list, shown_below, below, 0, error);
            free(error);
        }
    }
    free(escaped);
    free(below);
    free(shown_below);
    return result;
}

/* Add a file, if it is a model or a shard, to the models from `first` on. */
static int add_file(struct walk *walk, const char *folder, const char *shown,
                    const struct gguf_folder_entry *entry, size_t first)
{
    struct gguf_model_list *list = walk->list;
    bool is_partial;
    const size_t length = name_bytes(entry->name, &is_partial);
    struct gguf_listed_model *shards = find_shards(list, first, entry->name);
    int result = 0;

    if (length == 0)
        return 0;
    if (shards)
        shards->size_bytes += entry->status.size_bytes;
    else
        result = add_model(walk, folder, shown, entry, length);
    if (result == 0 && !shards)
        list->models[list->n_models - 1].is_partial = is_partial;
    return list->n_models > MAX_MODELS ? -E2BIG : result;
}

static int walk_folder(struct walk *walk, const char *path, const char *shown, int depth)
{
    const size_t first = walk->list->n_models;
    struct gguf_folder folder;
    int result;

    if (++walk->n_folders > MAX_FOLDERS || depth > MAX_DEPTH)
        return -E2BIG;
    result = walk->access->list(walk->access->argument, path, &folder);
    if (result < 0)
        return result;
    for (size_t i = 0; result == 0 && i < folder.n_entries; i++)
        if (!folder.entries[i].is_folder)
            result = add_file(walk, path, shown, &folder.entries[i], first);
    for (size_t i = 0; result == 0 && i < folder.n_entries; i++)
        if (folder.entries[i].is_folder)
            result = walk_below(walk, path, shown, folder.entries[i].name, depth);
    gguf_folder_free(&folder);
    return result == 0 ? attach_projectors(walk->list, first, path) : result;
}

int gguf_list_folder(const struct gguf_store_access *access, const char *root,
                     struct gguf_model_list *list, char reason[GGUF_LIST_REASON_BYTES])
{
    struct walk walk = {.access = access, .list = list};
    const int result = walk_folder(&walk, root, "", 0);

    reason[0] = '\0';
    if (result == -E2BIG)
        snprintf(reason, GGUF_LIST_REASON_BYTES,
                 "has over %d folders or %d models, or over %d folders in each other; name a "
                 "smaller one",
                 MAX_FOLDERS, MAX_MODELS, MAX_DEPTH);
    else if (result < 0)
        snprintf(reason, GGUF_LIST_REASON_BYTES, "%s", strerror(-result));
    return result;
}

int gguf_list_files(const struct gguf_store_access *access, const char *const *paths, size_t n,
                    struct gguf_model_list *list)
{
    const size_t first = list->n_models;
    int result = 0;

    for (size_t i = 0; result == 0 && i < n; i++) {
        const char *name = base_of(paths[i]);
        char *folder = strndup(paths[i], (size_t)(name - paths[i] - 1));
        bool is_partial;
        size_t length = name_bytes(name, &is_partial);
        struct gguf_folder_entry entry = {.name = name};

        if (!folder)
            return -ENOMEM;
        access->status(access->argument, paths[i], &entry.status); /* opening it says why not */
        result = add_model(&(struct walk){.list = list}, folder, "", &entry,
                           length > 0 ? length : strlen(name));
        free(folder);
    }
    return result == 0 ? attach_projectors(list, first, NULL) : result;
}
