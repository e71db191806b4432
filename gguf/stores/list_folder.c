#include "gguf/stores/store_parts.h"
#include "gguf/support/safe_print.h"
#include "gguf/support/shard_names.h"
#include "gguf/support/strings.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* A walk ends there. */
enum { MAX_FOLDERS = 100000, MAX_DEPTH = 32 };

/* Names of directories: the system's 255 bytes, less what tells equal ones apart. */
enum { MAX_NAME_BYTES = 245 };

/* ---- the walk ---- */

struct walk {
    const struct gguf_store_access *access;
    struct gguf_model_list *list;
    gguf_visit *visit;
    void *user;
    size_t n_folders;
};

static int walk_folder(struct walk *walk, const char *path, const char *below, int depth)
{
    struct gguf_thing thing = {.first = walk->list->n_models};
    struct gguf_folder folder;
    int result;

    if (++walk->n_folders > MAX_FOLDERS || depth > MAX_DEPTH) {
        walk->list->error = -E2BIG;
        return 0;
    }
    result = walk->access->list(walk->access->argument, path, &folder);
    if (result < 0)
        return result;
    thing.folder = &folder;
    for (size_t i = 0; i < folder.n_entries && walk->list->error == 0; i++) {
        thing.entry = &folder.entries[i];
        thing.path = gguf_text("%s/%s", path, thing.entry->name);
        thing.below = gguf_text("%s%s%s", below, below[0] != '\0' ? "/" : "", thing.entry->name);
        if (!thing.path || !thing.below)
            walk->list->error = -ENOMEM;
        else if (walk->visit(walk->user, &thing))
            result = walk_folder(walk, thing.path, thing.below, depth + 1);
        /* If it has gone, or must not be listed, it holds no models. */
        if (result < 0 && result != -ENOENT && result != -ELOOP) {
            gguf_listed_model_refuse(gguf_model_list_add(walk->list, thing.below, thing.path),
                                     "the folder cannot be listed: %s", strerror(-result));
        } else {
            free(thing.path);
            free(thing.below);
        }
        result = 0;
    }
    thing.entry = NULL;
    thing.path = (char *)(uintptr_t)path;
    walk->visit(walk->user, &thing);
    free(folder.entries);
    return 0;
}

int gguf_walk(const struct gguf_store_access *access, struct gguf_model_list *list,
              const char *path, gguf_visit *visit, void *user)
{
    struct walk walk = {access, list, visit, user, 0};
    const int result = path ? walk_folder(&walk, path, "", 0) : -ENOMEM;

    return result < 0 ? result : list->error;
}

/* ---- names ---- */

const char *const gguf_partial_endings[] = {
    "-partial", ".part", ".partial", ".incomplete", ".crdownload", ".downloadInProgress", NULL};

static bool ends_with(const char *name, size_t length, const char *ending)
{
    const size_t n = strlen(ending);

    return length > n && strncasecmp(name + length - n, ending, n) == 0;
}

size_t gguf_partial_bytes(const char *name)
{
    const size_t length = strlen(name);

    for (size_t i = 0; gguf_partial_endings[i]; i++)
        if (ends_with(name, length, gguf_partial_endings[i]))
            return length - strlen(gguf_partial_endings[i]);
    return 0;
}

/* Return the length of a model file's name without its endings, or 0 for other files. */
static size_t name_bytes(const char *name)
{
    const size_t partial = gguf_partial_bytes(name), stem = gguf_stem_bytes(name);
    const size_t length = partial > 0 ? partial : strlen(name);

    if (!ends_with(name, length, ".gguf"))
        return 0;
    return partial == 0 && stem < length ? stem : length - 5;
}

int gguf_name_directories(struct gguf_model_list *list, size_t first)
{
    for (size_t i = first; i < list->n_models; i++) {
        char *name = gguf_escaped(list->models[i].name), *part = name;

        while (part && *part != '\0') {
            const size_t n = strcspn(part, "/");

            if (n > MAX_NAME_BYTES)
                memmove(part + MAX_NAME_BYTES, part + n, strlen(part + n) + 1);
            part += strcspn(part, "/");
            part += *part == '/';
        }
        if (name) {
            free(list->models[i].name);
            list->models[i].name = name;
        } else {
            list->error = -ENOMEM;
        }
    }
    return list->error;
}

const char *gguf_base_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

/* ---- projectors ---- */

struct listing {
    struct gguf_model_list *list;
    struct gguf_model_list projectors; /* of the folders that the walk is in */
    enum gguf_folder_kind kind;
};

