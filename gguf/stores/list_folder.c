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

static bool is_projector(const char *name)
{
    return strcasestr(name, "mmproj") != NULL;
}

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

/* Return true if the models from `first` on are types of one model. */
static bool are_one_family(const struct gguf_model_list *list, size_t first)
{
    const char *name = first < list->n_models ? base_of(list->models[first].name) : "";
    size_t shortest = family_bytes(name, strlen(name));

    for (size_t i = first + 1; i < list->n_models; i++) {
        const char *other = base_of(list->models[i].name);
        const size_t length = family_bytes(other, strlen(other));

        shortest = length < shortest ? length : shortest;
        if (strncasecmp(name, other, shortest) != 0)
            return false;
    }
    return true;
}

static bool fits(const struct gguf_listed_model *model, const char *projector, bool is_one_family)
{
    char subject[256];

    get_subject(projector, subject);
    return subject[0] == '\0' ? is_one_family
                              : strncasecmp(base_of(model->name), subject, strlen(subject)) == 0;
}

/* Return true if a projector has the type that every program computes with. */
static bool is_f16(const char *name)
{
    const char *at = strcasestr(name, "f16");

    return at && (at == name || tolower((unsigned char)at[-1]) != 'b');
}

/* A projector of a folder. */
struct projector {
    const char *name;
    uint64_t size_bytes;
    bool is_used;
};

/* Add the projectors that fit: the best is mmproj.gguf, others keep their names. */
static int attach(struct gguf_listed_model *model, const char *folder, struct projector *all,
                  size_t n, bool is_one_family)
{
    size_t best = n;
    int result = 0;

    for (size_t i = 0; i < n; i++)
        if (fits(model, all[i].name, is_one_family) &&
            (best == n || (is_f16(all[i].name) && !is_f16(all[best].name))))
            best = i;
    for (size_t i = 0; result == 0 && i < n; i++) {
        char *path;

        if (!fits(model, all[i].name, is_one_family))
            continue;
        if (asprintf(&path, "%s/%s", folder, all[i].name) < 0)
            return -ENOMEM;
        all[i].is_used = true;
        result = gguf_listed_model_add(model, i == best ? "mmproj.gguf" : all[i].name, path);
        free(path);
    }
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

/* Add the model `name`, of `length` bytes without its endings, of a folder shown as `shown`. */
static int add_model(const struct walk *walk, const char *folder, const char *shown,
                     const char *name, size_t length, uint64_t size_bytes)
{
    char *path = NULL, *full = NULL, escaped[GGUF_ESCAPED_BYTES * 256 + 1];
    int result = -ENOMEM;

    escaped[gguf_escape(name, length < 256 ? length : 255, escaped)] = '\0';
    if (asprintf(&path, "%s/%s", folder, name) >= 0 &&
        asprintf(&full, "%s%s%s", shown, shown[0] != '\0' ? "/" : "", escaped) >= 0)
        result = gguf_model_list_add(
            walk->list, full, path, size_bytes,
            has_controls(name) ? "the file's name has control characters; rename it" : NULL);
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

/* Add the projectors of a folder to the models from `first` on. Others are models of their own. */
static int add_projectors(const struct walk *walk, const char *path, const char *shown,
                          size_t first, struct projector *all, size_t n)
{
    const bool is_one_family = are_one_family(walk->list, first);
    int result = 0;

    for (size_t i = first; n > 0 && result == 0 && i < walk->list->n_models; i++)
        if (walk->list->models[i].n_extras == 0) /* no deeper folder has one */
            result = attach(&walk->list->models[i], path, all, n, is_one_family);
    for (size_t i = 0; i < n && result == 0; i++) {
        bool is_partial;

        if (!all[i].is_used)
            result = add_model(walk, path, shown, all[i].name, name_bytes(all[i].name, &is_partial),
                               all[i].size_bytes);
    }
    return result;
}

static int walk_entries(struct walk *walk, const char *path, const char *shown, int depth,
                        const struct gguf_folder *folder, struct projector *projectors)
{
    const size_t first = walk->list->n_models;
    size_t n_projectors = 0;
    int result = 0;

    for (size_t i = 0; result == 0 && i < folder->n_entries; i++) {
        const struct gguf_folder_entry *entry = &folder->entries[i];
        struct gguf_listed_model *shards;
        bool is_partial;
        const size_t length = name_bytes(entry->name, &is_partial);

        if (entry->is_folder || length == 0)
            continue;
        shards = find_shards(walk->list, first, entry->name);
        if (shards) {
            shards->size_bytes += entry->size_bytes;
        } else if (is_projector(entry->name) && !is_partial && !has_controls(entry->name)) {
            projectors[n_projectors++] =
                (struct projector){.name = entry->name, .size_bytes = entry->size_bytes};
        } else {
            result = add_model(walk, path, shown, entry->name, length, entry->size_bytes);
            if (result == 0)
                walk->list->models[walk->list->n_models - 1].is_partial = is_partial;
        }
        if (walk->list->n_models > MAX_MODELS)
            result = -E2BIG;
    }
    for (size_t i = 0; result == 0 && i < folder->n_entries; i++)
        if (folder->entries[i].is_folder)
            result = walk_below(walk, path, shown, folder->entries[i].name, depth);
    return result == 0 ? add_projectors(walk, path, shown, first, projectors, n_projectors)
                       : result;
}

static int walk_folder(struct walk *walk, const char *path, const char *shown, int depth)
{
    struct projector *projectors;
    struct gguf_folder folder;
    int result;

    if (++walk->n_folders > MAX_FOLDERS || depth > MAX_DEPTH)
        return -E2BIG;
    result = walk->access->list(walk->access->argument, path, &folder);
    if (result < 0)
        return result;
    projectors = calloc(folder.n_entries + 1, sizeof *projectors);
    result = projectors ? walk_entries(walk, path, shown, depth, &folder, projectors) : -ENOMEM;
    free(projectors);
    gguf_folder_free(&folder);
    return result;
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
