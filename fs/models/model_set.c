#include "fs/models/model_set.h"

#include "fs/models/list_texts.h"
#include "fs/models/set_parts.h"
#include "fs/models/text_tree.h"
#include "gguf/support/arrays.h"
#include "gguf/support/keyed_hash.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- listing ---- */

/* Forget an entry, which is no longer in by_path. Adds its tree to those to be closed. */
static void forget(struct fs_model_set *set, struct fs_entry *entry, struct fs_opened **unused)
{
    struct fs_opened *opened = fs_set_drop_tree(set, entry);

    if (opened) {
        opened->next = *unused;
        *unused = opened;
    }
    set->by_id[entry->id] = NULL;
    entry->is_gone = true;
    if (!entry->is_opening)
        fs_set_free_entry(entry);
}

/* Replace the entries of the set by the listed ones. Entries that stay keep their ids. */
static bool merge(struct fs_model_set *set, struct fs_listing *listing, struct fs_opened **unused)
{
    struct fs_entry **old = set->by_path;
    const size_t n_old = set->n_entries;
    bool is_changed = false;

    for (size_t i = 0, j = 0; i < listing->n || j < n_old;) {
        const int order = i == listing->n ? 1
                          : j == n_old
                              ? -1
                              : strcmp(listing->entries[i]->model.name, old[j]->model.name);

        if (order == 0 && fs_set_is_same(old[j], listing->entries[i])) {
            old[j]->model.size_bytes = listing->entries[i]->model.size_bytes;
            fs_set_free_entry(listing->entries[i]);
            listing->entries[i++] = old[j++];
            continue;
        }
        is_changed = true;
        if (order <= 0) {
            listing->entries[i]->id = (uint32_t)set->n_ids;
            set->by_id[set->n_ids++] = listing->entries[i++];
        }
        if (order >= 0)
            forget(set, old[j++], unused);
    }
    free(old);
    set->by_path = listing->entries;
    set->n_entries = listing->n;
    *listing = (struct fs_listing){0};
    return is_changed;
}

/* Make the tree of the files at the root. */
static int write_texts(struct fs_model_set *set, struct fs_opened **unused)
{
    struct fs_sink tsv = fs_sink_that_grows(FS_MAX_TEXT_BYTES), json = tsv, ini = tsv;
    struct timespec now;
    struct fs_opened *opened = calloc(1, sizeof *opened);
    bool is_first = true;
    int result;

    fs_sink_literal(&tsv, FS_MODELS_TSV_HEADER);
    fs_sink_literal(&ini, "version = 1\n");
    for (size_t i = 0; i < set->n_entries; i++) {
        if (set->by_path[i]->target)
            fs_models_ini_section(&ini, &set->by_path[i]->model, set->calls.mountpoint);
        if (set->by_path[i]->is_folder || set->by_path[i]->target)
            continue;
        fs_models_tsv_line(&set->by_path[i]->model, &tsv);
        fs_sink_literal(&json, is_first ? "[\n" : ",\n");
        fs_models_json_object(&set->by_path[i]->model, &json);
        is_first = false;
    }
    fs_sink_literal(&json, is_first ? "[]\n" : "\n]\n");
    result = !opened          ? -ENOMEM
             : tsv.error < 0  ? tsv.error
             : json.error < 0 ? json.error
                              : ini.error;
    if (result < 0) {
        free(tsv.out);
        free(json.out);
        free(ini.out);
    } else {
        result = fs_text_tree_make(
            (const struct fs_named_text[]){{"models.json", json.out, (size_t)json.position, false},
                                           {"models.tsv", tsv.out, (size_t)tsv.position, false},
                                           {"presets.ini", ini.out, (size_t)ini.position, false}},
            &opened->tree);
    }
    clock_gettime(CLOCK_REALTIME, &now);
    if (result == 0 &&
        set->calls.show(set->calls.argument, opened->tree, FS_MODELS_ROOT, 0, now) < 0) {
        fs_text_tree_free(opened->tree);
        result = -ENOMEM;
    }
    if (result < 0) {
        free(opened);
        return result;
    }
    *unused = fs_set_drop_tree(set, set->by_id[FS_MODELS_ROOT]);
    set->by_id[FS_MODELS_ROOT]->model.file.modified = now;
    set->by_id[FS_MODELS_ROOT]->opened = opened;
    *opened = (struct fs_opened){
        .tree = opened->tree, .entry = set->by_id[FS_MODELS_ROOT], .next = set->opened};
    set->opened = opened;
    return 0;
}