size_t gguf_family_bytes(const char *name, size_t length)
{
    size_t end = length;

    while (end > 0 && name[end - 1] != '-' && name[end - 1] != '.' && name[end - 1] != '/')
        end--;
    return end > 0 && name[end - 1] != '/' ? end - 1 : length;
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
    const size_t length = name_bytes(projector);
    const char *mark = strcasestr(projector, "mmproj");
    size_t before = (size_t)(mark - projector), at = before + strlen("mmproj"), end;

    while (at < length && strchr("-._", projector[at]))
        at++;
    snprintf(subject, 256, "%.*s%.*s", (int)before, projector, (int)(length - at), projector + at);
    end = strlen(subject);
    before = gguf_family_bytes(subject, end);
    if (before < end ? is_type(subject + before + 1, end - before - 1) : is_type(subject, end))
        subject[before < end ? before : 0] = '\0';
    end = strlen(subject);
    while (end > 0 && strchr("-._", subject[end - 1]))
        subject[--end] = '\0';
    if (strcasecmp(subject, "model") == 0)
        subject[0] = '\0';
}

/* Return true if the models from `first` on are types of one model. */
static bool are_one_family(const struct gguf_model_list *list, size_t first)
{
    const char *before = NULL;
    size_t before_bytes = 0;

    for (size_t i = first; i < list->n_models; i++) {
        const char *name = gguf_base_name(list->models[i].name);
        const size_t length = gguf_family_bytes(name, strlen(name));

        if (before && strncasecmp(name, before, length < before_bytes ? length : before_bytes) != 0)
            return false;
        before = name;
        before_bytes = length;
    }
    return true;
}

/* Return the bits of a type in a file's name: 8 for "-Q8_0", 16 for "-BF16"; 0: unknown. */
static int bits_of(const char *path)
{
    int bits = 0;

    for (const char *c = gguf_base_name(path); *c != '\0'; c++)
        if (strchr("QqFf", *c) && isdigit((unsigned char)c[1]))
            bits = atoi(c + 1);
    return bits;
}

/* Return how far a projector is from a model: in bits, as llama.cpp's -hf has it; BF16 after F16.
 */
static int distance_of(const char *projector, const char *model)
{
    return 2 * abs(bits_of(projector) - bits_of(model)) +
           (strcasestr(gguf_base_name(projector), "bf16") != NULL);
}

/* Add the projectors that fit a model. The best is mmproj.gguf, others keep their names. */
static void attach(struct listing *listing, struct gguf_listed_model *model, size_t first,
                   bool is_one_family)
{
    struct gguf_listed_file *extras;
    size_t best = 0;
    char *name;

    for (size_t i = first; i < listing->projectors.n_models; i++) {
        struct gguf_listed_model *projector = &listing->projectors.models[i];
        char subject[256];

        get_subject(gguf_base_name(projector->path), subject);
        if (listing->kind != GGUF_REPOSITORY &&
            (subject[0] == '\0'
                 ? !is_one_family
                 : strncasecmp(gguf_base_name(model->name), subject, strlen(subject)) != 0))
            continue;
        gguf_model_list_add_file(listing->list, model, gguf_base_name(projector->path),
                                 strdup(projector->path));
        projector->is_partial = true; /* it is used */
    }
    extras = model->extras;
    for (size_t i = 1; i < model->n_extras; i++)
        if (distance_of(extras[i].path, model->path) < distance_of(extras[best].path, model->path))
            best = i;
    name = model->n_extras > 0 ? strdup("mmproj.gguf") : NULL;
    if (name) {
        const struct gguf_listed_file chosen = {name, extras[best].path};

        free(extras[best].name);
        extras[best] = extras[0];
        extras[0] = chosen;
    }
}

/* Make the projectors of a folder extras of the models from `first` on that they fit, or models. */
static void attach_projectors(struct listing *listing, const struct gguf_thing *end)
{
    struct gguf_model_list *list = listing->list, *projectors = &listing->projectors;
    const size_t n_models = list->n_models, length = end->path ? strlen(end->path) : 0;
    const bool is_one_family = are_one_family(list, end->first);
    size_t first = projectors->n_models;

    /* Those of the folders above come before. */
    while (first > 0 && (!end->path || gguf_base_name(projectors->models[first - 1].path) ==
                                           projectors->models[first - 1].path + length + 1))
        first--;
    for (size_t i = end->first; first < projectors->n_models && i < n_models; i++)
        /* Those with a projector in a deeper folder have what they need. */
        if (list->models[i].n_extras == 0 && list->models[i].path && !list->models[i].error)
            attach(listing, &list->models[i], first, is_one_family);
    for (; projectors->n_models > first; projectors->n_models--) {
        struct gguf_listed_model *projector = &projectors->models[projectors->n_models - 1];
        struct gguf_listed_model *model =
            projector->is_partial ? NULL : gguf_model_list_add(list, strdup(projector->name), NULL);

        if (model) {
            free(model->name);
            *model = *projector;
        } else {
            gguf_listed_model_free(projector);
        }
    }
}