int fs_model_set_refresh(struct fs_model_set *set)
{
    const struct fs_models *models = set->calls.models;
    struct gguf_model_list list = {0};
    struct fs_listing listing = {0};
    struct fs_opened *unused = NULL, *texts = NULL;
    struct fs_entry **grown;
    unsigned n_before;
    int result;

    pthread_mutex_lock(&set->lock);
    n_before = set->n_listings;
    pthread_mutex_unlock(&set->lock);
    pthread_mutex_lock(&set->listing);
    if (set->n_listings != n_before) {
        pthread_mutex_unlock(&set->listing);
        return 0;
    }
    pthread_mutex_lock(&set->lock);
    set->n_listings++;
    pthread_mutex_unlock(&set->lock);
    result = models->list(models->argument, set->calls.access, &list);
    if (result == 0)
        result = fs_set_make_listing(&list, &listing);
    pthread_mutex_lock(&set->lock);
    grown = result == 0 ? gguf_grow(set->by_id, &set->room, set->n_ids + listing.n, sizeof *grown)
                        : NULL;
    if (grown)
        set->by_id = grown;
    else if (result == 0)
        result = -ENOMEM;
    if (result == 0 && (merge(set, &listing, &unused) || !set->by_id[FS_MODELS_ROOT]->opened))
        result = write_texts(set, &texts);
    pthread_mutex_unlock(&set->lock);
    pthread_mutex_unlock(&set->listing);
    gguf_model_list_free(&list);
    for (size_t i = 0; i < listing.n; i++)
        fs_set_free_entry(listing.entries[i]);
    free(listing.entries);
    fs_set_close(set, texts);
    while (unused) {
        struct fs_opened *next = unused->next;

        fs_set_close(set, unused);
        unused = next;
    }
    return result;
}

/* ---- finding ---- */