/* ---- files ---- */

static bool has_controls(const char *name)
{
    for (; *name != '\0'; name++)
        if ((unsigned char)*name < ' ' || *name == 0x7f)
            return true;
    return false;
}

/* Return true if one entry is another shard of the same model. Names are sorted, so that only
 * shards of another count can lie between them: *goes_on is set if there can be more. */
static bool is_shard(const struct gguf_folder_entry *entry, const char *name, bool *goes_on)
{
    *goes_on = strncmp(entry->name, name, gguf_stem_bytes(name)) == 0;
    return !entry->is_folder && gguf_are_shards_of_one_model(entry->name, name);
}

/* Add a model file, with the sizes of its other shards in the folder, unless one of them was. */
static void add_file(struct listing *listing, const char *path, const char *below,
                     const struct gguf_folder_entry *entry, const struct gguf_folder *folder)
{
    const char *name = gguf_base_name(path);
    const bool is_partial = gguf_partial_bytes(name) > 0, is_bad = has_controls(name);
    const bool is_projector = !is_partial && !is_bad && strcasestr(name, "mmproj");
    const size_t length = name_bytes(below);
    struct gguf_listed_model *model;
    bool goes_on = folder != NULL;
    char *own;

    for (const struct gguf_folder_entry *at = entry; goes_on && at > folder->entries; at--)
        if (is_shard(&at[-1], name, &goes_on))
            return;
    own = strdup(path);
    model =
        gguf_model_list_add(is_projector ? &listing->projectors : listing->list,
                            own ? strndup(below, length > 0 ? length : strlen(below)) : NULL, own);
    if (!model) {
        if (listing->list->error == 0)
            listing->list->error = listing->projectors.error;
        return;
    }
    model->is_partial = is_partial;
    model->file = entry->status;
    model->size_bytes = entry->status.size_bytes;
    if (is_bad)
        gguf_listed_model_refuse(model, "the file's name has control characters; rename it");
    goes_on = folder != NULL;
    for (const struct gguf_folder_entry *at = entry + 1;
         goes_on && at < folder->entries + folder->n_entries; at++)
        if (is_shard(at, name, &goes_on))
            model->size_bytes += at->status.size_bytes;
}

static bool visit(void *user, const struct gguf_thing *thing)
{
    struct listing *listing = user;

    if (!thing->entry)
        attach_projectors(listing, thing);
    else if (!thing->entry->is_folder && name_bytes(thing->entry->name) > 0)
        add_file(listing, thing->path, thing->below, thing->entry, thing->folder);
    return thing->entry && thing->entry->is_folder && listing->kind != GGUF_FOLDER_ALONE;
}

int gguf_list_folder(const struct gguf_store_access *access, const char *root,
                     enum gguf_folder_kind kind, struct gguf_model_list *list,
                     char reason[GGUF_LIST_REASON_BYTES])
{
    struct listing listing = {.list = list, .kind = kind};
    const size_t first = list->n_models;
    int result = gguf_walk(access, list, root, visit, &listing);

    reason[0] = '\0';
    gguf_model_list_free(&listing.projectors);
    if (list->n_models > first)
        qsort(list->models + first, list->n_models - first, sizeof *list->models,
              gguf_compare_names);
    if (result == 0 && kind != GGUF_REPOSITORY)
        result = gguf_name_directories(list, first);
    if (result == -E2BIG) {
        list->error = 0;
        return gguf_set_reason(reason, result,
                               "has over %d folders or %d models, or over %d folders in each "
                               "other; name a smaller one",
                               MAX_FOLDERS, GGUF_MAX_LISTED_MODELS, MAX_DEPTH);
    }
    return result < 0 ? gguf_set_reason(reason, result, "%s", strerror(-result)) : 0;
}

int gguf_list_files(const struct gguf_store_access *access, const char *const *paths, size_t n,
                    struct gguf_model_list *list)
{
    struct listing listing = {.list = list};
    const size_t first = list->n_models;

    for (size_t i = 0; i < n; i++) {
        struct gguf_folder_entry entry = {0};

        access->status(access->argument, paths[i], &entry.status); /* opening it says why not */
        add_file(&listing, paths[i], gguf_base_name(paths[i]), &entry, NULL);
    }
    attach_projectors(&listing, &(struct gguf_thing){.first = first});
    gguf_model_list_free(&listing.projectors);
    return list->error == 0 ? gguf_name_directories(list, first) : list->error;
}