/* Return the index of the first entry whose path is not before the first `length` bytes of one. */
static size_t find_index(const struct fs_model_set *set, const char *path, size_t length)
{
    size_t low = 0, high = set->n_entries;

    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        const char *name = set->by_path[middle]->model.name;
        const int order = strncmp(name, path, length);

        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static struct fs_entry *find_path(const struct fs_model_set *set, const char *path)
{
    const size_t i = find_index(set, path, strlen(path) + 1);

    return i < set->n_entries && strcmp(set->by_path[i]->model.name, path) == 0 ? set->by_path[i]
                                                                                : NULL;
}

static uint32_t generation_of(const struct fs_entry *entry)
{
    const struct gguf_file_status *file = &entry->model.file;

    return (uint32_t)gguf_hash(
        &(struct gguf_hash_key){{(uint64_t)file->modified.tv_sec, file->inode}}, entry->model.name,
        strlen(entry->model.name));
}

int fs_model_set_describe(struct fs_model_set *set, uint32_t id, struct fs_set_entry *out)
{
    const struct fs_entry *entry;

    pthread_mutex_lock(&set->lock);
    entry = fs_set_get_entry(set, id);
    if (entry) {
        const char *slash = strrchr(entry->model.name, '/');

        *out = (struct fs_set_entry){.is_folder = entry->is_folder,
                                     .generation = id == FS_MODELS_ROOT ? 0 : generation_of(entry),
                                     .modified = entry->model.file.modified};
        snprintf(out->name, sizeof out->name, "%s", slash ? slash + 1 : entry->model.name);
        if (entry->is_folder)
            out->modified = set->by_id[FS_MODELS_ROOT]->model.file.modified;
    }
    pthread_mutex_unlock(&set->lock);
    return entry ? 0 : -ESTALE;
}

/* Write the path of a name in a folder. Returns 0 or a negative errno. */
static int make_path(struct fs_model_set *set, uint32_t folder, const char *name, char **path)
{
    const struct fs_entry *entry = fs_set_get_entry(set, folder);
    const char *above = entry ? entry->model.name : "";
    const char *slash = strrchr(above, '/');

    *path = NULL;
    if (!entry)
        return -ESTALE;
    if (strcmp(name, "..") == 0)
        *path = strndup(above, slash ? (size_t)(slash - above) : 0);
    else if (strcmp(name, ".") == 0)
        *path = strdup(above);
    else if (asprintf(path, "%s%s%s", above, above[0] != '\0' ? "/" : "", name) < 0)
        *path = NULL;
    return *path ? 0 : -ENOMEM;
}

/*
 * Return true if a model is as it was. The caller has the lock, which is released meanwhile. A
 * model that could not be opened is closed, to be tried again.
 */
static bool is_up_to_date(struct fs_model_set *set, struct fs_entry *entry)
{
    const struct gguf_store_access *access = set->calls.access;
    const uint32_t id = entry->id;
    char *path = entry->model.path ? strdup(entry->model.path) : NULL;
    struct gguf_file_status now = {0};
    struct fs_opened *unused = NULL;
    int result = 0;

    pthread_mutex_unlock(&set->lock);
    if (path)
        result = access->status(access->argument, path, &now);
    free(path);
    pthread_mutex_lock(&set->lock);
    entry = fs_set_get_entry(set, id);
    if (!entry)
        return false;
    if (entry->model.file.inode == 0)
        entry->model.file = now;
    if (entry->model.is_partial)
        entry->model.file = now;
    if (entry->opened && fs_is_text_tree(entry->opened->tree) && !entry->target &&
        entry->opened->n_users == 0)
        unused = fs_set_drop_tree(set, entry);
    entry->is_changed |= !fs_set_is_same_file(&entry->model.file, &now);
    if (unused) {
        pthread_mutex_unlock(&set->lock);
        fs_set_close(set, unused);
        pthread_mutex_lock(&set->lock);
    }
    return fs_set_get_entry(set, id) == entry && !entry->is_changed && result == 0;
}

int fs_model_set_find(struct fs_model_set *set, uint32_t folder, const char *name, uint32_t *id)
{
    struct fs_entry *found;
    char *path = NULL;
    int result;

    pthread_mutex_lock(&set->lock);
    result = make_path(set, folder, name, &path);
    if (result == 0) {
        found = path[0] != '\0' ? find_path(set, path) : set->by_id[FS_MODELS_ROOT];
        if (!found || (!found->is_folder && !is_up_to_date(set, found))) {
            pthread_mutex_unlock(&set->lock);
            result = fs_model_set_refresh(set);
            pthread_mutex_lock(&set->lock);
            found = find_path(set, path);
        }
        if (found)
            *id = found->id;
        else if (result == 0)
            result = -ENOENT;
    }
    pthread_mutex_unlock(&set->lock);
    free(path);
    return result;
}

int fs_model_set_list(struct fs_model_set *set, uint32_t folder, uint32_t **ids, size_t *n)
{
    const struct fs_entry *entry;
    char *path = NULL;
    int result = fs_model_set_refresh(set);

    *ids = NULL;
    *n = 0;
    pthread_mutex_lock(&set->lock);
    entry = fs_set_get_entry(set, folder);
    if (result == 0 && !entry)
        result = -ESTALE;
    if (result == 0)
        result = make_path(set, folder, "", &path); /* with a slash at its end */
    if (result == 0)
        *ids = malloc((set->n_entries + 1) * sizeof **ids);
    if (result == 0 && !*ids)
        result = -ENOMEM;
    if (result == 0) {
        const size_t length = strlen(path);

        for (size_t i = find_index(set, path, length);
             i < set->n_entries && strncmp(set->by_path[i]->model.name, path, length) == 0; i++)
            if (!strchr(set->by_path[i]->model.name + length, '/'))
                (*ids)[(*n)++] = set->by_path[i]->id;
    }
    pthread_mutex_unlock(&set->lock);
    free(path);
    return result;
}

/* ---- life ---- */

int fs_model_set_make(const struct fs_set_calls *calls, struct fs_model_set **out)
{
    struct fs_model_set *set = calloc(1, sizeof *set);
    struct fs_entry *root = calloc(1, sizeof *root);

    *out = set;
    if (!set || !root || !(root->model.name = strdup("")) ||
        !(set->by_id = gguf_grow(NULL, &set->room, 1, sizeof(struct fs_entry *)))) {
        free(set);
        free(root);
        return -ENOMEM;
    }
    set->calls = *calls;
    root->is_folder = true;
    set->by_id[set->n_ids++] = root;
    pthread_mutex_init(&set->listing, NULL);
    pthread_mutex_init(&set->lock, NULL);
    pthread_cond_init(&set->changed, NULL);
    return fs_model_set_refresh(set);
}

void fs_model_set_free(struct fs_model_set *set)
{
    while (set->opened) {
        struct fs_opened *opened = set->opened;

        fs_set_take_out(set, opened);
        fs_set_close(set, opened);
    }
    for (size_t i = 0; i < set->n_ids; i++)
        if (set->by_id[i])
            fs_set_free_entry(set->by_id[i]);
    free(set->by_id);
    free(set->by_path);
    pthread_cond_destroy(&set->changed);
    pthread_mutex_destroy(&set->lock);
    pthread_mutex_destroy(&set->listing);
    free(set);
}
